"""Declarations are found by path; what a file does wrong is said with its name and line."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from solkit.declare import fp8, registry
from solkit.declare.arg import Arg, Indices
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, bundled, load, reference_kernel
from solkit.errors import BadInput
from solkit.model import Work

TWICE = """
from solkit import Arg, Kernel, Operator, Work
OPERATOR = Operator(
    name="twice",
    args=(Arg("x", "rows"), Arg("y", "rows", "out")),
    work=lambda case: Work(1, 1),
    reference=lambda x: 2 * x,
)
def fast(x, y):
    y[...] = 2 * x
KERNELS = [Kernel(name="fast", operator=OPERATOR, function=fast)]
AGAIN = KERNELS[0]
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a declaration file and gives its path."""

    def written(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def operator(name: str = "twice") -> Operator:
    return Operator(
        name=name,
        args=(Arg("x", "rows"), Arg("y", "rows", "out")),
        work=lambda _case: Work(1, 1),
        reference=lambda x: 2 * x,
    )


def kernel(of: Operator | str, name: str = "fast", device: str = "cuda") -> Kernel:
    return Kernel(name=name, operator=of, function=print, device=device)  # type: ignore[arg-type]


def test_a_file_declares_what_its_names_hold(write: Write) -> None:
    """Objects and lists of them, each once; a kernel knows the folder it came from."""
    path = write(TWICE)
    found = load(path)
    assert [Operator, Kernel] == [type(item) for item in found]
    assert isinstance(found[1], Kernel)
    assert path.parent == found[1].folder


def test_a_folder_declares_what_its_files_do(write: Write) -> None:
    """Every .py directly in it, in the order of names."""
    write(TWICE.replace('"twice"', '"later"'), "b.py")
    path = write(TWICE, "a.py")
    names = [item.name for item in load(path.parent) if isinstance(item, Operator)]
    assert ["twice", "later"] == names


def test_a_folder_without_declarations_is_refused(write: Write) -> None:
    """An empty --load is a mistake, not a success."""
    path = write("x = 1")
    with pytest.raises(BadInput, match=r"no \.py file in it declares"):
        load(path.parent)


@pytest.mark.parametrize("name", ["missing.py", "notes.txt"])
def test_what_is_no_python_file_is_refused(tmp_path: Path, name: str) -> None:
    """Missing, or of another kind."""
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(BadInput, match=name) as caught:
        load(tmp_path / name)
    assert "--load takes a .py file" in caught.value.remedy


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (r"importing it raised ZeroDivisionError: .* \(line 2\)", "x = 1\nx / 0\n"),
        (r"importing it raised SystemExit: 3 \(line 1\)", "raise SystemExit(3)\n"),
        (r"importing it raised SyntaxError", "def (:\n"),
        (
            r"mine\.py: operator 'half': no argument has the role",
            "import solkit\nsolkit.Operator(name='half', args=(), work=print, reference=print)\n",
        ),
    ],
)
def test_a_file_that_breaks_on_import_is_named_with_its_line(
    write: Write, words: str, text: str
) -> None:
    """Whatever it raises: exiting is its fault, too."""
    with pytest.raises(BadInput, match=words):
        load(write(text))


def test_an_operator_brings_its_reference_as_a_kernel_of_the_cpu() -> None:
    """Named `numpy`, in the dtypes that NumPy computes in."""
    held = Registry()
    held.add([operator()], where="here")
    reference = held.kernels["twice", "numpy"]
    assert ("cpu", ("fp64", "fp32")) == (reference.device, reference.dtypes)
    assert ("numpy",) == held.kernel_names("twice", "cpu")
    assert () == held.kernel_names("twice", "cuda")


def test_the_reference_kernel_writes_the_outputs() -> None:
    """One array, or several in the order of the outputs; in place where so declared."""
    x, y = np.arange(3.0), np.zeros(3)
    run = reference_kernel(operator()).function
    assert run is not None
    run(x=x, y=y)
    assert [0.0, 2.0, 4.0] == y.tolist()
    both = Operator(
        name="both",
        args=(Arg("x", "rows"), Arg("state", "rows", "inout"), Arg("y", "rows", "out")),
        work=lambda _case: Work(1, 1),
        reference=lambda x, state: (state + x, state - x),
    )
    run = reference_kernel(both).function
    assert run is not None
    state = np.ones(3)
    run(x=x, state=state, y=y)
    assert ([1.0, 2.0, 3.0], [1.0, 0.0, -1.0]) == (state.tolist(), y.tolist())


def test_kernels_refer_to_operators_in_any_order() -> None:
    """By name, where the operator comes later in the same file, or in an earlier one."""
    held = Registry()
    held.add([kernel("twice"), operator()], where="first")
    held.add([kernel("twice", "other")], where="second")
    assert [("twice", "numpy"), ("twice", "fast"), ("twice", "other")] == list(held.kernels)
    assert ("fast", "other") == held.kernel_names("twice", "cuda")


def test_a_kernel_can_carry_its_operator() -> None:
    """A file that declares only kernels brings the operator and its reference with them."""
    held, carried = Registry(), operator()
    held.add([kernel(carried), kernel(carried, "other")], where="here")
    assert carried is held.operators["twice"]
    assert {"numpy", "fast", "other"} == {name for _, name in held.kernels}


@pytest.mark.parametrize(
    ("words", "declarations"),
    [
        ("here: the operator 'twice' is declared already", [operator()]),
        ("here: kernel 'fast' carries another operator named 'twice'", [kernel(operator())]),
        ("here: 'twice' has a kernel 'fast' already", [kernel("twice")]),
        ("here: 'twice' has a kernel 'numpy' already", [kernel("twice", "numpy", "cpu")]),
        ("here: unknown operator of kernel 'fast': 'twise'", [kernel("twise")]),
    ],
)
def test_a_name_declared_twice_is_an_error_and_not_a_choice(
    words: str, declarations: list[Operator | Kernel]
) -> None:
    """Where, what, and which name is taken or unknown."""
    held = Registry()
    held.add([operator(), kernel("twice")], where="before")
    with pytest.raises(BadInput, match=words) as caught:
        held.add(declarations, where="here")
    assert caught.value.remedy


def test_a_loader_that_python_does_not_know_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python itself says which files it can import."""
    nobody = SimpleNamespace(spec_from_file_location=lambda _name, _path: None)
    monkeypatch.setattr(registry.importlib, "util", nobody)  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="is no Python file"):
        load(write(TWICE))


