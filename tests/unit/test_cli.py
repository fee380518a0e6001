"""The command line as a person meets it: exit codes, streams, and never a traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from solkit import record
from solkit.cli.console import table
from solkit.cli.main import arranged
from solkit.model import Measured, Skipped

SOLKIT = (sys.executable, "-m", "solkit")
ROOT = Path(__file__).parents[2]
# One card-free machine for all tests, whatever they run on.
NO_CARD = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
QUICK = ("--device", "cpu", "--budget", "0.01")
Done = subprocess.CompletedProcess[str]
needs_shell = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs a POSIX shell and /dev/full"
)


def solkit(*words: str, at: Path) -> Done:
    done = subprocess.run(
        (*SOLKIT, *words),
        cwd=at,
        env=NO_CARD,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def cpu_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Return the folder in which one small sweep was measured, and what was printed."""
    at = tmp_path_factory.mktemp("cpu")
    (at / "shapes.yaml").write_text(
        "version: 1\nsweeps:\n"
        "- {operator: softmax, dtype: [fp32, bf16], grid: {rows: [8, 16], cols: 64}}\n"
        "- {operator: softmax, dtype: fp32, shapes: [{rows: 8, cols: 64}]}\n"
    )
    return at, solkit("run", "--shapes", "shapes.yaml", *QUICK, at=at)


def test_a_run_ends_with_the_path_of_its_report(cpu_run: tuple[Path, Done]) -> None:
    """Exit 0, though cases were skipped; run.jsonl, report.html and the link `latest` are there."""
    at, done = cpu_run
    assert 0 == done.returncode, done.stderr
    report = Path(done.stdout.splitlines()[-1])
    assert (at / report).read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert (at / "solkit-out" / "latest").resolve() == (at / report).parent.resolve()
    run = record.read((at / report).parent / "run.jsonl")
    assert ("complete", 4, 0) == (run.ended, run.planned_count, run.seed)
    assert [Skipped, Skipped, Measured, Measured] == [type(item) for item in run.outcomes]
    assert "2 measured, 2 skipped" in done.stdout


def test_a_run_says_on_stderr_what_it_took_and_merged(cpu_run: tuple[Path, Done]) -> None:
    """The device, and the duplicate case."""
    _, done = cpu_run
    assert "device: the CPU" in done.stderr
    assert "duplicate cases are measured once: shapes.yaml: line 4: softmax/numpy" in done.stderr


def test_a_run_says_what_it_leaves_out_before_it_measures(cpu_run: tuple[Path, Done]) -> None:
    """Skipped cases by reason, on stderr and ahead of the first measurement."""
    _, done = cpu_run
    told = "skipped 2 cases of softmax: NumPy has fp32 and fp64 arithmetic only, bf16 needs a GPU\n"
    assert 0 < done.stderr.find(told) < done.stderr.find("softmax/numpy rows=16")


def test_a_case_too_big_for_the_memory_says_need_and_room(tmp_path: Path) -> None:
    """Before anything is allocated: a softmax of 4 TB in and out."""
    done = solkit("run", "softmax", "rows=1000000", "cols=1000000", *QUICK, at=tmp_path)
    assert 3 == done.returncode, done.stderr  # nothing was measured
    assert re.search(
        r"skipped 1 case of softmax: needs 21\.8 TiB of memory \(temporaries included\),"
        r" [\d.]+ [GT]iB are free on ",
        done.stderr,
    ), done.stderr


def test_quiet_leaves_data_alone(cpu_run: tuple[Path, Done]) -> None:
    """--quiet stands before or after the command and silences stderr."""
    at, _ = cpu_run
    done = solkit("report", "solkit-out/latest", "--format", "csv", "--quiet", at=at)
    assert ("", 5) == (done.stderr, len(done.stdout.splitlines()))
    assert "softmax,numpy,bf16,rows=8;cols=64;masking=none;scale=1.0,skipped" in done.stdout


