"""Products of few rows on a real device: every form against float64, ragged or not."""

from itertools import product

import numpy as np
import pytest
from endings import ALPHA, BOTH, ENDINGS, PLAIN, Ending

from solkit import Card, Case, Kernel, Launch
from solkit.declare.few_rows import (
    MOST_GEMV_ROWS,
    Form,
    GemvKn,
    GemvNk,
    Swapped,
    choose,
    launches_of,
)
from solkit.measure import buffers, check
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from compiling import compile_all  # noqa: E402  # needs CuPy

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
# Of a cluster and alone; warps that share K, and don't; every width of a tile; few and many stages.
FORMS: tuple[Form, ...] = (
    GemvNk(1, 8, 8, 1, 2),
    GemvNk(2, 4, 8, 2, 2),
    GemvNk(1, 5, 8, 4, 2, alone=False),
    GemvKn(32, 16, 8, 1),
    GemvKn(16, 8, 4, 2),
    GemvKn(8, 8, 2, 2, alone=False),
    GemvKn(4, 16, 1, 1),
    Swapped(32, 128, 2, 2, 4, 1),
    Swapped(64, 64, 4, 1, 6, 4),
    Swapped(64, 128, 2, 4, 4, 2, turned=True),
    Swapped(128, 64, 4, 2, 4, 8),
    Swapped(256, 64, 8, 1, 4, 8, turned=True),
)
# M, K, N: each extent with others; K and N that end within a tile, a piece, a warp's share.
SHAPES = (
    (1, 8, 8),
    (1, 2560, 2560),
    (2, 72, 2560),
    (2, 4104, 72),
    (3, 2560, 72),
    (3, 4104, 8),
    (4, 4104, 2560),
    (5, 2560, 8),
    (8, 4104, 72),
    (9, 72, 2560),
    (16, 8, 72),
    (16, 2560, 2560),
    (17, 4104, 8),
    (33, 72, 72),
    (33, 2560, 2560),
    (64, 8, 8),
    (64, 4104, 2560),
)


def kernel_of(ending: Ending, form: Form | None) -> Kernel:
    """Return the kernel of one form, or of that which a case gets on the card."""

    def launches(case: Case, card: Card) -> tuple[Launch, ...]:
        return launches_of(ending.product, case, form or choose(case, card))

    return ending.kernel(launches)


def layouts(form: Form) -> tuple[str, ...]:
    """Return the layouts of weights that a form is for."""
    return {GemvNk: ("nk",), GemvKn: ("kn",)}.get(type(form), ("nk", "kn"))


def cases(form: Form) -> list[Case]:
    """Return the cases of a form, all of one operator."""
    return [
        BOTH.case(shape, weight, dtype)
        for shape, dtype, weight in product(SHAPES, ("bf16", "fp16"), layouts(form))
        if shape[0] <= MOST_GEMV_ROWS or isinstance(form, Swapped)
    ]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device, what its forms need compiled (several at a time)."""
    first = CudaDevice(0)
    if first.card.compute_capability < 80:  # asynchronous copies
        pytest.skip("tensor cores of bf16 and asynchronous copies are for CC 8.0 and newer")
    pairs = [
        (kernel_of(BOTH, form), case)
        for form in FORMS
        if form.ranks <= first.card.most_cluster_blocks
        for case in cases(form)
    ]
    compile_all(first, pairs)
    return first


def compare(device: CudaDevice, ending: Ending, case: Case, form: Form | None) -> None:
    """Assert that a form computes the reference, and writes all of it, with two seeds."""
    operator = ending.operator
    program = device.prepare(kernel_of(ending, form), operator, case, folder("kernels") / "include")
    for seed in (0, 1):
        sets = buffers.make(device, operator, case, seed, most_sets=1)
        expected = check.expect(device, operator, case, sets.buffers(0), seed)
        sets.poison(device, 0)
        program.bind(sets.buffers(0))()
        device.synchronize()
        seen = check.compare(device, operator, case, sets.buffers(0), expected)
        assert 0 <= seen.error_fraction <= 1
        assert seen.compared_count > 0


@pytest.mark.parametrize(
    ("form", "case"),
    [(form, case) for form in FORMS for case in cases(form)],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_a_form_computes_what_its_reference_says(
    device: CudaDevice, form: Form, case: Case
) -> None:
    """With a bias and a residual, scaled; all outputs are written."""
    if form.ranks > device.card.most_cluster_blocks:
        pytest.skip(f"this card is sure of {device.card.most_cluster_blocks} blocks a cluster")
    compare(device, BOTH, case, form)


@pytest.mark.parametrize("weight", ["nk", "kn"])
@pytest.mark.parametrize("rows", [1, 3, 7, 40])
@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_every_epilogue_of_the_form_that_a_case_gets(
    device: CudaDevice, ending: Ending, rows: int, weight: str
) -> None:
    """What an epilogue lacks is a null pointer, which is not read."""
    compare(device, ending, ending.case((rows, 1032, 1000), weight), None)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_infinity_and_nan_stay_in_their_row_and_column(device: CudaDevice, form: Form) -> None:
    """An infinite weight makes its column infinite, NaN in x makes its row NaN, at K's very end."""
    if form.ranks > device.card.most_cluster_blocks:
        pytest.skip(f"this card is sure of {device.card.most_cluster_blocks} blocks a cluster")
    operator = PLAIN.operator
    for weight_layout in layouts(form):
        case = PLAIN.case((4, 1032, 1000), weight_layout, "fp16")
        program = device.prepare(
            kernel_of(PLAIN, form), operator, case, folder("kernels") / "include"
        )
        arrays = buffers.make(device, operator, case, 0, most_sets=1).buffers(0)
        arrays["x"][...] = cupy.float16(1)
        arrays["x"][2, -1] = cupy.float16(np.nan)
        weight = arrays["w"] if case.params["weight"] == "kn" else arrays["w"].T
        weight[...] = cupy.float16(0.5)
        weight[-1, -1] = cupy.float16(np.inf)
        device.poison(arrays["out"])
        program.bind(arrays)()
        device.synchronize()
        expected = np.full((4, 1000), ALPHA * 0.5 * 1032)
        expected[:, -1], expected[2] = np.inf, np.nan
        np.testing.assert_array_equal(expected, cupy.asnumpy(arrays["out"]).astype(np.float64))
