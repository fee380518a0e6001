"""run.jsonl: what is written is read again, and what is broken is named."""

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_catalog import CARD

from solkit import record
from solkit.errors import BadInput, NoDevice
from solkit.gpu import DeviceFacts
from solkit.model import (
    Bound,
    Case,
    Ceilings,
    Check,
    Clocks,
    Compiled,
    DramCeiling,
    Failed,
    Measured,
    Outcome,
    PipeCeiling,
    Run,
    Skipped,
    Step,
    Work,
)

CASE = Case("product", "solkit", {"M": 8, "N": 16, "K": 32}, "bf16", {"weight": "nk", "fast": True})
MEASURED = Measured(
    case=CASE,
    work=Work(1280, 256, {"bf16_tensor": 8192}, {"fp32": 128}),
    unfused=(Step("product", Work(1280, 256, {"bf16_tensor": 8192})),),
    bound=Bound(7.68e-10, {"bf16_tensor": 1.3e-11}, 7.68e-10, "memory", near_ridge=False),
    times_s=(1.0e-6, 1.5e-6, 2.0e-6),
    sample_count=3,
    quantiles_s={"0.5": 1.5e-6},
    median_s=1.5e-6,
    low_s=1.0e-6,
    high_s=2.0e-6,
    floor_s=8.0e-7,
    method="events",
    cache="cold",
    clocks=Clocks(sm_hz=1.755e9, event_reasons=("SwPowerCap",)),
    check=Check(0.25, 128, "all elements", "bf16", 0),
    compiled=(Compiled("f<__nv_bfloat16>", 40, 0, 1024, ("unused variable",)),),
    notes=("unsteady",),
)
FAILED = Failed(replace(CASE, kernel="other"), "compile", "error: <x> & 'y'\nline 2", "mend line 2")
SKIPPED = Skipped(replace(CASE, dtype="fp16"), "no fp16 tensor pipe")
OUTCOMES: tuple[Outcome, ...] = (MEASURED, FAILED, SKIPPED)
RUN = Run(
    id="20260131-120000",
    created="2026-01-31T12:00:00Z",
    device="cuda",
    facts=DeviceFacts("cuda", "Example GPU 100", compute_capability="9.0", ecc=True),
    gpu=CARD,
    ceilings=Ceilings(
        "events", (DramCeiling("copy", 10, 10, 1e-6),), (PipeCeiling("fp32", 9, 1e-6, "x"),)
    ),
    versions={"solkit": "0.1.0"},
    seed=7,
    method="events",
    cache="cold",
    planned_count=3,
    notes=("a note",),
    command="solkit run",
)


