"""The sentence of advice follows from limiter, regime and how near the roof a case is."""

from dataclasses import replace

import pytest
from synthetic import measured, synthetic_run

from solkit.judge.regime import Regime
from solkit.judge.score import Scored, score
from solkit.model import Case, Work
from solkit.report.advice import advice

COPY = Case("copy", "solkit", {"elements": 1 << 26}, "bf16")
STREAM = Work(2**27, 2**27)
PRODUCT = Work(2**20, 2**20, {"bf16_tensor": 10**12})


def scored(work: Work, time_s: float) -> Scored:
    (item,) = score(synthetic_run([measured(COPY, work, time_s=time_s)]))
    assert isinstance(item, Scored)
    return item


@pytest.mark.parametrize(
    ("words", "work", "time_s"),
    [
        ("only fewer bytes help", STREAM, 0.140e-3),
        ("even last wave", STREAM, 0.200e-3),
        ("probably too little is in flight", STREAM, 0.400e-3),
        ("only fewer operations", PRODUCT, 1.9e-3),
        ("tile shape", PRODUCT, 2.5e-3),
        ("probably waits for data", PRODUCT, 9.0e-3),
        ("graph", Work(4096, 4096), 2.2e-6),
        ("within 10 %", Work(2 * 10**9, 0, {"bf16_tensor": 600 * 10**9}), 1.0e-3),
        ("sfu work is estimated", Work(2**20, 2**20, {}, {"sfu": 10**9}), 0.4e-3),
    ],
)
def test_the_advice_names_what_would_help(words: str, work: Work, time_s: float) -> None:
    """At the roof, near it, far below it, at the ridge, and where fixed cost rules."""
    assert words in advice(scored(work, time_s)).text


def test_an_invalid_case_is_not_given_advice_but_its_reason() -> None:
    """What is faster than light is no result to improve."""
    item = scored(PRODUCT, 0.5e-3)
    assert f"Not a result: {item.invalid_reason}." == advice(item).text


def test_a_cpu_run_is_not_told_about_launches() -> None:
    """Advice for a host speaks of calls and passes, not of blocks."""
    item = replace(scored(STREAM, 0.4e-3), regime=Regime("latency", 1.5))
    assert (
        "Fixed cost dominates (1.50 empty calls long): batch the work."
        == advice(item, on_cpu=True).text
    )
