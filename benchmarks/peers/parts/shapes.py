"""Cases that several peers can't take, with the reason."""

from solkit import Case

BLOCK, PAGE = 128, 16
MOST_KEYS_BYTES = 2**32  # of k and of v, each in fp32


def whole_blocks(case: Case) -> str | None:
    """Refuse scaling by blocks where the last block of a row is a part of one."""
    if case.params["scaling"] == "block" and case.shape["cols"] % BLOCK:
        return f"cols is {case.shape['cols']}: the formula views a row as blocks of {BLOCK}"
    return None


def whole_pages(case: Case) -> str | None:
    """Refuse a paged cache whose last page is a part of one."""
    if case.params["cache"] == "paged" and case.shape["kv_len"] % PAGE:
        return f"kv_len is {case.shape['kv_len']}: the formula gathers whole pages of {PAGE}"
    return None


def wide_copies(case: Case) -> str | None:
    """Refuse a cache of which copies in fp32, as the plain formula makes them, take too much."""
    shape = case.shape
    nbytes = 4 * shape["batch"] * shape["kv_len"] * shape["kv_heads"] * shape["head_dim"]
    if nbytes > MOST_KEYS_BYTES:
        return f"the formula's fp32 copies of k and v would take {nbytes / 1e9:.1f} GB each"
    return whole_pages(case)


def no_ties(case: Case) -> str | None:
    """Refuse 16-bit logits: among 64 or more of them the largest are often equal."""
    if case.dtype != "fp32":
        return (
            "torch.topk leaves open which of equal logits wins, and 16-bit logits are often equal"
        )
    return None
