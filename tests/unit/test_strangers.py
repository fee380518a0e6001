"""Others on a card: told once in a line, never taken for nobody where the driver hides them."""

import os
from typing import Any

import pytest
from fake_nvml import H200, FakeNvml

from solkit.measure.device.nvml import Nvml
from solkit.measure.strangers import Strangers, strangers

UUID = H200["uuid"]
MEMORY = H200["memory"]


def seen(**answers: Any) -> Strangers:
    with Nvml(binding=FakeNvml(H200 | answers), environ={}) as nvml:
        return strangers(UUID, nvml)


def test_a_card_of_ones_own_has_no_strangers() -> None:
    """An idle H200 has 0.8 MB in use and nobody on it."""
    assert (0, "") == (seen().count, seen().warning)


def test_other_processes_are_named_in_one_line() -> None:
    """By id, and by the name that this machine knows them by."""
    found = seen(processes=["self", 2**30], busy=100)
    assert 2 == found.count
    assert found.warning.startswith("2 other processes have this card, which is 100% busy: pid ")
    assert found.warning.endswith(f"), pid {2**30}; times may be disturbed")
    assert f"pid {os.getpid()} (" in found.warning


def test_a_process_under_mps_counts_once() -> None:
    """The server and its clients can be in both lists."""
    assert (7, 8, 9) == seen(processes=[9, 7], mps=[7, 8]).process_ids


def test_a_crowd_is_cut() -> None:
    """Five are named, the others counted."""
    pids = list(range(2**30, 2**30 + 8))
    assert f"pid {2**30 + 4}, 3 more; times" in seen(processes=pids).warning


def test_memory_that_nobody_explains_is_somebodys() -> None:
    """In a container the driver may list no process, and still tell the memory in use."""
    found = seen(memory=MEMORY | {"free": MEMORY["free"] - 2**30}, busy=99)
    assert 1 == found.count
    assert (
        "somebody whom the driver does not name has 1.00 GiB of this card, which is 99% busy; "
        "times may be disturbed" == found.warning
    )


@pytest.mark.parametrize(
    "answers",
    [
        {"memory": {"total": 100 * 2**30, "free": 90 * 2**30}},
        {"memory": MEMORY | {"free": 0}, "graphics": [5]},
    ],
    ids=["reserved memory is not told", "a display holds it"],
)
def test_memory_that_may_be_the_drivers_is_no_strangers(answers: dict[str, Any]) -> None:
    """Where reserved memory is not told apart, or a display runs on the card."""
    assert 0 == seen(**answers).count


def test_load_alone_makes_no_stranger() -> None:
    """The last run's own work is still in the driver's average for a moment."""
    assert ("", 0) == (seen(busy=40).warning, seen(busy=40).count)


@pytest.mark.parametrize("uuid", [UUID, "GPU-nowhere"])
def test_a_driver_that_tells_nothing_is_no_error(uuid: str) -> None:
    """An old binding lacks the queries, a card refuses them, another is not there."""
    less = {name: answer for name, answer in H200.items() if name not in {"processes", "memory"}}
    with Nvml(binding=FakeNvml(less), environ={}) as nvml:
        assert Strangers() == strangers(uuid, nvml)
        assert () == nvml.process_ids(uuid)


def test_without_a_driver_nobody_is_seen() -> None:
    """No NVML, no strangers, and no error."""
    assert () == Nvml(binding=FakeNvml(init_error="Driver Not Loaded")).process_ids(UUID)
