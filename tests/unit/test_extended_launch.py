"""The driver's extended launch through ctypes: its structures, its parameters, its clusters."""

import ctypes
import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
from cards import CARDS, H200

from solkit.declare.kernel import Launch
from solkit.errors import BadInput
from solkit.measure.clustered import clustered, not_held
from solkit.measure.device.cuda import extended
from solkit.measure.device.cuda.extended import Attribute, Config, ExtendedCall
from solkit.model import Case

CASE = Case("any", "k", {"rows": 4}, "fp32")
NOT_COMPILED = (0, 0, 0)


def launch(cluster: Any = 1, grid: tuple[int, int, int] = (8, 2, 1)) -> Launch:
    return Launch("f<8>", grid, (128, 1, 1), 1000, cluster=cluster)


def test_the_structures_lie_as_the_drivers_do() -> None:
    """Seven words, a stream behind padding, attributes of 72 bytes with the value at 8."""
    assert (56, 72) == (ctypes.sizeof(Config), ctypes.sizeof(Attribute))
    assert (28, 32, 40, 48) == (
        Config.shared_bytes.offset + 4,
        Config.stream.offset,
        Config.attributes.offset,
        Config.attribute_count.offset,
    )
    assert 8 == Attribute.value.offset


def test_a_cluster_is_an_attribute_of_the_launch() -> None:
    """Number 4, three extents; without one there is no attribute at all."""
    held = extended.config(launch(cluster=(4, 2, 1)))
    assert ([8, 2, 1], [128, 1, 1], 1000) == (list(held.grid), list(held.block), held.shared_bytes)
    assert (1, 4) == (held.attribute_count, held.attributes[0].id)
    assert [4, 2, 1, 0] == list(held.attributes[0].value)[:4]
    assert 0 == extended.config(launch()).attribute_count


class Driver:
    """Keeps what each launch was given: its stream and the values of its parameters."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.launched: list[tuple[Any, ...]] = []

    def cuLaunchKernelEx(self, config: Any, function: Any, values: Any, extra: Any) -> int:  # noqa: N802  # the driver's name
        """Take the stream and what the addresses point to."""
        seen = [ctypes.c_int64.from_address(address).value for address in values]
        self.launched.append((config._obj.stream, function.value, seen, extra))
        return self.status


def test_a_call_gives_its_parameters_to_the_stream_that_is_current_then() -> None:
    """Packed once; only the stream is asked for at each call."""
    driver, streams = Driver(), iter((0, 77))
    parameters = (ctypes.c_void_p(4096), ctypes.c_int64(-3))
    call = ExtendedCall(
        launch(2), 99, parameters, stream=lambda: next(streams), check=print, library=driver
    )
    call()
    call()
    assert [(None, 99, [4096, -3], None), (77, 99, [4096, -3], None)] == driver.launched


def test_what_the_driver_refuses_is_raised() -> None:
    """By the function that knows the errors' names."""

    def check(status: int) -> None:
        raise BadInput(f"status {status}")

    call = ExtendedCall(launch(2), 99, (), stream=lambda: 0, check=check, library=Driver(912))
    with pytest.raises(BadInput, match="status 912"):
        call()


def test_a_call_keeps_alive_what_its_addresses_point_to() -> None:
    """Arrays, maps and the function's module live as long as the call does."""

    class Kept:
        pass

    kept = Kept()
    seen = weakref.ref(kept)
    call = ExtendedCall(
        launch(),
        99,
        (ctypes.c_int64(1),),
        stream=lambda: 0,
        check=print,
        keep=kept,
        library=Driver(),
    )
    del kept
    gc.collect()
    assert seen() is not None
    del call
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("cluster", [0, -2, 1.5, True, (), (4,), (2, 1), (2, 0, 1), "2"])
def test_a_cluster_that_is_no_count_of_blocks_is_refused(cluster: Any) -> None:
    """When it is declared."""
    with pytest.raises(BadInput, match="launch of f<8>: the cluster is"):
        launch(cluster)


def test_a_launch_has_the_cluster_of_its_source_where_it_says_none() -> None:
    """__cluster_dims__, the launch's own, both alike, or none."""
    four = (4, 1, 1)
    assert four == clustered(launch(), four, CASE, H200).cluster_shape
    assert four == clustered(launch(4), NOT_COMPILED, CASE, H200).cluster_shape
    assert four == clustered(launch(4), four, CASE, H200).cluster_shape
    assert (1, 1, 1) == clustered(launch(), NOT_COMPILED, CASE, CARDS["sm_75"]).cluster_shape


@pytest.mark.parametrize(
    ("words", "held", "compiled", "arch"),
    [
        (
            "f<8> is compiled for clusters of 2 blocks (__cluster_dims__) and launched in",
            launch(4),
            (2, 1, 1),
            "sm_90a",
        ),
        (
            "the grid of f<8>, 8 x 2 x 1 blocks, is no multiple of its cluster of 16",
            launch(16),
            NOT_COMPILED,
            "sm_90a",
        ),
        (
            "the grid of f<8>, 7 blocks, is no multiple of its cluster of 2",
            launch(grid=(7, 1, 1)),
            (2, 1, 1),
            "sm_90a",
        ),
        (
            "in clusters of 2 x 2 x 1 blocks, this card of compute capability 8.9 has none",
            launch((2, 2, 1)),
            NOT_COMPILED,
            "sm_89",
        ),
    ],
)
def test_a_cluster_that_can_not_be_launched_is_refused(
    words: str, held: Launch, compiled: tuple[int, int, int], arch: str
) -> None:
    """Before it is: with the case, the function and what to do."""
    with pytest.raises(BadInput) as caught:
        clustered(held, compiled, CASE, CARDS[arch])
    assert words in caught.value.message
    assert caught.value.message.startswith("any/k rows=4 fp32: ")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("blocks", "remedy"),
    [(16, "take 8 blocks at most on it"), (8, "let a block have fewer threads")],
)
def test_a_cluster_that_no_part_of_the_card_holds_is_too_large_or_its_blocks_are(
    blocks: int, remedy: str
) -> None:
    """Of 8 blocks it holds some however much of an SM each takes."""
    said = not_held(launch(blocks), CASE, replace(H200, most_cluster_blocks=8))
    assert (
        f"any/k rows=4 fp32: this card holds no cluster of {blocks} blocks of f<8>, "
        "128 threads and 1000 bytes of shared memory each"
    ) == said.message
    assert said.remedy.startswith(remedy)
