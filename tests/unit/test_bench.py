"""A real worker on the CPU device: whatever a declaration does, no finished outcome is lost."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from solkit.errors import BadInput, NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure import bench as bench_module
from solkit.measure import process
from solkit.measure.bench import Bench, Settings
from solkit.measure.lock import held
from solkit.measure.manner import Manner
from solkit.measure.process import Process, WorkerDied
from solkit.model import Bound, Case, Failed, Measured, Outcome, Verdict, Work
from solkit.plan.jobs import Job

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are made on Linux")

FAULTS = Path(__file__).parent.parent / "faults"
SHAPE = {"rows": 1024, "cols": 256}  # 1 MiB an argument: few buffer sets
BOUND = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)


def bench_on(*names: str, timeout_s: float = 60.0) -> Bench:
    loads = tuple(FAULTS / f"{name}.py" for name in names)
    manner = Manner(budget_s=0.01, timeout_s=timeout_s)
    return Bench(Settings(device="cpu", loads=loads, manner=manner))


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    """Return a bench that knows every kernel of `twice`; it outlives all their crashes."""
    names = ("twice", "wrong_results", "raises", "ends_the_worker", "wants_too_much", "noisy")
    names += ("odd_errors",)
    with bench_on(*names) as bench:
        yield bench


def jobs_of(*kernels: str, operator: str = "twice") -> list[Job]:
    return [
        Job(Case(operator, kernel, SHAPE, "fp32"), Work(2**20, 2**20), (), BOUND, 2**21)
        for kernel in kernels
    ]


def measured(bench: Bench, *kernels: str, operator: str = "twice") -> dict[str, Outcome]:
    """Measure one group; return the outcome of each kernel."""
    jobs = jobs_of(*kernels, operator=operator)
    (outcomes,) = bench.measure([jobs], lambda _case, _stage: None)
    assert [job.case for job in jobs] == [outcome.case for outcome in outcomes]
    return {outcome.case.kernel: outcome for outcome in outcomes}


def failure(outcome: Outcome) -> tuple[str, str]:
    assert isinstance(outcome, Failed), outcome
    assert outcome.remedy
    return outcome.stage, outcome.message


def test_a_right_kernel_is_measured_and_checked(shared: Bench) -> None:
    """The NumPy reference beside a user's kernel, on sampled rows of nothing: all is compared."""
    found = measured(shared, "numpy", "right")
    for outcome in found.values():
        assert isinstance(outcome, Measured)
        assert 0 < outcome.low_s <= outcome.median_s <= outcome.high_s
        assert 7 <= outcome.sample_count <= 1000
        assert (262_144, 0.0) == (outcome.check.compared_count, outcome.check.error_fraction)
        assert ("perf_counter", "cold") == (outcome.method, outcome.cache)


@pytest.mark.parametrize(
    ("stage", "verdict", "words", "kernel"),
    [
        ("check", "unwritten", "262144 of 262144 elements of 'y'", "writes_nothing"),
        ("check", "unwritten", "131072 of 262144 elements of 'y'", "writes_half"),
        ("check", "wrong_values", "the reference says", "repeats_its_last_result"),
        ("check", "changed_input", "it wrote to its input 'x'", "writes_to_its_input"),
        ("check", "wrong_shape", "(1023, 256)", "returns_another_shape"),
        ("launch", "", "ArithmeticError: not today (raises.py, line 9)", "raises"),
        ("launch", "", "AssertionError: rows are negative (wants_too_much.py", "asserts"),
        ("compile", "", "missing a required argument: 'out'", "wrong_argument_list"),
        ("launch", "out_of_memory", "Unable to allocate 4.00 PiB", "wants_all_memory"),
        ("launch", "crashed", "the worker ended with signal SIGSEGV", "segfaults"),
        ("launch", "crashed", "the worker ended with signal SIGABRT", "aborts"),
        ("launch", "crashed", "the worker ended with exit code 3", "exits"),
        ("launch", "crashed", "imported\nout of luck", "says_why_and_exits"),
        (
            "launch",
            "crashed",
            "wrote b'all is well\\n' where the worker answers",
            "answers_for_the_worker",
        ),
    ],
)
def test_a_broken_kernel_is_its_cases_failure_and_no_more(
    shared: Bench, stage: str, verdict: Verdict, words: str, kernel: str
) -> None:
    """Its neighbours in the group are measured, before it and after it."""
    found = measured(shared, "right", kernel, "last")
    said_stage, message = failure(found[kernel])
    assert words in message
    assert (stage, verdict) == (said_stage, getattr(found[kernel], "verdict", None))
    assert isinstance(found["right"], Measured)
    assert isinstance(found["last"], Measured)


