import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_nvml import H200, FakeNvml, instance
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import BadInput, NoDevice
from solkit.measure import host_checks
from solkit.measure.doctor import Finding, Machine, document, examine, exit_code, lines
from solkit.measure.driver_checks import Compiler, version_numbers
from solkit.measure.remedies import catalogue, kills_context, known, recognise, remedy_for
from solkit.measure.trial import Trial, try_cuda

ROOT = Path(__file__).parents[2]
NVRTC = Compiler("13.0", (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121))
WORKING = Trial(cupy="14.2.0", runtime="13.0", bus_ids=("0000:19:00.0",))


def machine(*cards: dict[str, Any], **changes: Any) -> Machine:
    """Return a sound machine with these cards: driver 580, CUDA 13.0, CuPy, all of it working."""
    sound = Machine(
        root=Path("/nonexistent"),
        system="linux",
        environ={},
        binding=FakeNvml(*cards),
        compiler=lambda: NVRTC,
        cupy=lambda: "14.2.0",
        cupti=lambda: "13.0.1",
        trial=lambda: WORKING,
        loads=lambda _: False,
        kernel_cache=lambda: ROOT,
    )
    return replace(sound, **changes)


def findings(tmp_path: Path, here: Machine, **options: Any) -> dict[str, Finding]:
    return {found.id: found for found in examine(out=tmp_path / "out", machine=here, **options)}


def without(*queries: str, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in H200.items() if key not in queries} | changes


def test_a_sound_machine_can_measure(tmp_path: Path) -> None:
    """With everything in order nothing fails, and the exit code is 0."""
    found = findings(tmp_path, machine(H200, kernel_cache=lambda: tmp_path / "cache"))
    assert 0 == exit_code(list(found.values()))
    assert [] == [check for check, finding in found.items() if finding.status == "fail"]
    assert {
        "driver.nvml",
        "driver.version",
        "cuda.runtime",
        "nvrtc.library",
        "nvrtc.target",
        "cupy.package",
        "cupti.package",
        "cuda.context",
        "gpu.visible",
        "gpu.mig",
        "gpu.compute_mode",
        "gpu.ecc",
        "gpu.remap",
        "gpu.recovery",
        "gpu.processes",
        "gpu.memory",
        "gpu.persistence",
        "gpu.clocks",
        "gpu.power",
        "gpu.events",
        "gpu.temperature",
        "host.numpy",
        "host.python",
        "host.kernel_cache",
    } <= {check for check, finding in found.items() if finding.status == "ok"}


def test_long_lines_go_on_below_their_text() -> None:
    """On a terminal of 40 columns; a pipe (width 0) gets a line a check, for grep."""
    found = [Finding("gpu.ecc", "warn", "one error since the start", "reset the card, or have it")]
    assert [
        "warn    gpu.ecc  one error since the",
        "                 start",
        "                 -> reset the card, or",
        "                    have it",
    ] == lines(found, width=40)[:-1]
    assert "warn    gpu.ecc  one error since the start" == lines(found)[0]


def test_a_machine_without_a_driver_exits_4_and_says_what_works(tmp_path: Path) -> None:
    """No driver: the run on a card cannot work, the remedy says how, and the CPU is offered."""
    here = machine(binding=FakeNvml(init_error="NVML Shared Library Not Found"))
    found = findings(tmp_path, here)
    assert 4 == exit_code(list(found.values()))
    assert "fail" == found["driver.nvml"].status
    assert "without a card: --device cpu, plan, report" in found["driver.nvml"].evidence
    assert known("no_driver").remedy == found["driver.nvml"].remedy
    assert "works without a card: solkit run --device cpu" in found["host.cpu_device"].evidence


def test_this_package_without_any_driver_exits_4(tmp_path: Path) -> None:
    """The real binding on a machine whose NVML cannot start gives a finding, never a traceback."""
    pytest.importorskip("pynvml")
    here = Machine(
        binding=FakeNvml(init_error="Driver Not Loaded"),
        loads=lambda _: False,
        compiler=lambda: NVRTC,
    )
    found = examine(out=tmp_path, machine=here)
    assert 4 == exit_code(found)


def test_a_driver_whose_nvml_is_missing_is_unknown(tmp_path: Path) -> None:
    """CUDA without NVML (Jetson, some containers): nobody can say, so 5 and neither 0 nor 4."""
    here = machine(
        binding=FakeNvml(init_error="NVML Shared Library Not Found"), loads=lambda _: True
    )
    found = findings(tmp_path, here)
    assert ("unknown", True) == (found["driver.nvml"].status, found["driver.nvml"].required)
    assert 5 == exit_code(list(found.values()))


