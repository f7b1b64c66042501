"""A picture of dots is well-formed, complete and inside its frame."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from compoworld_core.training.dots import Dot, Line, draw_lines, stack

SVG = "{http://www.w3.org/2000/svg}"
MEASURES = ("full & <passed>", "earned")


def picture(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(draw_lines(lines, measures=MEASURES, title="t", x_label="share"))


@pytest.mark.parametrize("scale", [0.0, 0.04, 1.0])
def test_nothing_leaves_the_frame(scale: float) -> None:
    lines = [Line(f"arm {place}", [Dot(scale / 2, 0.0, scale), Dot(scale, scale / 2, scale)]) for place in range(8)]

    drawn = picture(*lines)

    _, _, width, height = map(float, drawn.attrib["viewBox"].split())
    circles = [(float(item.attrib["cx"]), float(item.attrib["cy"])) for item in drawn.iter(f"{SVG}circle")]
    assert len(circles) == len(MEASURES) + 2 * len(lines)
    assert all(0 < x < width and 0 < y < height for x, y in circles)
    assert len({circle[1] for circle in circles[len(MEASURES) :]}) == 2 * len(lines), "none hides another"


def test_a_larger_share_is_further_right_and_a_missing_one_is_left_out() -> None:
    drawn = picture(Line("a", [Dot(0.2, 0.1, 0.3), None]), Line("b", [Dot(0.8, 0.7, 0.9), None]))

    few, many = [float(item.attrib["cx"]) for item in drawn.iter(f"{SVG}circle")][len(MEASURES) :]

    assert few < many


def test_pictures_are_stacked_without_overlap() -> None:
    one = draw_lines([Line("a", [Dot(0.2, 0.1, 0.3)])], measures=["m"], title="t", x_label="share")

    stacked = ElementTree.fromstring(stack([one, one, one]))

    inner = stacked.findall(f"{SVG}svg")
    height = float(inner[0].attrib["height"])
    assert [float(item.attrib["y"]) for item in inner] == [0, height, 2 * height]
    assert float(stacked.attrib["viewBox"].split()[3]) == 3 * height
