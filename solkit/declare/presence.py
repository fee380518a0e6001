"""Which arguments stand together: what holds for every case, whatever its params are."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from solkit.declare.arg import Arg
from solkit.model import Param


def problems(
    args: Sequence[Arg],
    params: Mapping[str, tuple[Param, ...]],
    taken: Mapping[str, inspect.Parameter],
) -> Iterator[str]:
    """Yield what is wrong with the arguments of some case, each once.

    taken: the parameters of the operator's reference.
    """
    yield from _gathers(args)
    told: set[str] = set()
    for chosen in _choices(args, params):
        present = [arg for arg in args if arg.exists(chosen)]
        in_cases = f"cases with {', '.join(f'{name}={value}' for name, value in chosen.items())}"
        for name, problem in _of_a_case(args, present, in_cases, taken):
            if name not in told:  # what many cases have in common is said of the first
                told.add(name)
                yield problem


def _choices(
    args: Sequence[Arg], params: Mapping[str, tuple[Param, ...]]
) -> Iterator[dict[str, Param]]:
    """Yield every choice of the params that an argument's presence depends on."""
    asked = list(dict.fromkeys(name for arg in args for name in arg.when if name in params))
    for values in product(*(params[name] for name in asked)):
        yield dict(zip(asked, values, strict=True))


def _gathers(args: Sequence[Arg]) -> Iterator[str]:
    """Yield which arguments can't be gathered at all."""
    for arg in args:
        if not arg.gathered_by:
            continue
        named = f"argument {arg.name!r} is gathered by {arg.gathered_by!r}"
        index = [other for other in args if other.name == arg.gathered_by]
        if not any(other.dtype == "int32" and other.role == "in" for other in index):
            yield f"{named}, which is no int32 input"
        elif any(other.gathered_by for other in index):
            yield f"{named}, which is gathered itself: leave one of the two plain"
        if arg.role != "in":
            yield f"{named}, but only an argument that is read alone is (its role is {arg.role!r})"
        if not arg.axis_names:
            yield f"{named}, but has no dim that could be indexed"


def _of_a_case(
    args: Sequence[Arg],
    present: Sequence[Arg],
    in_cases: str,
    taken: Mapping[str, inspect.Parameter],
) -> Iterator[tuple[str, str]]:
    """Yield (whom it concerns, what is wrong) with the arguments that such cases have."""
    if all(arg.role == "in" for arg in present) and any(arg.role != "in" for arg in args):
        yield "", f"{in_cases} have no argument with the role 'out' or 'inout'"
    integers = {arg.name for arg in present if arg.dtype == "int32" and arg.role == "in"}
    declared = {arg.name for arg in args if arg.dtype == "int32" and arg.role == "in"}
    for arg in present:
        if arg.gathered_by in declared - integers:
            named = f"argument {arg.name!r} is gathered by {arg.gathered_by!r}"
            yield arg.name, f"{named}, which {in_cases} don't have as an int32 input"
    given = {arg.name for arg in present if arg.role != "out"}
    for name in dict.fromkeys(arg.name for arg in args if arg.role != "out"):
        if name not in given and name in taken and taken[name].default is inspect.Parameter.empty:
            needed = f"its reference needs {name!r}, which {in_cases} don't have"
            yield name, f"{needed}: give it the default None"
