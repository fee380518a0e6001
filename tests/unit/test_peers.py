"""The libraries' own kernels: what they declare, when they refuse, and their values on the CPU."""

import inspect
import itertools
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solkit import Case, Kernel
from solkit.declare import registry
from solkit.declare.arg import Arg, Bits, Indices, Uniform
from solkit.declare.dims import dim
from solkit.declare.operator import Operator

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
DECLARED = registry.load(PEERS)
KERNELS = {
    (item.operator_name, item.name): item
    for item in DECLARED
    if item.name != "cupy"  # a dependency, not a library that may be missing
}
OPERATORS = registry.bundled().operators
HERE = ("torch", "torch_eager", "torch_compile")  # what runs without a GPU
CARD_ALONE = {("dequant_gemv", "torch")}  # int8 products on the CPU take bf16 alone
NORM = {"rows": 5, "cols": 256}
PRODUCT = {"M": 5, "N": 16, "K": 24}
SHAPES = {
    "rmsnorm": NORM,
    "add_rmsnorm": NORM,
    "add_layernorm": NORM,
    "softmax": {"rows": 9, "cols": 7},
    "cross_entropy": {"tokens": 33, "vocab": 50},
    "swiglu": NORM,
    "geglu": NORM,
    "bias_gelu": NORM,
    "rope": {"tokens": 5, "heads": 4, "kv_heads": 2, "head_dim": 8},
    "quant_fp8": NORM,
    "embedding": {"tokens": 6, "vocab": 11, "cols": 4},
    "moe_topk": {"tokens": 7, "experts": 16, "top_k": 4},
    "attention_decode": {"batch": 3, "heads": 8, "kv_heads": 2, "kv_len": 48, "head_dim": 16},
    "adamw": {"elements": 33},
    "dequant_gemv": {"tokens": 3, "rows": 6, "cols": 256},
    "copy": {"elements": 33},
    "read": NORM,
    "write": {"elements": 5000},
    "triad": {"elements": 33},
    "matmul": PRODUCT,
    "matmul_bias": PRODUCT,
    "matmul_bias_gelu": PRODUCT,
    "matmul_add": PRODUCT,
    "matmul_add_bias": PRODUCT,
}
LIBRARIES = {
    "liger": "liger_kernel",
    "quack": "quack",
    "quack_tuned": "quack",
    "triton": "triton",
}


def cases(kernel: Kernel) -> Iterator[Case]:
    """Yield a small case of a peer for each choice of its operator's params."""
    operator = OPERATORS[kernel.operator_name]
    for values in itertools.product(*operator.params.values()):
        yield Case(
            operator.name,
            kernel.name,
            SHAPES[operator.name],
            "fp32" if "fp32" in {*operator.dtypes} & {*kernel.dtypes} else "bf16",
            dict(zip(operator.params, values, strict=True)),
        )


def the_case(operator: str, name: str, **params: Any) -> Case:
    """Return the case of a peer with these params, the others at their defaults."""
    declared = OPERATORS[operator].params
    wanted = {key: values[0] for key, values in declared.items()} | params
    return next(case for case in cases(KERNELS[operator, name]) if case.params == wanted)


def filled(arg: Arg, case: Case, seed: int) -> Any:
    """Fill an input as it is declared."""
    random, shape = np.random.default_rng(seed), arg.shape(case)
    if isinstance(arg.init, Indices):
        extent = dim(arg.init.of).extent(case.shape)
        found = np.resize(random.permutation(extent), shape).astype(np.int32)
        if arg.init.hole_every:
            found.reshape(-1)[:: arg.init.hole_every] = arg.init.hole
        return found
    if isinstance(arg.init, Bits):
        low, high = (-128, 128) if arg.dtype_of(case) == "int8" else (0, 256)
        return random.integers(low, high, shape).astype(arg.dtype_of(case))
    if isinstance(arg.init, Uniform):
        return random.uniform(arg.init.low, arg.init.high, shape).astype(np.float32)
    fan_in = case.shape[arg.init.fan_in] if arg.init.fan_in else 1
    return random.normal(0, arg.init.std / fan_in**0.5, shape).astype(np.float32)


@pytest.mark.parametrize("key", KERNELS, ids="-".join)
def test_a_peer_is_one_of_a_bundled_operator_and_says_what_it_lacks(key: tuple[str, str]) -> None:
    """Its operator exists; without its library, every case says what to install."""
    kernel = KERNELS[key]
    assert kernel.operator_name in OPERATORS
    library = LIBRARIES.get(kernel.name, "torch")
    for case in cases(kernel):
        if find_spec("torch") is None:
            assert kernel.refusal(case) == "torch is not installed: pip install torch"
        elif find_spec(library) is None:
            assert f"{library} is not installed" in str(kernel.refusal(case))


