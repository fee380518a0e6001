"""Products by wgmma on a real device: every form against float64, on every entry."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from endings import ALPHA, BOTH, ENDINGS, PLAIN, Ending

from solkit import Card, Case, Kernel, Launch
from solkit.declare.geometry import ceil_div
from solkit.declare.wgmma import CAPABILITY, FORMS, launches_of
from solkit.declare.wgmma_form import STAGE_K, WgmmaForm
from solkit.measure import buffers, check, chosen
from solkit.measure.expectation import Expectation
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from compiling import compile_all  # noqa: E402  # needs CuPy

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
INCLUDE = folder("kernels") / "include"
LAYOUTS, DTYPES = ("kn", "nk"), ("bf16", "fp16")
# M, K, N: ends within a tile, a slice, eight columns, a stage; k of one stage and of many.
SHAPES = (
    (1, 8, 8),
    (17, 72, 72),
    (130, 584, 264),
    (394, 1096, 1160),
    (586, 136, 520),
)
ANY = SHAPES[2]
# By every way that sums become results: slices in the ring; of another block's sums; transposed.
OF_EVERY_ENDING = (
    WgmmaForm(128, 256),
    WgmmaForm(128, 64, split=2),
    WgmmaForm(128, 200, swapped=True),
)
# Forms by their slices: beside the ring and in it, in two stages of it, in it alone; shared stages.
# On a card of few SMs a block makes many tiles of them, one after the other: with few k several at
# once are under way, with more the ring goes round within a tile.
OF_MANY_TILES = (
    WgmmaForm(128, 256),
    WgmmaForm(256, 160),
    WgmmaForm(128, 320),
    WgmmaForm(128, 128),
    WgmmaForm(64, 160),
    WgmmaForm(64, 64),
    WgmmaForm(128, 256, cluster_m=2),
    WgmmaForm(128, 152, cluster_n=2, swapped=True),
)
# No case gets them: other numbers of columns that fill no line of a [K, N] weight, with whole ones
# or none; by two blocks that share weight; by two that split k, where slices are of eight columns.
OF_LAST_COLUMNS = (
    WgmmaForm(64, 48),
    WgmmaForm(64, 80),
    WgmmaForm(64, 144),
    WgmmaForm(128, 96),
    WgmmaForm(128, 160, cluster_m=2),
    WgmmaForm(128, 80, split=2),
)
FEW_SMS = 4
DEPTHS = (8, 72, 200, 1096)
MANY_TILES = (712, 1288)  # M, N
GUARD_ITEMS = 8192  # on both sides of out


def fits(form: WgmmaForm, case: Case) -> bool:
    """Return whether each block that shares k has some."""
    return ceil_div(case.shape["K"], STAGE_K) >= form.split


def kernel_of(ending: Ending, form: WgmmaForm, sm_count: int = 0) -> Kernel:
    """Return the kernel of one form; on a card of so many SMs, if any are named."""

    def launches(case: Case, card: Card) -> tuple[Launch, ...]:
        on = replace(card, sm_count=sm_count or card.sm_count)
        return launches_of(ending.product, case, on, form)

    return ending.kernel(launches)


def cases(form: WgmmaForm) -> list[Case]:
    """Return the cases of a form, all of one operator."""
    every = (
        BOTH.case(shape, weight, dtype) for shape, dtype, weight in product(SHAPES, DTYPES, LAYOUTS)
    )
    return [case for case in every if fits(form, case)]


def examined() -> Iterator[tuple[Kernel, Case]]:
    """Yield a small case of each form and layout, all tiles on one SM, for benchmarks/sanitizer.py.

    Cases as small as the tool's get a few of the forms alone where the kernel chooses.
    """
    for form, weight in (*product(FORMS, LAYOUTS), *((form, "kn") for form in OF_LAST_COLUMNS)):
        yield kernel_of(BOTH, form, 1), BOTH.case(ANY, weight)


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    """Return the first CUDA device, what its forms need compiled; references are computed whole."""
    first = CudaDevice(0)
    if first.card.compute_capability != CAPABILITY:
        pytest.skip("wgmma is for CC 9.0 alone")
    every = product(FORMS, LAYOUTS, DTYPES)
    endings = product(OF_EVERY_ENDING, LAYOUTS, ENDINGS)
    pairs = [
        *((kernel_of(BOTH, form), BOTH.case(ANY, weight, dtype)) for form, weight, dtype in every),
        *((kernel_of(end, form), end.case(ANY, weight)) for form, weight, end in endings),
        *(
            (kernel_of(BOTH, form), BOTH.case(ANY, "kn", dtype))
            for form, dtype in product(OF_LAST_COLUMNS, DTYPES)
        ),
        *(
            (kernel_of(PLAIN, form), PLAIN.case(ANY, weight, "fp16"))
            for form, weight in product(FORMS, LAYOUTS)
        ),
    ]
    compile_all(first, pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen, "ELEMENT_COUNT", 10**8)
        patch.setattr(chosen, "WHOLE_FLOP", 10**12)
        yield first
    expected_of.cache_clear()


@cache
def expected_of(
    device: CudaDevice, ending: Ending, shape: tuple[int, int, int], weight: str, dtype: str
) -> tuple[dict[str, Any], Expectation]:
    """Return the inputs and the reference, which all forms share, with room for out."""
    case = ending.case(shape, weight, dtype)
    arrays = buffers.make(device, ending.operator, case, 0, most_sets=1).buffers(0)
    expected = check.expect(device, ending.operator, case, arrays, 0)
    assert expected.whole
    return arrays, expected


def run(device: CudaDevice, kernel: Kernel, case: Case, arrays: dict[str, Any]) -> None:
    """Run a kernel; what stands on both sides of out is left as it was."""
    operator = kernel.operator
    out = arrays["out"]
    guarded = cupy.empty(GUARD_ITEMS + out.size + GUARD_ITEMS, dtype=out.dtype)
    device.poison(guarded)
    inside = guarded[GUARD_ITEMS:-GUARD_ITEMS]
    arrays["out"] = inside.reshape(out.shape)
    device.prepare(kernel, operator, case, INCLUDE).bind(arrays)()
    device.synchronize()
    for beside in (guarded[:GUARD_ITEMS], guarded[-GUARD_ITEMS:]):
        assert bool((beside.view(cupy.uint8) == 0xFF).all())


def compare(
    device: CudaDevice, ending: Ending, case: Case, form: WgmmaForm, sm_count: int = 0
) -> None:
    """Assert that a form computes the reference, and writes all of out and nothing else."""
    shape = case.shape["M"], case.shape["K"], case.shape["N"]
    weight = str(case.params["weight"])
    inputs, expected = expected_of(device, ending, shape, weight, case.dtype)
    arrays = dict(inputs)
    run(device, kernel_of(ending, form, sm_count), case, arrays)
    seen = check.compare(device, ending.operator, case, arrays, expected)
    assert 0 <= seen.error_fraction <= 1
    assert case.shape["M"] * case.shape["N"] == seen.compared_count
    assert "" == check.changed_input(device, ending.operator, case, arrays, expected)


def named(value: object) -> str:
    """Return a form's or a case's name in a test's."""
    if isinstance(value, WgmmaForm):
        return "-".join(map(str, value))
    return str(value).replace(" ", "")


