"""Activity records -> samples: a record belongs to the call that caused it, wherever it ran."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.measure.device.base import NothingRan
from solkit.measure.device.records import (
    EARLY,
    HOLD,
    LATE,
    STAMP,
    Record,
    RecordsLost,
    places,
    sample_of,
    stray,
    windows,
)
from solkit.measure.diagnosis import verdict_of


class Stream:
    """Writes down what a GPU does, one after the other; the driver numbers every call."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.at_ns, self.number = 1_000_000, 100

    def ran(self, name: str, long_ns: int = 500, *, start_ns: int | None = None) -> Record:
        """Run something at the end of the stream, or at a time of its own beside it."""
        start = self.at_ns if start_ns is None else start_ns
        self.number += 3  # the driver numbers what is not recorded, too
        self.records.append(Record(name, start, start + long_ns, self.number))
        if start_ns is None:
            self.at_ns = start + long_ns + 100
        return self.records[-1]

    def batch(self, *calls: Sequence[str], flush: str = "") -> None:
        """Run a batch of calls, each a list of kernels, as they are queued with stamps."""
        self.ran(HOLD, 10_000)
        if not flush:
            self.ran(STAMP)
        for call in calls:
            if flush:
                self.ran(flush, 80_000)
                self.ran(STAMP)
            for kernel in call:
                self.ran(kernel)
            self.ran(STAMP)


def names(parts: list[list[Record]]) -> list[list[str]]:
    return [[record.name for record in part] for part in parts]


orders = st.randoms(use_true_random=False)
spans = st.tuples(st.integers(0, 10**9), st.integers(0, 10**6))
calls_of_kernels = st.lists(
    st.lists(st.sampled_from(["a", "b", "", "copy"]), max_size=4), min_size=1
)


def test_neighbours_share_a_stamp() -> None:
    """Three calls, four stamps."""
    assert [(0, 1), (1, 2), (2, 3)] == places(3, flushed=False)


def test_a_flush_lies_between_two_stamps_of_its_own() -> None:
    """After one call's last stamp and before the next one's first: in no window."""
    assert [(0, 1), (2, 3), (4, 5)] == places(3, flushed=True)
    stream = Stream()
    stream.batch(["mine"], ["mine"], ["mine"], flush="flush")
    assert [["mine"]] * 3 == names(windows(stream.records, places(3, flushed=True)))


def test_every_kernel_copy_and_fill_of_a_call_is_in_its_window() -> None:
    """Several kernels, copies (which have no name), and calls of different lengths."""
    stream = Stream()
    stream.batch(["first", "", "second"], ["first"], [])
    found = windows(stream.records, places(3, flushed=False))
    assert [["first", "", "second"], ["first"], []] == names(found)


def test_a_repeated_kernel_is_never_lost() -> None:
    """The same name, bytes and length three times over in one call: three records."""
    stream = Stream()
    stream.batch(["k", "k", "k"], ["k"])
    assert [3, 1] == [len(part) for part in windows(stream.records, places(2, flushed=False))]


def test_work_on_another_stream_belongs_to_the_call_that_caused_it() -> None:
    """By its number: at its time another call already runs."""
    stream = Stream()
    stream.ran(STAMP)
    stream.ran("first")
    side = stream.ran("side", 50_000, start_ns=stream.at_ns + 20_000)
    stream.ran(STAMP)
    stream.ran("second")
    stream.ran(STAMP)
    found = windows(stream.records, places(2, flushed=False))
    assert [["first", "side"], ["second"]] == names(found)
    assert (side.end_ns - found[0][0].start_ns) * 1e-9 == sample_of(found[0], None).time_s


@given(calls=calls_of_kernels, order=orders, flushed=st.booleans())
def test_the_order_in_which_records_arrive_means_nothing(
    calls: list[list[str]], order: Random, *, flushed: bool
) -> None:
    """Buffers of several streams come as they like; each call still gets what it caused."""
    stream = Stream()
    stream.batch(*calls, flush="flush" if flushed else "")
    order.shuffle(stream.records)
    assert calls == names(windows(stream.records, places(len(calls), flushed=flushed)))


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_stamp_means_that_records_were_lost(missing: int) -> None:
    """No window is guessed at; the remedy names the timer that needs no records."""
    stream = Stream()
    stream.batch(["k"], ["k"])
    stamps = [record for record in stream.records if record.name == STAMP]
    stream.records.remove(stamps[missing])
    with pytest.raises(RecordsLost, match="2 of 3 stamps were recorded") as caught:
        windows(stream.records, places(2, flushed=False))
    assert "--timer event_blocked" in caught.value.remedy


def test_a_stamp_too_many_is_refused_as_well() -> None:
    """A call that is timed while another batch is: its windows would be those of the other."""
    stream = Stream()
    stream.batch(["k", STAMP, "k"])
    with pytest.raises(RecordsLost, match="3 of 2 stamps were recorded"):
        windows(stream.records, places(1, flushed=False))


def test_no_records_at_all_are_lost_records() -> None:
    """The stamps are missing, so it is not the call that ran nothing."""
    with pytest.raises(RecordsLost, match="0 of 2 stamps"):
        windows([], places(1, flushed=False))


def test_one_kernel_is_its_end_less_its_start() -> None:
    """No busy time beside it; the clock is handed on."""
    sample = sample_of([Record("k", 1000, 1640, 1)], 1.98e9)
    assert (pytest.approx(640e-9), 1.98e9, None) == (sample.time_s, sample.sm_hz, sample.busy_s)


