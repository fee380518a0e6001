"""The artifacts of a CI run whose gate said no, made from recorded runs of a real card; no GPU.

    python examples/ci-run/make.py            write them beside this file
    python examples/ci-run/make.py --check    exit 1 where they are not what is made today

BASE and HEAD are two runs of one sweep (docs/gate.md); HEAD has softmax from a third run, in which
a delay made every call 5 % slower. A third of the cases is taken, so that the files stay small.
"""

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solkit import record
from solkit.cli import ending, gating
from solkit.cli.extras import Extras
from solkit.errors import SolkitError
from solkit.judge.changes import Comparison
from solkit.report.changes_renderers import RENDERERS

HERE = Path(__file__).parent
RUNS = HERE.parents[1] / "benchmarks" / "h200"
GATE = HERE / "gate.toml"
BLOCK, EVERY = 6, 3  # the sweep goes round six operators: every third round is taken
CHANGED = "softmax"

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """Both runs as the lines of their files, and what HEAD is, in words."""

    base: Lines
    head: Lines
    story: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the artifacts, or look whether they are today's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit 1 where one is an old one")
    parser.add_argument("--into", type=Path, default=HERE, help="the folder")
    asked = parser.parse_args(arguments)
    wanted = artifacts(sides(RUNS))
    if asked.check:
        old = [name for name, text in wanted.items() if _held(asked.into / name) != text]
        print(f"not what is made today: {', '.join(old)}" if old else "all are what is made today")
        return int(bool(old))
    asked.into.mkdir(parents=True, exist_ok=True)
    for name, text in wanted.items():
        (asked.into / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{len(text.encode()):9,} {name}")
    return 0


def _held(path: Path) -> str | None:
    return path.read_bytes().decode() if path.is_file() else None


def sides(runs: Path) -> Sides:
    """Return BASE and HEAD: the gate's recorded runs, or the one other run against itself."""
    base, again, slower = (runs / "gate" / f"{name}.jsonl" for name in ("a", "a2", "p5"))
    if not all(path.is_file() for path in (base, again, slower)):
        whole = _lines(runs / "main.jsonl")
        return Sides(whole, whole, "the same run once more")
    planted = {_key(line): line for line in _lines(slower)[1:]}
    changed = tuple(
        planted.get(_key(line), line) if f'"operator":"{CHANGED}"' in line else line
        for line in _lines(again)
    )
    story = f"the same kernels measured again, with {CHANGED} made 5 % slower by a delay"
    return Sides(thinned(_lines(base)), thinned(changed), story)


def _lines(path: Path) -> Lines:
    return tuple(path.read_text(encoding="utf-8").splitlines())


def _key(line: str) -> str:
    """Return what a line is about: the case of an outcome."""
    held = json.loads(line)
    names = ("operator", "kernel", "shape", "dtype", "params", "cache_mode")
    return json.dumps([held.get(name) for name in names])


def thinned(lines: Lines) -> Lines:
    """Return a run of every third round of the sweep, with the counts that belong to it."""
    header, *outcomes, end = map(json.loads, lines)
    kept = [each for place, each in enumerate(outcomes) if place // BLOCK % EVERY == 0]
    header["planned_count"] = len(kept)
    end["counts"] = {kind: sum(each["kind"] == kind for each in kept) for kind in end["counts"]}
    return tuple(_text(each) for each in (header, *kept, end))


def _text(held: Mapping[str, Any]) -> str:
    return json.dumps(held, ensure_ascii=False, separators=(",", ":"))


def artifacts(both: Sides) -> dict[str, str]:
    """Return every file of the example: what `solkit run --against --gate` leaves, and its log."""
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        base, head = at / "base" / "run.jsonl", at / "head" / "run.jsonl"
        for path, lines in ((base, both.base), (head, both.head)):
            path.parent.mkdir()
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        held = gating.read(gating.Gating(gate=GATE, against=(base,)), ())
        extras = Extras(junit=at / "junit.xml", summary=at / "summary.md", annotations=True)
        code, said = told(head.parent, extras, held)
        comparison = held.compared([record.read(head)])
        assert comparison is not None  # noqa: S101  # there is a base
        paths = {
            "report.html": head.parent / "report.html",
            "compare.html": head.parent / "compare.html",
            "junit.xml": at / "junit.xml",
            "summary.md": at / "summary.md",
        }
        files = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
        commands, log = split(said.replace(f"{at}/", "solkit-out/").splitlines())
        return files | {
            "compare.md": RENDERERS["markdown"](comparison, code),
            "comparison.json": RENDERERS["json"](comparison, code),
            "annotations.txt": commands,
            "log.txt": log,
            "README.md": readme(both, comparison, code),
        }


def told(folder: Path, extras: Extras, held: gating.Held) -> tuple[int, str]:
    """End a run as the command does; return its exit code and what it wrote on stdout."""
    code = 0
    out, talk = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(talk):
        try:
            ending.tell(folder, extras, held, None, roof=None, baseline=None)
        except SolkitError as error:
            code = error.exit_code
            out.write(f"error: {error.message}\n")
    out.seek(0)
    return code, out.read()


def split(lines: Iterable[str]) -> tuple[str, str]:
    """Return the workflow commands among what was said, and the rest."""
    commands, rest = [], []
    for line in lines:
        (commands if line.startswith("::") else rest).append(line)
    return "".join(f"{line}\n" for line in commands), "".join(f"{line}\n" for line in rest)


def readme(both: Sides, comparison: Comparison, code: int) -> str:
    """Return the page that says what each file is."""
    counts = {
        word: sum(change.word == word for change in comparison.changes)
        for word in ("SLOWER", "UNSURE", "FASTER", "SAME")
    }
    found = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    run = comparison.head
    return f"""\
# The artifacts of a CI run

What a job leaves that ends with

```sh
solkit run --shapes shapes.yaml --out solkit-out/head --against solkit-out/base --gate gate.toml \\
  --junit junit.xml --summary "$GITHUB_STEP_SUMMARY" --annotations
```

BASE is a recorded run on {run.facts.name}; HEAD is {both.story}.
Over {len(comparison.changes)} cases: {found}. The command ends with {code}.

| file | what it is, and who shows it |
| --- | --- |
| [report.html](report.html) | HEAD's report, one file: GitHub and GitLab keep it as an artifact |
| [compare.html](compare.html) | HEAD against BASE, case by case |
| [summary.md](summary.md) | the job's summary on GitHub |
| [annotations.txt](annotations.txt) | the lines that GitHub turns into annotations, ten at most |
| [junit.xml](junit.xml) | a test for each case: GitLab's merge request, Jenkins' test results |
| [log.txt](log.txt) | what the log of the job shows at the end |
| [compare.md](compare.md) | `solkit compare BASE HEAD --format markdown`: for a comment |
| [comparison.json](comparison.json) | the same as JSON: every number, for scripts |
| [gate.toml](gate.toml) | the gate that said {"no" if code else "yes"} |

`python examples/ci-run/make.py` makes all of it again, without a GPU, from
[the recorded runs](../../benchmarks/h200). The recipes for GitHub, GitLab and Jenkins are in
[docs/ci.md](../../docs/ci.md).
"""


if __name__ == "__main__":
    sys.exit(main())