@pytest.mark.parametrize(
    ("stage", "words", "kernel"),
    [
        ("launch", "Wordless: (its text can't be had: __str__ raised ValueError)", "wordless"),
        ("launch", "ValueError: half \\ud800 of a sign (odd_errors.py, line", "surrogate"),
        ("launch", "x... (996,000 more characters) (odd_errors.py, line", "endless"),
        ("worker", "the worker's answer does not fit: it holds 0 of the 1 that were", "says_done"),
        ("launch", "the worker ended with exit code 0", "raises_at_exit"),
    ],
)
def test_an_error_beyond_words_is_its_cases_failure_and_no_more(
    shared: Bench, stage: str, words: str, kernel: str
) -> None:
    """However it is told, the neighbours are measured, and the parent goes on."""
    found = measured(shared, "right", kernel, "last")
    said_stage, message = failure(found[kernel])
    assert (stage, True) == (said_stage, words in message), message
    assert len(message) < 4200
    assert [Measured, Measured] == [type(found["right"]), type(found["last"])]


def test_a_work_model_whose_error_is_beyond_words_is_its_cases_problem() -> None:
    """The other cases are described."""
    cases = [Case("odd_work", "numpy", {"n": n}, "fp32") for n in (1, 2, 3, 4, 5)]
    with bench_on("twice", "odd_errors") as bench:
        wordless, surrogate, fine, speaks, last = bench.catalog.describe(cases)
    assert "the worker's answer does not fit: it holds 0 of the 1" in str(speaks.problem)
    assert (Work(20, 20), None) == (last.work, last.problem)
    assert "Wordless: (its text can't be had: __str__ raised ValueError)" in str(wordless.problem)
    assert "ValueError: half \\ud800 of a sign" in str(surrogate.problem)
    assert (Work(12, 12), None) == (fine.work, fine.problem)


def test_an_error_of_a_whole_group_is_laid_at_the_guilty_case(shared: Bench) -> None:
    """Its cases are asked for one by one; message and remedy are never empty."""
    outcomes: dict[int, Outcome] = {}
    shared._group(jobs_of("right", "unheard_of", "last"), lambda _case, _stage: None, outcomes)
    assert [Measured, Failed, Measured] == [type(outcomes[index]) for index in range(3)]
    assert ("worker", "KeyError: ('twice', 'unheard_of')") == failure(outcomes[1])


