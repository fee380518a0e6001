"""How times were taken and at which clocks, as facts of a run, and what makes them doubtful."""

from collections import Counter
from collections.abc import Iterable, Sequence

from solkit import units
from solkit.judge.score import HOT_REASON, Scored
from solkit.model import Run
from solkit.report.fact import Fact, between, present
from solkit.report.manner import UNBLOCKED, cache_means, method_means, settle_means
from solkit.report.plain import counted, line, listed
from solkit.stats import median, quantile


def clock_facts(run: Run, scored: Sequence[Scored]) -> list[Fact]:
    """Return how the chip was kept, and what the clocks of single samples say."""
    if not clocked(scored):
        return []
    clocks = [item.outcome.clocks for item in scored]
    ends = present(end for each in clocks for end in (each.sm_low_hz, each.sm_high_hz))
    told = present(each.driver_sm_hz for each in clocks)
    throttled = [item.outcome for item in scored if item.outcome.throttled_count]
    count = sum(each.throttled_count for each in throttled)
    made = [
        Fact("Settle", line(run.settle), settle_means(run.settle)),
        Fact(
            "Clock of samples",
            between(ends, units.frequency),
            "extremes of single samples; a sample of 5 µs is read to ±1.3 %",
        ),
    ]
    if told:
        made.append(
            Fact("Clock told", between(told, units.frequency), "the driver's lowest, by case")
        )
    made.append(
        Fact(
            "Throttled samples",
            f"{count:,}" if count else "none",
            f"in {counted(len(throttled), 'case')}, kept and marked" if count else "",
        )
    )
    return made


def timing_facts(run: Run, scored: Sequence[Scored]) -> tuple[Fact, ...]:
    """Return the method, its floor and cache state, the samples and the inputs."""
    samples = present(float(item.outcome.sample_count) for item in scored)
    floors = present(item.outcome.floor_s for item in scored)
    compared = sum(item.outcome.check.compared_count for item in scored)
    proof = [f"{line(mode)} {units.seconds(s)}" for mode, s in run.cache_proof_s.items()]
    made = [
        Fact("Timing", line(run.method), method_means(run.method)),
        *_other_methods(run, scored),
        Fact("Empty-kernel floor", between(floors, units.seconds), "by the same method"),
        *_launch_cost(scored),
        Fact("Cache", line(run.cache), cache_means(run.cache)),
    ]
    if proof:
        made.append(Fact("Cache proof", ", ".join(proof), "to read a buffer of half the L2"))
    made += [
        Fact("Samples a case", between(samples, lambda value: f"{value:.0f}")),
        *_precision(run, scored),
        Fact("Seed", str(run.seed)),
    ]
    if inputs := _commonest(item.outcome.check.inputs for item in scored):
        made.append(Fact("Inputs", listed(inputs, 4)))
    made.append(Fact("Values checked", units.count(compared), "against the NumPy references"))
    return tuple(made)


def _launch_cost(scored: Sequence[Scored]) -> list[Fact]:
    """Say what a launch costs the host, where that is not the work itself."""
    found = present(item.outcome.launch_s for item in scored)
    if not found:
        return []
    said = f"to enqueue a call, {units.seconds(median(found))} at the median; no part of any time"
    return [Fact("Launch cost, host", between(found, units.seconds), said)]


def _other_methods(run: Run, scored: Sequence[Scored]) -> list[Fact]:
    """Name the methods that single cases fell to, where the run's own did not serve."""
    used = Counter(item.outcome.method for item in scored)
    if run.method not in used:
        return []  # an older run: its header describes the method in more words
    return [
        Fact(f"In {counted(count, 'case')}", line(name), method_means(name))
        for name, count in sorted(used.items())
        if name != run.method
    ]


def _precision(run: Run, scored: Sequence[Scored]) -> list[Fact]:
    """Return the noise that was asked for and the noise that remains, and what ended sampling."""
    if not scored:
        return []
    left = sorted((item.high_s - item.low_s) / 2 / item.median_s for item in scored)
    ended = _commonest(item.outcome.ended for item in scored)
    return [
        Fact(
            "Precision",
            f"asked ±{100 * run.precision_fraction:g} %, reached ±{100 * quantile(left, 0.5):.2f} %"
            f" at the median, ±{100 * left[-1]:.2f} % at worst",
            "half the 95 % interval; never asked finer than 3 timer ticks",
        ),
        *([Fact("Sampling ended by", listed(ended, 4))] if ended else []),
    ]


def _commonest(texts: Iterable[str]) -> list[str]:
    """Return each text with how many cases it holds in; the number alone is left out for one."""
    found = Counter(line(text, 200) for text in texts if text)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) == 1:
        return [ranked[0][0]]
    return [f"{text} ({counted(count, 'case')})" for text, count in ranked]


def timing_doubts(scored: Sequence[Scored]) -> list[str]:
    """Return what makes times mean less than they seem to, each with its count of cases."""
    outcomes = [item.outcome for item in scored]
    hot = sum(1 for item in scored if item.no_score_reason == HOT_REASON)
    unblocked = sorted({each.method for each in outcomes if each.method in UNBLOCKED})
    said = (
        (
            sum(1 for each in outcomes if each.other_process_count),
            "shared the device with other processes: their times may be too long.",
        ),
        (
            sum(1 for each in outcomes if each.method in UNBLOCKED),
            f"timed as {listed(unblocked)}: the call waits for the device, host time may be in it.",
        ),
        (
            sum(1 for each in outcomes if each.throttled_count),
            "with samples at a lowered clock: SOL@clock tells the code from the clock.",
        ),
        (
            sum(1 for each in outcomes if each.slow_mode),
            "with a second, slower group of samples (named under Remarks).",
        ),
        (hot, f"without a score. {HOT_REASON[0].upper()}{HOT_REASON[1:]}."),
    )
    found = [f"{counted(count, 'case')} {words}" for count, words in said if count]
    notes = Counter(item.cache_note for item in scored if item.cache_note and not item.hot)
    return found + [f"{counted(count, 'case')}: {note}." for note, count in sorted(notes.items())]


def clocked(scored: Sequence[Scored]) -> bool:
    """Say whether samples carry their clocks; runs before that settled in no named way."""
    return any(item.outcome.sample_hz for item in scored)
