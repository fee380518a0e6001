"""Pictures of rooflines: SVG or PNG, cards over each other, points of a run."""

import re
from pathlib import Path

import charted_runs as runs
import pytest

from solkit.bound import Roof
from solkit.errors import BadInput
from solkit.gpu import Gpu
from solkit.judge.score import score
from solkit.report import roofline
from solkit.report.roofs import RoofLine, _apart, lines_for

H200, B200 = runs.card(), runs.card("b200_test", "NVIDIA B200", 2.2)


def labels(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_one_card_shows_every_pipe_people_compare_with_its_number(tmp_path: Path) -> None:
    """Four ceilings and a slope, each with number and unit."""
    roofline.draw(tmp_path / "a.svg", gpus=(H200,))
    assert {
        "fp8 tensor 1.98 PFLOP/s",
        "bf16 tensor 989 TFLOP/s",
        "tf32 tensor 495 TFLOP/s",
        "fp32 66.9 TFLOP/s",
        "DRAM 4.8 TB/s (spec)",
    } <= set(labels(tmp_path / "a.svg"))


def test_two_cards_are_drawn_over_each_other_each_with_its_name(tmp_path: Path) -> None:
    """Colour is never the only sign: every line carries its card's name."""
    roofline.draw(tmp_path / "a.svg", gpus=(H200, B200))
    found = labels(tmp_path / "a.svg")
    assert {"H200 bf16 989 TFLOP/s", "B200 bf16 2.18 PFLOP/s", "DRAM 10.6 TB/s (B200)"} <= set(
        found
    )


def test_many_cards_show_their_matrix_pipe_alone(tmp_path: Path) -> None:
    """Thirty-two ceilings would be a grid, not a roofline."""
    cards = tuple(runs.card(f"card{index}", f"Card {index}", 1 + index / 5) for index in range(8))
    roofline.draw(tmp_path / "a.svg", gpus=cards)
    found = labels(tmp_path / "a.svg")
    assert 8 == sum(" bf16 " in label for label in found)
    assert not any(" fp32 " in label for label in found)


def test_the_points_of_a_run_stand_under_the_roofs_of_their_pipe(tmp_path: Path) -> None:
    """A run brings its spec, clock and measured roofs, and its points."""
    run = runs.big_run()
    roofline.draw(tmp_path / "a.svg", run=run, judged=score(run))
    found = labels(tmp_path / "a.svg")
    assert {"fp32 pipe, estimated work", "bf16 tensor pipe, dense", "measured 802 TFLOP/s"} <= set(
        found
    )
    assert "matmul_add/solkit bf16" in found
    assert "<a " not in (tmp_path / "a.svg").read_text(
        encoding="utf-8"
    )  # it has no table to lead to


def test_a_processor_is_drawn_by_its_measured_ceilings(tmp_path: Path) -> None:
    """No spec file, no published roof, still a roofline."""
    roofline.draw(tmp_path / "a.svg", run=runs.cpu_run())
    found = labels(tmp_path / "a.svg")
    assert "fp32, measured 51.2 TFLOP/s" in found
    assert "DRAM 4.33 TB/s (measured)" in found


def test_more_cards_than_a_picture_holds_are_refused(tmp_path: Path) -> None:
    """Labels that leave the picture name nothing."""
    with pytest.raises(BadInput, match="13 cards don't fit one picture"):
        roofline.draw(tmp_path / "a.svg", gpus=[H200] * 13)
    assert not (tmp_path / "a.svg").exists()


def test_a_png_is_written_by_its_suffix(tmp_path: Path) -> None:
    """The suffix says the format, in either case of letters."""
    roofline.draw(tmp_path / "a.PNG", gpus=(H200,))
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["a.pdf", "a"])
def test_another_suffix_names_the_two_that_work(tmp_path: Path, name: str) -> None:
    """Nothing is written under a format nobody asked for."""
    with pytest.raises(BadInput, match=r"\.svg or \.png"):
        roofline.draw(tmp_path / name, gpus=(H200,))


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    """An empty picture helps nobody."""
    with pytest.raises(BadInput, match="no card, no run") as caught:
        roofline.draw(tmp_path / "a.svg")
    assert "--gpu" in caught.value.remedy
    assert not (tmp_path / "a.svg").exists()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The reason of the operating system is kept."""
    with pytest.raises(BadInput, match="can't be written"):
        roofline.draw(tmp_path / "missing" / "a.svg", gpus=(H200,))


def test_the_same_cards_give_the_same_bytes(tmp_path: Path) -> None:
    """A picture in a repository changes only with its numbers."""
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        roofline.draw(tmp_path / name, gpus=(H200, B200))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_card_without_bf16_is_compared_by_fp16() -> None:
    """Cards before bf16 have matrix pipes too."""
    old = runs.card()
    del old.pipes["bf16_tensor"]
    assert ["fp16_tensor"] == roofline.compared_pipes(old, 9)
    assert ["fp8_tensor", "fp16_tensor", "tf32_tensor", "fp32"] == roofline.compared_pipes(old, 1)


def test_the_ridge_is_peak_over_bandwidth() -> None:
    """989.4 TFLOP/s over 4.8 TB/s is 206 FLOP a byte, and the roof bends there."""
    line = RoofLine("spec", "spec", 4.8e12, 989.4e12)
    assert line.ridge_flop_per_byte == pytest.approx(206.125)
    assert line.at(100) == pytest.approx(480e12)
    assert line.at(1000) == pytest.approx(989.4e12)


def test_a_pipe_that_was_never_measured_leaves_the_slope() -> None:
    """Unknown is never drawn as a ceiling."""
    (line,) = lines_for(("fp8_tensor",), [("measured", "measured", Roof("measured", 1e12, {}))])
    assert line.flop_per_s is None


def test_labels_are_moved_apart_as_little_as_need_be() -> None:
    """Numbers on near ceilings stay readable and in order."""
    assert [3.5, 16.5, 100.0] == _apart([10.0, 10.0, 100.0], 13.0)


def test_overlaid_cards_of_one_family_are_all_drawn(tmp_path: Path) -> None:
    """A run on one card beside the roofs of another keeps both."""
    run = runs.big_run()
    cards: tuple[Gpu, ...] = (H200, B200)
    roofline.draw(tmp_path / "a.svg", gpus=cards, run=run, judged=score(run))
    assert {"B200 147 TFLOP/s", "spec 66.9 TFLOP/s"} <= set(labels(tmp_path / "a.svg"))
