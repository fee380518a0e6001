"""A history: one whole line a run, appended by one writer at a time, and never lost."""

import errno
import json
import subprocess
import sys
from dataclasses import replace
from io import FileIO
from pathlib import Path

import pytest
from synthetic import synthetic_run

from solkit import history
from solkit.entry import entry_from
from solkit.errors import BadInput, NoDevice
from solkit.judge.score import Judged, Scored, score
from solkit.model import Failed, Measured, Run

RUN = synthetic_run()
JUDGED = score(RUN)
FILE = "example_100.jsonl"
NAMES = (
    "<b>\"'&amp;",
    "two\nlines\r\u2028",
    "x" * 10_000,
    "\u202eright to left",
    "\x00\x1b[31m",
    "../../../etc/passwd",
    "",
)


def named(name: str, *, created: str = "2026-02-01T00:00:00Z") -> Run:
    return replace(RUN, id=name, created=created)


def test_a_line_holds_what_a_trend_needs_of_a_run(tmp_path: Path) -> None:
    """Who, when, on what and how; then each case with its time, score and status."""
    told = history.append(tmp_path, RUN, JUDGED, "abc123", branch="main")
    assert (f"{tmp_path / FILE}: run 20260131-120000 appended",) == told
    (line,) = (tmp_path / FILE).read_bytes().splitlines()
    held = json.loads(line)
    assert (
        "solkit.history/1",
        "20260131-120000",
        "2026-01-31T12:00:00Z",
        "abc123",
        "main",
    ) == tuple(held[key] for key in ("schema", "id", "created", "commit", "branch"))
    assert ("example_100", "600.12", "cupti", 0, "burst") == tuple(
        held[key] for key in ("gpu_id", "driver", "method", "seed", "settle")
    )
    assert 64 == len(held["spec_hash"])
    statuses = [each["status"] for each in held["cases"]]
    assert (63, 1, 2, 3) == tuple(
        statuses.count(each) for each in ("measured", "invalid", "failed", "skipped")
    )
    item = next(each for each in JUDGED if isinstance(each, Scored))
    first = held["cases"][0]
    assert "copy" == first["case"]["operator"]
    assert pytest.approx(item.median_s, rel=1e-5) == first["median_s"]
    assert pytest.approx(item.sol_score, rel=1e-5) == first["sol_score"]


def test_what_was_appended_is_loaded_in_the_order_of_the_runs(tmp_path: Path) -> None:
    """The order of the file is that of the ends of runs; a trend needs that of their begins."""
    for name, created in (("b", "2026-03-01T00:00:00Z"), ("a", "2026-02-01T01:00:00+02:00")):
        history.append(tmp_path, named(name, created=created), JUDGED, f"commit {name}")
    found = history.load(tmp_path)
    assert ["a", "b"] == [each.id for each in found.entries]
    assert ((), ()) == (found.problems, found.notes)
    assert history.entry(named("a", created="2026-02-01T01:00:00+02:00"), JUDGED, commit="commit a")
    assert found.entries[1] == history.entry(
        named("b", created="2026-03-01T00:00:00Z"), JUDGED, commit="commit b"
    )


def test_a_run_enters_once(tmp_path: Path) -> None:
    """A job that is repeated appends nothing, and says so; other numbers under one id, too."""
    history.append(tmp_path, RUN, JUDGED, "abc")
    before = (tmp_path / FILE).read_bytes()
    (told,) = history.append(tmp_path, RUN, JUDGED, "abc")
    assert told.endswith("run 20260131-120000 is in already: not appended again")
    (told,) = history.append(tmp_path, RUN, JUDGED, "def")
    assert "is in already, with other numbers or another commit: not appended" in told
    assert before == (tmp_path / FILE).read_bytes()


def test_the_cards_of_one_machine_may_begin_a_run_in_one_second(tmp_path: Path) -> None:
    """Their runs have one id, and are two: nothing is lost in writing or in reading."""
    for uuid in ("GPU-0", "GPU-1", "GPU-0"):
        run = replace(RUN, facts=replace(RUN.facts, uuid=uuid))
        (told,) = history.append(tmp_path, run, JUDGED)
    assert told.endswith("is in already: not appended again")
    found = history.load(tmp_path)
    assert (["GPU-0", "GPU-1"], ()) == ([each.device_uuid for each in found.entries], found.notes)