def written(path: Path, *groups: tuple[Outcome, ...], run: Run = RUN) -> Path:
    with record.Writer(path, run) as writer:
        for group in groups:
            writer.add(group)
    return path


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Header, spec, ceilings and all three kinds of outcome come back equal."""
    found = record.read(written(tmp_path / "run.jsonl", OUTCOMES[:2], OUTCOMES[2:]))
    assert found.duration_s is not None
    assert replace(RUN, outcomes=OUTCOMES, ended="complete") == replace(found, duration_s=None)


@pytest.mark.parametrize(
    ("ceilings", "why"),
    [
        (Ceilings("cupti", (DramCeiling("copy", 1, 1, 0.0),)), "time is not above zero"),
        (Ceilings("cupti", (DramCeiling("copy", 0, 0, 1e-6),)), "moved no bytes"),
        (
            Ceilings("cupti", (), l2=(DramCeiling("read", -1, 9, 1e-6),)),
            "moved no bytes",
        ),
        (
            Ceilings("cupti", (), (PipeCeiling("fp32", 9, 1e-6, "x", sm_hz=0.0),)),
            "clock of a ceiling is not above zero",
        ),
        (
            Ceilings("cupti", (), (PipeCeiling("fp32", 9, 1e-6, "x", times_s=(1e-6, -1e-6)),)),
            "time is not above zero",
        ),
        (
            Ceilings("cupti", (), (PipeCeiling("fp32", -9, 1e-6, "x"),)),
            "FLOP is no count",
        ),
        (Ceilings("cupti", (), floors_s={"cupti": -1e-9}), "floor of a method is below zero"),
    ],
)
def test_a_header_with_impossible_ceilings_is_refused(
    tmp_path: Path, ceilings: Ceilings, why: str
) -> None:
    """A roof made of them would divide by nothing."""
    path = written(tmp_path / "run.jsonl", run=replace(RUN, ceilings=ceilings))
    with pytest.raises(BadInput, match=why):
        record.read(path)


def test_the_time_of_a_run_counts_what_came_before_its_file(tmp_path: Path) -> None:
    """The ceilings are measured before the header is written, and are most of a short run."""
    path = tmp_path / "run.jsonl"
    with record.Writer(path, RUN, spent_s=20.0) as writer:
        writer.add(OUTCOMES)
    assert 20.0 == pytest.approx(record.read(path).duration_s, abs=1.0)


def test_every_line_is_flat_and_named(tmp_path: Path) -> None:
    """Others read the file with jq: case fields stand in the outcome itself."""
    path = written(tmp_path / "run.jsonl", OUTCOMES)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert ["run", "outcome", "outcome", "outcome", "end"] == [line["record"] for line in lines]
    assert "solkit.run/1" == lines[0]["schema"]
    assert ["measured", "failed", "skipped"] == [line["kind"] for line in lines[1:4]]
    for line in lines[1:4]:
        assert {"operator", "kernel", "shape", "dtype", "params"} <= line.keys()
    assert {"M": 8, "N": 16, "K": 32} == lines[1]["shape"]
    assert {"measured": 1, "failed": 1, "skipped": 1} == lines[4]["counts"]


def test_times_are_written_to_what_a_timer_can_tell() -> None:
    """Digits beyond 0.1 ns or a millionth are noise in the file."""
    outcome = replace(MEASURED, times_s=(1.23456789012e-6, 0.00123456789012, 3.0))
    assert b'"times_s":[1.23457e-06,0.0012345679,3.0]' in record.outcome_json(outcome)


def test_a_number_that_is_not_finite_fails_its_case() -> None:
    """NaN is no JSON and no result."""
    found = record.outcome_from_json(record.outcome_json(replace(MEASURED, floor_s=float("nan"))))
    assert Failed(CASE, "time", "its numbers are not finite", "measure the case again") == found


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes_and_cases_travel_as_json(outcome: Outcome) -> None:
    """The worker's pipe carries the same lines as the file."""
    assert outcome == record.outcome_from_json(record.outcome_json(outcome))
    assert outcome.case == record.case_from_json(record.case_json(outcome.case))


PARAMS = st.dictionaries(st.text(), st.text() | st.integers(-(2**62), 2**62) | st.booleans())


EXTENTS = st.dictionaries(st.text(), st.integers(1, 2**62))
CASES = st.builds(Case, st.text(), st.text(), EXTENTS, st.sampled_from(["fp32", "bf16"]), PARAMS)


@given(case=CASES, reason=st.text())
def test_any_name_comes_back(case: Case, reason: str) -> None:
    """Names hold whatever their author liked: quotes, newlines, markup, other scripts."""
    outcome = Skipped(case, reason)
    assert outcome == record.outcome_from_json(record.outcome_json(outcome))


def test_a_run_cut_in_its_last_line_reads_up_to_it(tmp_path: Path) -> None:
    """A machine that lost power leaves half a line: everything before it counts."""
    path = written(tmp_path / "run.jsonl", OUTCOMES)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]) + whole[3][:50])
    found = record.read(path)
    assert OUTCOMES[:2] == found.outcomes
    assert found.ended is None
    assert f"{path}: the last line is cut short and was left out" == found.notes[-1]


def test_a_run_cut_at_any_byte_reads_as_far_as_it_goes(tmp_path: Path) -> None:
    """Whole lines are kept, half a line is said, and half a header is no run."""
    path = written(tmp_path / "run.jsonl", OUTCOMES)
    whole = path.read_bytes()
    header = whole.index(b"\n")
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        if size < header:
            with pytest.raises(BadInput, match=r"is empty|line 1: not JSON") as caught:
                record.read(path)
            assert caught.value.remedy
            continue
        found = record.read(path)
        # a line that lacks nothing but its newline counts
        lines = [each for each in whole[: size + 1].split(b"\n")[1:-1] if b'"outcome"' in each]
        assert OUTCOMES[: len(lines)] == found.outcomes
        half = whole[:size].rpartition(b"\n")[2]
        cut = bool(half) and whole[size : size + 1] != b"\n"
        assert cut == any("the last line is cut short" in note for note in found.notes)
        assert found.ended is None or size >= len(whole) - 1