def test_a_run_is_rendered_again_into_a_file(cpu_run: tuple[Path, Done]) -> None:
    """Report needs no device."""
    at, _ = cpu_run
    assert 0 == solkit("report", "-o", "again.html", at=at).returncode, "the latest by default"
    assert (at / "again.html").stat().st_size > 10_000
    assert solkit("report", "solkit-out/latest/run.jsonl", "--format", "markdown", at=at).stdout


def test_a_finished_run_has_nothing_to_resume(cpu_run: tuple[Path, Done]) -> None:
    """--resume of a whole run judges and reports again."""
    at, _ = cpu_run
    done = solkit("run", "--resume", "solkit-out/latest", *QUICK[:2], at=at)
    assert 0 == done.returncode
    assert "0 of 4 cases are missing" in done.stderr


def test_the_roofline_is_that_of_the_latest_run(cpu_run: tuple[Path, Done]) -> None:
    """Without arguments: the latest run; the file is named on stdout."""
    at, _ = cpu_run
    done = solkit("roofline", at=at)
    assert (0, "roofline.svg\n") == (done.returncode, done.stdout), done.stderr
    assert "<svg" in (at / "roofline.svg").read_text(encoding="utf-8")


@pytest.fixture
def cut_run(cpu_run: tuple[Path, Done], tmp_path: Path) -> Path:
    """Return the folder of a run that was cut in its last case: to finish it takes no ceilings."""
    at, _ = cpu_run
    source = (at / "solkit-out" / "latest").resolve()
    (tmp_path / "resume.json").write_bytes((source / "resume.json").read_bytes())
    lines = (source / "run.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run.jsonl").write_bytes(b"".join(lines[:-2]) + lines[-2][:100])
    return tmp_path


