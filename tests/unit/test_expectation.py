"""The reference is computed whole where that is cheap, else on indices that tell most."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import DEVICE, buffers_of, case_of, checked, failure, operator, right
from hypothesis import given, settings
from hypothesis import strategies as st

from solkit.declare.arg import Arg, Bits, Indices, Layout, Normal, Uniform
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator, Tolerance
from solkit.declare.registry import load
from solkit.measure.check import CheckFailed, compare, expect
from solkit.measure.chosen import END_COUNT, _spread, choose
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.expectation import held
from solkit.model import Case, Work


def product(dtype: str = "fp32", **changes: Any) -> Operator:
    held_: dict[str, Any] = {
        "name": "product",
        "args": (
            Arg("a", "M K"),
            Arg("w", "K N", layout=Layout("weight", {"kn": "K N", "nk": "N K"})),
            Arg("y", "M N", "out"),
        ),
        "work": lambda case: Work(
            1, 1, {"fp32": 2 * case.shape["M"] * case.shape["N"] * case.shape["K"]}
        ),
        "reference": lambda a, w: a @ w,
        "params": {"weight": ("kn", "nk")},
        "independent": ("M", "N"),
        "tolerance": {dtype: Tolerance(1e-3, 1e-3)},
    }
    return Operator(**held_ | changes)


def product_case(m: int, n: int, k: int) -> Case:
    return Case("product", "k", {"M": m, "N": n, "K": k}, "fp32", {"weight": "nk"})


def test_a_small_case_is_compared_whole() -> None:
    """600,000 elements over all arguments; one row more, and rows are sampled."""
    assert {"rows": None, "cols": None} == choose(operator(), case_of(1000, 300), 0)
    assert choose(operator(), case_of(1001, 300), 0)["rows"] is not None


@pytest.mark.parametrize(("params", "alpha"), [({}, 1.0), ({"alpha": 0.5}, 0.5)])
def test_a_reference_gets_a_default_that_the_case_does_not_name(
    params: dict[str, Any], alpha: float
) -> None:
    """So does a Python kernel: the two agree, and the work model may ask for it as well."""
    declared = operator(
        reference=lambda x, alpha: alpha * x,
        params={"alpha": (1.0, 0.5)},
        unnamed_defaults=("alpha",),
        work=lambda case: Work(int(case.params["alpha"]) + 1, 1),
    )
    case = case_of(**params)
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 0)
    np.testing.assert_allclose(expected.outputs["y"].values, alpha * buffers["x"], rtol=1e-6)

    def scaled(x: Any, y: Any, alpha: float) -> None:
        y[...] = alpha * x

    assert checked(scaled, declared, case).error_fraction <= 1


def test_a_big_case_is_checked_on_sampled_rows_with_both_ends() -> None:
    """Tails and last tiles live at the ends; the rest is spread at random, by the seed."""
    declared, case = operator(), case_of(rows=4000, cols=1024)
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    chosen = expected.index["rows"]
    assert chosen is not None
    assert expected.index["cols"] is None
    assert {*range(8), *range(3992, 4000)} <= set(chosen.tolist())
    assert 292 == len(chosen)  # 600,000 elements in two arguments of 1024 columns
    assert "sampled 292 of 4000 rows, both ends among them" == expected.way
    again = expect(DEVICE, declared, case, buffers, 3).index["rows"]
    other = expect(DEVICE, declared, case, buffers, 4).index["rows"]
    assert chosen.tolist() == (again.tolist() if again is not None else None)
    assert chosen.tolist() != (other.tolist() if other is not None else None)
    right(buffers["x"], buffers["y"])
    assert 292 * 1024 == compare(DEVICE, declared, case, buffers, expected).compared_count


def test_long_rows_are_few_but_never_fewer_than_their_ends_and_eight() -> None:
    """24 rows of 128 K elements take a quarter of a second less than 100."""
    chosen = choose(operator(), case_of(rows=2050, cols=128_256), 0)["rows"]
    assert chosen is not None
    assert 24 == len(chosen)


def test_a_long_vector_is_sampled_along_its_only_axis() -> None:
    """A copy of ten million elements: one in each hundred is compared, and both ends."""
    declared = operator(
        args=(Arg("x", "n"), Arg("y", "n", "out")), independent=("n",), dtypes=("fp32",)
    )
    case = Case("twice", "k", {"n": 10**7}, "fp32")
    buffers = {"x": np.ones(10**7, np.float32), "y": np.full(10**7, 2.0, np.float32)}
    expected = expect(DEVICE, declared, case, buffers, 0)
    found = compare(DEVICE, declared, case, buffers, expected)
    assert 100_000 == found.compared_count
    assert "sampled 100000 of 10000000 n, both ends among them" == found.way
    chosen = expected.index["n"]
    assert chosen is not None
    assert 200 >= np.diff(chosen).max()  # no block of 256 threads is unseen


def test_a_product_is_sampled_along_both_of_its_free_axes() -> None:
    """Rows and columns are chosen where there are many, the inner axis stays whole."""
    declared, case = product(), product_case(1024, 768, 512)
    buffers = {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args}
    assert (768, 512) == buffers["w"].shape
    expected = expect(DEVICE, declared, case, buffers, 3)
    rows, cols = expected.index["M"], expected.index["N"]
    assert rows is not None
    assert cols is not None
    assert (len(rows), len(cols)) == expected.outputs["y"].values.shape
    np.matmul(buffers["a"], buffers["w"].T, out=buffers["y"])
    found = compare(DEVICE, declared, case, buffers, expected)
    assert len(rows) * len(cols) == found.compared_count
    assert (
        f"sampled {len(rows)} of 1024 M x {len(cols)} of 768 N, both ends among them" == found.way
    )
    buffers["y"][1023, 767] += 1.0
    with pytest.raises(CheckFailed, match=r"y\[M 1023, N 767\]"):
        compare(DEVICE, declared, case, buffers, expected)


@pytest.mark.parametrize(("m", "n", "k"), [(4096, 2560, 2560), (5120, 5120, 28672)])
def test_every_tile_of_a_product_is_looked_into(m: int, n: int, k: int) -> None:
    """128 rows by 128 columns: each has an index of both axes in it, up to 5,120 a side."""
    index = choose(product(), product_case(m, n, k), 0)
    assert index["K"] is None
    for axis, extent in (("M", m), ("N", n)):
        chosen = index[axis]
        assert chosen is not None
        assert set(range(-(-extent // 128))) == set((chosen // 128).tolist())


def test_many_flop_on_few_elements_are_sampled_too() -> None:
    """16 x 2560 outputs of 2560 products each: rows stay whole, columns do not."""
    index = choose(product(), product_case(16, 2560, 2560), 0)
    assert index["M"] is None
    assert index["N"] is not None


def test_an_operator_without_independent_axes_is_computed_whole() -> None:
    """Nothing of it can be left out, however big it is."""
    declared = product(independent=())
    assert dict.fromkeys(("M", "K", "N")) == choose(declared, product_case(900, 900, 900), 0)


def test_an_axis_that_is_short_stays_whole_beside_one_that_is_long() -> None:
    """Eight rows are all compared, of many columns a sample."""
    declared, case = operator(independent=("rows", "cols")), case_of(rows=8, cols=500_000)
    expected = expect(DEVICE, declared, case, buffers_of(declared, case), 3)
    assert expected.index["rows"] is None
    assert "sampled 37500 of 500000 cols, both ends among them" == expected.way


@settings(deadline=None)
@given(
    extent=st.integers(25, 10**10),
    count=st.integers(24, 5000),
    seed=st.integers(0, 2**32),
)
def test_sampled_indices_are_distinct_in_order_and_everywhere(
    extent: int, count: int, seed: int
) -> None:
    """Both ends, and no gap wider than two strata."""
    count = min(count, extent - 1)
    chosen = _spread(np.random.default_rng(seed), extent, count)
    gaps = np.diff(chosen)
    assert count == len(chosen)
    assert list(range(END_COUNT)) == chosen[:END_COUNT].tolist()
    assert list(range(extent - END_COUNT, extent)) == chosen[-END_COUNT:].tolist()
    assert gaps.min() >= 1
    assert gaps.max() <= 2 * math.ceil((extent - 2 * END_COUNT) / (count - 2 * END_COUNT))


def test_a_reference_gets_its_params() -> None:
    """By name, with the case's value."""
    declared = operator(lambda x, factor: factor * x, params={"factor": (2, 3)})

    def thrice(x: Any, y: Any, factor: int) -> None:
        del factor
        y[...] = 3 * x

    assert 0.01 > checked(thrice, declared, case_of(factor=3)).error_fraction
    assert "off by" in failure(thrice, declared=declared, case=case_of(factor=2)).message


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        ("returned 2 outputs, 1 are declared", lambda x: (x, x)),
        ("returned 'y' of shape (6,), declared is (6, 5) (rows cols)", lambda x: x.sum(axis=1)),
        ("returned 'y' of shape (5, 6), declared is (6, 5)", lambda x: x.T),
        ("returned 'y' of shape (), declared is (6, 5)", lambda x: x.sum()),
    ],
)
def test_a_reference_that_returns_something_else_is_named(
    words: str, reference: Callable[..., Any]
) -> None:
    """The fault is the operator's: the kernel has no verdict."""
    error = failure(right, declared=operator(reference))
    assert ("", True) == (error.verdict, words in error.message)


