"""Shares with their intervals as an SVG picture: a line for each of what is compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from compoworld_core.training.curves import BOTTOM, COLOURS, HEIGHT, RIGHT, TICKS, TOP, WIDTH, paper, round_up, text

_LABELS: Final = 200
_APART: Final = 14
_LEGEND: Final = 150


@dataclass(frozen=True)
class Dot:
    """A value, and where it is believed to lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """What is compared with other lines.

    Attributes:
        dots: One for each measure; None where there is none.
    """

    name: str
    dots: Sequence[Dot | None]


def draw_lines(lines: Sequence[Line], *, measures: Sequence[str], title: str, x_label: str) -> str:
    """The picture. The horizontal axis starts at 0.

    Args:
        lines: From top to bottom; at least one.
        measures: Names of the dots of each line.
        title: What is seen.
        x_label: With its unit.
    """
    right = round_up(max((dot.high for line in lines for dot in line.dots if dot), default=1.0))
    pitch = (HEIGHT - TOP - BOTTOM) / len(lines)

    def across(x: float) -> float:
        return _LABELS + x / right * (WIDTH - _LABELS - RIGHT)

    parts = [
        paper(title),
        text(20, 24, title, size=15),
        text((_LABELS + WIDTH) / 2, HEIGHT - 12, x_label, anchor="middle"),
    ]
    for tick in range(TICKS + 1):
        x = tick / TICKS * right
        parts.append(f'<path class="grid" d="M{across(x):.1f},{TOP} V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(text(across(x), HEIGHT - BOTTOM + 18, f"{x:.3g}", anchor="middle"))
    for place, name in enumerate(measures):
        left = WIDTH - RIGHT - _LEGEND * (len(measures) - place)
        parts.append(f'<circle cx="{left}" cy="20" r="4" fill="{COLOURS[place % len(COLOURS)]}"/>')
        parts.append(text(left + 12, 24, name))
    for place, line in enumerate(lines):
        middle = TOP + (place + 0.5) * pitch
        parts.append(text(_LABELS - 10, middle + 4, line.name, anchor="end"))
        for index, dot in enumerate(line.dots):
            if dot is None:
                continue
            y = middle + (index - (len(line.dots) - 1) / 2) * _APART
            colour = COLOURS[index % len(COLOURS)]
            parts.append(
                f'<path d="M{across(max(dot.low, 0)):.1f},{y:.1f} H{across(dot.high):.1f}" stroke="{colour}" '
                'stroke-width="2"/>'
            )
            parts.append(f'<circle cx="{across(dot.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>", ""])


def stack(pictures: Sequence[str]) -> str:
    """Pictures of this size as one, below each other."""
    placed = (
        re.sub("^<svg ", f'<svg y="{place * HEIGHT}" width="{WIDTH}" height="{HEIGHT}" ', picture)
        for place, picture in enumerate(pictures)
    )
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(pictures)}">'
    return "\n".join([frame, *placed, "</svg>", ""])