def test_each_model_has_its_own_file(tmp_path: Path) -> None:
    """A folder holds the histories of several cards, and of hosts."""
    history.append(tmp_path, RUN, JUDGED)
    host = synthetic_run(gpu=None)
    history.append(tmp_path, host, score(host))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert FILE == names[1]
    assert names[0].startswith("cpu-example-cpu-")
    assert {"example_100", "cpu-Example CPU"} == {
        each.gpu_id for each in history.load(tmp_path).entries
    }
    assert ["cpu-Example CPU"] == [
        each.gpu_id for each in history.load(tmp_path / names[0]).entries
    ]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_stay_in_their_line_and_their_folder(tmp_path: Path, name: str) -> None:
    """Whatever a card, a commit or an operator is called, it is one line of one file here."""
    one = next(each for each in RUN.outcomes if isinstance(each, Measured))
    case = replace(one.case, operator=name, kernel=name, params={name: name})
    assert RUN.gpu
    run = replace(RUN, id=name, gpu=replace(RUN.gpu, id=name), outcomes=(replace(one, case=case),))
    folder = tmp_path / "inside"
    history.append(folder, run, score(run), name, branch=name)
    assert [folder] == list(tmp_path.iterdir())
    (path,) = folder.iterdir()
    assert 1 == path.read_bytes().count(b"\n")
    (entry,) = history.load(folder).entries
    assert (name, name, name) == (entry.id, entry.gpu_id, entry.cases[0].case.operator)
    assert len(entry.commit) <= 200


def test_half_a_character_is_bad_input(tmp_path: Path) -> None:
    """No run file holds one; where a program makes one, nothing is written."""
    run = replace(RUN, id="\udc80")
    with pytest.raises(BadInput, match=r"no text|does not fit"):
        history.append(tmp_path, run, JUDGED)


@pytest.mark.parametrize("cut", [1, 100, 5000])
def test_half_a_last_line_is_cut_off_and_costs_itself_alone(tmp_path: Path, cut: int) -> None:
    """A writer was killed: readers leave the half out, the next writer removes it; both say so."""
    history.append(tmp_path, named("a"), JUDGED)
    history.append(tmp_path, named("b"), JUDGED)
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[: -cut - 1])
    found = history.load(tmp_path)
    assert ["a"] == [each.id for each in found.entries]
    assert (f"{path}: the last line is cut short and was left out",) == found.notes
    told = history.append(tmp_path, named("b"), JUDGED)
    assert "the last line was cut short (a run that was killed): removed" in told[0]
    assert whole == path.read_bytes()


def test_a_last_line_that_lost_its_newline_alone_is_kept(tmp_path: Path) -> None:
    """An editor may take the newline away; the run before it must not go with it."""
    history.append(tmp_path, named("a"), JUDGED)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert ["a"] == [each.id for each in history.load(tmp_path).entries]
    history.append(tmp_path, named("b"), JUDGED)
    assert ["a", "b"] == [each.id for each in history.load(tmp_path).entries]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nonsense", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "the schema is 'None', this solkit reads 'solkit.history/1'"),
        (b'{"schema":"solkit.history/2","id":"x"}', "the schema is 'solkit.history/2'"),
        (b'{"schema":"solkit.history/1","id":"x"}', "an entry that does not fit: "),
        (b'{"schema":"solkit.history/1","id":NaN', "an entry that does not fit: "),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_a_bad_line_is_reported_by_its_number_and_costs_itself_alone(
    tmp_path: Path, line: bytes, why: str
) -> None:
    """It is neither swallowed nor does it take the others with it."""
    history.append(tmp_path, named("a"), JUDGED)
    path = tmp_path / FILE
    with path.open("ab") as file:
        file.write(line + b"\n\n")
    history.append(tmp_path, named("b"), JUDGED)
    found = history.load(tmp_path)
    assert ["a", "b"] == [each.id for each in found.entries]
    (problem,) = found.problems
    assert problem.startswith(f"{path}: line 2: {why}")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"created":"2026-01-31T12:00:00Z"', b'"created":"yesterday"', "no date of ISO 8601"),
        (b'"created":"2026-01-31T12:00:00Z"', b'"created":"0001-01-01T00:00:00+23:59"', "no date"),
        (b'"median_s":1.8089e-06', b'"median_s":-1.0', "no interval above zero"),
        (b'"median_s":1.8089e-06', b'"median_s":1.0', "no interval above zero"),
        (b'"median_s":1.8089e-06,', b"", "was measured, and has no time"),
        (b'"median_s":1.8089e-06', b'"median_s":1e999', "does not fit"),
        (b'"status":"measured"', b'"status":"good"', "does not fit"),
    ],
)
def test_numbers_that_cannot_be_are_no_entry(
    tmp_path: Path, old: bytes, new: bytes, why: str
) -> None:
    """Whoever judges an entry may trust its times and its date."""
    history.append(tmp_path, RUN, JUDGED)
    line = (tmp_path / FILE).read_bytes()
    assert old in line
    with pytest.raises(BadInput, match=why):
        entry_from(line.replace(old, new, 1))


