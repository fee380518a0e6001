"""Products for the tests of wgmma's forms: those that are chosen, and those that only can be."""

from cards import H200

from solkit.declare.product import Product
from solkit.declare.wgmma import FORMS
from solkit.declare.wgmma_form import Layout, WgmmaForm
from solkit.model import Case

ADDED = Product(residual=True)
# What the kernel can and no case gets: parts of b, last columns among them, and of both operands;
# last columns where k is split or without others; k of four blocks.
OTHERS = (
    WgmmaForm(128, 128, cluster_m=2),
    WgmmaForm(128, 160, cluster_m=2),
    WgmmaForm(128, 80, split=2),
    WgmmaForm(64, 48),
    WgmmaForm(128, 192, cluster_m=2, cluster_n=2),
    WgmmaForm(64, 128, split=4),
    WgmmaForm(64, 64, cluster_m=2, split=2),
    WgmmaForm(128, 160, cluster_n=2, swapped=True),
    WgmmaForm(128, 144, cluster_n=2, swapped=True),
    WgmmaForm(64, 96, cluster_m=2, cluster_n=2, swapped=True),
    WgmmaForm(64, 64, split=4, swapped=True),
)
EVERY = tuple((form, nk) for form in (*FORMS, *OTHERS) for nk in (False, True))


def case(rows: int, depth: int, cols: int, weight: str = "kn", dtype: str = "bf16") -> Case:
    params = {"weight": weight, "alpha": 1.0, "beta": 1.0}
    return Case("matmul_add", "solkit", {"M": rows, "K": depth, "N": cols}, dtype, params)


def layout(form: WgmmaForm, *, nk: bool) -> Layout:
    """Return how a form lies in the shared memory of an H200."""
    found = form.layout(H200.shared_bytes_per_block, nk=nk)
    assert found is not None
    return found
