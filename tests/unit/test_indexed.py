"""Integer arguments that index others: a shuffle that stays inside, or a word before any launch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solkit.declare.arg import Arg, Indices
from solkit.declare.operator import Operator
from solkit.errors import BadInput
from solkit.measure.buffers import make
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.indexed import refuse_outside, shuffled
from solkit.model import Case, Work

TOKEN = Arg("token", "tokens", dtype="int32", init=Indices(of="vocab"))
GATHER = Operator(
    name="gather",
    args=(TOKEN, Arg("table", "vocab cols", gathered_by="token"), Arg("y", "tokens cols", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda token, table: table[token.astype(np.int64)],
    independent=("tokens",),
)
DEVICE = CpuDevice()


def case_of(tokens: int, vocab: int = 8) -> Case:
    return Case("gather", "k", {"tokens": tokens, "vocab": vocab, "cols": 2}, "fp32")


def values(arg: Arg, tokens: int, vocab: int = 8, seed: int = 3) -> Any:
    assert isinstance(arg.init, Indices)
    return shuffled(arg, arg.init, case_of(tokens, vocab), seed)


def holding(index: Arg) -> Operator:
    return replace(GATHER, args=(index, *GATHER.args[1:]))


def test_as_many_entries_as_the_extent_name_each_index_once() -> None:
    """In an order that depends on the seed."""
    assert list(range(8)) == sorted(values(TOKEN, 8).tolist())
    assert values(TOKEN, 8).tolist() == values(TOKEN, 8).tolist()
    assert values(TOKEN, 1000, 1000).tolist() != values(TOKEN, 1000, 1000, seed=4).tolist()
    assert np.int32 == values(TOKEN, 8).dtype


@pytest.mark.parametrize(("tokens", "vocab"), [(3, 8), (8, 8), (20, 8), (7, 1)])
def test_min_of_count_and_extent_are_named(tokens: int, vocab: int) -> None:
    """So a work model can count the rows that a gather reads."""
    assert min(tokens, vocab) == len(np.unique(values(TOKEN, tokens, vocab)))


def test_each_nth_entry_is_a_hole_and_the_others_go_on_with_the_shuffle() -> None:
    """The fourth and the eighth of ten; the eight that are left name all eight indices."""
    held = values(replace(TOKEN, init=Indices(of="vocab", hole=-100, hole_every=4)), 10)
    assert [3, 7] == np.flatnonzero(held == -100).tolist()
    assert list(range(8)) == sorted(held[held >= 0].tolist())


def test_the_dim_that_is_indexed_may_be_a_quotient_or_a_product() -> None:
    """Pages of 16 entries, over all of a batch."""
    table = Arg("page_table", "batch kv_len/16", dtype="int32", init=Indices("batch*kv_len/16"))
    case = Case("any", "k", {"batch": 3, "kv_len": 40}, "fp32")
    assert isinstance(table.init, Indices)
    found = shuffled(table, table.init, case, 0)
    assert (3, 3) == found.shape
    assert len(np.unique(found)) == 8 == found.max() + 1  # 120 / 16, rounded up


def test_a_few_indices_of_a_long_dim_cost_no_shuffle_of_it() -> None:
    """Of all that int32 can name, sixteen, each once: 16 GiB and a minute otherwise."""
    held = values(replace(TOKEN, init=Indices(of="vocab")), 16, 2**31)
    assert 16 == len(np.unique(held))
    assert 0 <= held.min()


def test_more_indices_than_int32_names_are_refused() -> None:
    """What is too many, and which axis makes it so."""
    with pytest.raises(BadInput) as caught:
        values(replace(TOKEN, init=Indices(of="vocab*2")), 16, 2**30 + 1)
    assert (
        "'token' holds indices of vocab*2, which is 2147483650, and int32 can name 2147483648"
        in caught.value.message
    )
    assert "take a smaller vocab" == caught.value.remedy


def test_an_index_outside_is_told_before_anything_runs() -> None:
    """The worst entry, its place, and what would be inside."""
    with pytest.raises(BadInput) as caught:
        make(DEVICE, holding(replace(TOKEN, init=Indices(of="2*vocab"))), case_of(16), 3)
    held = values(replace(TOKEN, init=Indices(of="2*vocab")), 16)
    place = int(held.argmax())
    assert (
        f"token[tokens {place}] is 15, which points outside 'table': its vocab has the indices "
        "0 to 7; 8 of 16 entries of 'token' do"
    ) == caught.value.message
    assert "fill 'token' with Indices(of='vocab'); a hole is negative" == caught.value.remedy


def test_a_negative_hole_of_a_declaration_is_no_index() -> None:
    """Another negative value is one, outside, and so is a hole beyond the last row."""
    for hole in (-1, -100):
        arg = replace(TOKEN, init=Indices(of="vocab", hole=hole, hole_every=4))
        make(DEVICE, holding(arg), case_of(16), 3)
    beyond = replace(TOKEN, init=Indices(of="vocab", hole=12345, hole_every=4))
    with pytest.raises(BadInput, match=r"token\[tokens 3\] is 12345, .*; 4 of 16 entries"):
        make(DEVICE, holding(beyond), case_of(16), 3)
    array = np.array([0, 7, -2, 3], dtype=np.int32)
    with pytest.raises(BadInput, match=r"token\[tokens 2\] is -2, .*; 1 of 4 entries"):
        refuse_outside(DEVICE, GATHER, case_of(4), {"token": [array]})


def test_an_index_into_nothing_that_is_gathered_is_not_looked_at() -> None:
    """A label is compared with columns: what it may be is the operator's to say."""
    label = replace(GATHER, args=(TOKEN, replace(GATHER.args[1], gathered_by=""), GATHER.args[2]))
    refuse_outside(DEVICE, label, case_of(1), {"token": [np.array([99], dtype=np.int32)]})