def test_describing_a_peer_loads_no_library() -> None:
    """The peers were loaded above, and torch was not."""
    script = (
        "import sys; from pathlib import Path; from solkit.declare import registry\n"
        f"kernels = registry.load(Path({str(PEERS)!r}))\n"
        "print(len(kernels), sorted({'torch', 'triton', 'liger_kernel', 'quack'} & {*sys.modules}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert f"{len(DECLARED)} []" == told.stdout.strip()


@pytest.mark.parametrize(
    ("operator", "name", "params", "words"),
    [
        ("geglu", "liger", {"form": "erf"}, "tanh form alone"),
        ("softmax", "liger", {"scale": 0.125}, "no scale and no mask"),
        ("softmax", "quack", {"masking": "causal"}, "no scale and no mask"),
        ("rope", "liger", {"style": "interleaved"}, "half-rotated style alone"),
        ("cross_entropy", "liger", {}, "clears the logits of ignored labels"),
        ("dequant_gemv", "torch", {"weight_dtype": "int4"}, "a packed order of its own"),
        ("matmul_bias_gelu", "cublaslt", {"form": "erf"}, "tanh form alone"),
    ],
)
def test_what_a_library_can_not_do_is_a_reason(
    operator: str, name: str, params: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case is skipped with it, rather than measured as something else."""
    monkeypatch.setattr(sys.modules["peers.parts.peer"], "missing", lambda _module: None)
    kernel = KERNELS[operator, name]
    assert kernel.refuse is not None
    assert words in str(kernel.refusal(the_case(operator, name, **params)))


@pytest.mark.parametrize(
    ("operator", "cols", "dtype", "taken"),
    [
        ("softmax", 128_256, "bf16", True),  # 8 blocks of 16384 columns: the last has 13568
        ("softmax", 151_936, "bf16", False),  # 16 blocks of 10240: 15 are enough
        ("softmax", 151_936, "fp32", True),
        ("softmax", 262_144, "bf16", True),
        ("cross_entropy", 151_936, "bf16", False),
        ("cross_entropy", 32_000, "bf16", True),
    ],
)
def test_quack_is_not_asked_for_rows_that_leave_a_block_empty(
    operator: str, cols: int, dtype: str, *, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives NaN for them: 151936 columns did on an H200, 128256 and 262144 did not."""
    monkeypatch.setattr(sys.modules["peers.parts.peer"], "missing", lambda _module: None)
    params = {"scale": 1.0, "masking": "none"} if operator == "softmax" else {}
    shape = dict.fromkeys(("rows", "tokens"), 64) | dict.fromkeys(("cols", "vocab"), cols)
    refusal = KERNELS[operator, "quack"].refusal(Case(operator, "quack", shape, dtype, params))
    assert taken == (refusal is None)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("weight_dtype", ["int4", "int8"])
def test_the_two_formulas_of_a_dequantised_product_agree(tokens: int, weight_dtype: str) -> None:
    """One is faster compiled for few tokens; both are x times the weights."""
    import torch  # noqa: PLC0415  # it may not be there
    from peers.parts import formulas  # noqa: PLC0415  # it imports torch

    random = np.random.default_rng(1)
    x = torch.from_numpy(random.standard_normal((tokens, 256)))
    packed = random.integers(0, 256, (6, 128 if weight_dtype == "int4" else 256), dtype=np.uint8)
    weight = torch.from_numpy(packed if weight_dtype == "int4" else packed.view(np.int8))
    scale = torch.from_numpy(random.standard_normal((6, 2) if weight_dtype == "int4" else 6))
    one, other = (
        formula(x, weight, scale, weight_dtype)
        for formula in (formulas.dequant_gemv, formulas.dequant_sum)
    )
    np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-4, atol=1e-2)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("key", [key for key in KERNELS if key[1] in HERE], ids="-".join)
def test_a_peer_computes_what_the_reference_says(
    key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every output, in every element, within the operator's tolerance."""
    import torch  # noqa: PLC0415  # it may not be there

    uncompiled = torch.compile
    monkeypatch.setattr(  # what Dynamo captured, run as it is: compiling takes seconds
        torch, "compile", lambda step, **how: uncompiled(step, backend="eager", **how)
    )
    kernel, operator = KERNELS[key], OPERATORS[key[0]]
    for case in cases(kernel):
        if key not in CARD_ALONE and kernel.refusal(case) is None:
            compare(kernel, operator, case)


def compare(kernel: Kernel, operator: Operator, case: Case) -> None:
    """Run a peer once and hold its outputs against the reference."""
    import torch  # noqa: PLC0415  # it may not be there

    types = {"fp32": torch.float32, "bf16": torch.bfloat16, "int32": torch.int32}
    types |= {"int8": torch.int8, "uint8": torch.uint8, "fp8_e4m3": torch.uint8}
    arrays, given = {}, {}
    gathering = {arg.gathered_by for arg in operator.args_of(case)}
    for seed, arg in enumerate(operator.args_of(case)):
        dtype = types[arg.dtype_of(case)]
        if arg.role == "out":
            arrays[arg.name] = torch.full(arg.shape(case), 99, dtype=dtype)
            continue
        values = torch.from_numpy(filled(arg, case, seed)).to(dtype)
        kind = torch.int64 if arg.name in gathering else torch.float64
        given[arg.name] = values.to(kind).numpy()
        order = arg.stored_places(case.params)
        arrays[arg.name] = values.permute([order.index(place) for place in range(len(order))])
        arrays[arg.name] = arrays[arg.name].contiguous()
        assert arg.stored_shape(case) == tuple(arrays[arg.name].shape)
    asked = inspect.signature(operator.reference).parameters
    taken = {name: case.params[name] for name in operator.reference_params}
    taken |= {axis: np.arange(case.shape[axis]) for axis in asked if axis in case.shape}
    expected = operator.reference(**given, **taken)
    expected = expected if isinstance(expected, tuple) else (expected,)
    returned = kernel.function(**arrays, **case.params)
    outputs = operator.outputs_of(case)
    if returned is None:
        returned = tuple(arrays[arg.name] for arg in outputs)
    returned = returned if isinstance(returned, tuple) else (returned,)
    for arg, ours, theirs in zip(outputs, expected, returned, strict=True):
        dtype = arg.dtype_of(case)
        assert types[dtype] == theirs.dtype
        values = theirs.view(torch.float8_e4m3fn).float() if dtype == "fp8_e4m3" else theirs
        tolerance = operator.tolerance_for(dtype)
        np.testing.assert_allclose(
            values.double().numpy(),
            ours,
            rtol=tolerance.relative_fraction,
            atol=tolerance.absolute_fraction,
            err_msg=f"{case} {arg.name}",
        )