def test_a_run_of_another_schema_names_its_version_and_a_way_out(tmp_path: Path) -> None:
    """Which schema it has, which this solkit reads, which solkit wrote it, and what to do."""
    path = tmp_path / "run.jsonl"
    header = {"record": "run", "schema": "solkit.run/9", "versions": {"solkit": "7.1"}}
    path.write_text(json.dumps(header) + "\n", encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        record.read(path)
    said = "line 1: the schema is 'solkit.run/9', this solkit reads 'solkit.run/1'"
    assert f"{path}: {said}" == caught.value.message
    remedy = "read it with the version of solkit that wrote it (7.1), or measure again"
    assert remedy == caught.value.remedy


def test_a_run_that_raised_ends_as_interrupted(tmp_path: Path) -> None:
    """What was measured until then is on disk, and the end says how it came."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt), record.Writer(path, RUN) as writer:  # noqa: PT012
        writer.add([MEASURED])
        raise KeyboardInterrupt
    found = record.read(path)
    assert ("interrupted", (MEASURED,)) == (found.ended, found.outcomes)


def test_a_cut_run_is_finished_in_the_same_file(tmp_path: Path) -> None:
    """Appending cuts half a last line off and goes on after it; the last end counts."""
    path = written(tmp_path / "run.jsonl", (MEASURED,))
    path.write_bytes(path.read_bytes() + b'{"record":"outc')
    assert (FAILED.case,) == record.missing(record.read(path), [MEASURED.case, FAILED.case])
    with record.Writer(path, RUN, append=True) as writer:
        writer.add([FAILED])
        assert record.read(path).ended is None
    found = record.read(path)
    assert ("complete", (MEASURED, FAILED)) == (found.ended, found.outcomes)


def test_the_later_outcome_of_a_case_wins_and_is_said(tmp_path: Path) -> None:
    """A case measured again replaces its first outcome in place."""
    again = replace(MEASURED, notes=("again",))
    found = record.read(written(tmp_path / "run.jsonl", (MEASURED, SKIPPED), (again,)))
    assert (again, SKIPPED) == found.outcomes
    assert "1 cases are in it twice: the later outcome counts" in found.notes[-1]


def test_a_folder_of_segments_is_one_run(tmp_path: Path) -> None:
    """Segments of one run are read in the order of their names."""
    written(tmp_path / "a.jsonl", (MEASURED, FAILED))
    written(tmp_path / "b.jsonl", (replace(MEASURED, notes=()), SKIPPED))
    found = record.read(tmp_path)
    assert (replace(MEASURED, notes=()), FAILED, SKIPPED) == found.outcomes
    assert ("complete", 6) == (found.ended, found.planned_count)
    assert "1 cases are in more than one segment: the later one counts" == found.notes[-1]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"seed": 8}, "they differ in seed (7 and 8)"),
        (
            {"facts": DeviceFacts("cuda", "Other")},
            "they differ in card (Example GPU 100 and Other)",
        ),
        ({"gpu": replace(CARD, sm_count=99)}, "they differ in spec"),
        ({"device": "cpu"}, "they differ in device (cuda and cpu)"),
    ],
)
def test_segments_of_different_runs_are_refused(
    tmp_path: Path, change: dict[str, Any], what: str
) -> None:
    """Numbers of two cards or two seeds are not one run."""
    paths = [
        written(tmp_path / "a.jsonl", (MEASURED,)),
        written(tmp_path / "b.jsonl", (FAILED,), run=replace(RUN, **change)),
    ]
    with pytest.raises(BadInput) as caught:
        record.read(paths)
    assert what in caught.value.message


def test_a_writer_never_overwrites_a_run(tmp_path: Path) -> None:
    """Measurements are never thrown away."""
    path = written(tmp_path / "run.jsonl", OUTCOMES)
    with pytest.raises(BadInput, match="holds a run already") as caught:
        written(path)
    assert "--resume" in caught.value.remedy
    assert OUTCOMES == record.read(path).outcomes


def test_a_place_that_cant_be_written_is_an_error_of_the_environment(tmp_path: Path) -> None:
    """Exit code 4, like a full disk."""
    with pytest.raises(NoDevice, match="can't be written"):
        written(tmp_path / "none" / "run.jsonl")


@pytest.mark.skipif(sys.platform == "win32", reason="no limit to a file's size there")
def test_a_disk_that_fills_up_is_one_error_and_keeps_what_fits(tmp_path: Path) -> None:
    """The outcomes before it stay readable, and half a line is cut off when the run goes on."""
    import resource  # noqa: PLC0415  # POSIX only

    path = tmp_path / "run.jsonl"
    held = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(NoDevice, match="can't be written"), record.Writer(path, RUN) as writer:  # noqa: PT012
            writer.add([MEASURED])
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, held[1]))
            writer.add([FAILED])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, held)
    assert (MEASURED,) == record.read(path).outcomes
    with record.Writer(path, RUN, append=True) as writer:
        writer.add([FAILED])
    assert ("complete", (MEASURED, FAILED)) == (record.read(path).ended, record.read(path).outcomes)


LINE = record.outcome_json(MEASURED).decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("hello\n", "line 1: not JSON"),
        ("hello", "line 1: not JSON"),
        ("[1, 2]\n", "line 1: not a JSON object"),
        ('{"name": "foreign"}\n', "line 1: no run header: this is not a run of solkit"),
        (
            '{"record": "run", "schema": "solkit.run/9"}\n',
            "the schema is 'solkit.run/9', this solkit reads",
        ),
        (
            '{"record": "run", "schema": "solkit.run/1"}\n',
            "line 1: the run header does not fit: id: Field",
        ),
        (LINE + "\n", "line 1: no run header"),
        ("[" * 100_000 + "\n", "line 1: not JSON"),
        ("\xff\n", "line 1: not JSON"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A file that is no run of this schema says so, with its first line."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput) as caught:
        record.read(path)
    assert message in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"kind":"measured"', '"kind":"guessed"', "an outcome of the kind 'guessed'"),
        ('"kind":"measured"', '"kind":[1]', "an outcome of the kind '[1]'"),
        ('"record":"outcome"', '"record":"outcomes"', "a record 'outcomes'"),
        ('"median_s":1.5e-06', '"median_s":NaN', "not JSON: NaN is no number"),
        ('"median_s":1.5e-06', '"median_s":1e999', "median_s: Input should be a finite number"),
        ('"median_s":1.5e-06', '"median_s":0', "its times are not all above zero"),
        ('"median_s":1.5e-06', '"median_s":"fast"', "median_s: Input should be a valid number"),
        ('"sample_count":3', '"sample_count":2', "its sample count or floor"),
        ('"dtype":"bf16"', '"dtype":"fp5"', "its dtype 'fp5' is unknown"),
        ('"shape":{"M":8', '"shape":{"M":0', "an extent of its shape is no positive count"),
        ('"read_bytes":1280', '"read_bytes":-1', "its work is no count"),
        ('"operator":"product",', "", "case.operator: Field required"),
        ('"times_s":', '"times_s', "not JSON"),
    ],
)
def test_a_corrupt_line_is_named_by_its_number(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """A broken line in the middle is an error: nothing is dropped silently."""
    path = written(tmp_path / "run.jsonl", (SKIPPED, MEASURED, FAILED))
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new, 1)
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        record.read(path)
    assert f"{path}: line 3: " in caught.value.message
    assert message in caught.value.message


def test_a_number_beyond_any_range_in_the_header_is_refused(tmp_path: Path) -> None:
    """JSON has no infinity, but 1e999 is read as one."""
    path = written(tmp_path / "run.jsonl", (MEASURED,))
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert '"precision_fraction":' in header
    header = re.sub('"precision_fraction":[^,}]*', '"precision_fraction":1e999', header)
    path.write_text(f"{header}\n{rest}", encoding="utf-8")
    with pytest.raises(BadInput, match="line 1: the run header does not fit: a number is beyond"):
        record.read(path)


def test_a_missing_file_and_an_empty_folder_are_bad_input(tmp_path: Path) -> None:
    """Both name the path and what to give instead."""
    with pytest.raises(BadInput, match=r"holds no \.jsonl file"):
        record.read(tmp_path)
    with pytest.raises(BadInput, match="can't be read"):
        record.read(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="no run was named"):
        record.read([])


@contextlib.contextmanager
def files_of(most_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a disk that fills up does."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_half_a_line_is_taken_back_when_the_disk_is_full(tmp_path: Path) -> None:
    """What comes next would follow it: here the end, which still fits."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(NoDevice, match="can't be written"), record.Writer(path, RUN) as writer:  # noqa: PT012  # the disk fills up within
        writer.add(OUTCOMES[:1])
        with files_of(path.stat().st_size + 200):
            writer.add(OUTCOMES)
    found = record.read(path)
    assert ("interrupted", OUTCOMES[:1]) == (found.ended, found.outcomes)
    assert RUN.notes == found.notes


def test_a_header_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    """The disk is the error then, not a run without a header."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(NoDevice, match="can't be written"), files_of(100), record.Writer(path, RUN):
        pytest.fail("there is no run")
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_a_run_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    """Two that finish one run would write into each other's lines."""
    path = tmp_path / "run.jsonl"
    with record.Writer(path, RUN) as writer:
        with (
            pytest.raises(NoDevice, match="another solkit is writing it"),
            record.Writer(path, RUN, append=True),
        ):
            pytest.fail("both write")
        writer.add(OUTCOMES)
    with record.Writer(path, RUN, append=True):
        pass
    assert ("complete", 3) == (record.read(path).ended, len(record.read(path).outcomes))
