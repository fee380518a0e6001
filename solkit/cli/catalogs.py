"""Which declarations a command works on: the bundled ones, and with --load a stranger's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solkit.declare.catalog import Catalog


@contextmanager
def opened(loads: Sequence[Path]) -> "Iterator[Catalog]":
    """Yield the catalog; code of --load files runs in a worker, which ends with the block."""
    if not loads:
        from solkit.declare.catalog import LocalCatalog
        from solkit.declare.registry import bundled

        yield LocalCatalog(bundled())
        return
    from solkit.measure.bench import Bench, Settings

    with Bench(Settings(device="cpu", loads=tuple(loads))) as bench:
        yield bench.catalog
