"""A picture of curves is well-formed, complete and inside its frame."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from compoworld_core.training.curves import Curve, draw

SVG = "{http://www.w3.org/2000/svg}"


def curve(name: str, *y: float) -> Curve:
    return Curve(name, list(range(1, len(y) + 1)), y, [value - 0.1 for value in y], [value + 0.1 for value in y])


def test_each_curve_has_a_line_a_band_and_a_name() -> None:
    picture = ElementTree.fromstring(
        draw([curve("a < b & c", 0.1, 0.5), curve("d", 0.2, 0.3)], title="t", x_label="x", y_label="y")
    )

    words = [item.text for item in picture.iter(f"{SVG}text")]
    assert len(list(picture.iter(f"{SVG}polyline"))) == len(list(picture.iter(f"{SVG}polygon"))) == 2
    assert {"a < b & c", "d", "t", "x", "y"} <= set(words)


def test_a_curve_without_a_band_has_none() -> None:
    bare = Curve("a", [0, 1], [0.0, 0.0])

    picture = ElementTree.fromstring(draw([bare], title="t", x_label="x", y_label="y"))

    assert len(list(picture.iter(f"{SVG}polyline"))) == 1
    assert not list(picture.iter(f"{SVG}polygon"))


@pytest.mark.parametrize("scale", [0.02, 0.9, 1.0, 7.0, 1234.0])
def test_nothing_leaves_the_frame(scale: float) -> None:
    picture = ElementTree.fromstring(draw([curve("a", 0.0, scale, scale / 2)], title="t", x_label="x", y_label="y"))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())

    points = [
        tuple(map(float, point.split(",")))
        for kind in ("polyline", "polygon")
        for item in picture.iter(f"{SVG}{kind}")
        for point in item.attrib["points"].split()
    ]

    assert all(0 <= across <= width and 0 <= up <= height for across, up in points)


def test_higher_values_are_higher_in_the_picture() -> None:
    picture = ElementTree.fromstring(draw([curve("a", 0.2, 0.8)], title="t", x_label="x", y_label="y"))
    (line,) = picture.iter(f"{SVG}polyline")

    low, high = (float(point.split(",")[1]) for point in line.attrib["points"].split())

    assert high < low
