"""What benchmarks/faults.py drills: the bad kernels of tests/faults, and what each must come to."""

from dataclasses import dataclass

TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Bad:
    """A bad kernel: what it does, and what it must be recorded as."""

    kernel: str
    does: str
    stages: str
    verdicts: str
    words: str = ""


_LOOP = f"did not finish within {TIMEOUT_S} s"
HOST = (
    Bad("segfaults", "reads the host's address 0", "launch", "crashed", "SIGSEGV"),
    Bad("raises", "raises an exception", "launch", "", "ArithmeticError: not today"),
    Bad("spins", "loops in Python without end", "launch", "timeout", _LOOP),
    Bad("wants_all_memory", "asks for 4 PiB (card: 4 TiB)", "launch", "out_of_memory"),
    Bad("writes_nothing", "runs and writes nothing", "check", "unwritten"),
    Bad("returns_another_shape", "returns one row less", "launch check", "wrong_shape"),
)
CPU = (
    *HOST,
    Bad("aborts", "os.abort()", "launch", "crashed", "SIGABRT"),
    Bad("says_why_and_exits", "os._exit(7)", "launch", "crashed", "exit code 7"),
)
CUDA = (
    Bad("illegal", "stores 64 TiB away", "launch", "crashed", "llegal"),
    Bad("misaligned", "stores 16 bytes at an odd address", "launch", "crashed", "isaligned"),
    Bad("asserts", "a device-side assertion fails", "launch", "crashed", "ssert"),
    Bad("traps", "__trap()", "launch", "crashed"),
    Bad("faults_and_waits", "Python: faults, and waits itself", "launch", "crashed", "llegal"),
    Bad("loops", "loops on the card without end", "launch check", "timeout", _LOOP),
    Bad("loops_later", "loops without end in its 9th call", "launch check time", "timeout", _LOOP),
    *HOST,
    Bad("exits", "os._exit(7) in a Python kernel", "launch", "crashed", "exit code 7"),
    Bad(
        "launches_nothing",
        "Python: gives the card no work",
        "launch check time",
        "no_kernel unwritten",
    ),
    Bad("deep", "SIGSEGV to NVRTC while it compiles", "compile", "crashed", "SIGSEGV"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is drilled on a device: files, the good kernels' names, the bad ones."""

    device: str
    loads: tuple[str, ...]
    good: tuple[str, str]
    bad: tuple[Bad, ...]
    slow_count: int = 8

    def sweep(self) -> str:
        """Return the sweep: a group a bad kernel, then groups that can be hit in the middle."""
        first, last = self.good
        lines = ["version: 1", "defaults: {dtype: fp32}", "sweeps:"]
        for number, bad in enumerate(self.bad):
            lines += [f"- operator: twice\n  kernels: [{first}, {bad.kernel}, {last}]"]
            lines += [f"  shapes: [{{rows: {512 + number}, cols: 256}}]"]
        lines += [f"- operator: twice\n  kernels: [{first}]"]
        lines += ["  shapes: [{rows: 1000000000000, cols: 256}]"]
        rows = list(range(1024, 1024 + self.slow_count))
        lines += [
            f"- operator: twice\n  kernels: [{first}, slow]\n  grid: {{rows: {rows}, cols: 256}}"
        ]
        return "\n".join(lines) + "\n"

    @property
    def bad_count(self) -> int:
        """How many outcomes the groups of bad kernels have, the skipped case with them."""
        return 3 * len(self.bad) + 1


PLANS = {
    "cpu": Plan(
        "cpu",
        ("twice", "wrong_results", "raises", "ends_the_worker", "wants_too_much", "takes_its_time"),
        ("right", "last"),
        CPU,
    ),
    "cuda": Plan("cuda", ("twice", "breaks_the_card"), ("good", "good_again"), CUDA),
}
