"""Forms of products by wgmma: their sizes as values, and that the device code has the same."""

import os

import pytest
from cards import H200
from wgmma_cases import ADDED, EVERY, case, layout

from solkit.declare.kernel import Launch
from solkit.declare.tensor_map import TensorMap
from solkit.declare.wgmma import launches_of
from solkit.declare.wgmma_form import ITEM_BYTES, STAGE_K, WgmmaForm, row_items
from solkit.measure.device import nvrtc
from solkit.resources import folder

SM_BYTES = 233_472  # of an H200's SM, of which each block has 1024 that it can't ask for


@pytest.mark.parametrize(
    ("form", "kn", "nk"),
    [
        (WgmmaForm(128, 256), (4, 2), (4, 2)),
        (WgmmaForm(256, 160), (4, 0), (4, 2)),
        (WgmmaForm(128, 320), (4, 0), (4, 0)),
        (WgmmaForm(128, 160), (5, 3), (6, 1)),
        (WgmmaForm(64, 96), (9, 2), (11, 1)),
        (WgmmaForm(128, 128), (7, 0), (7, 0)),
        (WgmmaForm(64, 64), (14, 0), (14, 0)),
        (WgmmaForm(128, 192), (5, 1), (5, 1)),
        (WgmmaForm(128, 64, split=2), (8, 1), (8, 1)),
        (WgmmaForm(128, 200, swapped=True), (5, 2), (5, 2)),
        (WgmmaForm(64, 200, swapped=True), (6, 5), (6, 5)),
        (WgmmaForm(64, 16, resident=2, swapped=True), (11, 1), (11, 1)),
        (WgmmaForm(128, 16, split=2, swapped=True), (12, 1), (12, 1)),
    ],
)
def test_a_form_takes_the_most_stages_then_the_most_slices_apart(
    form: WgmmaForm, kn: tuple[int, int], nk: tuple[int, int]
) -> None:
    """Of 227 KB: four stages of 48 KB leave 32 KB, two of the 8 KB slices of each warpgroup."""
    assert (kn, nk) == (layout(form, nk=False), layout(form, nk=True))


@pytest.mark.parametrize(
    ("form", "widths", "last", "bytes_kn"),
    [
        (WgmmaForm(128, 256), (256, 0), 0, (128 + 256) * 128),
        (WgmmaForm(128, 320), (256, 64), 0, (128 + 320) * 128),
        (WgmmaForm(256, 160), (160, 0), 32, (256 + 192) * 128),
        (WgmmaForm(64, 96), (96, 0), 32, (64 + 128) * 128),
        (WgmmaForm(64, 32), (32, 0), 32, (64 + 64) * 128),
        (WgmmaForm(128, 200, swapped=True), (200, 0), 0, (128 + 200) * 128),
    ],
)
def test_columns_that_fill_no_line_take_one_in_shared_memory(
    form: WgmmaForm, widths: tuple[int, int], last: int, bytes_kn: int
) -> None:
    """Only where the weight's lines run along the columns; one product reads up to 256 of all."""
    assert (widths, last) == (form.widths, form.last(nk=False))
    assert bytes_kn == form.stage_bytes(nk=False)
    assert 0 == form.last(nk=True)
    assert (form.bm + form.bn) * 128 == form.stage_bytes(nk=True)


@pytest.mark.parametrize(
    ("form", "columns", "slices"),
    [
        (WgmmaForm(128, 256), 64, 4),
        (WgmmaForm(256, 160), 32, 10),
        (WgmmaForm(128, 128, split=4), 32, 1),
        (WgmmaForm(64, 144), 16, 9),
        (WgmmaForm(128, 200, swapped=True), 40, 5),
        (WgmmaForm(64, 16, split=2, swapped=True), 8, 1),
    ],
)
def test_slices_are_the_widest_parts_of_what_a_block_stores(
    form: WgmmaForm, columns: int, slices: int
) -> None:
    """At most 64 columns; those of a tile as the output lies are rows that have a swizzle."""
    assert (columns, slices) == (form.slice_columns(nk=False), form.slices(nk=False))


@pytest.mark.parametrize(("form", "nk"), EVERY)
def test_a_form_fits_as_often_as_it_says(form: WgmmaForm, *, nk: bool) -> None:
    """Into what a block can ask for, and `resident` times into an SM."""
    used_bytes = form.shared_bytes(layout(form, nk=nk), nk=nk)
    assert used_bytes <= H200.shared_bytes_per_block
    assert form.resident * (used_bytes + 1024) <= SM_BYTES


