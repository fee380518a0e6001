"""Where kernels/matmul/wgmma_tiles.cuh puts items in shared memory, and what reads them there.

Writers: boxes with their swizzle, as the load warps place them, and stmatrix. Readers: descriptors
by the layouts that wgmma knows, boxes that are stored, ldmatrix. Addresses are in bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from wgmma_cases import layout

from solkit.declare.wgmma_form import STAGE_K, WgmmaForm

Array = np.ndarray
LANES, UPPER = np.arange(32), 1 << 20  # tokens of b lie above those of a


def swizzled(address: Array, swizzle_bytes: int) -> Array:
    """Return where a byte is, as tensor_map.cuh says: chunks of 16 XORed with the line of 128."""
    chunks = max(swizzle_bytes - 16, 0)
    return address ^ (address >> 3 & chunks)


@dataclass(frozen=True)
class Box:
    """A copy's place: rows of items at an address, and the tile's index at which it begins."""

    at: int
    rows: int
    items: int
    swizzle_bytes: int
    first_row: int
    first_item: int

    def addresses(self) -> Array:
        """Return those of all items [rows, items]."""
        assert 0 == self.at % max(128, 8 * self.swizzle_bytes)
        assert self.items * 2 <= (self.swizzle_bytes or 16)
        row, item = np.ogrid[: self.rows, : self.items]
        row_bytes = self.swizzle_bytes or self.items * 2  # all of it, however few the items
        return swizzled(self.at + row * row_bytes + item * 2, self.swizzle_bytes)

    def row_numbers(self) -> Array:
        """Return those of the tile, a column for addresses()."""
        return self.first_row + np.arange(self.rows)[:, None]

    def item_numbers(self) -> Array:
        """Return those of the tile, a row for addresses()."""
        return self.first_item + np.arange(self.items)[None, :]


@dataclass(frozen=True)
class Operands:
    """The operands of a form in a stage: each a matrix of 64 k."""

    form: WgmmaForm
    nk: bool

    @property
    def a_by_k(self) -> bool:
        """Whether rows of a's boxes are of k."""
        return not self.form.swapped or self.nk

    @property
    def b_by_k(self) -> bool:
        """Whether rows of b's boxes are of k."""
        return self.form.swapped or self.nk

    @property
    def b_at(self) -> int:
        """Where b begins."""
        return self.form.bm * STAGE_K * 2

    @property
    def rest_at(self) -> int:
        """Where the columns of the second product begin."""
        return self.b_at + self.form.widths[0] * STAGE_K * 2

    def a_boxes(self) -> Iterator[Box]:
        """Yield the parts that the blocks beside each other load, (row, k) or (k, row)."""
        rows, depth = self.form.bm // self.form.cluster_n, STAGE_K // self.form.cluster_n
        for part in range(self.form.cluster_n):
            if self.a_by_k:
                yield Box(part * rows * 128, rows, STAGE_K, 128, part * rows, 0)
                continue
            for row in range(0, self.form.bm, 64):
                at = (row + part * depth) * 128
                yield Box(at, depth, 64, 128, part * depth, row)

    def b_boxes(self) -> Iterator[Box]:
        """Yield the parts that the blocks above each other load, (column, k) or (k, column)."""
        last, shared = self.form.last(nk=self.nk), self.form.cluster_m
        columns, depth = self.form.bn // shared, STAGE_K // shared
        boxes = 2 if columns > 256 else 1
        for part in range(shared):
            if self.b_by_k:
                for box in range(boxes):
                    col = part * columns + box * (columns // boxes)
                    yield Box(self.b_at + col * 128, columns // boxes, STAGE_K, 128, col, 0)
                continue
            k, whole = part * depth, self.form.bn - last
            for col in range(0, whole, 64):
                yield Box(self.b_at + col * 128 + k * 128, depth, 64, 128, k, col)
            if last:
                yield Box(self.b_at + whole * 128 + k * 128, depth, last, 128, k, whole)

    def stage(self) -> Array:
        """Return a stage after all copies: for every two bytes the token of an item."""
        memory = np.full(self.form.stage_bytes(nk=self.nk) // 2, -1)
        for boxes, by_k, first in (
            (self.a_boxes(), self.a_by_k, 0),
            (self.b_boxes(), self.b_by_k, UPPER),
        ):
            for box in boxes:
                place = box.addresses() // 2
                assert (memory[place] == -1).all(), "two copies to one place"
                rows, items = box.row_numbers(), box.item_numbers()
                memory[place] = first + (rows * 64 + items if by_k else items * 64 + rows)
        return memory

    def a_product(self, number: int, quarter: int) -> Array:
        """Return the addresses [64, 16] at which a product of 64 rows reads a."""
        start = number * 64 * 128
        if self.a_by_k:
            return by_k(start + quarter * 32, 64)
        return by_rows(start + quarter * 16 * 128, 0, 64)

    def b_product(self, quarter: int, *, rest: bool) -> Array:
        """Return the addresses [columns, 16] at which a product reads b."""
        columns = self.form.widths[rest]
        start = self.rest_at if rest else self.b_at
        if self.b_by_k:
            return by_k(start + quarter * 32, columns)
        return by_rows(start + quarter * 16 * 128, STAGE_K * 128, columns)


def by_k(start: int, count: int) -> Array:
    """Return K-major addresses [count, 16]: rows of 128 bytes, one after the other."""
    row, k = np.ogrid[:count, :16]
    return swizzled(start + row * 128 + k * 2, 128)


def by_rows(start: int, leading: int, count: int) -> Array:
    """Return MN-major addresses [count, 16]: a row of 128 bytes is 64 rows or columns at one k.

    The next k follow one after the other; the next rows or columns at `leading`.
    """
    row, k = np.ogrid[:count, :16]
    return swizzled(start + row % 64 * 2 + row // 64 * leading + k * 128, 128)


@dataclass(frozen=True)
class Slice:
    """A slice of the output, 64 rows of a tile, in shared memory."""

    columns: int
    swapped: bool

    @property
    def swizzle_bytes(self) -> int:
        """Of its box; a row of eight items has none."""
        if self.swapped:
            return 128
        return 2 * self.columns if self.columns >= 16 else 0

    def box(self) -> Array:
        """Return the addresses [64, columns] that a copy moves to or from the output."""
        rows, items = (self.columns, 64) if self.swapped else (64, self.columns)
        found = Box(0, rows, items, self.swizzle_bytes, 0, 0).addresses()
        return found.T if self.swapped else found

    def matrices(self, warp: int) -> Iterator[tuple[int, int, Array]]:
        """Yield columns, lower or upper rows, and addresses [32, 2] of a lane's two items.

        As ldmatrix and stmatrix take them from the lanes' addresses in finish_slice.
        """
        each = 4 if self.columns % 16 == 0 else 2
        matrix, warp_row = LANES // 8, warp * 16
        if self.swapped:
            row, col = matrix // 2 * 8 + LANES % 8, warp_row + matrix % 2 * 8
        else:
            row, col = warp_row + matrix % 2 * 8 + LANES % 8, matrix // 2 * 8
        row_items = 64 if self.swapped else self.columns
        place = swizzled((row * row_items + col) * 2, self.swizzle_bytes)
        for i in range(self.columns // (each * 4)):
            named = place + i * each * 512 if self.swapped else place ^ (i * 32)
            for j in range(each):
                rows = named[8 * j : 8 * j + 8]  # of the matrix
                if self.swapped:
                    first = rows[LANES % 4 * 2] + LANES // 4 * 2
                    second = rows[LANES % 4 * 2 + 1] + LANES // 4 * 2
                else:
                    first = rows[LANES // 4] + LANES % 4 * 4
                    second = first + 2
                yield i * each * 4 + j // 2 * 8, j % 2, np.stack([first, second], axis=1)


def held(warp: int, upper: int) -> tuple[Array, Array]:
    """Return row and first column [32] of a lane's two sums of eight columns: wgmma.cuh's d."""
    return 16 * warp + LANES // 4 + 8 * upper, LANES % 4 * 2


@dataclass(frozen=True)
class Columns:
    """The columns of a tile in memory: column() of wgmma_block.cuh."""

    whole: int
    last: int

    def __call__(self, first: int, col: Array) -> Array:
        """Return where columns of a tile that begins at `first` are."""
        last_first = self.last > 0 and (first + self.last) % 64 == 0
        moved = np.where(col < self.whole, col + self.last, col - self.whole)
        return first + (moved if last_first else col)


def slice_bytes_at(form: WgmmaForm, *, nk: bool) -> Iterator[tuple[int, int, int]]:
    """Yield tail (-1: beside the ring), first byte there and last byte of every slice of a tile."""
    apart, size = layout(form, nk=nk).apart, form.slice_bytes(nk=nk)
    in_stage = form.stage_bytes(nk=nk) // (form.warpgroups * size)
    for group in range(form.warpgroups):
        for slice_ in range(form.slices(nk=nk)):
            if slice_ < apart:
                tail, number = -1, group * apart + slice_
            else:
                tail = (slice_ - apart) // in_stage
                number = group * in_stage + (slice_ - apart) % in_stage
            yield tail, number * size, (number + 1) * size
