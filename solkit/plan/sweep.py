"""shapes.yaml -> cases: explicit points and grids, each with every kernel, dtype and param value.

The format is that of `solkit new shapes` and docs/schemas/shapes.json. Errors name file and line.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path

from solkit.declare.catalog import Catalog, OperatorInfo
from solkit.dtypes import CASE_DTYPES
from solkit.errors import BadInput, unknown
from solkit.model import Case, Param
from solkit.plan.document import COMMAND_LINE, Item, load, parse
from solkit.plan.extents import Axis, grid_of, point_of

VERSION = 1
MOST_CASES = 10_000
LOAD_HINT = "one of your own comes with --load FILE.py"
SWEEP_KEYS = ("operator", "kernels", "dtype", "params", "shapes", "grid")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.+)")


@dataclass(frozen=True, slots=True)
class Sweep:
    """The cases of a shapes.yaml in its order, and what there is to say about them."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class _Entry:
    """One sweep, understood but not yet expanded."""

    operator: OperatorInfo
    kernels: tuple[str, ...]
    dtypes: tuple[str, ...]
    params: dict[str, tuple[Param, ...]]
    points: tuple[dict[str, int], ...]
    grid: dict[str, Axis]
    where: str

    @property
    def case_count(self) -> int:
        grid = prod(axis.count for axis in self.grid.values()) if self.grid else 0
        choices = prod(len(values) for values in self.params.values())
        return len(self.kernels) * len(self.dtypes) * choices * (len(self.points) + grid)

    def cases(self) -> Iterable[Case]:
        """Build the cases: kernels vary fastest, so that a group stands together."""
        grid = product(*(axis.values() for axis in self.grid.values())) if self.grid else ()
        shapes = [*self.points, *(dict(zip(self.grid, extents, strict=True)) for extents in grid)]
        choices = [
            _named(dict(zip(self.params, values, strict=True)), self.operator)
            for values in product(*self.params.values())
        ]
        for dtype, params, shape, kernel in product(self.dtypes, choices, shapes, self.kernels):
            yield Case(self.operator.name, kernel, shape, dtype, params)


@dataclass(slots=True)
class _Reader:
    """Reads the entries of one file against a catalog, for one kind of device."""

    catalog: Catalog
    device: str
    max_cases: int
    dtypes: tuple[str, ...] | None = None
    kernels: Item | None = None
    notes: list[str] = field(default_factory=list)

    def entry(self, item: Item) -> _Entry:
        keys = item.mapping("a sweep", SWEEP_KEYS)
        if "operator" not in keys:
            raise BadInput(
                f"{item.where}: a sweep without operator", remedy=_known_operators(self.catalog)
            )
        name = keys["operator"].text("operator")
        if name not in self.catalog.operators:
            known, where = self.catalog.operators, keys["operator"].where
            raise unknown("operator", name, known, where=where, hint=LOAD_HINT)
        operator = self.catalog.operators[name]
        points = tuple(point_of(point, operator) for point in _items(keys, "shapes"))
        grid = grid_of(keys["grid"], operator, most=self.max_cases) if "grid" in keys else {}
        if not points and not grid:
            raise BadInput(
                f"{item.where}: the sweep of {name!r} has no shapes",
                remedy=f"give shapes: or grid: with the axes {', '.join(operator.axes)}",
            )
        dtypes = _dtypes(keys["dtype"]) if "dtype" in keys else self.dtypes or operator.dtypes[:1]
        return _Entry(
            operator,
            self.kernel_names(keys.get("kernels", self.kernels), operator, item.where),
            dtypes,
            _params(keys.get("params"), operator),
            points,
            grid,
            item.where,
        )

    def kernel_names(
        self, item: Item | None, operator: OperatorInfo, where: str
    ) -> tuple[str, ...]:
        """Return the kernels named, else every one that runs on this kind of device.

        One that is declared `by_name_only` is left to those who name it.
        """
        own = [kernel for kernel in self.catalog.kernels if kernel.operator == operator.name]
        if item is not None:
            known = [kernel.name for kernel in own]
            return tuple(_known_name(kernel, known, "kernel") for kernel in item.each("kernels"))
        unasked = [kernel for kernel in own if not kernel.by_name_only]
        here = tuple(kernel.name for kernel in unasked if kernel.device == self.device)
        if not here:
            self.notes.append(
                f"{where}: {operator.name!r} has no kernel for the device {self.device}"
            )
        return here or tuple(kernel.name for kernel in unasked)


