"""How a case failed, in a word or two."""

from solkit.model import Failed, Verdict
from solkit.report.plain import line

VERDICT_WORDS: dict[Verdict, str] = {
    "": "",
    "wrong_values": "wrong values",
    "non_finite": "NaN or infinite values",
    "unwritten": "values left unwritten",
    "wrong_shape": "another shape",
    "wrong_dtype": "another dtype",
    "changed_input": "an input was changed",
    "other_stream": "work on another stream",
    "no_kernel": "no kernel ran",
    "unaligned": "an unaligned array",
    "out_of_memory": "out of memory",
    "timeout": "no end within the timeout",
    "crashed": "the worker crashed",
}


def failure_word(failed: Failed) -> str:
    """Say in a word or two how a case failed: 'wrong values', or at which stage."""
    return VERDICT_WORDS[failed.verdict] or f"at {line(failed.stage)}"


def failure_text(failed: Failed) -> str:
    """Say at which stage a case failed, and how: 'failed at check: wrong values'."""
    word = VERDICT_WORDS[failed.verdict]
    return f"failed at {line(failed.stage)}{f': {word}' if word else ''}"