def test_the_cpu_alone_needs_no_driver(tmp_path: Path) -> None:
    """`--device cpu` leaves cards out: what is examined is the host."""

    def ask() -> Compiler:
        raise AssertionError("the compiler was loaded")

    here = machine(binding=FakeNvml(init_error="Driver Not Loaded"), compiler=ask)
    found = findings(tmp_path, here, device="cpu")
    assert {"host"} == {check.partition(".")[0] for check in found}
    assert 0 == exit_code(list(found.values()))


@pytest.mark.parametrize(
    ("check", "status", "changes", "remedy"),
    [
        ("driver.version", "fail", {"binding": FakeNvml(H200, driver="570.86")}, "install a newer"),
        ("driver.version", "unknown", {"binding": FakeNvml(H200, driver="")}, ""),
        ("cuda.runtime", "fail", {"binding": FakeNvml(H200, cuda=12080)}, "install a newer"),
        (
            "cuda.runtime",
            "warn",
            {"compiler": lambda: replace(NVRTC, version="13.5")},
            "install a newer driver, or compile",
        ),
        ("cuda.runtime", "ok", {"binding": FakeNvml(H200, cuda=14010)}, ""),
        ("cuda.runtime", "unknown", {"binding": FakeNvml(H200, cuda=0)}, ""),
        (
            "nvrtc.library",
            "fail",
            {"compiler": lambda: Compiler(error="no NVRTC found", remedy="pip install it")},
            "pip install it",
        ),
        ("nvrtc.target", "unknown", {"compiler": lambda: Compiler(error="no NVRTC found")}, ""),
        (
            "nvrtc.target",
            "fail",
            {"compiler": lambda: Compiler("12.4", (50, 52, 80))},
            "install a newer nvidia-cuda-nvrtc",
        ),
        ("cupy.package", "fail", {"cupy": lambda: ""}, "pip install 'solkit[cuda13]'"),
        ("cupti.package", "warn", {"cupti": lambda: ""}, "pip install 'solkit[cupti]'"),
        (
            "cuda.context",
            "fail",
            {"trial": lambda: Trial(error="cudaErrorNoDevice: no CUDA-capable device is detected")},
            "install the NVIDIA driver",
        ),
        ("cuda.context", "fail", {"trial": lambda: replace(WORKING, bus_ids=())}, "install the"),
        (
            "cuda.context",
            "warn",
            {"trial": lambda: replace(WORKING, bus_ids=("0000:99:00.0",))},
            "pass the whole card",
        ),
        ("gpu.visible", "fail", {"environ": {"CUDA_VISIBLE_DEVICES": ""}}, "unset CUDA_VISIBLE"),
        ("gpu.visible", "warn", {"environ": {"CUDA_VISIBLE_DEVICES": "0,9"}}, "set CUDA_DEVICE"),
        ("host.numpy", "warn", {"environ": {"OMP_NUM_THREADS": "0"}}, "unset OMP_NUM_THREADS"),
        ("host.python", "warn", {"system": "darwin"}, "measure in Linux or WSL"),
    ],
)
def test_what_is_wrong_with_the_installation_is_found(
    tmp_path: Path, check: str, status: str, changes: dict[str, Any], remedy: str
) -> None:
    """One thing out of order changes its own check, with its remedy."""
    found = findings(tmp_path, machine(H200, **changes))[check]
    assert status == found.status
    assert found.remedy.startswith(remedy)
    assert bool(remedy) == bool(found.remedy)