def test_one_array_for_two_outputs_is_named() -> None:
    """A reference that forgot an output."""
    args = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"), Arg("z", "rows cols", "out"))
    assert (
        "returned 1 outputs, 2 are declared" in failure(right, declared=operator(args=args)).message
    )


def test_the_distribution_of_every_input_is_said() -> None:
    """With what a fan-in divides by; outputs have none, in-place arguments do."""
    declared = operator(
        lambda x, w, b, s: (s, x + w + b),
        args=(
            Arg("x", "rows cols"),
            Arg("w", "rows cols", init=Normal(0.5, fan_in="cols")),
            Arg("b", "cols", init=Uniform(-1, 0.25)),
            Arg("s", "rows cols", "inout", init=Normal(fan_in="rows")),
            Arg("y", "rows cols", "out"),
        ),
    )
    expected = expect(DEVICE, declared, case_of(), buffers_of(declared, case_of()), 3)
    assert (
        "x normal(0, 1); w normal(0, 0.5/sqrt(cols=5)); b uniform(-1, 0.25); "
        "s normal(0, 1/sqrt(rows=6))"
    ) == expected.inputs


@pytest.mark.parametrize(
    ("dtype", "value", "seen"),
    [
        ("fp16", 65519.9, 65519.9),
        ("fp16", 65520.0, math.inf),
        ("fp16", -1e9, -math.inf),
        ("bf16", 3.39e38, 3.39e38),
        ("bf16", 3.4e38, math.inf),
        ("fp32", 3.4e38, 3.4e38),
        ("fp32", 1e39, math.inf),
        ("fp64", 1e308, 1e308),
    ],
)
def test_a_reference_beyond_the_dtype_is_infinite(dtype: str, value: float, seen: float) -> None:
    """What a dtype can't hold rounds to infinity in the kernel, so it must in the reference."""
    assert [seen] == list(held(np.array([value]), dtype))


