"""Names, messages and logs from elsewhere print as bounded, visible text and nothing else."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.report.plain import (
    DASH,
    MESSAGE_MOST,
    NAME_MOST,
    block,
    counted,
    isolated,
    line,
    listed,
    percent_span,
)


@pytest.mark.parametrize(
    ("seen", "given_text"),
    [
        ("matmul_add", "matmul_add"),
        ("red", "\x1b[31mred\x1b[0m"),
        ("link", "\x1b]8;;https://example.com\x07link\x1b]8;;\x07"),
        ("gnp.exe", "\u202egnp.exe"),
        ("a b c", " a\tb\r\n c "),
        ("nul", "n\x00u\u200bl"),
        ("half \ufffd", "half \ud800"),
        ("größe µ × 漢字", "größe µ × 漢字"),  # noqa: RUF001  # a sign that names hold
        ("", "\x1b\x07\x00"),
    ],
)
def test_a_line_holds_only_what_can_be_seen(seen: str, given_text: str) -> None:
    """Escape sequences, controls and direction marks go; letters of any script stay."""
    assert seen == line(given_text)


def test_a_long_name_ends_in_an_ellipsis() -> None:
    """Ten thousand characters become 160, the last of them an ellipsis."""
    assert f"{'x' * 159}…" == line("x" * 10_000)


def test_a_long_log_keeps_both_its_ends() -> None:
    """The first error and the last line survive, and the gap says how much is gone."""
    text = block(f"first\n{'x' * 9_000}\nlast")
    assert text.startswith("first\n")
    assert text.endswith("\nlast")
    assert "characters left out" in text


def test_a_log_keeps_its_lines_and_its_columns() -> None:
    """A compiler's caret stays under the character it points at."""
    assert "a.cu(1): error\n    x y\n      ^" == block(
        "\x1b[1ma.cu(1): error\r\n    x y\n      ^\n\n"
    )


def test_only_a_name_that_could_turn_a_sentence_is_isolated() -> None:
    """Plain ASCII stays as it is; other scripts stand between isolates."""
    assert "softmax" == isolated("softmax")
    assert "\u2068漢字\u2069" == isolated("漢字")


def test_a_list_names_the_first_and_counts_the_rest() -> None:
    """A sentence never grows with the number of cases."""
    assert "a, b and 3 more" == listed(["a", "b", "c", "d", "e"], 2)
    assert "a, b" == listed(["a", "b"], 2)


def test_a_count_agrees_with_its_noun() -> None:
    """One case, two cases, 1,000 cases."""
    assert ["1 case", "2 cases", "1,000 cases"] == [counted(n, "case") for n in (1, 2, 1000)]


@given(st.text())
def test_any_text_becomes_a_short_visible_line(text: str) -> None:
    """Whatever comes in, the line is bounded, can be written as UTF-8 and holds no control."""
    cleaned = line(text)
    assert len(cleaned) <= NAME_MOST
    assert cleaned.encode().decode() == cleaned
    assert not {unicodedata.category(char) for char in cleaned} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(max_size=200), st.integers(0, 10_000))
def test_any_message_is_bounded(text: str, times: int) -> None:
    """A log of any length stays near the limit."""
    assert len(block(text * times)) <= MESSAGE_MOST + 60


@pytest.mark.parametrize(
    ("expected", "low_fraction", "high_fraction"),
    [
        (f"26{DASH}63 %", 0.263, 0.628),
        (f"0.5{DASH}68 %", 0.005, 0.676),
        (f"0.3{DASH}0.4 %", 0.003, 0.0042),
    ],
)
def test_a_small_score_is_not_nothing(
    expected: str, low_fraction: float, high_fraction: float
) -> None:
    """Whole per cent say enough from 1 % on; below it they would say zero."""
    assert expected == percent_span(low_fraction, high_fraction)
