"""Curves with bands as an SVG picture: few marks, no scripts, readable by itself or in a page, which may colour it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 400
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 50
_LEGEND_LINE: Final = 18
TICKS: Final = 5
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Told apart by people with any colour vision (Okabe and Ito)."""


@dataclass(frozen=True)
class Curve:
    """A line, and the band in which it is believed to lie, if there is one.

    Attributes:
        x: Rising.
        low: As long as `x`, like `y` and `high`, or empty.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def draw(curves: Sequence[Curve], *, title: str, x_label: str, y_label: str) -> str:
    """The picture. The vertical axis starts at 0.

    Args:
        curves: At least one, each with two points or more.
        title: What is seen.
        x_label: With its unit.
        y_label: With its unit.
    """
    right = max(max(curve.x) for curve in curves)
    top = round_up(max(max(curve.high or curve.y) for curve in curves))

    def place(x: float, y: float) -> str:
        across = LEFT + x / right * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - max(y, 0.0) / top * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{up:.1f}"

    parts = [
        paper(title),
        text(LEFT, 24, title, size=15),
        text(WIDTH / 2, HEIGHT - 12, x_label, anchor="middle"),
        text(16, HEIGHT / 2, y_label, anchor="middle", turned=True),
    ]
    for tick in range(TICKS + 1):
        share = tick / TICKS
        across, _, up = place(share * right, share * top).partition(",")
        start, _, floor = place(0, 0).partition(",")
        parts.append(f'<path class="grid" d="M{start},{up} H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, float(up) + 4, f"{share * top:.3g}", anchor="end"))
        parts.append(text(float(across), float(floor) + 18, f"{share * right:.4g}", anchor="middle"))
    for index, curve in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        line = [place(*point) for point in zip(curve.x, curve.y, strict=True)]
        if curve.high:
            upper = [place(*point) for point in zip(curve.x, curve.high, strict=True)]
            lower = [place(*point) for point in zip(curve.x, curve.low, strict=True)]
            parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" fill-opacity="0.15"/>')
        parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        height = TOP + 12 + index * _LEGEND_LINE
        parts.append(f'<path d="M{LEFT + 12},{height} h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(text(LEFT + 44, height + 4, curve.name))
    return "\n".join([*parts, "</svg>", ""])


def paper(title: str) -> str:
    """How a picture begins: empty, and named for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curves" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{escape(title)}">\n'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 13, turned: bool = False) -> str:
    """Words in a picture."""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>{escape(words)}</text>'


def round_up(value: float) -> float:
    """The value, or more: an end of the axis that divides into round ticks."""
    step = next((step for step in (0.05, 0.1, 0.25, 0.5, 1.0) if value <= step), None)
    return step if step is not None else float(TICKS * -(-value // TICKS))