def read_sweep(
    path: Path, catalog: Catalog, *, device: str = "cuda", max_cases: int = MOST_CASES
) -> Sweep:
    """Read a shapes.yaml; raise BadInput naming file and line.

    device: `cuda` or `cpu`; a sweep that names no kernels takes every one for that device.
    """
    return _sweep(load(path), catalog, device, max_cases)


def parse_sweep(
    text: str, catalog: Catalog, *, file: str, device: str = "cuda", max_cases: int = MOST_CASES
) -> Sweep:
    """Read a shapes.yaml from its text."""
    return _sweep(parse(text, file), catalog, device, max_cases)


def case_by_hand(
    operator: str,
    assignments: Sequence[str],
    catalog: Catalog,
    *,
    dtype: str | None = None,
    kernels: Sequence[str] = (),
    device: str = "cuda",
    max_cases: int = MOST_CASES,
) -> Sweep:
    """Build the cases of `solkit run matmul_add M=8192 N=2560 K=2560 weight=nk --dtype bf16`.

    An assignment with several values, `M=1,16,256`, sweeps them.
    """
    if operator not in catalog.operators:
        raise unknown("operator", operator, catalog.operators, hint=LOAD_HINT)
    axes = catalog.operators[operator].axes
    words: dict[str, str] = {}
    for text in assignments:
        match = _ASSIGNMENT.fullmatch(text)
        if match is None:
            raise BadInput(f"{text[:80]!r} is no assignment", remedy=f"write e.g. {axes[0]}=4096")
        if match[1] in words:
            raise BadInput(f"{match[1]} is given twice", remedy=f"several values: {match[1]}=1,2")
        words[match[1]] = match[2]
    known = (*axes, *catalog.operators[operator].params)
    for name in words:
        if name not in known:
            raise unknown(f"axis or param of {operator!r}", name, known)
    # The same reader as for files, so the same rules: the words become a small document.
    quoted = {
        name: f"[{', '.join(_scalar(part) for part in text.split(','))}]"
        for name, text in words.items()
    }
    lines = ["version: 1", "sweeps:", f"- operator: {_quote(operator)}"]
    extents = [f"{name}: {text}" for name, text in quoted.items() if name in axes]
    lines.append("  grid: {" + ", ".join(extents) + "}")
    params = [f"{name}: {text}" for name, text in quoted.items() if name not in axes]
    lines += ["  params: {" + ", ".join(params) + "}"] if params else []
    lines += [f"  dtype: [{', '.join(map(_quote, dtype.split(',')))}]"] if dtype else []
    lines += [f"  kernels: [{', '.join(map(_quote, kernels))}]"] if kernels else []
    return parse_sweep(
        "\n".join(lines), catalog, file=COMMAND_LINE, device=device, max_cases=max_cases
    )


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_.+-]+", text) else _quote(text)


def _quote(text: str) -> str:
    return (
        "'" + "".join(char if char.isprintable() else "?" for char in text).replace("'", "''") + "'"
    )


