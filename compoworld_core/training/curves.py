"""Curves with bands as an SVG picture: few marks, no scripts, readable by itself or in a page, which may colour it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 720
_HEIGHT: Final = 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 40, 50
_LEGEND_LINE: Final = 18
_TICKS: Final = 5
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
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
    top = _round_up(max(max(curve.high or curve.y) for curve in curves))

    def place(x: float, y: float) -> str:
        across = _LEFT + x / right * (_WIDTH - _LEFT - _RIGHT)
        up = _HEIGHT - _BOTTOM - max(y, 0.0) / top * (_HEIGHT - _TOP - _BOTTOM)
        return f"{across:.1f},{up:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curves" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{escape(title)}">',
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 24, title, size=15),
        _text(_WIDTH / 2, _HEIGHT - 12, x_label, anchor="middle"),
        _text(16, _HEIGHT / 2, y_label, anchor="middle", turned=True),
    ]
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        across, _, up = place(share * right, share * top).partition(",")
        start, _, floor = place(0, 0).partition(",")
        parts.append(f'<path class="grid" d="M{start},{up} H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, float(up) + 4, f"{share * top:.3g}", anchor="end"))
        parts.append(_text(float(across), float(floor) + 18, f"{share * right:.4g}", anchor="middle"))
    for index, curve in enumerate(curves):
        colour = _COLOURS[index % len(_COLOURS)]
        line = [place(*point) for point in zip(curve.x, curve.y, strict=True)]
        if curve.high:
            upper = [place(*point) for point in zip(curve.x, curve.high, strict=True)]
            lower = [place(*point) for point in zip(curve.x, curve.low, strict=True)]
            parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" fill-opacity="0.15"/>')
        parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        height = _TOP + 12 + index * _LEGEND_LINE
        parts.append(f'<path d="M{_LEFT + 12},{height} h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(_text(_LEFT + 44, height + 4, curve.name))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 13, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>{escape(words)}</text>'


def _round_up(value: float) -> float:
    """To an end of the axis that divides into round ticks."""
    step = next((step for step in (0.05, 0.1, 0.25, 0.5, 1.0) if value <= step), None)
    return step if step is not None else float(_TICKS * -(-value // _TICKS))