@pytest.mark.parametrize(
    ("check", "status", "card", "evidence"),
    [
        ("nvrtc.target", "fail", without(capability=(7, 0)), "it has no sm_70"),
        ("nvrtc.target", "unknown", without("capability"), "does not say"),
        ("gpu.mig", "unknown", without("mig"), "no MIG mode"),
        ("gpu.mig", "warn", without(mig=[0, 1]), "waits for a reset"),
        ("gpu.compute_mode", "unknown", without("compute_mode"), "tells no"),
        ("gpu.compute_mode", "fail", without(compute_mode=2), "no program may open"),
        ("gpu.compute_mode", "ok", without(compute_mode=3), "exclusive process"),
        ("gpu.compute_mode", "fail", without(compute_mode=3, processes=[7]), "another process"),
        ("gpu.ecc", "unknown", without("ecc"), "tells no ECC"),
        ("gpu.ecc", "ok", without(ecc=[0, 0]), "ECC off"),
        ("gpu.ecc", "warn", without(ecc=[1, 0]), "waits for a reset"),
        ("gpu.ecc", "warn", without(ecc_errors=2), "2 uncorrectable"),
        ("gpu.remap", "unknown", without("remap"), "tells no"),
        ("gpu.remap", "warn", without(remap=(0, 0, 1, 0)), "waits to be remapped"),
        ("gpu.remap", "warn", without(remap=(0, 0, 1, 1)), "could not be remapped"),
        ("gpu.recovery", "unknown", without("recovery"), "570"),
        ("gpu.recovery", "fail", without(recovery=1), "reset the card"),
        ("gpu.recovery", "warn", without(recovery=3), "drain peer-to-peer work"),
        ("gpu.recovery", "fail", without(recovery=99), "action 99"),
        ("gpu.processes", "unknown", without("processes"), "does not tell"),
        ("gpu.processes", "ok", without(processes=["self"]), "nobody else"),
        (
            "gpu.processes",
            "warn",
            without(processes=["self", 41, 42]),
            "2 other processes use the card: 41, 42",
        ),
        ("gpu.memory", "unknown", without("memory"), "does not tell"),
        ("gpu.memory", "ok", H200, "140 GiB free of 140 GiB, 630 MiB reserved"),
        ("gpu.persistence", "unknown", without("persistence"), "tells no"),
        ("gpu.persistence", "warn", without(persistence=0), "unloads between programs"),
        ("gpu.clocks", "unknown", without("clocks"), "tells no SM clock"),
        ("gpu.clocks", "warn", without(application_clocks={1: 1200}), "held to 1200 MHz"),
        ("gpu.clocks", "ok", without("application_clocks"), "345 MHz now, 1980 MHz at most"),
        ("gpu.power", "unknown", without("power_limit"), "tells no power limit"),
        ("gpu.power", "warn", without(power_limit=500_000), "limited to 500 W of 700 W"),
        ("gpu.power", "ok", without("power_default"), "limit 700 W"),
        ("gpu.events", "unknown", without("events"), "does not tell why"),
        ("gpu.events", "ok", without(events=0), "nothing lowers the clocks"),
        ("gpu.events", "ok", without(events=0x4), "software power cap"),
        ("gpu.events", "warn", without(events=0x44), "lowered now: hardware thermal"),
        ("gpu.temperature", "unknown", without("temperature"), "tells no temperature"),
        ("gpu.temperature", "ok", without("slowdown"), "35 °C"),
        ("gpu.temperature", "warn", without(temperature=90), "90 °C, slows down at 95 °C"),
    ],
)
def test_what_is_wrong_with_a_card_is_found(
    tmp_path: Path, check: str, status: str, card: dict[str, Any], evidence: str
) -> None:
    """Each state of a card leads to its verdict; what is not told is unknown, never ok."""
    found = findings(tmp_path, machine(card))[check]
    assert status == found.status
    assert evidence in found.evidence
    assert f"cuda:0 NVIDIA H200 {H200['uuid']}" == found.subject
    assert found.remedy or found.status in {"ok", "unknown"}


def test_a_need_beyond_the_cards_free_memory_fails(tmp_path: Path) -> None:
    """The need and what is free stand side by side."""
    fits = findings(tmp_path, machine(H200), need_bytes=2**30)["gpu.memory"]
    assert "ok" == fits.status
    assert fits.evidence.startswith("1.00 GiB needed, 140 GiB free")
    found = findings(tmp_path, machine(H200), need_bytes=2**40)["gpu.memory"]
    assert ("fail", known("out_of_memory").remedy) == (found.status, found.remedy)
    assert found.evidence.startswith("1.00 TiB needed, 140 GiB free of 140 GiB")


def test_a_mig_instance_is_examined_as_such(tmp_path: Path) -> None:
    """The instance's own SMs and memory are judged, under its own name."""
    card = H200 | {"mig": [1, 1], "instances": [instance()]}
    found = findings(tmp_path, machine(card))["gpu.mig"]
    assert ("ok", "instance 1g.18gb, 16 SMs of the card") == (found.status, found.evidence)
    assert (
        "cuda:0 NVIDIA H200 MIG 1g.18gb MIG-00000000-0000-4000-8000-00000000000a" == found.subject
    )


