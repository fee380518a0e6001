"""The dims of a tensor in words: an axis (`rows`), a number (`64`), or `batch*kv_len/16`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dim:
    """The product of some axes and numbers, over a divisor, rounded up.

    word: as it is written, e.g. `cols/128`.
    """

    word: str
    factors: tuple[str, ...]
    divisor: str = "1"

    @property
    def axis(self) -> str | None:
        """The axis, where the dim is one axis and nothing else."""
        plain = len(self.factors) == 1 and self.divisor == "1" and not self.word.isdigit()
        return self.word if plain else None

    @property
    def axes(self) -> tuple[str, ...]:
        """Every axis in it, in order."""
        return tuple(term for term in (*self.factors, self.divisor) if not term.isdigit())

    def extent(self, shape: Mapping[str, int]) -> int:
        """Return the extent in a shape of axes; a divisor of 0 gives 0."""
        whole = math.prod(_value(term, shape) for term in self.factors)
        divisor = _value(self.divisor, shape)
        return -(-whole // divisor) if divisor else 0


def dim(word: str) -> Dim:
    """Return the dim a word stands for; what is wrong with it, `problems` says."""
    product, slash, divisor = word.partition("/")
    return Dim(word, tuple(product.split("*")), divisor if slash else "1")


def problems(word: str) -> Iterator[str]:
    """Yield what is wrong with a dim word, in words."""
    found = dim(word)
    for term in (*found.factors, found.divisor):
        if not (term.isidentifier() or (term.isascii() and term.isdigit() and int(term) > 0)):
            yield (
                f"{word!r} is no dim: write an axis, a number, or terms like batch*kv_len/16 "
                "(letters, digits and _)"
            )
            return


def _value(term: str, shape: Mapping[str, int]) -> int:
    return int(term) if term.isdigit() else shape[term]
