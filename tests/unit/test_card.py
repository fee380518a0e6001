"""The card of a launch: from a spec file, and which clusters it takes."""

from dataclasses import replace

import pytest
from cards import CARDS, H200, card
from small_catalog import CARD

from solkit.declare.card import Card


def test_a_card_is_made_of_its_spec_file() -> None:
    """An H200: 132 SMs of 227 KB a block, 60 MiB of L2, clusters of up to 16 blocks."""
    assert Card(90, 132, 232_448, 62_914_560, 16) == H200
    assert (True, "9.0") == (H200.has_clusters, H200.capability_text)


def test_a_spec_without_a_number_for_its_capability_makes_no_card() -> None:
    """Nothing of ours is launched there; a two-digit one is read whole."""
    assert Card.of(replace(CARD, compute_capability="gfx942")) is None
    made = Card.of(replace(CARD, compute_capability="12.1", shared_bytes_per_block=None))
    assert made == Card(121, CARD.sm_count, 48 * 1024, CARD.l2_bytes, 8)


@pytest.mark.parametrize(
    ("arch", "blocks"),
    [("sm_75", 1), ("sm_89", 1), ("sm_90a", 16), ("sm_100a", 16), ("sm_110a", 8), ("sm_120a", 8)],
)
def test_the_largest_cluster_is_the_architectures_where_nobody_asked(
    arch: str, blocks: int
) -> None:
    """16 on large cards of CC 9 and 10, 8 on every newer one, none before."""
    assert blocks == CARDS[arch].most_cluster_blocks
    assert (blocks > 1) == CARDS[arch].has_clusters


def test_what_the_driver_said_of_clusters_stays() -> None:
    """An H20 has as many as an H200 by its architecture, and fewer SMs in a GPC."""
    assert 8 == replace(card("h20"), most_cluster_blocks=8).most_cluster_blocks
