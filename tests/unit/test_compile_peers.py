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


def test_a_product_s_extents_are_run_time_values_of_quack_and_choices_of_triton() -> None:
    """It compiles quack once for a dtype and layout; what Triton compiles depends on the rows."""

    def product(kernel: str, rows: int, weight: str = "kn") -> Case:
        shape = {"M": rows, "N": 4096, "K": 4096}
        return Case("matmul_add", kernel, shape, "bf16", {"weight": weight})

    cases = [
        product("triton", 16),
        product("triton", 8192),
        product("quack_tuned", 16),
        product("quack_tuned", 8192),
        product("quack_tuned", 8192, "nk"),
    ]
    assert [cases[0], cases[2], cases[1], cases[4]] == distinct(cases)