def test_the_bundled_declarations_load_by_the_same_road() -> None:
    """The operators that are promised are there, each with its reference and a CUDA kernel."""
    held = bundled()
    promised = {"copy", "matmul_add", "add_rmsnorm", "swiglu", "bias_gelu", "softmax"}
    promised |= {"matmul", "matmul_bias", "matmul_bias_gelu", "matmul_add_bias"}
    assert promised <= set(held.operators)
    for name in promised:
        assert ("numpy",) == held.kernel_names(name, "cpu")
        assert held.kernel_names(name, "cuda")


def test_the_reference_kernel_stores_what_is_nearest() -> None:
    """Integers are rounded, 8-bit floats become codes; integers reach the reference as floats."""
    seen: dict[str, Any] = {}

    def reference(x: Any, index: Any, mask: Any = None) -> tuple[Any, ...]:
        seen.update(index=index, mask=mask)
        return x + 0.7, x / 4

    declared = Operator(
        name="stores",
        args=(
            Arg("x", "n"),
            Arg("index", "n", dtype="int32", init=Indices(of="n")),
            Arg("mask", "n", when={"masked": (True,)}),
            Arg("whole", "n", "out", dtype="int32"),
            Arg("code", "n", "out", dtype="fp8_e4m3"),
        ),
        work=lambda _case: Work(1, 1),
        reference=reference,
        params={"masked": (False, True)},
    )
    function = reference_kernel(declared).function
    assert function is not None
    whole, code = np.zeros(3, np.int32), np.zeros(3, np.uint8)
    function(
        x=np.array([1.0, 4.0, -9.0]), index=np.arange(3, dtype=np.int32), whole=whole, code=code
    )
    assert [2, 5, -8] == whole.tolist()
    assert [0.25, 1.0, -2.25] == fp8.decoded(code).tolist()
    assert (np.float64, None) == (seen["index"].dtype, seen["mask"])


def test_the_reference_kernel_stores_in_the_argument_that_the_case_has() -> None:
    """Two share a name: codes for one value of the param, floats for the other."""
    out = Arg("y", "n", "out", dtype="fp8_e4m3", when={"stored": ("code",)})
    declared = Operator(
        name="stores",
        args=(Arg("x", "n"), out, Arg("y", "n", "out", dtype="fp32", when={"stored": ("plain",)})),
        work=lambda _case: Work(1, 1),
        reference=lambda x: x,
        params={"stored": ("code", "plain")},
    )
    function = reference_kernel(declared).function
    assert function is not None
    codes, plain = np.zeros(2, np.uint8), np.zeros(2, np.float32)
    function(x=np.array([1.0, -2.25]), y=codes, stored="code")
    function(x=np.array([1.0, -2.26]), y=plain, stored="plain")
    assert [1.0, -2.25] == fp8.decoded(codes).tolist()
    assert [1.0, np.float32(-2.26)] == plain.tolist()
