"""Warps with roles hand each other places by barriers: in any order, but not without a wait."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from wgmma_cluster import PART, WARPS, Cluster, Shape, Wrong
from wgmma_roles import LoadWarp, MultiplyWarp, StoreWarp, roles
from wgmma_warp import Warp

PLAIN = Shape()
SHAPES = {
    "slices apart": PLAIN,
    "one stage of tail": Shape(slices=3, apart=1),
    "all in the ring": Shape(slices=2, apart=0, warpgroups=1),
    "two stages of tail": Shape(stages=4, slices=4, apart=1),
    "few k": Shape(stages=4, slices=3, apart=1, k_stages=1, tiles=5),
    "few k, all in the ring": Shape(stages=4, apart=0, k_stages=1, tiles=5),
    "k as long as the ring": Shape(slices=3, apart=2, k_stages=3),
    "b shared": Shape(cluster_m=2, slices=3, apart=1),
    "a shared": Shape(cluster_n=2, slices=3, apart=1),
    "both shared": Shape(cluster_m=2, cluster_n=2, slices=3, apart=1, warpgroups=1, tiles=2),
    "shared, all in the ring": Shape(cluster_n=2, slices=2, apart=0, warpgroups=1, k_stages=2),
    "k of two": Shape(split=2, tiles=1, slices=1, apart=1, k_stages=5),
    "k of four": Shape(split=4, tiles=1, slices=2, warpgroups=1, k_stages=4),
    "k of two, b shared": Shape(
        split=2, cluster_m=2, tiles=1, slices=1, apart=1, warpgroups=1, k_stages=6
    ),
}


def run(shape: Shape, seed: int, *, together: bool = False) -> Cluster:
    cluster = Cluster(shape, roles, seed, together=together)
    cluster.run()
    return cluster


def run_often(shape: Shape, *, together: bool = False) -> None:
    for seed in range(40):
        run(shape, seed, together=together)


@pytest.mark.parametrize("has_residual", [True, False], ids=["residual", "no residual"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_order_ends_with_every_slice_stored_once(shape: Shape, *, has_residual: bool) -> None:
    """Nobody waits forever, reads before it is written, or writes before it is read."""
    for seed in range(20):
        cluster = run(replace(shape, has_residual=has_residual), seed)
        assert not any(block.runs for block in cluster.blocks)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_stage_has_as_many_phases_as_uses(shape: Shape) -> None:
    """Each stage of k and each of tail, of every tile, fills one and empties it again."""
    for block in run(shape, 0).blocks:
        uses = shape.tiles * (len(block.ks) + len(shape.tails))
        assert uses == sum(barrier.phase for barrier in block.full)
        assert uses == sum(barrier.phase for barrier in block.empty)


def nothing(*_given: object) -> Any:
    return iter(())


def not_waiting(warp: Warp) -> Any:
    """Return at once from a wait."""
    warp.waited = True
    return iter(())


def own_block(warp: Warp) -> list[Any]:
    return [warp.block]


FAULTS: dict[str, tuple[str, type[Warp], str, Callable[..., Any], str]] = {
    "loads into a stage that is not empty": (
        "slices apart", LoadWarp, "_wait_empty", nothing, "comes before .* has been read"),
    "leaves a stage that products still read": (
        "slices apart", MultiplyWarp, "_wait_products", nothing, "comes before|still add to"),
    "announces its own part of a stage alone": (
        "b shared", LoadWarp, "_announced", lambda _: 18, "is read for|nobody can go on"),
    "leaves a stage for itself alone": (
        "a shared", Warp, "_left_for", own_block, "nobody can go on"),
    "walks on without the stages of k": (
        "one stage of tail", StoreWarp, "_pass_products", lambda _: None, "is read for"),
    "leaves a stage of tail once, not for four warps": (
        "one stage of tail", StoreWarp, "_leaves", lambda _: 1, "nobody can go on"),
    "leaves a stage of tail that stores still read": (
        "two stages of tail", StoreWarp, "_wait_stores_read", nothing, "comes before"),
    "leaves a stage of tail for its peers too early": (
        "shared, all in the ring", StoreWarp, "_wait_stores_read", nothing, "comes before"),
    "loads a residual over what stores still read": (
        "slices apart", StoreWarp, "_wait_stores_read", nothing, "comes before .* has been read"),
    "stores what is not written": (
        "slices apart", StoreWarp, "_wait_done", nothing, "is read for"),
    "adds a residual that has not come": (
        "slices apart", MultiplyWarp, "_wait_ready", nothing, "is read for"),
    "hands over results before those of the last tile are taken": (
        "few k, all in the ring", MultiplyWarp, "_wait_ready", nothing,
        "nobody can go on|is read for"),
    "ends while others send to it": (
        "both shared", LoadWarp, "_outlast_others", nothing, "ended|doesn't run"),
    "ends without a wait for its arrival": (
        "k of two", Warp, "_wait_until_others_run", nothing, "ends without its wait|doesn't run"),
    "loads, and ends without a wait for its arrival": (
        "k of two", LoadWarp, "_wait_until_others_run", nothing, "ends without its wait"),
    "stores, and ends without a wait for its arrival": (
        "k of two", StoreWarp, "_wait_until_others_run", nothing, "ends without its wait"),
    "sends sums to blocks that don't run": (
        "k of four", Warp, "_wait_until_others_run", not_waiting,
        "doesn't run|before they have come"),
    "adds sums that have not come": (
        "k of two", MultiplyWarp, "_wait_for_mail", nothing, "before they have come|ended"),
    "expects the sums of one other block": (
        "k of four", StoreWarp, "_expected", lambda _: PART * WARPS, "before they have come|ended"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_without_a_wait_some_order_goes_wrong(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait, count and announcement is there for a reason."""
    shape, role, step, instead, what = FAULTS[fault]
    monkeypatch.setattr(role, step, instead)
    with pytest.raises(Wrong, match=what):
        run_often(SHAPES[shape])


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.split > 1])
def test_warps_may_wait_for_each_other_where_they_wait_for_the_cluster(name: str) -> None:
    """A checker of races made it so, and stood still where a warp waited after its work."""
    run_often(SHAPES[name], together=True)


def test_a_warp_that_waits_for_the_cluster_after_its_work_keeps_others_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it stores comes from warps that wait before it; by themselves they would go on."""

    def late(warp: StoreWarp) -> Any:
        yield from warp._store_tiles()
        yield from warp._wait_until_others_run()

    monkeypatch.setattr(StoreWarp, "_work", late)
    run_often(SHAPES["k of two"])
    with pytest.raises(Wrong, match="nobody can go on"):
        run_often(SHAPES["k of two"], together=True)


def test_peers_that_are_not_waited_for_are_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage is empty when all that it goes to have left it, not this block's warps alone."""
    monkeypatch.setattr(Warp, "_left_for", own_block)
    monkeypatch.setattr(Shape, "leavers", property(lambda shape: 4 * shape.warpgroups))
    with pytest.raises(Wrong, match=r"comes before .* has been read"):
        run_often(SHAPES["b shared"])
