"""Two small operators, a card and a catalog of them, for the tests of planning and recording."""

from datetime import date

from solkit.declare.arg import Arg, Layout
from solkit.declare.catalog import LocalCatalog
from solkit.declare.kernel import Kernel, Launch
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry
from solkit.gpu import Gpu, Pipe, Source
from solkit.model import Case, Step, Work


def _scale_work(case: Case) -> Work:
    moved = case.shape["rows"] * case.shape["cols"] * case.item_bytes
    return Work(moved, moved, estimated_flop={"fp32": moved})


def _product_work(case: Case) -> Work:
    m, n, k = (case.shape[axis] for axis in "MNK")
    pipe = {"fp32": "fp32", "fp16": "fp16_tensor", "bf16": "bf16_tensor"}[case.dtype]
    return Work((m * k + k * n) * case.item_bytes, m * n * case.item_bytes, {pipe: 2 * m * n * k})


def _product_unfused(case: Case) -> tuple[Step, ...]:
    return (Step("product", _product_work(case)), Step("copy", Work(1000, 1000)))


def _launches(case: Case) -> tuple[Launch, ...]:
    return (Launch(f"f<{case.ctype}>", (1, 1, 1), (1, 1, 1)),)


def _refuse(case: Case) -> str | None:
    return "cols must be even" if case.shape["cols"] % 2 else None


SCALE = Operator(
    name="scale",
    args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
    work=_scale_work,
    reference=lambda x: x,
)
PRODUCT = Operator(
    name="product",
    args=(
        Arg("a", "M K"),
        Arg("w", "K N", layout=Layout("weight", {"kn": "K N", "nk": "N K"})),
        Arg("y", "M N", "out"),
    ),
    work=_product_work,
    unfused=_product_unfused,
    reference=lambda a, w: a @ w,
    params={"weight": ("kn", "nk"), "fast": (False, True)},
)
# A param that is named only where it is no 1.
SCALED = Operator(
    name="scaled",
    args=SCALE.args,
    work=_scale_work,
    reference=lambda x, alpha: alpha * x,
    params={"form": ("whole", "half"), "alpha": (1.0, 0.5)},
    unnamed_defaults=("alpha",),
)


def catalog() -> LocalCatalog:
    """Return a catalog of `scale` (kernels solkit, even) and `product` (kernel solkit)."""
    registry = Registry()
    registry.add(
        [
            SCALE,
            Kernel(name="solkit", operator=SCALE, source="s.cu", launches=_launches),
            Kernel(name="even", operator=SCALE, source="s.cu", launches=_launches, refuse=_refuse),
            PRODUCT,
            Kernel(
                name="solkit",
                operator=PRODUCT,
                source="p.cu",
                launches=_launches,
                min_compute_capability="8.0",
            ),
        ],
        where="small",
    )
    return LocalCatalog(registry)


SOURCE = Source("An invented data sheet", "https://example.com/sheet", date(2026, 1, 31), "read")
CARD = Gpu(
    id="example_100",
    name="Example GPU 100",
    vendor="nvidia",
    compute_capability="9.0",
    sm_count=100,
    dram_bytes=80 * 2**30,
    dram_published_bytes_per_s=2.0e12,
    l2_bytes=32 * 2**20,
    max_clock_hz=1.8e9,
    pipes={
        "fp32": Pipe(46.08e12, 256, 1.8e9),
        "bf16_tensor": Pipe(614.4e12, 4096, 1.5e9, accumulate="fp32"),
    },
    sources={"dram_bytes_per_s": SOURCE},
    absent_pipes=("fp16_tensor",),
)
