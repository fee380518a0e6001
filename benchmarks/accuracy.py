"""How exact solkit's times are: measured on this machine's GPU, recorded, and put on a page.

    python benchmarks/accuracy.py                    measure everything, then make the page
    python benchmarks/accuracy.py --only spin,copy   some parts; the others stay as they were
    python benchmarks/accuracy.py --docs             make docs/accuracy.md from the record; no GPU
    python benchmarks/accuracy.py --check            exit 1 where the page is not the record's

Each part runs in a process of its own: one that fails, hangs or dies costs its own figures, and the
record says why they are missing. See accuracy_parts/ for the parts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy_parts import page, parts
from accuracy_parts.limits import verdicts

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "h200" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"
ROW_DEPTH = 2  # the record and its parts are written over many lines, what is in them is not


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write, or only write, or only look; return the exit code."""
    asked = options(arguments)
    if asked.part:
        measure_here(asked.part, asked.into, nvbench=asked.nvbench)
        return 0
    if asked.check:
        return int(not asked.page.is_file() or made_of(asked.record) != _read(asked.page))
    failed = False if asked.docs else not measure_all(asked.only, asked.record)
    asked.page.write_text(made_of(asked.record), encoding="utf-8")
    for verdict in verdicts(json.loads(_read(asked.record))):
        print(f"{page.WORDS[verdict.passed]:12} {verdict.test}: {verdict.figure} ({verdict.limit})")
    return int(failed)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=parts.chosen, default=list(parts.PARTS), metavar="PARTS")
    parser.add_argument("--docs", action="store_true", help="make the page alone; no GPU")
    parser.add_argument("--check", action="store_true", help="exit 1 where the page is an old one")
    parser.add_argument("--record", type=Path, default=RECORD, help="the JSON file")
    parser.add_argument("--page", type=Path, default=PAGE, help="the Markdown file")
    # What a part's own process is started with.
    parser.add_argument("--part", choices=list(parts.PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--without-nvbench", dest="nvbench", action="store_false", help=argparse.SUPPRESS
    )
    return parser.parse_args(arguments)


def made_of(record: Path) -> str:
    """Return the page that a record gives."""
    return page.render(json.loads(_read(record)))


def measure_all(only: Sequence[str], path: Path) -> bool:
    """Measure parts, each in its process; keep the record after each; say whether all went well."""
    record = json.loads(_read(path)) if path.is_file() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    started, well = monotonic(), True
    for part in dict.fromkeys(("environment", *only)):
        began = monotonic()
        print(f"{part} (at {began - started:.0f} s)", flush=True)
        found, problem = in_own_process(part)
        if problem and part == "copy":  # nvbench is the one tool that may take a process with it
            print(f"  {problem}\n  once more, without nvbench", flush=True)
            again, problem = in_own_process(part, "--without-nvbench")
            found = again or found
        well = well and any(found.get(name) for name in parts.PARTS[part])
        if problem:
            well = False
            found["missing"] = {**(found.get("missing") or {}), part: problem}
        record = parts.merged(record, part, found)
        path.write_text(text_of(record), encoding="utf-8")
        print(f"  {problem or 'done'} after {monotonic() - began:.1f} s", flush=True)
    print(f"all parts: {monotonic() - started:.0f} s", flush=True)
    return well


def text_of(record: parts.Record) -> str:
    """Return a record as JSON: a line a figure or row, so that differences can be read."""
    return _lines(record, "") + "\n"


def _lines(value: object, indent: str) -> str:
    deeper = indent + " "
    if isinstance(value, dict) and len(indent) < ROW_DEPTH:
        held = [f"{json.dumps(name)}: {_lines(each, deeper)}" for name, each in value.items()]
        brackets = "{}"
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        held, brackets = [json.dumps(each, ensure_ascii=False) for each in value], "[]"
    else:
        return json.dumps(value, ensure_ascii=False)
    inner = f",\n{deeper}".join(held)
    return f"{brackets[0]}\n{deeper}{inner}\n{indent}{brackets[1]}" if held else brackets


def in_own_process(part: str, *more: str) -> tuple[parts.Record, str]:
    """Return what a part found, as far as it came, and what went wrong, if anything did."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "found.json"
        command = [sys.executable, __file__, "--part", part, "--into", str(into), *more]
        try:
            done = subprocess.run(
                command, check=False, timeout=parts.limit_s(part), stderr=subprocess.PIPE, text=True
            )
            problem = "" if not done.returncode else _last_words(done.stderr, done.returncode)
        except subprocess.TimeoutExpired:
            problem = f"it took more than {parts.limit_s(part)} s"
        return (json.loads(_read(into)) if into.is_file() else {}), problem


def _last_words(said: str, status: int) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    print("\n".join(lines[-20:]), file=sys.stderr, flush=True)
    return f"status {status}: {lines[-1].strip() if lines else 'without a word'}"


def measure_here(part: str, into: Path, *, nvbench: bool) -> None:
    """Measure one part in this process; what it has is on disk before it goes on."""

    def save(found: parts.Record) -> None:
        whole = into.with_suffix(".part")
        whole.write_text(json.dumps(found), encoding="utf-8")
        os.replace(whole, into)  # noqa: PTH105  # in one step

    # A part is imported where it runs: most need a GPU to be imported at all.
    if part == "environment":
        from accuracy_parts import environment  # noqa: PLC0415

        environment.measure(save)
    elif part == "spin":
        from accuracy_parts import spin  # noqa: PLC0415

        spin.measure(save)
    elif part == "copy":
        from accuracy_parts import tools  # noqa: PLC0415

        tools.measure(save, nvbench=nvbench)
    elif part == "cache":
        from accuracy_parts import caches  # noqa: PLC0415

        caches.measure(save)
    else:
        from accuracy_parts import pipeline  # noqa: PLC0415

        {
            "aa": pipeline.measure_aa,
            "order": pipeline.measure_order,
            "throughput": pipeline.measure_throughput,
        }[part](save)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
