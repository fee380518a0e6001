"""A launch with its cluster of blocks, held against the source, the grid and the card."""

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


def _extents(extents: tuple[int, int, int]) -> str:
    x, y, z = extents
    return f"{x}" if y == z == 1 else f"{x} x {y} x {z}"
