"""Compiling ahead what the peers compile: which cases are called for it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from compile_peers import distinct

from solkit import Case


def case(kernel: str, rows: int, cols: int = 4096, dtype: str = "bf16") -> Case:
    return Case("rmsnorm", kernel, {"rows": rows, "cols": cols}, dtype)


def test_torch_compile_is_told_every_extent() -> None:
    """Each shape is compiled, once."""
    cases = [case("torch_compile", rows) for rows in (64, 1, 64)]
    assert [case("torch_compile", 1), case("torch_compile", 64)] == distinct(cases)


def test_a_library_s_kernel_is_called_for_the_fewest_rows_it_is_compiled_the_same_for() -> None:
    """Rows are a run-time value of Liger and quack; columns and dtype are not."""
    cases = [
        case("quack", 8192),
        case("quack", 16),
        case("quack", 16, cols=2560),
        case("quack", 64, dtype="fp16"),
        case("liger", 512),
    ]
    assert cases[1:] == distinct(cases)