@pytest.mark.parametrize(("form", "nk"), EVERY)
def test_no_further_stage_would_fit(form: WgmmaForm, *, nk: bool) -> None:
    """Not beside the slices that then must lie apart: those which two stages of tail don't hold."""
    stages, slice_bytes = layout(form, nk=nk).stages + 1, form.slice_bytes(nk=nk)
    of_stage = form.stage_bytes(nk=nk) // (form.warpgroups * slice_bytes)
    in_tail = 0 if form.split > 1 else 2 * of_stage
    apart = max(0, form.slices(nk=nk) - in_tail)
    needed_bytes = form.shared_bytes(
        layout(form, nk=nk)._replace(stages=stages, apart=apart), nk=nk
    )
    assert form.resident * (needed_bytes + 1024) > SM_BYTES


@pytest.mark.parametrize(("form", "nk"), EVERY)
def test_every_place_begins_where_its_swizzle_wants_it(form: WgmmaForm, *, nk: bool) -> None:
    """Stages and slices of 128-byte rows are whole kilobytes, others whole swizzled eights."""
    assert 0 == form.stage_bytes(nk=nk) % 1024
    assert 0 == form.slice_bytes(nk=nk) % 1024
    assert 0 == form.shared_bytes(layout(form, nk=nk), nk=nk) % 8


def test_a_form_that_does_not_fit_has_no_layout() -> None:
    """Two stages are the least, and a tile split in k keeps its slices beside them."""
    assert WgmmaForm(256, 256).layout(99 * 1024, nk=True) is None
    assert WgmmaForm(128, 256).layout(64 * 1024, nk=True) is None
    assert WgmmaForm(256, 160, resident=2).layout(232_448, nk=True) is None


def test_rows_of_a_box_are_the_longest_that_cut_the_columns() -> None:
    """Of 64, 32 or 16 items, which have a swizzle; else of 8."""
    assert [64, 64, 32, 32, 16, 8] == list(map(row_items, (64, 320, 32, 160, 144, 200)))


def asserted(form: WgmmaForm, *, nk: bool) -> dict[str, int]:
    """Return sizes that the device code must have, by its names for them."""
    held = layout(form, nk=nk)
    launch = launch_of(form, nk=nk)
    assert launch.args is not None
    _, b, b_last, _, out = (given for given in launch.args if isinstance(given, TensorMap))
    wide, rest = form.widths
    at_the_end = form.barrier_bytes(held.stages, nk=nk)
    return {
        "STAGES": held.stages,
        "APART": held.apart,
        "WARPGROUPS": form.warpgroups,
        "THREADS": launch.block[0],
        "BLOCKS": launch.cluster,
        "WIDE": wide,
        "REST": rest,
        "LAST": 0 if b_last == b else b_last.box[1],
        "STAGE_BYTES": form.stage_bytes(nk=nk),
        "LOADED_BYTES": (form.bm + form.bn) * STAGE_K * ITEM_BYTES,
        "SLICE": form.slice_columns(nk=nk),
        "SLICE_BYTES": form.slice_bytes(nk=nk),
        "SLICES": form.slices(nk=nk),
        "SLICE_SWIZZLE": out.swizzle_bytes,
        "BARRIERS_AT": launch.shared_bytes - at_the_end,
    }


def launch_of(form: WgmmaForm, *, nk: bool) -> Launch:
    """Return a form's launch, whose entry spells the type that the device code has of it."""
    (launch,) = launches_of(ADDED, case(586, 2560, 2560, "nk" if nk else "kn"), H200, form)
    return launch


def source(wrong_bytes: int = 0) -> str:
    """Return a kernel that compiles where every form has these sizes, barriers so much later."""
    lines = ['#include "wgmma_form.cuh"', "using namespace solkit;"]
    for number, (form, nk) in enumerate(EVERY):
        entry = launch_of(form, nk=nk).entry
        spelled = entry[entry.index("WgmmaForm<") : entry.index(">") + 1]
        lines.append(f"using Form{number} = {spelled};")
        lines += [
            f'static_assert(Form{number}::{name} == {size}, "{spelled} {name} {size}");'
            for name, size in asserted(form, nk=nk).items()
        ]
        barriers = f"{form.barrier_bytes(layout(form, nk=nk).stages, nk=nk) + wrong_bytes}"
        lines.append(
            f"static_assert(8 * (2 * Form{number}::STAGES + Form{number}::WARPGROUPS * "
            f'(1 + Form{number}::SLICES) + Form{number}::MAILBOXES) == {barriers}, "barriers");'
        )
    return "\n".join((*lines, 'extern "C" __global__ void nothing() {}'))


def compiled(text: str) -> nvrtc.Compilation:
    kernels = folder("kernels")
    return nvrtc.compile_source(
        text,
        name="forms.cu",
        entries=("nothing",),
        arch="sm_90a",
        include_dirs=(kernels / "include", kernels / "matmul"),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
)
def test_the_device_code_has_the_same_sizes() -> None:
    """static_asserts of every size of every form compile, and with one byte more they don't."""
    assert ["nothing"] == list(compiled(source()).functions)
    with pytest.raises(nvrtc.CompileError) as caught:
        compiled(source(wrong_bytes=1))
    assert "barriers" in caught.value.log