def gather(**changes: Any) -> Operator:
    """Return a lookup: rows of a table by token, where a negative token gives zeros."""

    def reference(token: Any, table: Any) -> Any:
        row = token.astype(np.int64)
        return np.where(row[:, None] < 0, 0.0, table[np.maximum(row, 0)])

    held_: dict[str, Any] = {
        "name": "gather",
        "args": (
            Arg("token", "tokens", dtype="int32", init=Indices(of="vocab")),
            Arg("table", "vocab cols", gathered_by="token"),
            Arg("y", "tokens cols", "out"),
        ),
        "work": lambda _case: Work(1, 1),
        "reference": reference,
        "independent": ("tokens",),
    }
    return Operator(**held_ | changes)


def gather_case(tokens: int, vocab: int, cols: int) -> Case:
    return Case("gather", "k", {"tokens": tokens, "vocab": vocab, "cols": cols}, "fp32")


class Fetching(CpuDevice):
    """Notes how many elements of what dtype were fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[tuple[str, int]] = []

    def fetch(self, array: Any, dtype: str, index: Any) -> Any:
        """Note the count."""
        found = super().fetch(array, dtype, index)
        self.fetched.append((dtype, found.size))
        return found


def test_of_a_gathered_argument_only_the_named_rows_are_fetched() -> None:
    """Five of 100,000 rows; a row that is named twice is fetched once."""
    declared, case, device = gather(), gather_case(6, 100_000, 7), Fetching()
    token = np.array([90_000, 3, 3, -100, 99_999, 0], dtype=np.int32)
    table = np.arange(700_000, dtype=np.float32).reshape(100_000, 7)
    buffers = {"token": token, "table": table, "y": np.zeros((6, 7), np.float32)}
    expected = expect(device, declared, case, buffers, 0)
    assert [("int32", 6), ("fp32", 4 * 7)] == device.fetched
    assert "whole; 4 of 100000 rows of table by token" == expected.way
    wanted = table[np.maximum(token, 0)]
    wanted[3] = 0.0  # negative indices reach the reference as they are
    assert (wanted == expected.outputs["y"].values).all()


@pytest.mark.parametrize("order", ["vn", "nv"])
def test_a_gathered_square_is_cut_in_its_leading_dim_alone(order: str) -> None:
    """Rows are named, columns are not, though both are of one axis; however it is stored."""
    layout = Layout("order", {"vn": "vocab vocab 2", "nv": "2 vocab vocab"})
    table = Arg("table", "vocab vocab 2", gathered_by="token", layout=layout)
    y = Arg("y", "tokens vocab 2", "out")
    declared = gather(
        args=(gather().args[0], table, y),
        reference=lambda token, table: table[token.astype(np.int64)],
        params={"order": ("vn", "nv")},
    )
    case = Case("gather", "k", {"tokens": 2, "vocab": 5}, "fp32", {"order": order})
    held_ = np.arange(50, dtype=np.float32).reshape(5, 5, 2)
    stored = held_ if order == "vn" else np.moveaxis(held_, 2, 0)
    token = np.array([4, 1], dtype=np.int32)
    expected = expect(DEVICE, declared, case, {"token": token, "table": stored}, 0)
    assert held_[token].tolist() == expected.outputs["y"].values.tolist()


def test_only_the_rows_that_sampled_indices_name_count_as_elements() -> None:
    """A table of ten million entries is no reason to sample sixteen tokens."""
    assert {"tokens": None, "vocab": None, "cols": None} == choose(
        gather(), gather_case(16, 100_000, 128), 0
    )
    many = choose(gather(), gather_case(8192, 100_000, 1024), 0)["tokens"]
    assert many is not None
    assert 292 == len(many)  # 600,000 elements in 292 rows of 1024, of y and of the table


@pytest.mark.parametrize(("masking", "read_bytes"), [("none", 120), ("additive", 216)])
def test_the_lookup_of_the_docs_is_right(tmp_path: Path, masking: str, read_bytes: int) -> None:
    """Its kernel passes with the mask and without; 6 tokens name 6 of 8 rows of 4 floats."""
    text = (Path(__file__).parents[2] / "docs" / "write-a-kernel.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n([^`]*name=\"lookup\"[^`]*)```", text)
    (tmp_path / "lookup.py").write_text(block, encoding="utf-8")
    declared, kernel = load(tmp_path / "lookup.py")
    assert isinstance(declared, Operator)
    assert isinstance(kernel, Kernel)
    assert kernel.function is not None
    shape = {"tokens": 6, "vocab": 8, "cols": 4}
    case = Case("lookup", "mine", shape, "fp32", {"masking": masking})
    assert 0.02 > checked(kernel.function, declared=declared, case=case).error_fraction
    assert read_bytes == declared.work(case).read_bytes


def test_a_sampled_gather_is_right_and_a_wrong_row_is_named() -> None:
    """Indices are counted in the rows fetched: row 1021 is still the token's own."""
    declared, case = gather(), gather_case(2000, 500, 512)
    buffers = {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args}
    buffers["y"][...] = buffers["table"][buffers["token"]]
    expected = expect(DEVICE, declared, case, buffers, 3)
    assert 0.0 == compare(DEVICE, declared, case, buffers, expected).error_fraction
    buffers["y"][1999, 511] += 1.0
    with pytest.raises(CheckFailed, match=r"y\[tokens 1999, cols 511\]"):
        compare(DEVICE, declared, case, buffers, expected)