@pytest.mark.parametrize(
    ("form", "case"), [(form, case) for form in FORMS for case in cases(form)], ids=named
)
def test_a_form_computes_what_its_reference_says(
    device: CudaDevice, form: WgmmaForm, case: Case
) -> None:
    """With a bias and a residual, scaled."""
    compare(device, BOTH, case, form)


@pytest.mark.parametrize(
    ("form", "case"),
    [
        (form, case)
        for form in OF_LAST_COLUMNS
        for case in cases(form)
        if case.params["weight"] == "kn"
    ],
    ids=named,
)
def test_columns_that_fill_no_line_are_multiplied_with_the_others(
    device: CudaDevice, form: WgmmaForm, case: Case
) -> None:
    """Whether they come first in memory or last; some tiles have no others."""
    compare(device, BOTH, case, form)


@pytest.mark.parametrize("weight", LAYOUTS)
@pytest.mark.parametrize("ending", ENDINGS, ids=str)
@pytest.mark.parametrize("form", OF_EVERY_ENDING, ids=named)
def test_every_epilogue(device: CudaDevice, form: WgmmaForm, ending: Ending, weight: str) -> None:
    """What an epilogue lacks is a null pointer, which is not read, or a map that is not used."""
    compare(device, ending, ending.case(ANY, weight), form)


@pytest.mark.parametrize("ending", [PLAIN, BOTH], ids=str)
@pytest.mark.parametrize("weight", LAYOUTS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("form", OF_MANY_TILES, ids=named)
def test_a_block_makes_many_tiles(
    device: CudaDevice, form: WgmmaForm, depth: int, weight: str, ending: Ending
) -> None:
    """One after the other, six at least; with few k several are in the ring at once."""
    rows, columns = MANY_TILES
    case = ending.case((rows, depth, columns), weight, "fp16")
    few = replace(device.card, sm_count=FEW_SMS)
    assert form.tiles(case) > 4 * form.clusters(few)
    compare(device, ending, case, form, FEW_SMS)


@pytest.mark.parametrize("weight", LAYOUTS)
@pytest.mark.parametrize("form", FORMS, ids=named)
def test_infinity_and_nan_stay_in_their_row_and_column(
    device: CudaDevice, form: WgmmaForm, weight: str
) -> None:
    """An infinite weight makes its column infinite, NaN in x makes its row NaN, at K's very end."""
    rows, depth, columns = 136, 1032, 1000
    case = PLAIN.case((rows, depth, columns), weight, "fp16")
    arrays = buffers.make(device, PLAIN.operator, case, 0, most_sets=1).buffers(0)
    arrays["x"][...] = cupy.float16(1)
    arrays["x"][2, -1] = cupy.float16(np.nan)
    stored = arrays["w"] if weight == "kn" else arrays["w"].T
    stored[...] = cupy.float16(0.5)
    stored[-1, -1] = cupy.float16(np.inf)
    run(device, kernel_of(PLAIN, form), case, arrays)
    expected = np.full((rows, columns), ALPHA * 0.5 * depth)
    expected[:, -1], expected[2] = np.inf, np.nan
    np.testing.assert_array_equal(expected, cupy.asnumpy(arrays["out"]).astype(np.float64))
