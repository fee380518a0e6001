"""Every form of the products on Hopper's tensor cores compiles, without a GPU."""

import os
from itertools import product

import pytest
from cards import H200

from solkit.declare.product import ACTIVATIONS, Product
from solkit.declare.wgmma import FORMS, launches_of
from solkit.declare.wgmma_form import WgmmaForm
from solkit.measure.device import nvrtc
from solkit.model import Case
from solkit.resources import folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
    ),
]

SOURCE = folder("kernels") / "matmul" / "matmul.cu"
ADD = Product(residual=True)
EVERY = (
    Product(),
    Product(bias=True),
    ADD,
    Product(bias=True, residual=True),
    Product(bias=True, gelu=True),
)
# By every way that sums become results: slices in the ring; of another block's sums; transposed.
OF_EVERY_PRODUCT = (
    WgmmaForm(128, 256),
    WgmmaForm(128, 64, split=2),
    WgmmaForm(128, 200, swapped=True),
)
# Six words of one epilogue: 128 x 200, fp16, GELU by tanh; three of what 256 x 152 beside another
# loads. All others have none.
SPILL_ALLOWANCE_BYTES = 24


def entries(form: WgmmaForm) -> tuple[str, ...]:
    """Return the functions of a form for both types and layouts."""
    shape = {"M": 512, "N": 512, "K": 512}
    found = []
    for declared, dtype, weight in product(
        EVERY if form in OF_EVERY_PRODUCT else (ADD,), ("bf16", "fp16"), ("kn", "nk")
    ):
        for activation in ACTIVATIONS if declared.gelu else ("",):
            params = {"weight": weight, "alpha": 1.0, "beta": 1.0, "form": activation}
            case = Case("any", "solkit", shape, dtype, params)
            (launch,) = launches_of(declared, case, H200, form)
            found.append(launch.entry)
    return tuple(found)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))
def test_a_form_compiles_without_spills_and_complaints(form: WgmmaForm) -> None:
    """A complaint would be of products that wait for each other."""
    if 90 not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no sm_90a")
    wanted = entries(form)
    compiled = nvrtc.compile_source(
        SOURCE.read_text(encoding="utf-8"),
        name=str(SOURCE),
        entries=wanted,
        arch="sm_90a",
        include_dirs=(folder("kernels") / "include", SOURCE.parent),
    )
    assert set(wanted) == set(compiled.functions)
    spilled = {
        name: info.spill_bytes
        for name, info in compiled.functions.items()
        if info.spill_bytes is None or info.spill_bytes > SPILL_ALLOWANCE_BYTES
    }
    assert {} == spilled
    assert [] == [text for info in compiled.functions.values() for text in info.warnings]


def test_forms_of_every_product_are_among_those_that_are_chosen() -> None:
    """Else they would be compiled for fewer products than are meant, in silence."""
    assert set(OF_EVERY_PRODUCT) <= set(FORMS)
