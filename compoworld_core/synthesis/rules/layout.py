"""Laying out source text as a formatter would: on one line where it fits, else split at the outermost brackets."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 120


def bracketed(opening: str, parts: Sequence[str], closing: str, indent: int) -> list[str]:
    """`opening part, part closing`, on as few lines as a formatter would take."""
    pad = " " * indent
    line = f"{pad}{opening}{', '.join(parts)}{closing}"
    if len(line) <= WIDTH or not parts:
        return [line]
    inner = f"{pad}    {', '.join(parts)}"
    if len(inner) <= WIDTH and not opening.lstrip().startswith("def "):
        return [f"{pad}{opening}", inner, f"{pad}{closing}"]
    return [f"{pad}{opening}", *(f"{pad}    {part}," for part in parts), f"{pad}{closing}"]


def condition(lead: str, choices: Sequence[str], indent: int) -> list[str]:
    """`lead (choice or choice)`: one condition of a comprehension."""
    pad = " " * indent
    text = " or ".join(choices)
    line = f"{pad}{lead} ({text})" if len(choices) > 1 else f"{pad}{lead} {text}"
    if len(line) <= WIDTH:
        return [line]
    lines = [f"{pad}{lead} ("]
    for at, choice in enumerate(choices):
        start = f"{pad}    {'or ' if at else ''}"
        if len(start + choice) <= WIDTH or "(" not in choice:
            lines.append(start + choice)
        else:
            opening, _, rest = choice.partition("(")
            parts = [part.strip() for part in rest.rstrip(")").split(",")]
            lines += bracketed(f"{'or ' if at else ''}{opening}(", parts, ")", indent + 4)
    return [*lines, f"{pad})"]


def paragraph(text: str, indent: int, hanging: int = 4) -> list[str]:
    """Prose, wrapped."""
    lines: list[str] = []
    current = " " * indent
    is_empty = True
    for word in text.split():
        if not is_empty and len(current) + 1 + len(word) > WIDTH:
            lines.append(current)
            current, is_empty = " " * (indent + hanging), True
        current += word if is_empty else f" {word}"
        is_empty = False
    return [*lines, current]
