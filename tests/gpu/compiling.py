"""What the tests of a module need, compiled before the first of them."""

import os
from collections.abc import Sequence

from solkit.declare.kernel import Kernel
from solkit.measure.device.cuda.device import CudaDevice
from solkit.model import Case
from solkit.resources import folder


def compile_all(device: CudaDevice, pairs: Sequence[tuple[Kernel, Case]]) -> None:
    """Fill the cache of compiled code; of several processes of tests, each begins elsewhere.

    All need all. In one order they would compile the same thing at the same time, each for itself;
    so each finds in the cache what another had for its share.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    start = len(pairs) * worker // workers
    device.compile_ahead(
        [*pairs[start:], *pairs[:start]], folder("kernels") / "include", lambda _index: None
    )
