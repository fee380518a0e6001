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


def unfused(operator: str, dtype: str, shape: dict[str, int], **params: Param) -> dict[str, Work]:
    declared = REGISTRY.operators[operator]
    chosen = {name: values[0] for name, values in declared.params.items()} | params
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


@pytest.mark.parametrize(
    ("operator", "read", "fp32", "sfu"),
    [
        ("matmul", 0, 0, 0),
        ("matmul_bias", 5, 1, 0),
        ("matmul_bias_gelu", 5, 1 + 18, 2),
        ("matmul_add", 2 * 5, 1, 0),
        ("matmul_add_bias", 5 + 2 * 5, 2, 0),
    ],
)
def test_a_product_reads_what_it_adds_once(operator: str, read: int, fp32: int, sfu: int) -> None:
    """Of [2, 3] x [3, 5]: a bias is 5 items, a residual 10; flop an element beside the product's.

    A factor changes neither.
    """
    result = work(operator, "fp16", {"M": 2, "K": 3, "N": 5}, alpha=0.5)
    assert {"fp16_tensor": 2 * 2 * 3 * 5} == result.flop
    assert 2 * (2 * 3 + 3 * 5 + read) == result.read_bytes
    assert 2 * 10 == result.write_bytes
    estimated = {"fp32": 10 * fp32, "sfu": 10 * sfu}
    assert {pipe: count for pipe, count in estimated.items() if count} == result.estimated_flop


@pytest.mark.parametrize(
    ("operator", "bytes_moved"),
    [
        ("matmul", {"matmul": 62}),
        ("matmul_bias", {"matmul": 62, "add_bias": 50}),
        ("matmul_bias_gelu", {"matmul": 62, "add_bias": 50, "gelu": 40}),
        ("matmul_add", {"matmul": 62, "add": 60}),
        ("matmul_add_bias", {"matmul": 62, "add": 60, "add_bias": 50}),
    ],
)
def test_each_step_after_a_product_reads_and_writes_it(
    operator: str, bytes_moved: dict[str, int]
) -> None:
    """Of [2, 3] x [3, 5]: 10 results of 2 bytes, read and written, beside what is added to them."""
    steps = unfused(operator, "fp16", {"M": 2, "K": 3, "N": 5})
    assert bytes_moved == {name: step.traffic_bytes for name, step in steps.items()}


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


def test_rmsnorm_moves_two_matrices_and_the_weight() -> None:
    """83.89 MB and 5,120 bytes; unfused, x is read twice and a number a row goes both ways."""
    assert 2 * 41_943_040 + 5120 == work("rmsnorm", "bf16", NORM).traffic_bytes
    assert 41_943_040 == work("rmsnorm", "bf16", NORM).write_bytes
    steps = unfused("rmsnorm", "bf16", NORM)
    assert {
        "mean_square": 41_943_040 + 16_384,
        "scale": 2 * 41_943_040 + 5120 + 16_384,
    } == {name: step.traffic_bytes for name, step in steps.items()}


def test_add_layernorm_moves_four_matrices_a_weight_and_a_bias() -> None:
    """167.78 MB and 10,240 bytes; unfused, the sum is read again."""
    assert 4 * 41_943_040 + 2 * 5120 == work("add_layernorm", "bf16", NORM).traffic_bytes
    assert 2 * 41_943_040 == work("add_layernorm", "bf16", NORM).write_bytes
    steps = unfused("add_layernorm", "bf16", NORM)
    assert {"add": 3 * 41_943_040, "layernorm": 2 * 41_943_040 + 10_240} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


@pytest.mark.parametrize(
    ("scaling", "cols", "scales"), [("token", 2560, 1), ("block", 2560, 20), ("block", 129, 2)]
)
def test_quant_fp8_writes_a_byte_an_element_and_fp32_scales(
    scaling: str, cols: int, scales: int
) -> None:
    """Two bytes in, one out; a scale a row or for each 128 columns begun."""
    result = work("quant_fp8", "bf16", {"rows": 8, "cols": cols}, scaling=scaling)
    assert 8 * cols * 2 == result.read_bytes
    assert 8 * (cols + 4 * scales) == result.write_bytes