def test_only_the_card_that_is_named_is_examined(tmp_path: Path) -> None:
    """One of two cards is out of order: it fails the machine, but not the other card's run."""
    second = H200 | {"uuid": "GPU-second", "bus": "00000000:3B:00.0", "compute_mode": 2}
    here = machine(H200, second)
    assert 4 == exit_code(examine(out=tmp_path, machine=here))
    assert 0 == exit_code(examine(out=tmp_path, machine=here, device="cuda:0"))
    assert 4 == exit_code(examine(out=tmp_path, machine=here, device="GPU-second"))
    with pytest.raises(NoDevice, match="there is no cuda:2"):
        examine(out=tmp_path, machine=here, device="cuda:2")
    with pytest.raises(BadInput, match="unknown device"):
        examine(out=tmp_path, machine=here, device="nonsense")


def test_a_silent_card_is_unknown_throughout(tmp_path: Path) -> None:
    """A card that answers nothing but its name is ok in nothing that it did not say."""
    found = findings(tmp_path, machine({"name": "Mystery", "uuid": "GPU-m"}))
    told = {check: finding.status for check, finding in found.items() if check.startswith("gpu.")}
    assert {"ok"} == {told.pop("gpu.visible")}
    assert {"unknown"} == set(told.values())
    assert 5 == exit_code(list(found.values()))


# -- the host ------------------------------------------------------------------------------------


def test_a_folder_that_does_not_exist_yet_is_judged_by_its_parent(tmp_path: Path) -> None:
    """Nothing is created by asking."""
    found = host_checks.folder("host.out", tmp_path / "a/b", "the folder", "choose another")
    assert found.status in {"ok", "warn"}
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_fails(tmp_path: Path) -> None:
    """A file in the way is said before anything is measured."""
    (tmp_path / "out").write_text("")
    found = host_checks.folder("host.out", tmp_path / "out", "the folder", "choose another")
    assert ("fail", "choose another") == (found.status, found.remedy)


def test_a_folder_that_cannot_be_written_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only disk is said with the system's own words."""

    def refuse(**_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("solkit.measure.host_checks.tempfile.TemporaryFile", refuse)
    found = host_checks.folder("host.out", tmp_path, "the folder", "choose another")
    assert "fail" == found.status
    assert found.evidence.endswith("cannot be written: Read-only file system")


@pytest.mark.parametrize(
    ("free_bytes", "status"), [(10**6, "fail"), (10**8, "warn"), (10**10, "ok")]
)
def test_a_full_disk_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, status: str
) -> None:
    """Too little for a report fails, little room warns."""
    usage = type("Usage", (), {"free": free_bytes})
    monkeypatch.setattr("solkit.measure.host_checks.shutil.disk_usage", lambda _: usage)
    assert status == host_checks.folder("host.out", tmp_path, "the folder", "choose").status


@pytest.mark.parametrize(
    ("params", "status_file", "process", "status"),
    [
        ("RmProfilingAdminOnly: 0\n", "", "", "ok"),
        ("A: 1\nRmProfilingAdminOnly: 1\n", "CapEff:\t000001ffffffffff\n", "", "ok"),
        ("RmProfilingAdminOnly: 1\n", "CapEff:\t00000000a80425fb\n", "", "warn"),
        ("", "", "", "unknown"),
        ("RmProfilingAdminOnly: 0\n", "", "nv-hostengine\n", "warn"),
    ],
)
def test_who_may_read_counters(
    tmp_path: Path, params: str, status_file: str, process: str, status: str
) -> None:
    """Root in a container lacks CAP_SYS_ADMIN; a running DCGM holds the counters."""
    files = {
        "proc/driver/nvidia/params": params,
        "proc/self/status": status_file,
        "proc/77/comm": process,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert status == host_checks.profiler_rights(tmp_path).status


# -- the trial -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            """print('noise'); print('{"cupy": "14", "runtime": 13000, "bus_ids": ["00:3B.0"]}')""",
            Trial(cupy="14", runtime="13.0", bus_ids=("00:3b.0",)),
        ),
        (
            'raise ImportError("libcuda.so.1: cannot open shared object file")',
            Trial(error="ImportError: libcuda.so.1: cannot open shared object file"),
        ),
        ("import os; os.abort()", Trial(error="the process died of signal 6")),
        ("raise SystemExit(7)", Trial(error="it ended with exit code 7")),
        ("print('[]')", Trial(error="it ended with exit code 0")),
        ("import time; time.sleep(60)", Trial(error="CUDA did not answer within 2 s")),
    ],
)
def test_a_broken_cuda_costs_its_own_process(code: str, expected: Trial) -> None:
    """Whatever the library does, the doctor gets an answer: versions, or the last words."""
    assert expected == try_cuda(code=code, limit_s=2.0)


