"""Stored ceilings: found again for this very card, driver and method; never trusted blindly."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from solkit.cli import ceilings as command
from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure import ceilings_file
from solkit.measure.probe import Choice
from solkit.model import Ceilings, DramCeiling, PipeCeiling

FACTS = DeviceFacts("cuda", "NVIDIA H200", uuid="GPU-12ab", driver="580.159.04")
FOUND = ceilings_file.stamped(
    Ceilings(
        "cupti, cold",
        (DramCeiling("copy", 2**15, 2**15, 1.5e-6, "in_flight", (1.4e-6, 1.5e-6, 1.6e-6)),),
        (PipeCeiling("bf16_tensor", 2**40, 1.4e-3, "cuBLAS", "sustained", 1.4e9, (1.4e-3,)),),
        l2=(DramCeiling("read", 2**31, 0, 3e-4, "hot", (3e-4,)),),
        floors_s={"cupti": 6.2e-7, "event_blocked": 2.7e-6},
        notes=("fp8_tensor has no ceiling",),
    ),
    FACTS,
    datetime(2026, 11, 30, 14, 2, 59, tzinfo=UTC),
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the ceilings of these tests in a folder of their own."""
    monkeypatch.setenv("SOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def load(facts: DeviceFacts = FACTS, method: str = "cupti") -> tuple[Ceilings | None, list[str]]:
    told: list[str] = []
    return ceilings_file.load(facts, method, say=told.append), told


def test_ceilings_come_back_as_they_were_stored(cache: Path) -> None:
    """Samples, clocks, floors, notes, date and place: all of it, from the user's cache folder."""
    path = ceilings_file.save(FOUND, FACTS, "cupti")
    assert cache / "ceilings" / "GPU-12ab_580.159.04_cupti.json" == path
    assert (FOUND, []) == load()
    assert ("2026-11-30T14:02:59Z", "GPU-12ab", "580.159.04") == (
        FOUND.created,
        FOUND.uuid,
        FOUND.driver,
    )


@pytest.mark.parametrize(
    ("facts", "method"),
    [
        (replace(FACTS, uuid="GPU-99"), "cupti"),
        (replace(FACTS, driver="590.1"), "cupti"),
        (FACTS, "event_blocked"),
    ],
)
def test_another_card_driver_or_method_has_none(facts: DeviceFacts, method: str) -> None:
    """A ceiling of one method is no ceiling of another: an event pair reads 2 us more."""
    ceilings_file.save(FOUND, FACTS, "cupti")
    assert (None, []) == load(facts, method)


def test_a_card_without_a_uuid_is_known_by_name_and_place() -> None:
    """Some embedded cards tell none; their names may hold what a file's name can't."""
    facts = DeviceFacts("cuda", "Orin (nv/gpu)", pci_bus_id="00:01.0", driver="540.4")
    found = ceilings_file.stamped(FOUND, facts, datetime(2026, 11, 30, tzinfo=UTC))
    path = ceilings_file.save(found, facts, "cupti")
    assert "Orin-nv-gpu-00-01.0_540.4_cupti.json" == path.name
    assert (found, []) == load(facts)


def changed(**changes: Any) -> str:
    return json.dumps({**ceilings_file.document(FOUND, FACTS, "cupti"), **changes})


def inside(**changes: Any) -> str:
    held = ceilings_file.document(FOUND, FACTS, "cupti")["ceilings"]
    return changed(ceilings={**held, **changes})


def with_time(median_s: object) -> str:
    held = ceilings_file.document(FOUND, FACTS, "cupti")["ceilings"]
    held["dram"][0]["median_s"] = median_s
    return changed(ceilings=held)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        (changed()[:200], "not JSON"),
        (changed(schema="solkit.ceilings/0"), "its schema is 'solkit.ceilings/0'"),
        (changed(schema=None), "its schema is 'None'"),
        (changed(uuid="GPU-99"), "it is of the uuid 'GPU-99', not 'GPU-12ab'"),
        (changed(driver="1.0"), "it is of the driver '1.0'"),
        (changed(timer="graph"), "it is of the timer 'graph'"),
        (changed(solkit="0.0.1"), "it was measured by solkit '0.0.1', this is "),
        (changed(solkit=None), "it was measured by solkit 'None'"),
        (inside(uuid="GPU-99"), "it is of the uuid 'GPU-99', not 'GPU-12ab'"),
        (inside(driver="1.0"), "it is of the driver '1.0', not '580.159.04'"),
        (inside(method="graph, cold"), "it is of the timer 'graph', not 'cupti'"),
        (changed(ceilings=None), "not a Ceilings"),
        (inside(dram=[]), "it holds no DRAM ceiling"),
        (with_time(0), "a ceiling's time is not above zero"),
        (with_time(-1e-6), "a ceiling's time is not above zero"),
        (with_time("fast"), "not a Ceilings: dram.0.median_s"),
        (with_time(1).replace("1.4e-06", "1e999", 1), "not a Ceilings"),
        (with_time(float("nan")), "not JSON"),
    ],
)
def test_a_file_that_can_not_be_used_is_told(text: str, why: str) -> None:
    """The reason, with the file's name; the caller then measures anew."""
    path = ceilings_file.save(FOUND, FACTS, "cupti")
    path.write_text(text, encoding="utf-8")
    found, (told,) = load()
    assert found is None
    assert why in told
    assert told.startswith(f"{path}: ")
    assert told.endswith("the ceilings are measured anew")


