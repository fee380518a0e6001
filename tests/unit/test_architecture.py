"""The rules of the house that no single module can hold."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import solkit

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "solkit"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)
WINGS = ("declare", "plan", "measure", "judge", "report", "cli")
# Wings that must not know of a later or a forbidden one, although it stands before them.
NEVER = {"judge": {"measure"}, "report": {"measure"}}
# Top-level modules that are doors and programs, not vocabulary: nothing imports them, but a Run
# that shows itself in a notebook.
DOORS = {
    "solkit.__init__": {"declare", "report"},  # the public names, loaded when asked for
    "solkit.__main__": {"cli"},
}
UNITS = (
    "_s",
    "_hz",
    "_bytes",
    "_flop",
    "_w",
    "_j",
    "_c",
    "_fraction",
    "_count",
    "_per_s",
    "_per_byte",
    "_per_clock_per_sm",
    "_per_direction",
)
# Floats that have no unit, one by one: parameters of distributions, a kernel's own numbers, ratios
# that CSV files and people know by these names, and coordinates inside a drawing.
DIMENSIONLESS = {
    ("Form", "alpha"),  # of cuBLAS
    ("Form", "beta"),
    ("DType", "largest"),
    ("Normal", "std"),
    ("Uniform", "low"),
    ("Uniform", "high"),
    ("Launch", "args"),
    ("Scored", "sol_score"),
    ("Scored", "sol_clock"),
    ("Scored", "sol_measured"),
    ("Scored", "fusion_gain"),
    ("Scored", "gap_score"),
    ("Gating", "fail_under"),
    ("GateFile", "fail_under"),  # the keys of gate.toml
    ("GateFile", "min_effect"),
    ("OperatorTable", "fail_under"),
    ("OperatorTable", "min_effect"),
    ("CaseEntry", "sol_score"),
    ("Change", "p_value"),  # a chance
    ("FloorCurve", "places"),
    ("StreamCurve", "places"),
    ("_Dot", "at"),
    ("_Grid", "x_limits"),
    ("_Grid", "y_limits"),
}


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each module a file imports, and whether that happens at import time of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or _is_for_types(node)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) not in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            module = node.module or ""
            yield module, id(node) not in late
            yield from ((f"{module}.{alias.name}", id(node) not in late) for alias in node.names)


def _is_for_types(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def wing_of(module: str) -> str | None:
    """Return the wing a dotted name lies in; None for the vocabulary and for others' modules."""
    parts = module.split(".")
    return parts[1] if parts[0] == "solkit" and len(parts) > 1 and parts[1] in WINGS else None


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_wing_imports_only_the_vocabulary_and_earlier_wings(path: Path) -> None:
    """Data flows one way and imports follow it; judge and report never see measure."""
    own = wing_of(name_of(path))
    met = {wing for module, _ in imports(path) if (wing := wing_of(module))}
    if own is None:
        allowed = DOORS.get(name_of(path), set())
    else:
        allowed = set(WINGS[: WINGS.index(own) + 1]) - NEVER.get(own, set())
    assert set() == met - allowed


def test_only_a_run_in_a_notebook_goes_through_the_public_door() -> None:
    """Every other module imports a name from its home."""
    public = {f"solkit.{name}" for name in solkit.__all__}
    assert {"solkit.model"} == {
        name_of(path) for path in MODULES for module, _ in imports(path) if module in public
    }


def test_nothing_imports_a_door() -> None:
    """What may look into a later wing must not be reached from an earlier one."""
    doors = set(DOORS) - {"solkit.__init__"}
    assert set() == {
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module, _ in imports(path)
        if module in doors
    }


@pytest.mark.parametrize(
    ("library", "door"),
    [
        ("cupy", "measure/device/cuda"),
        ("cupyx", "measure/device/cuda"),
        ("pynvml", "measure/device/nvml.py"),
    ],
)
def test_an_effect_has_one_door(library: str, door: str) -> None:
    """Only one place knows a GPU library, so that everything else runs without it."""
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if any(module.split(".")[0] == library for module, _ in imports(path))
    }
    assert set() == {name for name in importers if name != door and not name.startswith(f"{door}/")}


