import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.registry import bundled
from solkit.dtypes import DTYPES
from solkit.model import Case, Param, Work

REGISTRY = bundled()


def work(operator: str, dtype: str, shape: dict[str, int], **params: Param) -> Work:
    declared = REGISTRY.operators[operator]
    chosen = {name: values[0] for name, values in declared.params.items()} | params
    return declared.work(Case(operator, "solkit", shape, dtype, chosen))


def unfused(operator: str, dtype: str, shape: dict[str, int]) -> dict[str, Work]:
    declared = REGISTRY.operators[operator]
    chosen = {name: values[0] for name, values in declared.params.items()}
    assert declared.unfused is not None
    steps = declared.unfused(Case(operator, "solkit", shape, dtype, chosen))
    return {step.name: step.work for step in steps}


FLAGSHIP = {"M": 8192, "K": 2560, "N": 2560}
NORM = {"rows": 8192, "cols": 2560}


def test_matmul_add_of_the_flagship() -> None:
    """107.37 Gflop on the bf16 tensor cores and 138.94 MB."""
    result = work("matmul_add", "bf16", FLAGSHIP)
    assert {"bf16_tensor": 107_374_182_400} == result.flop
    assert 138_936_320 == result.traffic_bytes
    assert 41_943_040 == result.write_bytes
    assert {"fp32": 8192 * 2560} == result.estimated_flop


@pytest.mark.parametrize(("dtype", "pipe"), [("fp32", "fp32"), ("fp16", "fp16_tensor")])
def test_matmul_add_uses_the_pipe_of_its_dtype(dtype: str, pipe: str) -> None:
    """Fp32 products are not TF32."""
    assert {pipe: 2 * 2 * 3 * 5} == work("matmul_add", dtype, {"M": 2, "K": 3, "N": 5}).flop


def test_matmul_adds_layout_changes_no_work() -> None:
    """[K, N] and [N, K] hold the same numbers."""
    assert work("matmul_add", "bf16", FLAGSHIP, weight="kn") == work(
        "matmul_add", "bf16", FLAGSHIP, weight="nk"
    )


def test_unfused_matmul_add_writes_and_reads_the_product() -> None:
    """The addition's own traffic is three matrices of M x N."""
    steps = unfused("matmul_add", "bf16", FLAGSHIP)
    assert ["matmul", "add"] == list(steps)
    assert 107_374_182_400 == steps["matmul"].flop["bf16_tensor"]
    assert 8192 * 2560 * 2 * 2 + 2560 * 2560 * 2 == steps["matmul"].traffic_bytes
    assert 3 * 41_943_040 == steps["add"].traffic_bytes


def test_add_rmsnorm_moves_four_matrices_and_the_weight() -> None:
    """167.78 MB and 5,120 bytes; nothing in it is exact flop."""
    result = work("add_rmsnorm", "bf16", NORM)
    assert 167_772_160 + 2560 * 2 == result.traffic_bytes
    assert 2 * 41_943_040 == result.write_bytes
    assert {} == result.flop


def test_unfused_add_rmsnorm_reads_the_sum_again() -> None:
    """Add: 2 in, 1 out. Norm: 1 and the weight in, 1 out."""
    steps = unfused("add_rmsnorm", "bf16", NORM)
    assert {"add": 3 * 41_943_040, "rmsnorm": 2 * 41_943_040 + 5120} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


def test_swiglu_reads_two_and_writes_one() -> None:
    """Unfused, silu costs one more write and read."""
    assert (8 * 64 * 2 * 2, 8 * 64 * 2) == (
        work("swiglu", "fp16", {"rows": 8, "cols": 64}).read_bytes,
        work("swiglu", "fp16", {"rows": 8, "cols": 64}).write_bytes,
    )
    steps = unfused("swiglu", "fp16", {"rows": 8, "cols": 64})
    assert {"silu": 2048, "mul": 3072} == {name: w.traffic_bytes for name, w in steps.items()}


def test_bias_gelu_reads_the_bias_once() -> None:
    """Rows x cols in and out, and cols."""
    assert (8 * 64 + 64) * 4 == work("bias_gelu", "fp32", {"rows": 8, "cols": 64}).read_bytes
    assert 8 * 64 * 4 == work("bias_gelu", "fp32", {"rows": 8, "cols": 64}).write_bytes
    steps = unfused("bias_gelu", "fp32", {"rows": 8, "cols": 64})
    assert {"add": (2 * 512 + 64) * 4, "gelu": 4096} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


def test_softmax_reads_and_writes_once() -> None:
    """The classic four steps move the matrix six times, and the rows' max and sum twice each."""
    shape = {"rows": 8, "cols": 64}
    assert (1024, 1024) == (
        work("softmax", "bf16", shape).read_bytes,
        work("softmax", "bf16", shape).write_bytes,
    )
    steps = unfused("softmax", "bf16", shape)
    assert ["max", "exp", "sum", "divide"] == list(steps)
    assert 6 * 1024 + 4 * 16 == sum(step.traffic_bytes for step in steps.values())


@pytest.mark.parametrize(
    ("operator", "read", "written"),
    [("copy", 8000, 8000), ("write", 4096, 8000), ("triad", 16000, 8000)],
)
def test_streams_of_4000_items_of_2_bytes(operator: str, read: int, written: int) -> None:
    """`write` reads its pattern of 2048 items."""
    result = work(operator, "bf16", {"elements": 4000})
    assert (read, written) == (result.read_bytes, result.write_bytes)


@pytest.mark.parametrize(("dtype", "read"), [("bf16", 8000), ("fp32", 16_000)])
def test_read_writes_a_float_a_row(dtype: str, read: int) -> None:
    """8 rows of 500 items, read once at their own width; the sums are fp32 whatever they are of."""
    result = work("read", dtype, {"rows": 8, "cols": 500})
    assert (read, 32) == (result.read_bytes, result.write_bytes)
    assert {"fp32": 4000} == result.estimated_flop
    assert {} == result.flop
    assert REGISTRY.operators["read"].unfused is None


@given(
    operator=st.sampled_from(sorted(REGISTRY.operators)),
    dtype=st.sampled_from(["fp32", "fp16", "bf16"]),
    extents=st.lists(st.integers(1, 100_000), min_size=3, max_size=3),
)
def test_work_is_what_the_arguments_hold(operator: str, dtype: str, extents: list[int]) -> None:
    """Each tensor once, at its own width, in the direction of its role; `write` needs less."""
    declared = REGISTRY.operators[operator]
    shape = dict(zip(declared.axes, extents, strict=False))
    case = Case(operator, "solkit", shape, dtype, {k: v[0] for k, v in declared.params.items()})
    result = declared.work(case)
    held = sum(arg.nbytes(case) for arg in declared.inputs)
    if operator == "write":
        held = min(held, 2048 * DTYPES[dtype].item_bytes)
    assert held == result.read_bytes
    assert sum(arg.nbytes(case) for arg in declared.outputs) == result.write_bytes
