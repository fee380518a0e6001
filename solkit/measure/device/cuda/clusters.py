"""Clusters of blocks: what the driver is told of a function's, and what this card holds."""

import ctypes
from typing import Any

from cupy.cuda import driver

from solkit.declare.card import Card
from solkit.declare.kernel import Launch
from solkit.measure.clustered import clustered, not_held
from solkit.measure.device.cuda import extended
from solkit.model import Case

PORTABLE_BLOCKS = 8  # every card with clusters takes as many; a kernel must be allowed more
_SIZES = (16, 8, 4, 2)
_FULL_BLOCK = (1024, 1, 1)
# CUfunction_attribute and CUresult of the driver, which CuPy has no names for.
_REQUIRED_DIMS, _NON_PORTABLE_ALLOWED = (11, 12, 13), 14
_INVALID_VALUE, _INVALID_CLUSTER_SIZE = 1, 912


def allow(pointer: int, launch: Launch, case: Case, card: Card) -> None:
    """Let a function run in the clusters that it is compiled for or launched in; BadInput if not.

    More than 8 blocks have to be allowed for the function; whether the card holds one is asked.
    """
    asked = clustered(launch, _compiled_for(pointer), case, card)
    blocks = _count(asked.cluster_shape)
    if blocks == 1:
        return
    if blocks > PORTABLE_BLOCKS:
        driver.funcSetAttribute(pointer, _NON_PORTABLE_ALLOWED, 1)
    if _active_count(pointer, asked) == 0:
        raise not_held(asked, case, card)


def most_blocks(pointer: int, card: Card) -> int:
    """Return the blocks of the largest cluster in which each block has an SM to itself.

    pointer: an empty function that nobody launches; 1 where the card has no clusters.
    """
    if not card.has_clusters:
        return 1
    shared_bytes = card.shared_bytes_per_block  # no second block fits beside it
    attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.funcSetAttribute(pointer, attribute, shared_bytes)
    if card.most_cluster_blocks > PORTABLE_BLOCKS:
        driver.funcSetAttribute(pointer, _NON_PORTABLE_ALLOWED, 1)
    for blocks in _SIZES:
        launch = Launch("", (blocks, 1, 1), _FULL_BLOCK, shared_bytes, cluster=blocks)
        if blocks <= card.most_cluster_blocks and _active_count(pointer, launch) != 0:
            return blocks
    return 1


def _compiled_for(pointer: int) -> tuple[int, int, int]:
    try:
        x, y, z = (driver.funcGetAttribute(number, pointer) for number in _REQUIRED_DIMS)
    except driver.CUDADriverError:  # a driver older than clusters
        return (0, 0, 0)
    return (x, y, z)


def _active_count(pointer: int, launch: Launch) -> int | None:
    """Ask how many clusters of a launch the card holds at once; None where the driver can't say."""
    library: Any = extended.libcuda()
    try:
        ask = library.cuOccupancyMaxActiveClusters
    except AttributeError:
        return None
    count, held = ctypes.c_int(), extended.config(launch)
    status = ask(ctypes.byref(count), ctypes.c_void_p(pointer), ctypes.byref(held))
    if status in (_INVALID_VALUE, _INVALID_CLUSTER_SIZE):
        return 0
    driver.check_status(status)
    return count.value


def _count(extents: tuple[int, int, int]) -> int:
    x, y, z = extents
    return x * y * z
