"""A user's kernels with tensor maps and clusters: values, and what is refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solkit import Arg, Bits, Card, Case, Kernel, Launch, Normal, Operator, TensorMap, Work
from solkit.declare.registry import bundled, load
from solkit.errors import BadInput
from solkit.measure import buffers, check
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
ROWS, THREADS = 16, 128
CTYPES = {"fp32": "float", "int32": "int", "uint8": "unsigned char"}


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device, where it has clusters and tensor maps."""
    first = CudaDevice(0)
    if not first.card.has_clusters:
        pytest.skip("clusters and tensor maps are for CC 9.0 and newer")
    return first


def operator(*args: Arg) -> Operator:
    return Operator(
        name="moved",
        args=args,
        work=lambda case: Work(case.shape["rows"], case.shape["rows"]),
        reference=lambda x: x,
    )


def run(
    device: CudaDevice,
    args: tuple[Arg, ...],
    shape: dict[str, int],
    x: Any,
    launches: Callable[..., tuple[Launch, ...]],
) -> Any:
    """Return what a kernel makes of x in its last argument, whose bits were all set before."""
    declared = operator(*args)
    kernel = Kernel(
        name="mine",
        operator=declared,
        source="tensor_maps.cu",
        launches=launches,
        folder=Path(__file__).parent,
    )
    case = Case("moved", "mine", shape, "fp32")
    program = device.prepare(kernel, declared, case, folder("kernels") / "include")
    arrays = buffers.make(device, declared, case, 0, most_sets=1).buffers(0)
    arrays["x"][...] = cupy.asarray(x)
    device.poison(arrays[args[-1].name])
    program.bind(arrays)()
    device.synchronize()
    return cupy.asnumpy(arrays[args[-1].name])


def numbered(rows: int, cols: int, dtype: str = "fp32") -> Any:
    """Return values that say where they stand."""
    kind = {"fp32": np.float32, "int32": np.int32, "uint8": np.uint8}[dtype]
    return (np.arange(rows * cols) % (251 if dtype == "uint8" else 2**24)).reshape(
        rows, cols
    ).astype(kind) + kind(1)


