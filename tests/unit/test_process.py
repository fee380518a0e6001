"""The worker's last words, as far as a person should see them."""

from solkit.measure.process import without_tracebacks

FIRST = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nOSError: no pipe\n'
)
SECOND = (
    'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    h()\nValueError: bad\n'
)
BETWEEN = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_plain_last_words_stay_as_they_are() -> None:
    """Indented lines too, where no stack is around them."""
    assert "out of luck\n  twice" == without_tracebacks("out of luck\n  twice\n")


def test_of_a_stack_only_the_error_stays() -> None:
    """What was said before and after it stays too."""
    said = f"before\n{FIRST}after\n"
    assert "before\nOSError: no pipe\nafter" == without_tracebacks(said)


def test_errors_that_follow_from_each_other_are_all_named() -> None:
    """The words with which Python joins them go."""
    assert "OSError: no pipe\nValueError: bad" == without_tracebacks(FIRST + BETWEEN + SECOND)


def test_a_stack_whose_head_was_cut_off_is_recognised() -> None:
    """Only the end of a long text is kept, which may begin inside a stack."""
    assert "OSError: no pipe" == without_tracebacks(FIRST.partition("\n")[2])