def test_a_folder_in_the_files_place_is_told() -> None:
    """Whatever is there, nothing crashes for it."""
    path = ceilings_file.path_of(FACTS, "cupti")
    path.mkdir(parents=True)
    found, (told,) = load()
    assert found is None
    assert "can't be read" in told


def test_a_file_is_written_whole_or_not_at_all(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the last step fails the old file stays, no half of the new one, and it is told."""
    ceilings_file.save(FOUND, FACTS, "cupti")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(NoDevice, match="can't be written: No space left on device"):
            ceilings_file.save(replace(FOUND, notes=()), FACTS, "cupti")
    assert ["GPU-12ab_580.159.04_cupti.json"] == [
        path.name for path in (cache / "ceilings").iterdir()
    ]
    assert FOUND == load()[0]


@pytest.mark.skipif(os.name != "posix", reason="there is no umask here")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_umasks_mode(umask: int, mode: int) -> None:
    """A card's ceilings are for whoever may read the cache: root's too."""
    before = os.umask(umask)
    try:
        path = ceilings_file.save(FOUND, FACTS, "cupti")
    finally:
        os.umask(before)
    assert oct(mode) == oct(path.stat().st_mode & 0o777)


class FakeBench:
    """A bench that counts how often ceilings are measured."""

    method = "cupti"

    def __init__(self) -> None:
        self.measured_count = 0

    def ceilings(self, on_step: Any) -> Ceilings:
        """Return ceilings, with a step told twice."""
        self.measured_count += 1
        on_step("DRAM read")
        on_step("DRAM read")
        return replace(FOUND, created="", uuid="", driver="")


CARD = Choice("cuda", 0, FACTS, "the card")
HOST = Choice("cpu", 0, DeviceFacts("cpu", "A CPU"), "the CPU")


def test_a_run_takes_the_stored_ceilings_of_its_card(capsys: pytest.CaptureFixture[str]) -> None:
    """Measured once and said so; the next run takes them and says when they were measured."""
    bench: Any = FakeBench()
    first = command.current(bench, CARD)
    said = capsys.readouterr().err
    assert 1 == said.count("DRAM read")
    assert "measuring the ceilings of the device" in said
    assert first == command.current(bench, CARD)
    said = capsys.readouterr().err
    assert f"ceilings of {first.created[:10]} {first.created[11:16]} UTC" in said
    assert "solkit ceilings measures anew" in said
    assert 1 == bench.measured_count
    assert () == first.dram[0].times_s
    assert (1.4e-6, 1.5e-6, 1.6e-6) == (load()[0] or FOUND).dram[0].times_s


def test_ceilings_of_another_solkit_are_measured_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told in one line; the new ones take the old ones' place, and the next run takes them."""
    bench: Any = FakeBench()
    with monkeypatch.context() as patched:
        patched.setattr(ceilings_file, "__version__", "0.0.1")
        command.current(bench, CARD)
    capsys.readouterr()
    command.current(bench, CARD)
    told = capsys.readouterr().err.splitlines()
    assert 1 == sum("it was measured by solkit '0.0.1'" in line for line in told)
    command.current(bench, CARD)
    assert 2 == bench.measured_count


class LacksTheTimer:
    """A bench whose device has not the timer that was asked for."""

    @property
    def method(self) -> str:
        """Refuse to open."""
        raise NoDevice("no such timer here", remedy="--timer auto")


@pytest.mark.parametrize("choice", [CARD, HOST], ids=["cuda", "cpu"])
@pytest.mark.parametrize("asked", [command.current, command.measured])
def test_a_timer_that_is_not_here_is_refused_before_a_word_of_measuring(
    choice: Choice, asked: Callable[[Any, Choice], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """What takes up to a minute is announced when it begins, and not before it can."""
    with pytest.raises(NoDevice, match="no such timer"):
        asked(LacksTheTimer(), choice)
    assert "" == capsys.readouterr().err


def test_a_hosts_ceilings_are_measured_in_every_run(cache: Path) -> None:
    """They belong to the load of the moment, so nothing is stored."""
    bench: Any = FakeBench()
    command.current(bench, HOST)
    command.current(bench, HOST)
    assert 2 == bench.measured_count
    assert not cache.exists()


def test_ceilings_that_can_not_be_kept_serve_all_the_same(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache folder that can't be made is told with its remedy; the run goes on."""
    cache.write_text("a file")
    bench: Any = FakeBench()
    assert "copy" == command.current(bench, CARD).dram[0].kernel
    assert "SOLKIT_CACHE_DIR" in capsys.readouterr().err