@pytest.mark.parametrize(
    ("span_ns", "busy_ns", "records"),
    [
        (1000, 800, [(0, 500), (700, 1000)]),  # a gap between two
        (1000, 1000, [(0, 600), (400, 1000)]),  # side by side
        (1000, 1000, [(0, 1000), (200, 300)]),  # one within the other
        (1000, 1000, [(0, 500), (500, 1000)]),  # end to end
        (1000, 700, [(600, 1000), (0, 300)]),  # the later one first
        (1000, 500, [(0, 200), (100, 300), (800, 900), (850, 1000)]),
        (500, 500, [(0, 500), (0, 500)]),  # the same twice is not twice as long
    ],
)
def test_several_kernels_have_a_span_and_a_busy_time(
    span_ns: int, busy_ns: int, records: list[tuple[int, int]]
) -> None:
    """From the first start to the last end, and the time in which at least one ran."""
    moved = [Record("k", 9000 + start, 9000 + end, 1) for start, end in records]
    sample = sample_of(moved, None)
    assert pytest.approx(span_ns * 1e-9) == sample.time_s
    assert pytest.approx(busy_ns * 1e-9) == sample.busy_s


@given(st.lists(spans, min_size=2))
def test_busy_is_never_longer_than_the_span_nor_shorter_than_any_record(
    parts: list[tuple[int, int]],
) -> None:
    """For any records; and never longer than all of them together."""
    records = [
        Record("k", 1 + start, 1 + start + long, number)
        for number, (start, long) in enumerate(parts)
    ]
    sample = sample_of(records, None)
    assert sample.busy_s is not None
    assert max(long for _, long in parts) * 1e-9 <= sample.busy_s <= sample.time_s
    assert sample.busy_s <= sum(long for _, long in parts) * 1e-9


@given(parts=st.lists(spans, min_size=2), order=orders, later=st.integers(0, 2**60))
def test_a_sample_depends_on_neither_order_nor_time_of_day(
    parts: list[tuple[int, int]], order: Random, later: int
) -> None:
    """Nanoseconds since 1970 fill 61 bits: nothing is lost in a float."""
    moved = [Record("k", 1 + start + later, 1 + start + later + long, 1) for start, long in parts]
    order.shuffle(moved)
    still = [Record("k", 1 + start, 1 + start + long, 1) for start, long in parts]
    assert sample_of(still, None) == sample_of(moved, None)


@pytest.mark.parametrize(("start_ns", "end_ns"), [(0, 0), (0, 500), (800, 500), (800, 0)])
def test_a_record_without_its_times_is_no_short_kernel(start_ns: int, end_ns: int) -> None:
    """CUPTI writes zeros where it could not have them: the batch is lost, not quick."""
    good = Record("k", 700, 900, 1)
    with pytest.raises(RecordsLost, match="has no times"):
        sample_of([good, Record("k", start_ns, end_ns, 1)], None)


def test_a_call_without_records_ran_nothing() -> None:
    """Its own verdict, and a remedy for whoever kept a result."""
    with pytest.raises(NothingRan, match="no kernel ran") as caught:
        sample_of([], 1.98e9)
    assert "no_kernel" == verdict_of(caught.value)
    assert "launch the kernel in each call" in caught.value.remedy


def held() -> Stream:
    """Return a stream that was blocked until 1010 us, and opened its window."""
    stream = Stream()
    stream.ran(HOLD, 10_000)
    stream.ran(STAMP)
    return stream


def test_work_in_stream_order_is_no_stray() -> None:
    """It begins when the stream may run and ends before the stamp behind it."""
    stream = held()
    stream.ran("first")
    stream.ran("second")
    stream.ran(STAMP)
    assert "" == stray(stream.records, (0, 1))


def test_work_beside_the_stream_that_it_waits_for_is_no_stray() -> None:
    """Forked after the stream was let go, joined before the stamp: its span holds it."""
    stream = held()
    first = stream.ran("first", 5000)
    stream.ran("side", 1000, start_ns=first.start_ns + 500)
    stream.ran(STAMP)
    assert "" == stray(stream.records, (0, 1))


def test_work_that_begins_while_the_stream_is_blocked_is_early() -> None:
    """It was not ordered behind the stream: another one runs it."""
    stream = held()
    stream.ran("mine")
    stream.ran("side", 100, start_ns=1_005_000)
    stream.ran(STAMP)
    assert EARLY == stray(stream.records, (0, 1))


def test_work_that_goes_on_after_the_stream_is_late() -> None:
    """The stamp behind the call did not wait for it."""
    stream = held()
    mine = stream.ran("mine")
    stream.ran("side", 90_000, start_ns=mine.end_ns)
    stream.ran(STAMP)
    assert LATE == stray(stream.records, (0, 1))


def test_work_that_ends_as_the_stamp_begins_is_not_late() -> None:
    """To the nanosecond: it was waited for."""
    stream = held()
    mine = stream.ran("mine")
    stream.ran("side", stream.at_ns - mine.start_ns, start_ns=mine.start_ns)
    stream.ran(STAMP)
    assert "" == stray(stream.records, (0, 1))


def test_early_is_said_before_late() -> None:
    """What was never ordered ends when it likes."""
    stream = held()
    stream.ran("side", 90_000, start_ns=1_005_000)
    stream.ran(STAMP)
    assert EARLY == stray(stream.records, (0, 1))


def test_a_call_that_ran_nothing_strays_nowhere() -> None:
    """That it ran nothing is said by its sample."""
    stream = held()
    stream.ran(STAMP)
    assert "" == stray(stream.records, (0, 1))


def test_a_stray_can_not_be_told_without_its_stamps() -> None:
    """Records that are missing prove nothing."""
    stream = held()
    stream.ran("mine")
    with pytest.raises(RecordsLost, match="1 of 2 stamps"):
        stray(stream.records, (0, 1))
