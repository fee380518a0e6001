"""The filter of `--only 'operator=softmax,rows>=64'`: every term must hold."""

import operator as compare
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from solkit.declare.catalog import OperatorInfo
from solkit.errors import BadInput, unknown
from solkit.model import Case, Param

_TERM = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(>=|<=|!=|=|<|>)\s*([^=<>!\s](?:.*\S)?)\s*")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": compare.lt,
    "<=": compare.le,
    ">": compare.gt,
    ">=": compare.ge,
}
_WORDS = ("operator", "kernel", "dtype")
_REMEDY = "write e.g. --only 'operator=softmax,rows>=64,dtype=fp16|bf16'"


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: a name, how it is compared, and the values (alternatives of = and !=)."""

    name: str
    sign: str
    values: tuple[str, ...]

    def holds(self, case: Case, unnamed: Mapping[str, Param]) -> bool:
        """Return whether a case meets the condition; one without that axis or param does not.

        unnamed: the defaults that the case does not name.
        """
        value = _value(case, self.name)
        if value is None:
            value = unnamed.get(self.name)
        if value is None:
            return False
        if self.sign in _ORDERS:
            if isinstance(value, str):
                raise BadInput(
                    f"--only: {self.name}{self.sign}{self.values[0]} compares a name with a number",
                    remedy=f"use = or != for {self.name}",
                )
            return _ORDERS[self.sign](float(value), float(self.values[0]))
        return any(_same(value, text) for text in self.values) == (self.sign == "=")


@dataclass(frozen=True, slots=True)
class Only:
    """A filter over cases."""

    terms: tuple[Term, ...]

    def select(
        self, cases: Sequence[Case], operators: Mapping[str, OperatorInfo] | None = None
    ) -> tuple[Case, ...]:
        """Return the cases that meet every term; an unknown name or nothing left is an error.

        operators: those of the cases, for the defaults that these do not name.
        """
        found = {name: operator.unnamed_params for name, operator in (operators or {}).items()}
        unnamed = {case.operator: found.get(case.operator, {}) for case in cases}
        known = set(_WORDS)
        for case in cases:
            known.update(case.shape, case.params, unnamed[case.operator])
        for term in self.terms:
            if term.name not in known:
                raise unknown("name in --only", term.name, known)
            if term.name in _WORDS and term.sign == "=":
                held = {str(_value(case, term.name)) for case in cases}
                strange = [value for value in term.values if value not in held]
                if len(strange) == len(term.values):
                    raise unknown(f"{term.name} in --only", strange[0], held)
        kept = tuple(
            case
            for case in cases
            if all(term.holds(case, unnamed[case.operator]) for term in self.terms)
        )
        if not kept:
            raise BadInput(
                f"--only leaves none of the {len(cases)} cases",
                remedy="see them with `solkit plan`",
            )
        return kept


def parse_only(text: str) -> Only:
    """Parse comma-separated terms: name, one of = != < <= > >=, value (or values: a|b)."""
    return Only(tuple(_term(part) for part in text.split(",")))


def _term(text: str) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        raise BadInput(f"--only: {text.strip()[:80]!r} is no condition", remedy=_REMEDY)
    name, sign, value = match.groups()
    if sign not in _ORDERS:
        return Term(name, sign, tuple(part.strip() for part in value.split("|")))
    try:
        float(value)
    except ValueError as error:
        raise BadInput(
            f"--only: {value[:40]!r} in {text.strip()[:80]!r} is no number", remedy=_REMEDY
        ) from error
    return Term(name, sign, (value,))


def _value(case: Case, name: str) -> Param | None:
    if name in _WORDS:
        return str(getattr(case, name))
    return case.shape.get(name, case.params.get(name))


def _same(value: Param, text: str) -> bool:
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, str):
        return value == text
    try:
        return float(text) == value
    except ValueError:
        return False