def test_the_pure_wings_and_the_vocabulary_need_the_standard_library_only() -> None:
    """What judges and what everyone shares loads nothing heavy, at import or later."""
    pure = [path for path in MODULES if path.parent == PACKAGE or wing_of(name_of(path)) == "judge"]
    strange = {
        f"{name_of(path)} imports {module}"
        for path in pure
        for module, at_import in imports(path)
        if at_import and module.split(".")[0] not in {"solkit", *sys.stdlib_module_names}
    }
    assert set() == strange


def dataclass_floats() -> Iterator[tuple[str, str, Path]]:
    """Yield class, field and file of every float (or collection of floats) in a dataclass."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
            if "dataclass" not in decorators:
                continue
            for field in node.body:
                if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                    continue
                names = {
                    inner.id for inner in ast.walk(field.annotation) if isinstance(inner, ast.Name)
                }
                if "float" in names and "Callable" not in names:
                    yield node.name, field.target.id, path


def test_a_float_carries_its_unit_in_its_name() -> None:
    """SI units inside, in every field's name; what has no unit is listed one by one."""
    fields = list(dataclass_floats())
    assert len(fields) > 40
    assert set() == {
        f"{path.relative_to(ROOT)}: {owner}.{name}"
        for owner, name, path in fields
        if not name.endswith(UNITS) and (owner, name) not in DIMENSIONLESS
    }
    stale = DIMENSIONLESS - {(owner, name) for owner, name, _ in fields}
    assert set() == stale


def test_public_names_are_sorted_and_complete() -> None:
    """`__all__` is what can be imported from solkit, each name from its one home."""
    assert sorted(solkit.__all__) == solkit.__all__
    assert sorted(solkit._HOMES) == solkit.__all__
    for name, home in solkit._HOMES.items():
        assert getattr(import_module(home), name) is getattr(solkit, name)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    """A misspelt name fails as in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Kernle'"):
        _ = solkit.Kernle


@pytest.mark.parametrize("folder", ["kernels", "hardware_specs", "reports"])
def test_a_data_folder_is_no_package(folder: str) -> None:
    """Data is found by path: a package named `kernels` exists elsewhere and would be met."""
    assert (ROOT / folder).is_dir()
    assert [] == sorted(str(path) for path in (ROOT / folder).rglob("__init__.py"))
    assert set() == {
        name_of(path)
        for path in MODULES
        if any(module.split(".")[0] == folder for module, _ in imports(path))
    }


def test_help_loads_nothing_heavy() -> None:
    """`solkit --help` answers at once: no array, plot, schema or GPU library is loaded for it."""
    code = (
        "import sys\n"
        "sys.argv = ['solkit', '--help']\n"
        "from solkit.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "heavy = {'numpy', 'pydantic', 'matplotlib', 'yaml', 'jinja2', 'cupy', 'pynvml'}\n"
        "heavy.add('pyarrow')\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ("", 0) == (done.stderr, done.returncode)
    assert "loaded:" == done.stdout.strip().splitlines()[-1].strip()


def test_the_readme_gives_ci_its_two_commands() -> None:
    """CI runs what the README says, found by these marks, so the two cannot drift apart."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for mark, command in (
        ("setup", "solkit run --shapes examples/shapes.yaml"),
        ("test", "pytest"),
    ):
        assert 1 == text.count(f"<!-- ci:{mark} -->")
        block = text.partition(f"<!-- ci:{mark} -->")[2].split("```")[1]
        assert command in block
        assert 1 == len(block.strip().splitlines()[1:])


def test_constraints_hold_names_and_versions_only() -> None:
    """No address and no hash: any index serves them."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) > 20
    assert [] == [line for line in pins if not _is_pin(line)]


def _is_pin(line: str) -> bool:
    name, _, version = line.partition("==")
    return re.sub(r"[-.]", "", name).isalnum() and version.replace(".", "").isalnum()