def paged() -> Operator:
    """Return a sum over a cache of pages, each head of each batch for itself."""
    return Operator(
        name="paged",
        args=(
            Arg("k", "batch*len/4 4 heads dim", gathered_by="page"),
            Arg("page", "batch len/4", dtype="int32", init=Indices(of="batch*len/4")),
            Arg("y", "batch heads dim", "out"),
        ),
        work=lambda _case: Work(1, 1),
        reference=lambda k, page: k[page.astype(np.int64)].sum(axis=(1, 2)),
        independent=("batch", "heads"),
    )


def test_pages_are_fetched_for_the_sampled_batches_alone() -> None:
    """A dim that is a product or quotient has the case's extent; its axes are sampled elsewhere."""
    declared = paged()
    case = Case("paged", "k", {"batch": 200, "len": 64, "heads": 5, "dim": 32}, "fp32")
    buffers = {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args}
    assert (3200, 4, 5, 32) == buffers["k"].shape
    expected = expect(DEVICE, declared, case, buffers, 3)
    assert (
        "sampled 96 of 200 batch, both ends among them; 1536 of 3200 rows of k by page"
    ) == expected.way
    buffers["y"][...] = buffers["k"][buffers["page"]].sum(axis=(1, 2))
    found = compare(DEVICE, declared, case, buffers, expected)
    assert 96 * 5 * 32 == found.compared_count
    assert "k normal(0, 1); page shuffle of batch*len/4=3200" == found.inputs