def test_unfused_quant_fp8_reads_the_rows_twice() -> None:
    """The scales are written, and read again with the rows."""
    steps = unfused("quant_fp8", "bf16", {"rows": 8, "cols": 64})
    assert {"absmax": 1024 + 32, "divide": 1024 + 32 + 512} == {
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


def test_geglu_moves_what_swiglu_moves() -> None:
    """Two in, one out; unfused, gelu costs one more write and read."""
    shape = {"rows": 8, "cols": 64}
    assert work("swiglu", "bf16", shape).traffic_bytes == work("geglu", "bf16", shape).traffic_bytes
    steps = unfused("geglu", "bf16", shape)
    assert {"gelu": 2048, "mul": 3072} == {name: w.traffic_bytes for name, w in steps.items()}


@pytest.mark.parametrize(("dtype", "read", "written"), [("fp32", 16, 12), ("bf16", 12, 10)])
def test_adamw_keeps_its_moments_in_fp32(dtype: str, read: int, written: int) -> None:
    """28 bytes an element in fp32, 22 with bf16 parameters and gradients."""
    result = work("adamw", dtype, {"elements": 1000})
    assert (read * 1000, written * 1000) == (result.read_bytes, result.write_bytes)
    assert {} == result.flop


def test_unfused_adamw_makes_four_passes() -> None:
    """Decay 2, each moment 3, the update 4 streams of fp32."""
    steps = unfused("adamw", "fp32", {"elements": 1000})
    assert {"decay": 8000, "exp_avg": 12_000, "exp_avg_sq": 12_000, "update": 16_000} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


def test_rope_reads_its_tables_once() -> None:
    """A token of 32 + 8 heads of 128 in bf16: 10,240 bytes in and out, 512 bytes of cos and sin."""
    shape = {"tokens": 3, "heads": 32, "kv_heads": 8, "head_dim": 128}
    result = work("rope", "bf16", shape)
    assert (3 * 10_752, 3 * 10_240) == (result.read_bytes, result.write_bytes)
    steps = unfused("rope", "bf16", shape)
    assert {"q": 3 * (2 * 8192 + 512), "k": 3 * (2 * 2048 + 512)} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


DECODE = {"batch": 3, "heads": 32, "kv_heads": 8, "head_dim": 128, "kv_len": 4096}


def test_attention_decode_reads_its_cache_once() -> None:
    """50.3 MB of keys and values; q and y are 24,576 bytes each; 4 flop a head, key and item."""
    result = work("attention_decode", "bf16", DECODE)
    assert 2 * 3 * 4096 * 8 * 128 * 2 + 24_576 == result.read_bytes
    assert 24_576 == result.write_bytes
    assert {"bf16_tensor": 4 * 3 * 32 * 4096 * 128} == result.flop


def test_a_paged_cache_costs_its_page_table() -> None:
    """256 pages of 16 tokens a sequence, 4 bytes each."""
    paged = work("attention_decode", "bf16", DECODE, cache="paged")
    assert 3 * 256 * 4 == paged.read_bytes - work("attention_decode", "bf16", DECODE).read_bytes


def test_unfused_attention_decode_writes_its_scores() -> None:
    """Scores of 786,432 bytes are written, read and written by their softmax, and read."""
    steps = unfused("attention_decode", "bf16", DECODE)
    cache, scores, out = 3 * 4096 * 8 * 128 * 2, 3 * 32 * 4096 * 2, 24_576
    assert {
        "scores": out + cache + scores,
        "softmax": 2 * scores,
        "sum": scores + cache + out,
    } == {name: step.traffic_bytes for name, step in steps.items()}


GEMV = {"tokens": 8, "rows": 1000, "cols": 256}


def test_dequant_gemv_reads_packed_weights_and_their_scales() -> None:
    """A thousand rows of 128 bytes and 2 scales (int4), of 256 bytes and 1 (int8), and x."""
    int4, int8 = (work("dequant_gemv", "bf16", GEMV, weight_dtype=w) for w in ("int4", "int8"))
    assert 1000 * (128 + 2 * 2) + 8 * 256 * 2 == int4.read_bytes
    assert 1000 * (256 + 2) + 8 * 256 * 2 == int8.read_bytes
    assert 8 * 1000 * 2 == int4.write_bytes == int8.write_bytes
    assert {"bf16_tensor": 2 * 8 * 1000 * 256} == int4.flop == int8.flop


def test_unfused_dequant_gemv_writes_the_weights_in_two_bytes() -> None:
    """And reads them again: 512,000 bytes each way."""
    steps = unfused("dequant_gemv", "bf16", GEMV, weight_dtype="int4")
    assert {
        "dequantise": 1000 * (128 + 2 * 2) + 512_000,
        "matmul": 512_000 + 8 * (256 + 1000) * 2,
    } == {name: step.traffic_bytes for name, step in steps.items()}


def test_moe_topk_writes_a_weight_and_an_index_for_each_chosen() -> None:
    """4 bytes each, whatever the logits have; unfused, the probabilities go both ways in fp32."""
    shape = {"tokens": 10, "experts": 64, "top_k": 6}
    result = work("moe_topk", "bf16", shape)
    assert (10 * 64 * 2, 10 * 6 * 8) == (result.read_bytes, result.write_bytes)
    steps = unfused("moe_topk", "bf16", shape)
    assert {"softmax": 10 * 64 * (2 + 4), "topk": 10 * (64 * 4 + 48), "normalise": 480} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


@pytest.mark.parametrize(("tokens", "rows"), [(5, 5), (100, 100), (250, 100)])
def test_embedding_reads_each_row_that_occurs_once(tokens: int, rows: int) -> None:
    """Of 100 rows of 128 bytes; a token's index costs 4 bytes."""
    result = work("embedding", "bf16", {"tokens": tokens, "vocab": 100, "cols": 64})
    assert (rows * 128 + tokens * 4, tokens * 128) == (result.read_bytes, result.write_bytes)


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


def test_softmax_reads_its_mask() -> None:
    """A third stream; unfused, scale and mask are passes of their own: 2 and 3 matrices of 1024."""
    shape = {"rows": 8, "cols": 64}
    assert (2048, 1024) == (
        work("softmax", "bf16", shape, masking="additive").read_bytes,
        work("softmax", "bf16", shape, masking="additive").write_bytes,
    )
    steps = unfused("softmax", "bf16", shape, scale=0.125, masking="additive")
    assert ["scale", "mask", "max", "exp", "sum", "divide"] == list(steps)
    assert (2048, 3072) == (steps["scale"].traffic_bytes, steps["mask"].traffic_bytes)


@pytest.mark.parametrize(
    ("rows", "cols", "seen"), [(4, 4, 10), (1, 9, 1), (10, 4, 2 * 10 + 3), (3, 1, 3)]
)
def test_causal_softmax_reads_what_it_sees_and_writes_all(rows: int, cols: int, seen: int) -> None:
    """1, 2 ... cols items in each cols rows; 1 + 2 in the two rows that are left of ten."""
    result = work("softmax", "fp32", {"rows": rows, "cols": cols}, masking="causal")
    assert (4 * seen, 4 * rows * cols) == (result.read_bytes, result.write_bytes)
    assert {"fp32": 5 * seen, "sfu": seen + rows} == result.estimated_flop


def test_cross_entropy_writes_two_floats_a_token() -> None:
    """8 x 64 logits and 8 labels in, 8 losses and 8 log-sum-exps out; unfused a matrix more."""
    shape = {"tokens": 8, "vocab": 64}
    result = work("cross_entropy", "bf16", shape)
    assert (1024 + 32, 64) == (result.read_bytes, result.write_bytes)
    steps = unfused("cross_entropy", "bf16", shape)
    assert {"log_softmax": 2048 + 32, "choose": 8 * (4 + 2) + 32} == {
        name: step.traffic_bytes for name, step in steps.items()
    }


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
    extents=st.lists(st.integers(1, 100_000), min_size=6, max_size=6),
)
def test_work_is_what_the_arguments_hold(operator: str, dtype: str, extents: list[int]) -> None:
    """Each tensor once, at its own width, in the direction of its role; some need less."""
    declared = REGISTRY.operators[operator]
    shape = dict(zip(declared.axes, extents, strict=False))
    case = Case(operator, "solkit", shape, dtype, {k: v[0] for k, v in declared.params.items()})
    result = declared.work(case)
    held = sum(arg.nbytes(case) for arg in declared.inputs_of(case))
    if operator == "embedding":  # of the table, the rows that occur
        vocab, tokens = shape["vocab"], shape["tokens"]
        held -= max(0, vocab - tokens) * shape["cols"] * DTYPES[dtype].item_bytes
    if operator == "write":
        held = min(held, 2048 * DTYPES[dtype].item_bytes)
    assert held == result.read_bytes
    assert sum(arg.nbytes(case) for arg in declared.outputs_of(case)) == result.write_bytes
