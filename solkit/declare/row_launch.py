"""The launch of a kernel that holds rows in registers, as kernels/include/rows.cuh has them."""

from solkit.declare.geometry import RowLimits, ceil_div, row_layout, vector_items
from solkit.declare.kernel import Launch
from solkit.model import Case

LOOPED_BLOCK = 1024  # threads of a row that is too long for registers


def row_launch(
    case: Case,
    name: str,
    limits: RowLimits,
    *,
    args: tuple[str | int | float, ...] | None = None,
    more: str = "",
    block_more: str = "",
) -> Launch:
    """Return the one launch of a kernel over `rows` of `cols`.

    The source has three templates: `name` (threads, rows and chunks of a block, how many blocks an
    SM should hold and, where the limits say, how many chunks are asked for at once), `name`_cluster
    (a cluster of blocks a row) and `name`_looped (a row that no registers hold). more: what follows
    their sizes among the template arguments; block_more: what follows in the first of the three
    alone. args: the launch's.
    """
    rows, vec = case.shape["rows"], vector_items(case, "cols")
    vectors, vector_bytes = case.shape["cols"] // vec, vec * case.item_bytes
    layout = row_layout(vectors, rows, limits, vector_bytes=vector_bytes)
    if layout is None:
        form, sizes, grid, block = "_looped", f"{LOOPED_BLOCK}, {vec}", rows, LOOPED_BLOCK
    elif layout.ranks > 1:
        form, sizes = "_cluster", f"{layout.ranks}, {layout.threads}, {vec}, {layout.chunks}"
        grid, block = rows * layout.ranks, layout.threads
    else:
        held = f"{layout.threads}, {layout.rows}, {vec}, {layout.chunks}"
        form, sizes = "", f"{held}, {layout.resident}"
        if limits.at_once:
            sizes += f", {min(limits.at_once, layout.chunks)}"
        if block_more:
            sizes += f", {block_more}"
        grid, block = ceil_div(rows, layout.rows), layout.threads * layout.rows
    entry = f"{name}{form}<{', '.join(filter(None, (case.ctype, sizes, more)))}>"
    return Launch(entry, grid=(grid, 1, 1), block=(block, 1, 1), args=args)