def test_a_run_in_two_files_counts_once(tmp_path: Path) -> None:
    """A folder that was copied together holds some runs twice; that is said."""
    history.append(tmp_path, RUN, JUDGED)
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / FILE).read_bytes())
    found = history.load(tmp_path)
    assert 1 == len(found.entries)
    assert "line 1: run 20260131-120000 is in it again: left out" in found.notes[0]


def test_a_folder_without_a_history_is_bad_input(tmp_path: Path) -> None:
    """An empty trend is no trend."""
    with pytest.raises(BadInput, match="holds no history"):
        history.load(tmp_path)
    with pytest.raises(BadInput, match="holds no history"):
        history.load(tmp_path / "none")


def test_a_case_timed_in_another_way_says_so(tmp_path: Path) -> None:
    """Times of two methods are no series; a state of the cache that was not proved neither."""
    history.append(tmp_path, RUN, JUDGED)
    (entry,) = history.load(tmp_path).entries
    assert {"", "event_unblocked"} == {each.method for each in entry.cases}
    assert {"", "unknown"} == {each.cache for each in entry.cases}


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Jobs of one pipeline end together: all their lines are in, and whole."""
    code = (
        "import sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from synthetic import synthetic_run\n"
        "from solkit import history\n"
        "from solkit.judge.score import score\n"
        "run = synthetic_run()\n"
        "for number in range(8):\n"
        "    one = replace(run, id=f'{sys.argv[2]}-{number}')\n"
        "    history.append(Path(sys.argv[1]), one, score(one))\n"
    )
    tests = str(Path(__file__).parents[1])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name],
            env={"PYTHONPATH": f"{tests}:{Path(tests).parent}"},
        )
        for name in ("one", "two")
    ]
    assert [0, 0] == [each.wait(60) for each in started]
    found = history.load(tmp_path)
    assert 16 == len(found.entries)
    assert ((), ()) == (found.problems, found.notes)


def test_a_writer_that_holds_the_file_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting has an end, and then nothing was changed."""
    fcntl = pytest.importorskip("fcntl", reason="locks are POSIX's")
    monkeypatch.setattr(history, "WAIT_S", 0.1)
    history.append(tmp_path, RUN, JUDGED)
    with (tmp_path / FILE).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(NoDevice, match="another solkit is writing it"):
            history.append(tmp_path, named("b"), JUDGED)
    assert ["20260131-120000"] == [each.id for each in history.load(tmp_path).entries]


class FullDisk(FileIO):
    """A file on a disk that takes 100 bytes more, and then none."""

    def write(self, data: object, /) -> int:
        """Take half of it the first time."""
        if self.tell() > self.full_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        assert isinstance(data, bytes)
        return super().write(data[:100])

    full_at = 0


def test_a_full_disk_is_told_and_leaves_the_history_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4 with the reason; no half line stays behind."""
    history.append(tmp_path, RUN, JUDGED)
    before = (tmp_path / FILE).read_bytes()
    monkeypatch.setattr(FullDisk, "full_at", len(before) + 50)
    monkeypatch.setattr(history, "FileIO", FullDisk)
    with pytest.raises(NoDevice, match=r"can't be written: No space left") as told:
        history.append(tmp_path, named("b"), JUDGED)
    assert "free some space" in told.value.remedy
    assert before == (tmp_path / FILE).read_bytes()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file where the folder should be, a folder where the file should be, a pipe."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / FILE).mkdir(parents=True)
    for place in ("file", "folder"):
        with pytest.raises(NoDevice, match=r"can't be written|is no file"):
            history.append(tmp_path / place, RUN, JUDGED)
    with pytest.raises(NoDevice, match=r"can't be written"):
        history.prove_writable(tmp_path / "file")
    history.prove_writable(tmp_path / "new" / "place")
    assert [] == list((tmp_path / "new" / "place").iterdir())


def test_a_run_without_a_date_enters_no_history(tmp_path: Path) -> None:
    """It would have no place among the others."""
    with pytest.raises(BadInput, match="no date of ISO 8601"):
        history.append(tmp_path, replace(RUN, created="soon"), JUDGED)
    assert [] == list(tmp_path.iterdir())


def test_failed_cases_have_no_time() -> None:
    """A status and no number: nothing stands for what was not measured."""
    only: tuple[Judged, ...] = tuple(each for each in JUDGED if isinstance(each, Failed))
    assert {("failed", None)} == {
        (each.status, each.median_s) for each in history.entry(RUN, only).cases
    }
