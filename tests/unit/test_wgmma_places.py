"""What boxes put into shared memory is what products read there, and results come out in place."""

from itertools import pairwise

import numpy as np
import pytest
from wgmma_cases import EVERY, layout
from wgmma_places import UPPER, Columns, Operands, Slice, held, slice_bytes_at, swizzled

from solkit.declare.wgmma_form import WgmmaForm

QUARTERS = range(4)  # of a stage: products of 16 k
LAST_COLUMNS = tuple((WgmmaForm(64, columns), False) for columns in (72, 144, 208, 296))


def test_a_swizzle_exchanges_chunks_of_a_line() -> None:
    """Of 128 bytes: line 1's chunk 0 and 1, line 5's 2 and 7; of 32 every second line's two."""
    assert [128 + 16, 5 * 128 + 7 * 16] == list(swizzled(np.array([128, 5 * 128 + 2 * 16]), 128))
    assert [0, 16, 128 + 16, 128] == list(swizzled(np.array([0, 16, 128, 128 + 16]), 32))
    assert [300] == list(swizzled(np.array([300]), 0))


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_copies_fill_a_stage(form: WgmmaForm, *, nk: bool) -> None:
    """Parts of all blocks together: each byte once; none is left but beside the last columns."""
    tokens = np.sort(Operands(form, nk).stage())
    beside = np.full(-form.last(nk=nk) % 64 * 64, -1)
    b = UPPER + np.arange(form.bn * 64)
    np.testing.assert_array_equal(np.concatenate([beside, np.arange(form.bm * 64), b]), tokens)


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_products_read_the_rows_of_a(form: WgmmaForm, *, nk: bool) -> None:
    """64 rows and 16 k each, wherever a's boxes and their parts put them."""
    operands = Operands(form, nk)
    memory = operands.stage()
    row, k = np.ogrid[:64, :16]
    for number in range(form.bm // 64):
        for quarter in QUARTERS:
            found = memory[operands.a_product(number, quarter) // 2]
            np.testing.assert_array_equal((number * 64 + row) * 64 + quarter * 16 + k, found)


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_products_read_the_columns_of_b(form: WgmmaForm, *, nk: bool) -> None:
    """The last ones among them, and those over 256, of a product of their own."""
    operands = Operands(form, nk)
    memory = operands.stage()
    wide, rest = form.widths
    for columns, first in ((wide, 0), (rest, wide)):
        col, k = np.ogrid[:columns, :16]
        for quarter in QUARTERS if columns else ():
            found = memory[operands.b_product(quarter, rest=bool(first)) // 2]
            wanted = UPPER + (first + col) * 64 + quarter * 16 + k
            np.testing.assert_array_equal(wanted, found)


@pytest.mark.parametrize("columns", [8, 64, 200, 256])
def test_every_sum_has_one_holder(columns: int) -> None:
    """Two registers of a lane for eight columns and eight rows: each item of 64 rows once."""
    count = np.zeros((64, columns), int)
    for warp in range(4):
        for upper in (0, 1):
            rows, cols = held(warp, upper)
            for eight in range(0, columns, 8):
                for item in (0, 1):
                    np.add.at(count, (rows, eight + cols + item), 1)
    assert (count == 1).all()


SLICES = [
    *(Slice(columns, swapped=False) for columns in (8, 16, 32, 64)),
    *(Slice(columns, swapped=True) for columns in range(8, 72, 8)),
]


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_lanes_exchange_with_a_slice_the_items_of_their_sums(part: Slice) -> None:
    """Ldmatrix and stmatrix of a lane touch what a box has there: a residual in, a result out."""
    box, touched = part.box(), []
    for warp in range(4):
        for eight, upper, addresses in part.matrices(warp):
            rows, cols = held(warp, upper)
            for item in (0, 1):
                wanted = box[rows, eight + cols + item]
                np.testing.assert_array_equal(wanted, addresses[:, item])
            touched.append(addresses.ravel())
    np.testing.assert_array_equal(np.sort(box.ravel()), np.sort(np.concatenate(touched)))
    np.testing.assert_array_equal(np.arange(64 * part.columns) * 2, np.sort(box.ravel()))


@pytest.mark.parametrize("part", SLICES, ids=str)
def test_each_matrix_of_a_slice_is_in_all_banks(part: Slice) -> None:
    """Its eight rows of 16 bytes lie in different banks: no access waits for another's."""
    for warp in range(4):
        for _, _, addresses in part.matrices(warp):
            assert 8 == len(set(addresses.ravel() % 128 // 16))


def columns_of(form: WgmmaForm, *, nk: bool) -> Columns:
    last = form.last(nk=nk)
    return Columns(form.bn - last, last)


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_columns_of_a_tile_are_a_permutation_of_its_own(form: WgmmaForm, *, nk: bool) -> None:
    """Tiles side by side cover the output once."""
    column = columns_of(form, nk=nk)
    for first in range(0, 8 * form.bn, form.bn):
        found = np.sort(column(first, np.arange(form.bn)))
        np.testing.assert_array_equal(first + np.arange(form.bn), found)


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_boxes_and_slices_are_of_neighbouring_columns(form: WgmmaForm, *, nk: bool) -> None:
    """Whichever come first in memory: the columns of whole boxes, or the last."""
    column, operands = columns_of(form, nk=nk), Operands(form, nk)
    own, part = form.bn // form.split, form.slice_columns(nk=nk)
    slices = [
        (block * own + col, part) for block in range(form.split) for col in range(0, own, part)
    ]
    boxes = [
        (box.first_row, box.rows) if operands.b_by_k else (box.first_item, box.items)
        for box in operands.b_boxes()
    ]
    for first in range(0, 8 * form.bn, form.bn):
        for col, count in (*slices, *boxes):
            found = column(first, col + np.arange(count))
            np.testing.assert_array_equal(column(first, np.array(col)) + np.arange(count), found)


@pytest.mark.parametrize(("form", "nk"), [*EVERY, *LAST_COLUMNS])
def test_columns_move_only_where_boxes_are_of_columns(form: WgmmaForm, *, nk: bool) -> None:
    """Rows of k are loaded by their column alone, which is then where it is in the tile."""
    if Operands(form, nk).b_by_k:
        col = np.arange(form.bn)
        for first in range(0, 4 * form.bn, form.bn):
            np.testing.assert_array_equal(first + col, columns_of(form, nk=nk)(first, col))


@pytest.mark.parametrize(
    ("form", "first", "begins"),
    [
        (WgmmaForm(128, 160), 0, (0, 128)),
        (WgmmaForm(128, 160), 160, (192, 160)),
        (WgmmaForm(128, 160), 320, (320, 448)),
        (WgmmaForm(64, 96), 96, (128, 96)),
    ],
)
def test_the_last_come_first_where_whole_boxes_then_begin_a_line(
    form: WgmmaForm, first: int, begins: tuple[int, int]
) -> None:
    """Every second tile of 160 columns begins in the middle of a line: its last ones end there."""
    column = columns_of(form, nk=False)
    assert begins == tuple(column(first, np.array([0, column.whole])))


@pytest.mark.parametrize(("form", "nk"), EVERY)
def test_slices_have_places_of_their_own(form: WgmmaForm, *, nk: bool) -> None:
    """Beside the ring as many as lie apart; others within a stage of it, none over another."""
    places = sorted(slice_bytes_at(form, nk=nk))
    assert form.warpgroups * form.slices(nk=nk) == len(places)
    for (tail, _, end), (next_tail, begin, _) in pairwise(places):
        assert tail < next_tail or end <= begin
    apart_bytes = form.warpgroups * layout(form, nk=nk).apart * form.slice_bytes(nk=nk)
    for tail, begin, end in places:
        assert 0 == begin % 1024
        assert end <= (apart_bytes if tail < 0 else form.stage_bytes(nk=nk))
