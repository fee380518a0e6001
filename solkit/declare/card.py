"""The card that a kernel is launched on: what of it a launch may depend on."""

from dataclasses import dataclass

from solkit.gpu import Gpu

CLUSTERS_FROM = 90  # compute capability: clusters and the tensor memory accelerator
_STATIC_SHARED_BYTES = 48 * 1024  # every card has as much
_LARGE_CLUSTERS = range(90, 110)  # whose large cards take 16 blocks; others take 8


@dataclass(frozen=True, slots=True)
class Card:
    """What of a card a launch may depend on.

    compute_capability: 90 for 9.0. shared_bytes_per_block: the most that a block can ask for.
    most_cluster_blocks: the blocks of the largest cluster (16, 8, 4, 2, or 1: it has none) that it
    holds however much of an SM a block needs. 0: as many as large cards of its architecture hold;
    those with few SMs in a GPC, and parts of a card (MIG), may hold less.
    """

    compute_capability: int
    sm_count: int
    shared_bytes_per_block: int
    l2_bytes: int
    most_cluster_blocks: int = 0

    def __post_init__(self) -> None:
        """Fill in what the architecture says."""
        if not self.most_cluster_blocks:
            object.__setattr__(self, "most_cluster_blocks", _most(self.compute_capability))

    @classmethod
    def of(cls, gpu: Gpu) -> "Card | None":
        """Return the card of a spec file; None where it has no number for its capability (AMD).

        Where the file leaves shared memory out, the 48 KB that every card has are taken.
        """
        major, dot, minor = gpu.compute_capability.partition(".")
        if not (dot and major.isdecimal() and minor.isdecimal()):
            return None
        return cls(
            int(major) * 10 + int(minor),
            gpu.sm_count,
            gpu.shared_bytes_per_block or _STATIC_SHARED_BYTES,
            gpu.l2_bytes,
        )

    @property
    def has_clusters(self) -> bool:
        """Whether blocks can be launched in clusters, and tensor maps be used."""
        return self.compute_capability >= CLUSTERS_FROM

    @property
    def capability_text(self) -> str:
        """Its compute capability as people write it: 9.0."""
        return f"{self.compute_capability // 10}.{self.compute_capability % 10}"


def _most(compute_capability: int) -> int:
    if compute_capability < CLUSTERS_FROM:
        return 1
    return 16 if compute_capability in _LARGE_CLUSTERS else 8
