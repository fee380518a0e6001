"""What authors' code raises, as it is told: always in words that a pipe and a report can carry."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import BadInput, SolkitError, told, words
from solkit.measure.diagnosis import ends_the_context, verdict_of
from solkit.measure.entry import explained

TEXT = st.text(st.characters(), max_size=200)  # surrogates included


class Wordless(RuntimeError):
    """Raises whatever it is asked."""

    def __str__(self) -> str:
        """Raise."""
        raise KeyError

    @property
    def status(self) -> int:
        """Raise."""
        raise ValueError

    verdict = status


class NoText(Exception):
    """Gives no text at all."""

    def __str__(self) -> str:
        """Return what is none."""
        return cast("str", 7)


@given(TEXT)
def test_any_text_is_told_in_utf_8(text: str) -> None:
    """A lone surrogate is escaped; the rest stays as it is."""
    safe = told(text)
    safe.encode()
    if not any("\ud800" <= sign <= "\udfff" for sign in text):
        assert text == safe


@pytest.mark.parametrize(
    ("more_count", "end"), [(0, "x"), (996_000, "... (996,000 more characters)")]
)
def test_a_long_text_is_cut_and_says_how_much(more_count: int, end: str) -> None:
    """4,000 characters are kept."""
    assert "x" * 3999 + "x" * bool(more_count) + end == told("x" * (4000 + more_count))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("(its text can't be had: __str__ raised KeyError)", Wordless()),
        ("(its text can't be had: __str__ raised TypeError)", NoText()),
        ("half \\ud800 of it", ValueError("half \ud800 of it")),
        ("", ValueError()),
    ],
    ids=["raises", "no text", "surrogate", "empty"],
)
def test_an_error_that_can_not_be_printed_is_told_so(said: str, error: Exception) -> None:
    """And never raises a second one; its kind is none that is known."""
    assert said == words(error)
    message, remedy = explained(error)
    assert f"{type(error).__name__}: {said}" == message
    assert remedy
    assert ("", False) == (verdict_of(error), ends_the_context(error))


@given(message=TEXT, remedy=TEXT)
def test_an_error_is_never_explained_by_nothing(message: str, remedy: str) -> None:
    """Message and remedy are there, in UTF-8, whatever the error holds."""
    for error in (BadInput(message, remedy=remedy), SolkitError(message), ValueError(message)):
        for each in explained(error):
            assert each.encode()
