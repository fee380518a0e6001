"""Every bundled kernel on small shapes under compute-sanitizer: memcheck and racecheck.

    python benchmarks/sanitizer.py [--only softmax] [--tool memcheck] [--limit 300] [-o page.md]

The shapes are those of the tests on the card (tests/gpu/test_kernels.py) whose arguments have
MOST_ELEMENTS at most: the two smallest of each compiled function; and on a card with wgmma a case
of each form (tests/gpu/test_wgmma_forms.py), since small shapes get few of them. Each is compared
with its reference as well. Several processes share the cases. The table goes into the repository,
benchmarks/h200/sanitizer.md, where all was run. Exit code 1 when a tool reports anything, or when a
process is not done by --limit seconds: it is stopped, and its last case is named.
"""

import argparse
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ROOT / "tests" / "gpu" / "test_kernels.py"
FORMS = ROOT / "tests" / "gpu" / "test_wgmma_forms.py"
PAGE = ROOT / "benchmarks" / "h200" / "sanitizer.md"
TOOLS = ("memcheck", "racecheck")
MOST_ELEMENTS = 600_000
CASES_OF_A_FUNCTION = 2  # the tools instrument each function anew, which takes most of their time
LIMIT_S = 600.0  # of a process under a tool; all together took 85 s on an H200
MOST_TEXT = 20_000  # characters of what a process said, shown where it failed
EXIT = ("--error-exitcode", "9")  # by which a tool says that it found something
# A function's parameters are asked for one by one until the driver says that there are no more: an
# error of the API each time, and none of the kernel's.
MORE = {"memcheck": ("--report-api-errors", "no")}


@dataclass(frozen=True, slots=True)
class Found:
    """What one process under a tool came to."""

    tool: str
    cases: int
    errors: int
    failed: bool
    text: str