# -- findings ------------------------------------------------------------------------------------

OK = Finding("a.a", "ok", "fine")
WARN = Finding("a.b", "warn", "so so", "improve it")
OPEN = Finding("a.c", "unknown", "silent")
REQUIRED_OPEN = Finding("a.d", "unknown", "silent", required=True)
FAIL = Finding("a.e", "fail", "broken", "mend it", subject="cuda:0 card")


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([], 0),
        ([OK, WARN, OPEN], 0),
        ([OK, REQUIRED_OPEN], 5),
        ([REQUIRED_OPEN, FAIL], 4),
        ([FAIL, REQUIRED_OPEN, OK], 4),
    ],
)
def test_a_failure_wins_over_an_open_question(findings: list[Finding], code: int) -> None:
    """4: a run cannot work; 5: a required check is unknown; warnings and other unknowns are 0."""
    assert code == exit_code(findings)


def test_findings_read_as_lines_with_their_remedies() -> None:
    """A line a check, the remedy under it, a device's name above its own checks, the count last."""
    assert [
        "ok      a.a  fine",
        "warn    a.b  so so",
        "             -> improve it",
        "cuda:0 card",
        "  fail    a.e  broken",
        "               -> mend it",
        "1 ok, 1 to improve, 1 in the way: measuring on this device does not work yet",
    ] == lines([OK, WARN, FAIL])


def test_findings_are_one_json_document() -> None:
    """The document holds the schema, the exit code and every field of every finding."""
    found = json.loads(json.dumps(document([OK, FAIL])))
    assert ("solkit.doctor/1", 4) == (found["schema"], found["exit_code"])
    assert {
        "id": "a.e",
        "status": "fail",
        "evidence": "broken",
        "remedy": "mend it",
        "subject": "cuda:0 card",
        "required": False,
    } == found["findings"][1]


@pytest.mark.parametrize(
    ("older", "newer"),
    [("525.60.13", "580"), ("580", "580.65.06"), ("580.9", "580.65"), ("450.80.02", "450.102.4")],
)
def test_versions_compare_by_their_numbers(older: str, newer: str) -> None:
    """580.9 is older than 580.65, which no comparison of texts would say."""
    assert version_numbers(older) < version_numbers(newer)


@given(st.text(max_size=30))
def test_any_version_text_can_be_compared(text: str) -> None:
    """Nothing a driver may print raises."""
    assert version_numbers(text) <= version_numbers(text)


# -- the catalogue -------------------------------------------------------------------------------


@pytest.mark.parametrize("row", catalogue().errors, ids=lambda row: row.id)
def test_a_message_belongs_to_exactly_one_row(row: Any) -> None:
    """The sample of every row is found by that row and by no other."""
    assert [row.id] == [other.id for other in catalogue().errors if other.fits(row.sample)]
    assert row.cause
    assert row.remedy


def test_a_code_belongs_to_one_row() -> None:
    """No CUDA error number has two remedies."""
    codes = [code for row in catalogue().errors for code in row.codes]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    ("code", "row", "dead"),
    [
        (2, "out_of_memory", False),
        (9, "launch_too_big", False),
        (35, "driver_too_old", False),
        (209, "no_kernel_image", False),
        (222, "ptx_toolchain", False),
        (700, "kernel_fault", True),
        (716, "kernel_fault", True),
    ],
)
def test_a_cuda_code_finds_its_row(code: int, row: str, dead: bool) -> None:  # noqa: FBT001  # a table's column
    """The runtime API's numbers lead to cause and remedy, and say whether the process must end."""
    assert [row] == [error.id for error in catalogue().errors if code in error.codes]
    assert dead == kills_context(code)


def test_a_strange_message_keeps_the_default_remedy() -> None:
    """What nobody knows is not explained by guessing."""
    assert recognise("all is well") is None
    assert "look here" == remedy_for("all is well", "look here")


def test_the_page_names_every_check_and_every_error() -> None:
    """docs/doctor.md and the code agree on ids, so a person can search for what is printed."""
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    sources = [*(ROOT / "solkit/measure").glob("*_checks.py"), ROOT / "solkit/measure/doctor.py"]
    checks = {
        name
        for path in sources
        for name in re.findall(
            r'"((?:host|driver|cuda|nvrtc|cupy|cupti|gpu|profiler)\.[a-z_]+)"', path.read_text()
        )
    }
    assert len(checks) >= 25
    assert set() == {
        name for name in checks | {row.id for row in catalogue().errors} if f"`{name}`" not in page
    }
