"""A launch with its cluster of blocks, held against the source, the grid and the card."""

import math
from dataclasses import replace

from solkit.declare.card import Card
from solkit.declare.kernel import Launch
from solkit.errors import BadInput
from solkit.model import Case


def clustered(launch: Launch, compiled: tuple[int, int, int], case: Case, card: Card) -> Launch:
    """Return a launch with the cluster that it really has; BadInput for one that can't be.

    compiled: what the source says by __cluster_dims__, zeros where it says nothing.
    """
    wanted = launch.cluster_shape
    required = compiled if all(compiled) else wanted
    if wanted not in ((1, 1, 1), required):
        raise BadInput(
            f"{case}: {launch.entry} is compiled for clusters of {_extents(required)} blocks "
            f"(__cluster_dims__) and launched in clusters of {_extents(wanted)}",
            remedy="leave out one of them, or let both say the same",
        )
    if required == (1, 1, 1):
        return launch
    if not card.has_clusters:
        raise BadInput(
            f"{case}: {launch.entry} is launched in clusters of {_extents(required)} blocks, this "
            f"card of compute capability {card.capability_text} has none (9.0 and newer have)",
            remedy="launch it without on such cards: launches(case, card) finds out by "
            "card.most_cluster_blocks; or declare min_compute_capability='9.0'",
        )
    if any(blocks % extent for blocks, extent in zip(launch.grid, required, strict=True)):
        raise BadInput(
            f"{case}: the grid of {launch.entry}, {_extents(launch.grid)} blocks, is no multiple "
            f"of its cluster of {_extents(required)}",
            remedy="round the grid up: blocks without work arrive at the cluster's barriers, too",
        )
    return replace(launch, cluster=required)


def not_held(launch: Launch, case: Case, card: Card) -> BadInput:
    """Return what to say of a launch of whose clusters the card holds none.

    One of `card.most_cluster_blocks` fits however much of an SM a block needs: where no more are
    asked for, a block alone is too large.
    """
    x, y, z = launch.cluster_shape
    most, threads = card.most_cluster_blocks, math.prod(launch.block)
    shared = f" and {launch.shared_bytes} bytes of shared memory" * bool(launch.shared_bytes)
    remedy = (
        f"take {most} blocks at most on it: launches(case, card) finds that in "
        "card.most_cluster_blocks"
        if x * y * z > most
        else "let a block have fewer threads, registers or less shared memory: an SM holds none"
    )
    return BadInput(
        f"{case}: this card holds no cluster of {x * y * z} blocks of {launch.entry}, "
        f"{threads} threads{shared} each",
        remedy=remedy,
    )


def _extents(extents: tuple[int, int, int]) -> str:
    x, y, z = extents
    return f"{x}" if y == z == 1 else f"{x} x {y} x {z}"