def main() -> int:
    """Run the tools, or (as a tool's child) the kernels."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="operators whose name holds this text")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="one tool; repeat for more")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of a process")
    parser.add_argument(
        "-o", "--output", type=Path, help=f"write the table here ({PAGE.name} where all was run)"
    )
    parser.add_argument("--child", type=int, default=-1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child >= 0:
        return run_kernels(asked.only, asked.child, asked.processes)
    program = shutil.which("compute-sanitizer")
    if program is None:
        print("compute-sanitizer is not installed: it comes with the CUDA toolkit", file=sys.stderr)
        return 4
    child = [sys.executable, str(Path(__file__).resolve()), "--only", asked.only]
    child += ["--processes", str(asked.processes), "--child"]
    # A first time without a tool: it compiles everything, and says which card this is.
    start_s = time.monotonic()
    code, first = watched([*child, "0"], asked.limit)
    print(f"without a tool: {time.monotonic() - start_s:.0f} s", file=sys.stderr, flush=True)
    if code:
        print(first[-MOST_TEXT:], file=sys.stderr)
        return 1
    start_s = time.monotonic()
    tools = asked.tool or TOOLS
    work = [(tool, part) for part in range(asked.processes) for tool in tools]
    with ThreadPoolExecutor(len(work)) as pool:
        found = list(pool.map(lambda each: examined(program, *each, child, asked.limit), work))
    for each in found:
        if each.failed:
            print(each.text, file=sys.stderr)
    table = page(told(first, "card: "), found, time.monotonic() - start_s)
    print(table)
    output = asked.output or (None if asked.only or asked.tool else PAGE)
    if output:
        output.write_text(table, encoding="utf-8")
    return int(any(each.failed for each in found))


def examined(program: str, tool: str, part: int, child: Sequence[str], limit_s: float) -> Found:
    """Run one part of the cases under one tool; one that is not done in time has failed."""
    command = [program, "--tool", tool, *MORE.get(tool, ()), *EXIT, *child, str(part)]
    code, text = watched(command, limit_s)
    summary = next((line for line in text.splitlines() if "SUMMARY: " in line), "")
    counts = [int(word) for word in summary.replace("(", " ").split() if word.isdecimal()]
    cases = told(text, "cases: ")
    failed = code != 0 or not cases or not counts
    named = f"{tool}, part {part}:\n{text[-MOST_TEXT:]}"
    return Found(tool, int(cases or 0), counts[0] if counts else 0, failed, named)


def watched(command: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Run a command with all that it starts; return its exit code and what it said.

    One that is not done in time is stopped, and its last case named.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a tool starts a process of its own, which has to end with it
    )
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        last = last_told(text, "running: ") or "what precedes its first case"
        text += f"not done in {limit_s:.0f} s, stopped in: {last}\n"
    return process.returncode, text


def told(text: str, mark: str) -> str:
    """Return what a child said behind a mark, or nothing."""
    return next(all_told(text, mark), "")


def last_told(text: str, mark: str) -> str:
    """Return what it said last behind a mark, or nothing."""
    return next(iter([*all_told(text, mark)][::-1]), "")


def all_told(text: str, mark: str) -> Iterator[str]:
    """Yield what a child said behind a mark."""
    yield from (line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark))


def page(card: str, found: Sequence[Found], wall_s: float) -> str:
    """Return the table with where and when it was made."""
    rows = []
    for tool in dict.fromkeys(each.tool for each in found):
        parts = [each for each in found if each.tool == tool]
        errors = sum(each.errors for each in parts)
        ended = sum(each.failed for each in parts)
        result = "clean" if not errors and not ended else f"{errors} errors, {ended} parts failed"
        rows.append(f"| {tool} | {sum(each.cases for each in parts)} | {result} |")
    lines = [
        "# compute-sanitizer",
        "",
        f"{card}, {datetime.now(UTC):%Y-%m-%d}. Made by `python benchmarks/sanitizer.py` in",
        f"{wall_s:.0f} s: every function that the tests' shapes of {MOST_ELEMENTS:,} elements at",
        f"most compile, on its {CASES_OF_A_FUNCTION} smallest shapes, and, on a card that has it,",
        "each form of the products by wgmma; values compared as well.",
        "",
        "| tool | cases | result |",
        "|---|---:|---|",
        *rows,
        "",
    ]
    return "\n".join(lines)


def run_kernels(only: str, part: int, parts: int) -> int:
    """Run one part of the small cases once and compare them; return 1 when a value is wrong."""
    import cupy  # noqa: PLC0415  # the parent needs no card

    from solkit.declare.registry import bundled  # noqa: PLC0415
    from solkit.measure import buffers, check  # noqa: PLC0415
    from solkit.measure.device.cuda.device import CudaDevice  # noqa: PLC0415
    from solkit.resources import folder  # noqa: PLC0415

    registry, include = bundled(), folder("kernels") / "include"
    device = CudaDevice(0, timer="event_unblocked")  # CUPTI can't share a process with these tools
    sys.path.insert(0, str(FORMS.parent))  # for what the tests there share
    pairs = [
        *(
            (registry.kernels[case.operator, case.kernel], case)
            for case in small_cases(registry, device.card, only)
        ),
        *cases_of_forms(device.card, only),
    ]
    print(f"running: the compiler, for {len(pairs)} cases", flush=True)
    device.compile_ahead(pairs, include, lambda _index: None)
    counts, wrong = Counter[str](), 0
    for kernel, case in pairs[part::parts]:
        entries = [launch.entry for launch in kernel.launches_on(case, device.card)]
        print(f"running: {case}: {', '.join(entries)}", flush=True)
        operator = registry.operators[case.operator]
        program = device.prepare(kernel, operator, case, include)
        sets = buffers.make(device, operator, case, 0, most_sets=1)
        expected = check.expect(device, operator, case, sets.buffers(0), 0)
        sets.poison(device, 0)
        program.bind(sets.buffers(0))()
        device.synchronize()
        try:
            check.compare(device, operator, case, sets.buffers(0), expected)
        except check.CheckFailed as error:
            print(f"{case}: {error.message}", file=sys.stderr)
            wrong += 1
        counts[case.operator] += 1
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"card: {name}, CUDA {device.versions()['cuda_driver']}")
    print(f"cases: {sum(counts.values())}", flush=True)
    return int(wrong > 0)


def small_cases(registry, card, only: str) -> Iterator:  # noqa: ANN001  # solkit loads in the child alone
    """Yield the smallest cases of each function compiled for a card, smallest first."""
    sized = []
    for case in runpy.run_path(str(SHAPES))["cases"]():
        count = sum(arg.count(case) for arg in registry.operators[case.operator].args_of(case))
        if only in case.operator and count <= MOST_ELEMENTS:
            sized.append((count, str(case), case))
    seen = Counter[tuple[str, ...]]()
    for _count, _name, case in sorted(sized, key=lambda each: each[:2]):
        launches = registry.kernels[case.operator, case.kernel].launches_on(case, card)
        entries = tuple(launch.entry for launch in launches)
        seen[entries] += 1
        if seen[entries] <= CASES_OF_A_FUNCTION:
            yield case


def cases_of_forms(card, only: str) -> Iterator:  # noqa: ANN001  # solkit loads in the child alone
    """Yield each form of the products by wgmma, a kernel and its case, where the card has it."""
    told_by_tests = runpy.run_path(str(FORMS))
    if card.compute_capability == told_by_tests["CAPABILITY"]:
        yield from (pair for pair in told_by_tests["examined"]() if only in pair[1].operator)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    sys.exit(main())