def cache_case(batch: int, length: int, heads: int) -> Case:
    shape = {"batch": batch, "len": length, "heads": heads, "dim": 128}
    return Case("paged", "k", shape, "fp32")


@pytest.mark.parametrize(
    ("batch", "length", "heads", "chosen"),
    [
        (1, 131_072, 8, (None, 2)),  # 16.8 M elements behind each head: the first and the last
        (256, 1024, 8, (7, 7)),  # 131,072 behind each of 7 x 7; 64 would be 8.4 M
        (64, 8192, 8, (2, 2)),
        (2, 65_536, 1, (None, None)),  # no fewer than both ends
    ],
)
def test_where_much_lies_behind_each_index_few_are_taken(
    batch: int, length: int, heads: int, chosen: tuple[int | None, int | None]
) -> None:
    """A cache of keys and values: 8 million elements at most, but the first and the last."""
    index = choose(paged(), cache_case(batch, length, heads), 0)
    taken = [index[axis] for axis in ("batch", "heads")]
    assert chosen == tuple(None if each is None else len(each) for each in taken)
    for axis, each in zip(("batch", "heads"), taken, strict=True):
        if each is not None:
            extent = cache_case(batch, length, heads).shape[axis]
            assert (0, extent - 1) == (each[0], each[-1])


@given(extent=st.integers(3, 10**6), count=st.integers(2, 23), seed=st.integers(0, 2**32))
def test_few_sampled_indices_keep_both_ends(extent: int, count: int, seed: int) -> None:
    """Distinct, in order, as many as asked for."""
    count = min(count, extent - 1)
    chosen = _spread(np.random.default_rng(seed), extent, count)
    assert count == len(chosen)
    assert (0, extent - 1) == (chosen[0], chosen[-1])
    assert (np.diff(chosen) > 0).all()


@pytest.mark.parametrize(
    ("dtype", "init", "words"),
    [
        ("uint8", Bits(), "x random bits"),
        ("int32", Indices("2*n", hole=-100, hole_every=16), "x shuffle of 2*n=16, each 16th -100"),
    ],
)
def test_integers_are_told_by_what_they_hold(dtype: str, init: Bits | Indices, words: str) -> None:
    """As the inputs of a check."""
    declared = Operator(
        name="any",
        args=(Arg("x", "n", dtype=dtype, init=init), Arg("y", "n", "out")),
        work=lambda _case: Work(1, 1),
        reference=lambda x: x,
    )
    case = Case("any", "k", {"n": 8}, "fp32")
    assert words == expect(DEVICE, declared, case, buffers_of(declared, case), 0).inputs
