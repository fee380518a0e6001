"""The short lists of a run: what costs it most, the lowest scores and the highest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Scored
from solkit.report.advice import advice
from solkit.report.trouble import CaseLink, case_link

RANKED_MOST = 10
BEST_MOST = 5


@dataclass(frozen=True, slots=True)
class Ranked:
    """One case in a ranking: its score and bar (0 to 100), its time, what it costs, and advice."""

    case: CaseLink
    score: str
    bar: str
    time: str
    cost: str
    advice: str


class Ranking:
    """The three short lists: what costs the run most, the lowest and the highest scores."""

    def __init__(self, good: Sequence[Scored], places: Mapping[int, int], *, on_cpu: bool) -> None:
        self.good = good
        self.places = places
        self.on_cpu = on_cpu
        # weight x (1 - SOL) with time as the weight: the time spent above the bound
        self.lost_s = {id(item): item.median_s - item.bound.sol_s for item in good}
        self.all_lost_s = sum(max(0.0, lost) for lost in self.lost_s.values())

    def costly(self) -> tuple[Ranked, ...]:
        """Return the cases with the most time above their bound."""
        items = [item for item in self.good if self.lost_s[id(item)] > 0]
        return self._first(items, lambda item: -self.lost_s[id(item)], RANKED_MOST)

    def costly_note(self) -> str:
        """Say how much of all the time above the bounds those cases hold."""
        if not self.all_lost_s:
            return ""
        first = sorted(self.lost_s.values(), reverse=True)[:RANKED_MOST]
        share = sum(max(0.0, lost) for lost in first) / self.all_lost_s
        return (
            f"All measured cases spend {units.seconds(self.all_lost_s)} above their bounds; "
            f"{'these hold' if len(first) > 1 else 'this one holds'} {units.percent(share)} of it."
        )

    def lowest(self) -> tuple[Ranked, ...]:
        """Return the cases with the lowest scores, where a kernel can do something about them."""
        return self._first(long_enough(self.good), lambda item: item.raw_fraction, BEST_MOST)

    def lowest_title(self) -> str:
        """Say which cases the lowest were taken from."""
        all_in = len(long_enough(self.good)) == len(self.good)
        return "Lowest scores" if all_in else "Lowest scores beyond launch latency"

    def best(self) -> tuple[Ranked, ...]:
        """Return the cases with the highest scores."""
        return self._first(self.good, lambda item: -item.raw_fraction, BEST_MOST)

    def _first(
        self, items: Iterable[Scored], key: Callable[[Scored], float], most: int
    ) -> tuple[Ranked, ...]:
        ordered = sorted(items, key=lambda item: (key(item), self.places[id(item)]))[:most]
        advised = [advice(item, on_cpu=self.on_cpu) for item in ordered]
        said: set[str] = set()
        ranked = []
        for item, each in zip(ordered, advised, strict=True):
            # what is said in full once would drown the table if each case said it again
            words = f"As above: {each.brief}." if each.brief in said else each.text
            said.add(each.brief)
            ranked.append(self._ranked(item, words))
        return tuple(ranked)

    def _ranked(self, item: Scored, words: str) -> Ranked:
        lost_s = self.lost_s[id(item)]
        share = f" ({units.percent(lost_s / self.all_lost_s)})" if lost_s > 0 else ""
        mark = "▲ " if item.above_published else ""
        return Ranked(
            case=case_link(item, self.places[id(item)]),
            score=f"{mark}{units.percent(item.raw_fraction)}",
            bar=bar(item.raw_fraction),
            time=units.seconds(item.median_s),
            cost=f"{units.seconds(lost_s)}{share}" if lost_s > 0 else "none",
            advice=words,
        )


def long_enough(good: Sequence[Scored]) -> Sequence[Scored]:
    """Return the cases that launch latency doesn't rule, or all where it rules each of them."""
    return [item for item in good if item.regime.word != "latency"] or good


def bar(fraction: float) -> str:
    """Return the length of a bar from 0 to 100; the number beside it is never clamped."""
    return str(max(0, min(100, round(fraction * 100))))
