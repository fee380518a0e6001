"""Cases become jobs; what a device or a kernel can't do is said before anything is allocated."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from small_catalog import CARD, catalog

from solkit.bound import measured_roof, spec_roof
from solkit.declare.card import Card
from solkit.declare.catalog import CaseFacts, LocalCatalog
from solkit.errors import BadInput
from solkit.gpu import DeviceFacts
from solkit.model import Case, Ceilings, DramCeiling, Failed, Param, PipeCeiling, Skipped, Work
from solkit.plan.jobs import Plan, plan, plan_document
from solkit.plan.sweep import parse_sweep


def scale(kernel: str = "solkit", *, rows: int = 4, cols: int = 8, dtype: str = "fp32") -> Case:
    return Case("scale", kernel, {"rows": rows, "cols": cols}, dtype)


def product(dtype: str, **params: Param) -> Case:
    held = {"weight": "kn", "fast": False, **params}
    return Case("product", "solkit", {"M": 1000, "N": 1000, "K": 1000}, dtype, held)


def planned(*cases: Case, facts: DeviceFacts | None = None) -> Plan:
    return plan(cases, catalog(), device="cuda", gpu=CARD, facts=facts)


def reason(case: Case, facts: DeviceFacts | None = None) -> str:
    (skipped,) = planned(case, facts=facts).skipped
    return skipped.reason


class Broken(LocalCatalog):
    """A catalog whose declarations describe their cases wrongly."""

    def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:  # noqa: ARG002  # as declared
        """Return a problem, a negative count and a count beyond 2^63."""
        wrong = [
            CaseFacts(Work(0, 0), (), 0, problem="describing it raised KeyError: 'rows'"),
            CaseFacts(Work(-1, 0), (), 0),
            CaseFacts(Work(1, 0, {"fp32": 2**63}), (), 0),
        ]
        return wrong[: len(cases)]


def test_a_job_carries_work_bound_and_buffer_bytes() -> None:
    """1000^3 bf16: 2 GFLOP, 6 MB, 3 us of memory and 3.26 us of arithmetic on this card."""
    (job,) = planned(product("bf16")).jobs
    assert Work(4_000_000, 2_000_000, {"bf16_tensor": 2_000_000_000}) == job.work
    assert 6_000_000 == job.buffer_bytes
    assert pytest.approx(3.0e-6) == job.bound.memory_s
    assert pytest.approx(2e9 / 614.4e12) == job.bound.compute_s["bf16_tensor"]
    assert "compute:bf16_tensor" == job.bound.limiter
    assert ["product", "copy"] == [step.name for step in job.unfused]


def test_cases_that_differ_in_the_kernel_only_form_a_group() -> None:
    """Groups are measured together, whatever stands between their cases."""
    cases = [scale(), scale(rows=8), scale("even")]
    assert [["solkit", "even"], ["solkit"]] == [
        [job.case.kernel for job in group] for group in planned(*cases).groups()
    ]


def test_a_kernel_of_another_device_is_skipped() -> None:
    """The reference does not run on a GPU."""
    assert "the kernel 'numpy' runs on cpu, not on cuda" == reason(scale("numpy"))


def test_a_dtype_the_kernel_lacks_is_skipped() -> None:
    """The reason names what there is."""
    assert "the operator 'scale' has no fp64 (it has fp32, fp16, bf16)" == reason(
        scale(dtype="fp64")
    )


def test_numpy_skips_what_it_has_no_arithmetic_for() -> None:
    """NumPy would compute bf16 and fp16 in fp32 and time the conversions."""
    ceilings = Ceilings(
        "m", (DramCeiling("copy", 1000, 1000, 1e-6),), (PipeCeiling("fp32", 1, 1.0, "x"),)
    )
    found = plan(
        [scale("numpy"), scale("numpy", dtype="bf16"), scale("numpy", dtype="fp64")],
        catalog(),
        device="cpu",
        roof=measured_roof(ceilings),
        facts=DeviceFacts("cpu", "host"),
    )
    assert ["fp32", "fp64"] == [job.case.dtype for job in found.jobs]
    assert ["NumPy has fp32 and fp64 arithmetic only, bf16 needs a GPU"] == [
        item.reason for item in found.skipped
    ]


def test_a_card_that_is_too_old_is_skipped() -> None:
    """The compute capability of the probed device counts, not the text order of its digits."""
    old = DeviceFacts("cuda", "Old card", compute_capability="7.5")
    said = "the kernel 'solkit' needs compute capability 8.0, Old card has 7.5"
    assert said == reason(product("bf16"), old)
    new = DeviceFacts("cuda", "New card", compute_capability="10.0")
    assert 1 == len(planned(product("bf16"), facts=new).jobs)


def test_a_card_without_the_pipe_is_skipped() -> None:
    """A product needs its pipe; elementwise estimates need none."""
    assert "Example GPU 100 has no fp16 tensor pipe" == reason(product("fp16"))
    derived = replace(CARD, vendor="derived", absent_pipes=())
    (skipped,) = plan([product("fp16")], catalog(), device="cuda", gpu=derived).skipped
    assert "the peak of the fp16 tensor pipe of Example GPU 100 is unknown" in skipped.reason


def test_a_refused_shape_is_skipped_with_the_kernels_own_words() -> None:
    """The kernel `even` refuses odd cols."""
    assert "cols must be even" == reason(scale("even", cols=7))


@pytest.mark.parametrize(
    ("facts", "free"),
    [
        (None, "76.0 GiB are free on Example GPU 100"),
        (DeviceFacts("cuda", "Card", dram_free_bytes=2**30), "1.00 GiB are free on Card"),
        (DeviceFacts("cuda", "Card", dram_bytes=100 * 2**30), "95.0 GiB are free on Card"),
    ],
)
def test_a_shape_beyond_the_memory_is_skipped_with_need_and_free(
    facts: DeviceFacts | None, free: str
) -> None:
    """What is free counts, else 95 % of what there is."""
    said = reason(scale(rows=2**20, cols=2**15), facts)
    assert f"needs 256 GiB of memory, {free}" == said


def test_a_declaration_that_describes_wrongly_fails_its_case() -> None:
    """A problem or an impossible count costs the case, at the stage describe."""
    broken = Broken(catalog().registry)
    found = plan([scale(rows=rows) for rows in (1, 2, 3)], broken, device="cuda", gpu=CARD)
    assert ["describe"] * 3 == [item.stage for item in found.failed]
    assert "KeyError" in found.failed[0].message
    assert "is no count" in found.failed[1].message
    assert "mend work" in found.failed[2].remedy


def test_without_card_and_roof_there_is_no_plan() -> None:
    """A bound needs limits."""
    with pytest.raises(BadInput, match="needs a card"):
        plan([scale()], catalog(), device="cuda")


def test_the_document_holds_every_number_in_si_units() -> None:
    """`solkit plan --json`: others rely on these keys, in this order."""
    found = plan_document(planned(product("bf16"), scale("numpy")), CARD)
    assert ["gpu", "cases", "skipped"] == list(found)
    (case,) = found["cases"]
    assert "example_100" == found["gpu"]
    assert [
        "operator",
        "kernel",
        "dtype",
        "shape",
        "params",
        "read_bytes",
        "write_bytes",
        "flop",
        "memory_s",
        "compute_s",
        "sol_s",
        "limiter",
        "intensity_flop_per_byte",
        "unfused_sol_s",
    ] == list(case)
    assert {"M": 1000, "N": 1000, "K": 1000} == case["shape"]
    assert {"bf16_tensor": 2_000_000_000} == case["flop"]
    assert pytest.approx(2e9 / 614.4e12) == case["compute_s"] == case["sol_s"]
    assert pytest.approx(2e9 / 6e6) == case["intensity_flop_per_byte"]
    assert pytest.approx(2e9 / 614.4e12 + 1e-9) == case["unfused_sol_s"]
    assert "the kernel 'numpy' runs on cpu, not on cuda" == found["skipped"][0]["reason"]


def test_outcomes_of_planning_keep_their_types() -> None:
    """Skipped and Failed are the run's own types: they go into its file as they are."""
    found = planned(scale("numpy"))
    assert all(isinstance(item, Skipped) for item in found.skipped)
    assert all(isinstance(item, Failed) for item in found.failed)