@pytest.mark.usefixtures("cut_run")
def test_a_cut_run_is_finished(tmp_path: Path) -> None:
    """What is missing is measured and appended to the same file."""
    done = solkit("run", "--resume", ".", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "1 of 4 cases are missing" in done.stderr
    run = record.read(tmp_path / "run.jsonl")
    assert ("complete", 4) == (run.ended, len(run.outcomes))


def test_a_case_by_hand_is_compared_with_its_like_alone(
    cpu_run: tuple[Path, Done], tmp_path: Path
) -> None:
    """BASE holds two measured cases, one is asked for: the other is not MISSING."""
    at, _ = cpu_run
    base = str((at / "solkit-out" / "latest").resolve())
    words = ("softmax", "rows=8", "cols=64", "--dtype", "fp32", "--against", base, "--allow", "all")
    done = solkit("run", *words, *QUICK, "--junit", "j.xml", at=tmp_path)
    assert "a part of a sweep is measured, so no other case of BASE is MISSING" in done.stderr
    assert "MISSING" not in done.stdout
    assert "1 case" in done.stdout.splitlines()[-3]


@pytest.mark.parametrize(
    "option",
    [
        "--cache=hot",
        "--cache=cold",  # the default, and asked for all the same
        "--budget=1",
        "--precision=0.1",
        "--seed=7",
        "--settle=sustained",
        "--energy",
        "--timer=graph",
        "--out=x",
        "--load=x.py",
        "--only=rows>2",
        "--dtype=fp32",
        "--kernel=numpy",
        "--max-cases=5",
    ],
)
def test_what_a_finished_run_can_not_follow_is_refused(option: str, tmp_path: Path) -> None:
    """Named, with the remedy, rather than dropped."""
    done = solkit("run", "--resume", ".", option, at=tmp_path)
    assert 2 == done.returncode
    assert f"{option.partition('=')[0]} can't be changed by --resume" in done.stderr
    assert "leave it out: the run goes on as it was begun; or measure anew" in done.stderr


def test_how_a_finished_run_is_judged_can_be_chosen(cpu_run: tuple[Path, Done]) -> None:
    """Roof, floor, baseline, the limit of a case and the device."""
    at, _ = cpu_run
    words = ("--timeout", "9", "--roof", "measured", "--baseline", "numpy", "--device", "cpu")
    done = solkit("run", "--resume", "solkit-out/latest", *words, "--fail-under", "1", at=at)
    assert 1 == done.returncode, done.stderr
    assert "2 of 2 cases are below 100.0 %; the lowest is softmax/numpy rows=" in done.stderr


BAD_INPUT: tuple[tuple[Sequence[str], str], ...] = (
    (["run"], "give one of"),
    (["bogus"], "No such command"),
    (["run", "--bogus"], "No such option"),
    (["run", "--shapes", "none.yaml"], "can't be read"),
    (["run", "--shapes", "bad.yaml"], "bad.yaml: line 1: unknown key of the file 'sweps'"),
    (["run", "sotfmax", "rows=1"], "did you mean 'softmax'"),
    (["run", "softmax", "rows=1", "cols=-2"], "cols is -2, which is out of range"),
    (["run", "softmax", "rows=1", "cols=2", "--dtype", "fp12"], "unknown dtype 'fp12'"),
    (["run", "softmax", "rows=1", "cols=2", "--only", "rows>2"], "leaves none of the 1 cases"),
    (["run", "softmax", "rows=1", "cols=2", "--only", "rws>2"], "unknown name in --only"),
    (["run", "softmax", "rows=1", "cols=2", "--baseline", "x"], "unknown kernel for --baseline"),
    (["run", "softmax", "rows=1", "cols=2", "--budget", "nan"], "--budget nan"),
    (
        ["run", "softmax", "rows=1", "cols=2", "--fail-under", "80"],
        "--fail-under 80 is no fraction",
    ),
    (
        ["run", "softmax", "rows=1", "cols=2", "--load", "raises.py"],
        "raises.py: importing it raised",
    ),
    (["run", "--shapes", "bad.yaml", "--dtype", "fp32"], "belong to a case by hand"),
    (["run", "--resume", "."], "can't be read"),
    (["plan", "--shapes", "bad.yaml", "--gpu", "h201"], "unknown card 'h201'"),
    (["list", "--load", "raises.py"], "ValueError: broken (line 1)"),
    (["gpus", "show", "h201"], "unknown card 'h201'"),
    (["report", "none.jsonl"], "can't be read"),
    (["report"], "no run is named"),
    (["plan"], "give a sweep"),
    (["plan", "softmax", "rows=8", "cols=8", "--shapes", "bad.yaml"], "give a sweep"),
    (["plan", "softmax", "rows=8", "colz=8"], "did you mean 'cols'"),
    (["report", "bad.yaml"], "bad.yaml: line 1: not JSON"),
    (["roofline", "-o", "x.pdf"], "end it in .svg or .png"),
    (["roofline", "--run", "none.jsonl"], "can't be read"),
)


@pytest.mark.parametrize(
    ("words", "said"), BAD_INPUT, ids=[" ".join(words) for words, _ in BAD_INPUT]
)
def test_bad_input_is_exit_2_and_one_error(tmp_path: Path, words: Sequence[str], said: str) -> None:
    """What is wrong is on stderr, nothing is on stdout, and no folder is left behind."""
    (tmp_path / "bad.yaml").write_text("sweps: []\n")
    (tmp_path / "raises.py").write_text("raise ValueError('broken')\n")
    extra = ("--device", "cpu") if words[0] == "run" else ()
    done = solkit(*words, *extra, at=tmp_path)
    assert (2, "") == (done.returncode, done.stdout)
    assert said in done.stderr
    assert {"bad.yaml", "raises.py"} == {path.name for path in tmp_path.iterdir()} - {"__pycache__"}


WRONG = """
from solkit import Kernel

def wrong(x, y):
    y[...] = x + 1

KERNEL = Kernel(name="wrong", operator="softmax", function=wrong, device="cpu", dtypes=("fp32",))
"""


def test_a_case_that_fails_is_exit_3_and_costs_itself_alone(tmp_path: Path) -> None:
    """A loaded kernel with wrong results fails its check; the reference beside it is measured."""
    (tmp_path / "wrong.py").write_text(WRONG)
    done = solkit(
        "run",
        "softmax",
        "rows=8",
        "cols=64",
        *QUICK,
        "--load",
        "wrong.py",
        "--out",
        "o",
        at=tmp_path,
    )
    assert 3 == done.returncode, done.stderr
    assert "of 2 cases 1 failed" in done.stderr
    assert "failed at check (wrong values): softmax/wrong" in done.stdout
    assert "1 measured, 1 failed" in done.stdout
    assert str(Path("o") / "report.html") == done.stdout.splitlines()[-1]


def test_a_case_is_measured_in_every_cache_mode_that_is_named(tmp_path: Path) -> None:
    """With commas or again and again, each once and in the order given; hot has no score here."""
    case = ("softmax", "rows=8", "cols=64", "--dtype", "fp32", *QUICK)
    done = solkit("run", *case, "--cache", "hot,cold", "--cache", "hot", "--out", "o", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    lines = (tmp_path / "o" / "run.jsonl").read_text(encoding="utf-8").splitlines()
    modes = [json.loads(line)["cache_mode"] for line in lines if '"outcome"' in line]
    assert ["hot", "cold"] == modes
    assert "1 measured, 1 hot" in done.stdout


def test_no_device_is_exit_4(tmp_path: Path) -> None:
    """A card that is asked for and not there; with bad input beside it, that comes first."""
    case = ("softmax", "rows=8", "cols=64")
    assert 4 == solkit("run", *case, "--device", "cuda", at=tmp_path).returncode
    assert 2 == solkit("run", *case, "K=1", "--device", "cuda", at=tmp_path).returncode


def test_a_folder_that_cant_be_written_is_exit_4(tmp_path: Path) -> None:
    """It is said before anything is measured."""
    (tmp_path / "file").write_text("")
    done = solkit("run", "softmax", "rows=8", "cols=64", *QUICK, "--out", "file/x", at=tmp_path)
    assert 4 == done.returncode
    assert "can't be written" in done.stderr
    assert "ceilings" not in done.stderr


def test_a_run_is_never_overwritten(cpu_run: tuple[Path, Done]) -> None:
    """An --out that holds a run is refused, with the way to finish it."""
    at, _ = cpu_run
    words = ("softmax", "rows=8", "cols=64", *QUICK, "--out", "solkit-out/latest")
    done = solkit("run", *words, at=at)
    assert 2 == done.returncode
    assert "--resume" in done.stderr


def at_a_shell(command: str, at: Path) -> Done:
    program = shlex.join(SOLKIT)
    return subprocess.run(
        ("/bin/sh", "-c", command.replace("solkit", program, 1)),
        cwd=at,
        env=NO_CARD,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_shell
@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&-", "2>/dev/full"])
@pytest.mark.usefixtures("cut_run")
def test_a_run_needs_nobody_to_listen(tmp_path: Path, streams: str) -> None:
    """Closed streams and talk that goes nowhere cost no measurement."""
    done = at_a_shell(f"solkit run --resume . {streams}", tmp_path)
    assert (0, False) == (done.returncode, "error" in done.stderr), done.stderr
    assert "complete" == record.read(tmp_path).ended
    assert (tmp_path / "report.html").is_file()


@needs_shell
def test_a_picture_needs_nothing_of_a_users_settings(tmp_path: Path) -> None:
    """A backend for windows, or one that matplotlib does not know, is none of a file's business."""
    done = at_a_shell("MPLBACKEND=nonsense solkit roofline --gpu l4 -o l4.svg", tmp_path)
    assert (0, "l4.svg\n") == (done.returncode, done.stdout), done.stderr


@needs_shell
def test_a_folder_that_is_gone_is_found_by_the_doctor(tmp_path: Path) -> None:
    """Somebody deleted the folder that the shell stands in."""
    done = at_a_shell("mkdir gone; cd gone; rmdir ../gone; solkit doctor", tmp_path)
    assert "the folder that this was started in is gone" in done.stdout


@needs_shell
@pytest.mark.usefixtures("cut_run")
@pytest.mark.parametrize("gate", ["0.000001", "1"])
def test_a_reader_that_leaves_changes_no_exit_code(tmp_path: Path, gate: str) -> None:
    """`| true`: what is written elsewhere is written, and a gate says no all the same."""
    run = f"solkit run --resume . --junit j.xml --fail-under {gate}"
    command = f"{{ {run}; echo $? >code; }} | true"
    done = at_a_shell(command, tmp_path)
    assert {"1": "1\n", "0.000001": "0\n"}[gate] == (tmp_path / "code").read_text(), done.stderr
    assert "<testsuites" in (tmp_path / "j.xml").read_text(encoding="utf-8")


@needs_shell
def test_data_that_cant_be_written_is_exit_4(tmp_path: Path) -> None:
    """A full disk behind stdout; what was measured stays."""
    done = at_a_shell("solkit list >/dev/full", tmp_path)
    assert 4 == done.returncode
    assert "error: standard output can't be written: No space left on device" in done.stderr
    assert 2 == len(done.stderr.splitlines())


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """`solkit gpus --json | head -1` ends quietly."""
    with subprocess.Popen(
        (*SOLKIT, "gpus", "--json"),
        cwd=tmp_path,
        env=NO_CARD,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"" == process.stderr.read()
        assert 0 == process.wait(timeout=60)


def test_debug_shows_where_an_error_came_from(tmp_path: Path) -> None:
    """The one way to see a traceback."""
    done = subprocess.run(
        (*SOLKIT, "report", "none", "--debug"),
        cwd=tmp_path,
        env=NO_CARD,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 2 == done.returncode
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    "words", [["list"], ["gpus"], ["gpus", "list"], ["gpus", "show", "h200_sxm"]]
)
def test_json_is_one_document_and_nothing_else(tmp_path: Path, words: list[str]) -> None:
    """What stands on stdout parses whole."""
    done = solkit(*words, "--json", at=tmp_path)
    assert 0 == done.returncode
    assert isinstance(json.loads(done.stdout), dict)


def test_a_case_by_hand_is_planned_as_it_is_run(tmp_path: Path) -> None:
    """The words of `run` are those of `plan`: 2 x 8192 x 4096 items of 2 bytes at 4.8 TB/s."""
    words = ("plan", "softmax", "rows=8192", "cols=4096", "--dtype", "bf16", "--gpu", "h200")
    done = solkit(*words, at=tmp_path)
    assert 0 == done.returncode
    row = "8192x4096 none scale=1.0 bf16 134 MB - 1.25 28.0 µs - 28.0 µs memory"
    assert row in re.sub(" +", " ", done.stdout)
    assert "1 case on NVIDIA H200" in done.stdout


def test_the_starter_is_planned_as_it_is_written(tmp_path: Path) -> None:
    """`solkit new shapes` gives a file that works at once."""
    (tmp_path / "s.yaml").write_text(solkit("new", "shapes", at=tmp_path).stdout, encoding="utf-8")
    done = solkit("plan", "--shapes", "s.yaml", "--gpu", "h200", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "16 cases on NVIDIA H200: 4.80 TB/s" in done.stdout
    assert "h200 means h200_sxm" in done.stderr
    assert 0 == solkit("new", "shapes", "-o", "t.yaml", at=tmp_path).returncode
    assert 2 == solkit("new", "shapes", "-o", "t.yaml", at=tmp_path).returncode


def test_the_plan_of_the_flagship_has_the_values_worked_out_by_hand(tmp_path: Path) -> None:
    """H200: 4.8 TB/s, 989.4 TFLOP/s; 2 x 8192 x 2560^2 = 107.37 GFLOP over 138.94 MB."""
    (tmp_path / "s.yaml").write_text(
        "version: 1\ndefaults: {dtype: bf16}\nsweeps:\n"
        "- {operator: matmul_add, shapes: [{M: 8192, N: 2560, K: 2560}]}\n"
        "- {operator: add_rmsnorm, shapes: [{rows: 8192, cols: 2560}]}\n"
    )
    done = solkit("plan", "--shapes", "s.yaml", "--gpu", "h200", "--json", at=tmp_path)
    product, norm = json.loads(done.stdout)["cases"]
    assert {"bf16_tensor": 107_374_182_400} == product["flop"]
    assert 138_936_320 == product["read_bytes"] + product["write_bytes"]
    assert pytest.approx(28.945e-6, rel=1e-4) == product["memory_s"]
    assert pytest.approx(108.52e-6, rel=1e-4) == product["compute_s"] == product["sol_s"]
    assert "compute:bf16_tensor" == product["limiter"]
    assert 167_772_160 + 2560 * 2 == norm["read_bytes"] + norm["write_bytes"]
    assert pytest.approx(34.95e-6, rel=1e-3) == norm["memory_s"] == norm["sol_s"]
    assert "memory" == norm["limiter"]


HOSTILE = """
from solkit import Arg, Operator, Work

OPERATOR = Operator(
    name="\\x1b[31mred<b>",
    args=(Arg("x", "rows"), Arg("y", "rows", "out")),
    work=lambda case: Work(1, 1),
    reference=lambda x: x,
    summary="a\\x07b\\x1b]0;title\\x07",
)
"""


def test_control_codes_in_names_never_reach_the_terminal(tmp_path: Path) -> None:
    """A stranger's declaration can't colour, retitle or ring."""
    (tmp_path / "hostile.py").write_text(HOSTILE)
    done = solkit("list", "--load", "hostile.py", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "red<b>  rows=" in done.stdout
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


def test_help_imports_nothing_heavy() -> None:
    """`solkit --help` answers in 0.1 s of CPU time because of what it leaves out."""
    code = "import sys, solkit.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        (sys.executable, "-c", code), env=NO_CARD, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not {"numpy", "pydantic", "yaml", "matplotlib", "jinja2", "pynvml", "cupy"} & loaded
    assert "typer" in loaded


def test_the_programs_options_stand_anywhere() -> None:
    """--quiet and --debug are moved before the command, and nothing behind `--` is touched."""
    words = ["run", "--quiet", "softmax", "--debug", "--", "--quiet"]
    assert ["--quiet", "--debug", "run", "softmax", "--", "--quiet"] == arranged(words)


def test_a_table_lines_its_columns_up() -> None:
    """Text to the left, numbers to the right, two blanks between."""
    assert "name  time\na       10\nlong     1" == table(
        ("name", "time"), [("a", "10"), ("long", "1")], right=(1,)
    )


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("gpus",),
        ("plan", "--shapes", str(ROOT / "examples" / "shapes.yaml"), "--gpu", "h200"),
        ("plan", "matmul_add", "M=8192", "N=10240", "K=2560", "--dtype", "bf16", "--gpu", "b200"),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_what_a_terminal_shows_fits_80_columns(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Tables are cut to what the terminal has; a pipe gets whole lines."""
    done = subprocess.run(
        (*SOLKIT, *words),
        cwd=tmp_path,
        env={**NO_CARD, "COLUMNS": "80"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert 10 < len(done.stdout.splitlines()) or "matmul_add" in done.stdout
    assert 80 >= max(len(text) for text in done.stdout.splitlines())