@pytest.mark.parametrize("answer", [None, [], [{"odd": 1}], {"at": 1}, "done"], ids=repr)
def test_an_answer_that_does_not_fit_fails_its_case_with_words(
    shared: Bench, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    """Whatever arrived in the worker's name; the worker is a new one afterwards."""
    ask = Process.ask

    def misfits(self: Process, message: dict[str, Any], *rest: Any) -> Any:
        found = ask(self, message, *rest)
        kernels = [job["case"]["kernel"] for job in message.get("jobs", ())]
        return answer if message["do"] == "measure" and "right" in kernels else found

    monkeypatch.setattr(Process, "ask", misfits)
    found = measured(shared, "right", "last")
    stage, message = failure(found["right"])
    assert ("worker", True) == (stage, message.startswith("the worker's answer does not fit: "))
    assert isinstance(found["last"], Measured)


def test_a_worker_that_died_between_groups_is_nobodys_fault(shared: Bench) -> None:
    """What an earlier kernel left behind may end it: the group is begun again, once."""
    assert isinstance(measured_alone(shared, "right"), Measured)
    assert shared._process is not None
    os.kill(shared._process._popen.pid, signal.SIGKILL)
    assert isinstance(measured_alone(shared, "right"), Measured)


def test_workers_that_keep_dying_before_a_case_cost_the_first(
    shared: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One retry a group: a sweep ends."""
    ask = Process.ask
    asked: list[int] = []

    def dies_thrice(self: Process, message: dict[str, Any], *rest: Any) -> Any:
        if message["do"] == "measure":
            asked.append(len(message["jobs"]))
            if len(asked) <= 3:
                raise WorkerDied(0, "worker", "the worker ended with signal SIGSEGV")
        return ask(self, message, *rest)

    monkeypatch.setattr(Process, "ask", dies_thrice)
    found = measured(shared, "numpy", "right", "last")
    assert [Failed, Failed, Measured] == [type(outcome) for outcome in found.values()]
    assert ("worker", "the worker ended with signal SIGSEGV") == failure(found["numpy"])
    assert [3, 3, 2, 1] == asked


@pytest.mark.parametrize("kernel", ["hangs", "spins"])
def test_a_kernel_that_does_not_end_is_stopped(kernel: str) -> None:
    """After --timeout, with its worker; the remedy names the option. Asleep or busy."""
    with bench_on("twice", "ends_the_worker", "wants_too_much", timeout_s=2) as bench:
        found = measured(bench, kernel, "last")
    said = found[kernel]
    assert ("launch", "it did not finish within 2 s and was stopped") == failure(said)
    assert isinstance(said, Failed)
    assert ("timeout", True) == (said.verdict, "--timeout" in said.remedy)
    assert isinstance(found["last"], Measured)


def test_several_broken_kernels_in_one_group_cost_one_worker_each(shared: Bench) -> None:
    """A group of crashes still ends, in order."""
    found = measured(shared, "segfaults", "right", "exits", "raises", "last")
    assert ["Failed", "Measured", "Failed", "Failed", "Measured"] == [
        type(outcome).__name__ for outcome in found.values()
    ]


def test_what_a_kernel_prints_does_not_reach_the_protocol(shared: Bench) -> None:
    """Not through print, not through the descriptor, not through a child of its own."""
    heard: list[tuple[str, str]] = []
    (outcomes,) = shared.measure(
        [jobs_of("right", "prints")],
        lambda case, stage: heard.append((case.kernel if case else "", stage)),
    )
    assert [True, True] == [isinstance(outcome, Measured) for outcome in outcomes]
    assert ("prints", "time") in heard
    assert {"right", "prints"} == {kernel for kernel, _ in heard}


def test_a_kernel_that_forks_answers_once(shared: Bench) -> None:
    """The copy ends when it comes back; the original is measured, and so is the next group."""
    found = measured(shared, "forks")
    assert isinstance(found["forks"], Measured)
    assert isinstance(measured(shared, "right")["right"], Measured)


def test_a_child_that_holds_the_pipes_open_is_no_reason_to_wait(
    shared: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's own end counts; what it left behind is ended, too."""
    note = tmp_path / "child"
    monkeypatch.setenv("SOLKIT_TEST_CHILD", str(note))
    monkeypatch.setattr(process, "_POLL_S", 0.1)
    shared._stop()  # so that the next worker has the variable
    started = time.monotonic()
    found = measured(shared, "leaves_a_child", "last")
    assert time.monotonic() - started < 30
    stage, message = failure(found["leaves_a_child"])
    assert ("launch", True) == (stage, message.startswith("the worker ended with exit code 5"))
    assert isinstance(found["last"], Measured)
    assert gone(int(note.read_text(encoding="utf-8")))


def gone(process_id: int) -> bool:
    """Say whether a process ends within some seconds; a zombie has."""
    status = Path(f"/proc/{process_id}/stat")
    for _ in range(50):
        try:
            if status.read_text(encoding="utf-8").rpartition(") ")[2].startswith("Z"):
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_each_group_is_handed_out_as_it_ends(shared: Bench) -> None:
    """A crash in the second group comes after the first one is safe."""
    groups = shared.measure(
        [jobs_of("right"), jobs_of("segfaults"), jobs_of("last")], lambda _case, _stage: None
    )
    assert isinstance(next(groups)[0], Measured)
    assert isinstance(next(groups)[0], Failed)
    assert isinstance(next(groups)[0], Measured)


def test_the_parent_knows_what_measures_and_how(shared: Bench) -> None:
    """For the header of the run."""
    assert "numpy" in shared.versions
    assert ("perf_counter", ()) == (shared.method, shared.notes)
    assert 0 < shared.floor_s < 1e-3


def test_loaded_declarations_stay_out_of_the_parent(shared: Bench) -> None:
    """They are known as data, marked as not bundled, and never imported here."""
    kernels = {
        kernel.name: kernel for kernel in shared.catalog.kernels if kernel.operator == "twice"
    }
    assert {"numpy", "right", "segfaults", "forks"} <= set(kernels)
    assert not any(kernel.bundled for kernel in kernels.values())
    assert any(kernel.bundled for kernel in shared.catalog.kernels)
    assert ("rows", "cols") == shared.catalog.operators["twice"].axes
    assert not [name for name in sys.modules if name.startswith("solkit_loaded_twice")]


def test_bundled_declarations_need_no_worker() -> None:
    """Their catalog is read in this process."""
    with Bench(Settings(device="cpu")) as bench:
        assert "matmul_add" in bench.catalog.operators
        assert bench._process is None


def test_a_wrong_work_model_is_the_problem_of_its_cases() -> None:
    """Counted backwards, or the end of the worker: the other operators are described."""
    shape = {"rows": 4, "cols": 8}
    cases = [
        Case(operator, "numpy", {**shape, "rows": rows}, "fp32")
        for rows in (4, 5)
        for operator in ("negative_work", "fine", "ending_work")
    ]
    with bench_on("wrong_operators") as bench:
        negative, fine, ending, *rest = bench.catalog.describe(cases)
    assert "counts read_bytes as -4, no whole number" in (negative.problem or "")
    assert (Work(4, 8), None) == (fine.work, fine.problem)
    assert "describing it ended the worker: the worker ended with exit code 4" == ending.problem
    assert [False, True, False] == [facts.problem is None for facts in rest]
    assert "exit code 5" in (rest[2].problem or "")


def test_a_kernel_whose_description_always_ends_the_worker_gets_three_chances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sweep of ten thousand such cases must not start as many workers."""
    started: list[Process] = []

    class Counted(Process):
        def __init__(self) -> None:
            super().__init__()
            started.append(self)

    monkeypatch.setattr(bench_module, "Process", Counted)
    cases = [
        Case(operator, "numpy", {"rows": rows, "cols": 8}, "fp32")
        for rows in range(1, 21)
        for operator in ("ending_work", "fine")
    ]
    with bench_on("wrong_operators") as bench:
        facts = bench.catalog.describe(cases)
    assert [False, True] * 20 == [each.problem is None for each in facts]
    assert 4 == len(started)


def test_a_reference_of_the_wrong_shape_fails_its_case_at_the_check() -> None:
    """The message says which shape was returned and which is declared."""
    with bench_on("wrong_operators") as bench:
        found = measured(bench, "numpy", operator="wrong_shape")
        stage, message = failure(found["numpy"])
        assert ("check", True) == (stage, "shape (1024,), declared is (1024, 256)" in message)
        assert isinstance(measured(bench, "numpy", operator="fine")["numpy"], Measured)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("raises_on_import.py: importing it raised ModuleNotFoundError", "raises_on_import"),
        ("exits_on_import.py: importing it raised SystemExit: usage", "exits_on_import"),
        (
            "loading the declarations ended the worker: the worker ended with exit code 9",
            "dies_on_import",
        ),
        ("its reference does not take the input 'x' (it takes: values)", "wrong_reference"),
        ("no argument has the role 'out' or 'inout'; two arguments share a name", "no_output"),
        ("raises.py: unknown operator of kernel 'raises': 'twice'", "raises"),
        ("nowhere.py: no such file or folder", "nowhere"),
    ],
)
def test_a_file_that_can_not_be_loaded_is_bad_input(words: str, name: str) -> None:
    """Said before anything is measured, with what to do; no worker stays."""
    with bench_on(name) as bench:
        with pytest.raises(BadInput) as caught:
            _ = bench.catalog
        assert words in caught.value.message
        assert caught.value.remedy
        assert bench._process is None


def test_a_kernel_nobody_declared_fails_its_group_only(shared: Bench) -> None:
    """A plan made from other files than the run."""
    outcome = measured_alone(shared, "unheard_of")
    assert ("worker", "KeyError: ('twice', 'unheard_of')") == failure(outcome)
    assert isinstance(measured(shared, "right")["right"], Measured)


def measured_alone(bench: Bench, kernel: str) -> Outcome:
    """Measure without compiling ahead, which would already notice."""
    outcomes: dict[int, Outcome] = {}
    bench._group(jobs_of(kernel), lambda _case, _stage: None, outcomes)
    return outcomes[0]


@pytest.mark.parametrize(
    ("command", "words"), [("open", "opening the device"), ("ceilings", "measuring the ceilings")]
)
def test_a_worker_that_dies_at_the_device_is_no_device(
    monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    """With the catalogue's remedy, or the doctor's address."""
    ask = Process.ask

    def dies(self: Process, message: dict[str, Any], on_case: Any = None) -> Any:
        if message["do"] == command:
            raise WorkerDied(-1, "worker", "the worker ended with signal SIGKILL")
        return ask(self, message, on_case)

    monkeypatch.setattr(Process, "ask", dies)
    with bench_on("twice") as bench, pytest.raises(NoDevice, match=words) as caught:
        bench.ceilings()
    assert caught.value.remedy


def test_a_device_that_is_gone_with_a_crash_ends_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No new worker opens it: the guilty case is handed out, the others stay to be measured."""
    ask = Process.ask
    opened: list[str] = []

    def opens_once(self: Process, message: dict[str, Any], *rest: Any) -> Any:
        if message["do"] == "open":
            opened.append("once more")
            if len(opened) > 1:
                raise NoDevice("GPU is lost", remedy="reset it")
        return ask(self, message, *rest)

    monkeypatch.setattr(Process, "ask", opens_once)
    with bench_on("twice", "ends_the_worker") as bench:
        groups = bench.measure(
            [jobs_of("right"), jobs_of("right", "segfaults", "last"), jobs_of("last")],
            lambda _case, _stage: None,
        )
        assert [Measured] == [type(outcome) for outcome in next(groups)]
        assert ["segfaults"] == [outcome.case.kernel for outcome in next(groups)]
        with pytest.raises(NoDevice, match="GPU is lost"):
            next(groups)


def test_a_worker_that_can_not_be_ended_takes_no_outcome_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver holds it: what is known of its case is handed out before the sweep ends."""

    def held_by_the_driver(self: Process) -> None:
        stop(self)
        raise NoDevice("it is not gone", remedy="reboot")

    stop = Process.stop
    with bench_on("twice", "ends_the_worker") as bench:
        groups = bench.measure([jobs_of("right", "segfaults")], lambda _case, _stage: None)
        with monkeypatch.context() as patch:
            patch.setattr(Process, "stop", held_by_the_driver)
            assert ["segfaults"] == [outcome.case.kernel for outcome in next(groups)]
            with pytest.raises(NoDevice, match="it is not gone"):
                next(groups)
            bench._process = None


def test_a_card_that_another_solkit_holds_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The lock comes before the worker's first look at the card, and goes with the bench."""
    monkeypatch.setenv("SOLKIT_LOCK_DIR", str(tmp_path))
    facts = DeviceFacts(kind="cuda", name="Example GPU 100", uuid="GPU-0000-fake")
    settings = Settings(device="cuda", facts=facts)
    with Bench(settings) as bench:
        with held(facts), pytest.raises(NoDevice, match="is being measured by process"):
            _ = bench.method
        assert bench._process is not None
        assert not bench._process.device_open
        bench._take()
        with pytest.raises(NoDevice, match="is being measured by process"), held(facts):
            pass
    with held(facts):
        pass


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed here")
def test_without_cupy_there_is_no_cuda_device() -> None:
    """The remedy is what to install."""
    with Bench(Settings(device="cuda")) as bench, pytest.raises(NoDevice) as caught:
        _ = bench.method
    assert caught.value.message.startswith("CuPy can't be imported")
    assert "solkit[cuda13]" in caught.value.remedy