def _sweep(root: Item, catalog: Catalog, device: str, max_cases: int) -> Sweep:
    keys = root.mapping("the file", ("version", "defaults", "sweeps"))
    _check_version(keys.get("version"), root)
    reader = _Reader(catalog, device, max_cases)
    if "defaults" in keys:
        defaults = keys["defaults"].mapping("defaults", ("dtype", "kernels"))
        reader.dtypes = _dtypes(defaults["dtype"]) if "dtype" in defaults else None
        reader.kernels = defaults.get("kernels")
    items = _items(keys, "sweeps")
    if not items:
        raise BadInput(f"{root.file}: has no sweeps", remedy=_known_operators(catalog))
    entries = [reader.entry(item) for item in items]
    total = sum(entry.case_count for entry in entries)
    if total > max_cases:
        largest = max(entries, key=lambda entry: entry.case_count)
        raise BadInput(
            f"{largest.where}: {total:,} cases are more than {max_cases:,}"
            + (f" ({largest.case_count:,} of them from this sweep)" if len(entries) > 1 else ""),
            remedy=f"take coarser ranges, or allow them with --max-cases {total}",
        )
    cases, merged = _unique(entries)
    return Sweep(cases, (*dict.fromkeys(reader.notes), *merged))


def _unique(entries: Sequence[_Entry]) -> tuple[tuple[Case, ...], list[str]]:
    """Merge cases that are the same in all five parts, and say so."""
    held: dict[object, Case] = {}
    first_twice, built_count = "", 0
    for entry in entries:
        for case in entry.cases():
            built_count += 1
            if held.setdefault(case.key, case) is not case:
                first_twice = first_twice or f"{entry.where}: {case}"
    merged_count = built_count - len(held)
    if not merged_count:
        return tuple(held.values()), []
    more = f" and {merged_count - 1} more" if merged_count > 1 else ""
    return tuple(held.values()), [f"duplicate cases are measured once: {first_twice}{more}"]


def _check_version(item: Item | None, root: Item) -> None:
    if item is None:
        raise BadInput(f"{root.file}: has no version", remedy=f"add the line `version: {VERSION}`")
    version = item.whole("version", least=0, most=2**31)
    if version != VERSION:
        raise BadInput(
            f"{item.where}: the version is {version}, this solkit reads {VERSION}",
            remedy=f"write `version: {VERSION}` and compare with `solkit new shapes`",
        )


def _items(keys: Mapping[str, Item], name: str) -> list[Item]:
    return keys[name].items(name) if name in keys else []


def _known_operators(catalog: Catalog) -> str:
    return f"known operators: {', '.join(sorted(catalog.operators))}"


def _known_name(item: Item, known: Sequence[str], what: str) -> str:
    name = item.text(what)
    if name not in known:
        raise unknown(what, name, known, where=item.where)
    return name


def _dtypes(item: Item) -> tuple[str, ...]:
    return tuple(_known_name(dtype, CASE_DTYPES, "dtype") for dtype in item.each("dtype"))


def _params(item: Item | None, operator: OperatorInfo) -> dict[str, tuple[Param, ...]]:
    """Return the values of every param: those given, else the operator's default (its first)."""
    given = item.mapping("params") if item is not None else {}
    for name, value in given.items():
        if name not in operator.params:
            raise unknown(f"param of {operator.name!r}", name, operator.params, where=value.where)
    return {
        name: tuple(_allowed(value, name, allowed) for value in given[name].each(name))
        if name in given
        else tuple(allowed[:1])
        for name, allowed in operator.params.items()
    }


def _named(params: dict[str, Param], operator: OperatorInfo) -> dict[str, Param]:
    """Return the params that a case names: without the defaults that the operator leaves out."""
    unnamed = operator.unnamed_params
    return {
        name: value
        for name, value in params.items()
        if name not in unnamed or value != unnamed[name]
    }


def _allowed(item: Item, name: str, allowed: Sequence[Param]) -> Param:
    value = item.param(name)
    for known in allowed:
        same_kind = isinstance(known, bool) == isinstance(value, bool)
        # `no` and `1` are read as false and a number, but may be the very name that is meant
        if (same_kind and known == value) or (isinstance(known, str) and known == item.node.value):
            return known
    raise unknown(f"value of {name}", value, map(str, allowed), where=item.where)