@pytest.mark.parametrize("dtype", ["fp32", "int32", "uint8"])
@pytest.mark.parametrize(
    ("swizzle_bytes", "row_bytes"),
    [(0, 192), (32, 32), (64, 64), (128, 128), (32, 16), (64, 32), (128, 16), (128, 64), (128, 96)],
)
def test_a_box_is_loaded_to_where_the_swizzle_says_and_zeros_lie_outside(
    device: CudaDevice, swizzle_bytes: int, row_bytes: int, dtype: str
) -> None:
    """37 rows of 16-byte multiples in boxes of 16 rows: the last ones reach over both ends.

    A row shorter than the swizzle takes all of it; bytes are counted that are in the box.
    """
    item_bytes = np.dtype(numbered(1, 1, dtype).dtype).itemsize
    cols, box_cols = 176 // item_bytes, row_bytes // item_bytes
    padded_rows, padded_cols = 48, -(-cols // box_cols) * box_cols

    def launches(_case: Case, card: Card) -> tuple[Launch, ...]:
        assert card == device.card
        entry = f"load_boxes<{CTYPES[dtype]}, {ROWS}, {box_cols}, {swizzle_bytes}>"
        seen_map = TensorMap("x", box=(ROWS, box_cols), swizzle_bytes=swizzle_bytes)
        return (
            Launch(
                entry,
                grid=(padded_cols // box_cols, padded_rows // ROWS, 1),
                block=(THREADS, 1, 1),
                shared_bytes=ROWS * max(row_bytes, swizzle_bytes),
                args=(seen_map, "seen", "padded_cols"),
            ),
        )

    x = numbered(37, cols, dtype)
    args = (
        Arg("x", "rows cols", dtype=dtype, init=Normal() if dtype == "fp32" else Bits()),
        Arg("seen", "padded_rows padded_cols", "out", dtype=dtype),
    )
    shape = {"rows": 37, "cols": cols, "padded_rows": padded_rows, "padded_cols": padded_cols}
    seen = run(device, args, shape, x, launches)
    expected = np.pad(x, ((0, padded_rows - 37), (0, padded_cols - cols)))
    np.testing.assert_array_equal(expected, seen)


@pytest.mark.parametrize("swizzle_bytes", [0, 32, 64, 128])
def test_a_box_is_stored_and_nothing_outside_of_the_tensor(
    device: CudaDevice, swizzle_bytes: int
) -> None:
    """One is added, by boxes that reach over its ends: written there, it would be in other rows."""
    box_cols = (swizzle_bytes or 192) // 4

    def launches(case: Case) -> tuple[Launch, ...]:
        maps = (
            TensorMap(name, box=(ROWS, box_cols), swizzle_bytes=swizzle_bytes)
            for name in ("x", "y")
        )
        grid = (-(-case.shape["cols"] // box_cols), -(-case.shape["rows"] // ROWS), 1)
        return (
            Launch(
                f"store_boxes<{ROWS}, {box_cols}, {swizzle_bytes}>",
                grid=grid,
                block=(THREADS, 1, 1),
                shared_bytes=ROWS * box_cols * 4,
                args=tuple(maps),
            ),
        )

    x = numbered(37, 44)
    args = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"))
    seen = run(device, args, {"rows": 37, "cols": 44}, x, launches)
    np.testing.assert_array_equal(x + 1, seen)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_one_block_loads_for_its_cluster_through_a_ring(device: CudaDevice, ranks: int) -> None:
    """7 boxes through 3 slots, so that each slot is loaded over: every block has each of them."""
    clusters, boxes, slots, cols = 5, 7, 3, 32

    def launches(_case: Case) -> tuple[Launch, ...]:
        return (
            Launch(
                f"share_boxes<{ranks}, {slots}, {ROWS}, {cols}>",
                grid=(clusters * ranks, 1, 1),
                block=(THREADS, 1, 1),
                shared_bytes=100 * 1024 - 2048,  # more than 48 KB are asked for
                cluster=ranks,
                args=(TensorMap("x", box=(ROWS, cols)), "y", boxes),
            ),
        )

    x = numbered(clusters * boxes * ROWS, cols)
    args = (Arg("x", "rows cols"), Arg("y", "clusters ranks rows/5 cols", "out"))
    shape = {"rows": len(x), "cols": cols, "clusters": clusters, "ranks": ranks}
    seen = run(device, args, shape, x, launches)
    each = x.reshape(clusters, 1, boxes * ROWS, cols)
    np.testing.assert_array_equal(np.tile(each, (1, ranks, 1, 1)), seen)


def test_the_transposition_of_the_docs_is_right(device: CudaDevice, tmp_path: Path) -> None:
    """Whole boxes, and boxes that reach over both ends of a matrix."""
    text = (Path(__file__).parents[2] / "docs" / "write-a-kernel.md").read_text(encoding="utf-8")
    for kind, suffix in (("python", "py"), ("cuda", "cu")):
        (block,) = re.findall(rf"```{kind}\n([^`]*transpose<?[^`]*)```", text)
        (tmp_path / f"transpose.{suffix}").write_text(block, encoding="utf-8")
    declared, kernel = load(tmp_path / "transpose.py")
    assert isinstance(declared, Operator)
    assert isinstance(kernel, Kernel)
    for rows, cols in ((64, 128), (1, 4), (67, 132)):
        case = Case("transpose", "boxes", {"rows": rows, "cols": cols}, "fp32")
        program = device.prepare(kernel, declared, case, folder("kernels") / "include")
        arrays = buffers.make(device, declared, case, 0, most_sets=1).buffers(0)
        device.poison(arrays["y"])
        program.bind(arrays)()
        device.synchronize()
        np.testing.assert_array_equal(cupy.asnumpy(arrays["x"]).T, cupy.asnumpy(arrays["y"]))


def passing_on(
    cluster: int | tuple[int, int, int], grid: tuple[int, int, int], entry: str = "pass_on"
) -> Callable[[Case], tuple[Launch, ...]]:
    def launches(_case: Case) -> tuple[Launch, ...]:
        return (Launch(entry, grid, (32, 1, 1), args=("x", "y"), cluster=cluster),)

    return launches


PASSED = (Arg("x", "rows"), Arg("y", "rows", "out"))


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_blocks_of_a_launched_cluster_read_each_others_shared_memory(
    device: CudaDevice, ranks: int
) -> None:
    """No word of clusters in the source; 16 blocks are allowed for the function and asked for."""
    if ranks > device.card.most_cluster_blocks:
        pytest.skip(f"this card is sure of {device.card.most_cluster_blocks} blocks a cluster")
    x = np.arange(3 * ranks, dtype=np.float32)
    seen = run(device, PASSED, {"rows": x.size}, x, passing_on(ranks, (x.size, 1, 1)))
    np.testing.assert_array_equal(np.roll(x.reshape(3, ranks), -1, axis=1).reshape(-1), seen)


def test_a_cluster_may_have_two_dimensions(device: CudaDevice) -> None:
    """2 x 2 of a grid of 4 x 2 blocks: ranks go along x first."""
    x = np.arange(8, dtype=np.float32)
    seen = run(device, PASSED, {"rows": 8}, x, passing_on((2, 2, 1), (4, 2, 1)))
    np.testing.assert_array_equal([1, 4, 3, 6, 5, 0, 7, 2], seen)


def test_a_launch_in_clusters_is_captured_in_a_graph(device: CudaDevice) -> None:
    """On the stream that captures, with its cluster; a replay computes anew."""
    declared = operator(*PASSED)
    kernel = Kernel(
        name="mine",
        operator=declared,
        source="tensor_maps.cu",
        launches=passing_on(4, (8, 1, 1)),
        folder=Path(__file__).parent,
    )
    case = Case("moved", "mine", {"rows": 8}, "fp32")
    program = device.prepare(kernel, declared, case, folder("kernels") / "include")
    arrays = buffers.make(device, declared, case, 0, most_sets=1).buffers(0)
    call = program.bind(arrays)
    stream = cupy.cuda.Stream(non_blocking=True)
    device.synchronize()
    with stream:
        stream.begin_capture()
        call()
        graph = stream.end_capture()
    arrays["x"][...] = cupy.arange(8, dtype=np.float32)
    device.poison(arrays["y"])
    device.synchronize()
    graph.launch(stream)
    device.synchronize()
    np.testing.assert_array_equal([1, 2, 3, 0, 5, 6, 7, 4], cupy.asnumpy(arrays["y"]))


@pytest.mark.parametrize(
    ("cluster", "grid", "entry", "words"),
    [
        (2, (7, 1, 1), "pass_on", "the grid of pass_on, 7 blocks, is no multiple of its cluster"),
        (32, (64, 1, 1), "pass_on", "this card holds no cluster of 32 blocks of pass_on"),
        (4, (8, 1, 1), "compiled_for_two", "is compiled for clusters of 2 blocks"),
        (1, (7, 1, 1), "compiled_for_two", "7 blocks, is no multiple of its cluster of 2"),
    ],
)
def test_a_cluster_that_can_not_be_is_refused_before_the_launch(
    device: CudaDevice, cluster: int, grid: tuple[int, int, int], entry: str, words: str
) -> None:
    """With what to do; the device is as it was."""
    x = np.zeros(grid[0], dtype=np.float32)
    with pytest.raises(BadInput, match=words) as caught:
        run(device, PASSED, {"rows": x.size}, x, passing_on(cluster, grid, entry))
    assert caught.value.remedy
    device.synchronize()


def test_a_pointer_where_the_function_takes_a_map_is_refused(device: CudaDevice) -> None:
    """By their sizes, where the driver can tell: 128 bytes and 8."""

    def launches(_case: Case) -> tuple[Launch, ...]:
        return (Launch("store_boxes<16, 8, 32>", (1, 1, 1), (32, 1, 1), 512, ("x", "y")),)

    args = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"))
    with pytest.raises(BadInput, match=r"takes 2 parameters of \[128, 128\] bytes"):
        run(device, args, {"rows": 16, "cols": 8}, numbered(16, 8), launches)


def test_the_card_is_what_the_driver_says(device: CudaDevice) -> None:
    """An H200 holds clusters of 16 whole SMs; what every card says agrees with its attributes."""
    attributes = cupy.cuda.Device(0).attributes
    assert attributes["MultiProcessorCount"] == device.card.sm_count
    assert attributes["MaxSharedMemoryPerBlockOptin"] == device.card.shared_bytes_per_block
    assert device.card.most_cluster_blocks in (1, 2, 4, 8, 16)
    if device.card.sm_count == 132 and device.card.compute_capability == 90:
        assert 16 == device.card.most_cluster_blocks


def test_softmax_is_right_on_a_card_that_holds_no_cluster_of_16(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that this card would give to 16 blocks, in clusters of 8."""
    monkeypatch.setattr(device, "card", replace(device.card, most_cluster_blocks=8))
    registry = bundled()
    declared, kernel = registry.operators["softmax"], registry.kernels["softmax", "solkit"]
    params = {"scale": 1.0, "masking": "none"}
    case = Case("softmax", "solkit", {"rows": 3, "cols": 262_143}, "bf16", params)
    (launch,) = kernel.launches_on(case, device.card)
    assert 3 * 8 == launch.grid[0]
    program = device.prepare(kernel, declared, case, folder("kernels") / "include")
    sets = buffers.make(device, declared, case, 0, most_sets=1)
    expected = check.expect(device, declared, case, sets.buffers(0), 0)
    sets.poison(device, 0)
    program.bind(sets.buffers(0))()
    device.synchronize()
    assert check.compare(device, declared, case, sets.buffers(0), expected).error_fraction <= 1