def test_ten_thousand_cases_are_planned_and_none_is_lost() -> None:
    """The most that a sweep holds without --max-cases; benchmarks/speed.py times it."""
    grid = "{rows: {from: 1, to: 5000, step: 1}, cols: 8}"
    text = f"version: 1\nsweeps:\n- {{operator: scale, grid: {grid}}}"
    cases = parse_sweep(text, catalog(), file="s.yaml").cases
    found = plan(cases, catalog(), device="cuda", roof=spec_roof(CARD), gpu=CARD)
    assert 10_000 == len(found.jobs)


def test_a_case_without_work_is_skipped_with_the_axes_that_are_0() -> None:
    """No work model is asked: one that divides by an extent would raise."""

    class Deaf(LocalCatalog):
        def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:
            raise AssertionError(cases, card)

    empty = [scale(rows=0), scale(rows=0, cols=0)]
    found = plan(empty, Deaf(catalog().registry), device="cuda", gpu=CARD)
    assert ["nothing to do: rows is 0", "nothing to do: rows and cols are 0"] == [
        skipped.reason for skipped in found.skipped
    ]
    assert ((), ()) == (found.jobs, found.failed)


def test_an_extent_of_0_is_read_and_its_neighbours_are_measured() -> None:
    """In a list, on the command line or in a file alike; a range begins at 1."""
    text = "version: 1\nsweeps: [{operator: scale, kernels: solkit, grid: {rows: [0, 4], cols: 8}}]"
    found = plan(
        parse_sweep(text, catalog(), file="s.yaml").cases, catalog(), device="cuda", gpu=CARD
    )
    assert [{"rows": 4, "cols": 8}] == [job.case.shape for job in found.jobs]
    assert ["nothing to do: rows is 0"] == [skipped.reason for skipped in found.skipped]
