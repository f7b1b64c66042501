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
    lines = [f"{pad}{opening}"]
    for part in parts:
        if len(part) + indent + 5 > WIDTH and part.startswith("**") and part.endswith(")"):
            call, _, rest = part.partition("(")
            lines += bracketed(f"{call}(", rest[:-1].split(", "), "),", indent + 4)
        else:
            lines.append(f"{pad}    {part},")
    return [*lines, f"{pad}{closing}"]


def comprehension(lead: str, row: str, source: str, tests: Sequence[Sequence[str]], indent: int) -> list[str]:
    """`lead[row for row in source if (choice or choice) and …]`; each test is a list of choices."""
    pad = " " * indent
    joined = " and ".join(_either(choices, len(tests) > 1) for choices in tests)
    line = f"{pad}{lead}[{row} for {row} in {source} if {joined}]"
    if len(line) <= WIDTH:
        return [line]
    inner = f"{pad}    {row} for {row} in {source} if {joined}"
    if len(inner) <= WIDTH:
        return [f"{pad}{lead}[", inner, f"{pad}]"]
    lines = [f"{pad}{lead}[", f"{pad}    {row}", f"{pad}    for {row} in {source}"]
    if len(f"{pad}    if {joined}") <= WIDTH:
        lines.append(f"{pad}    if {joined}")
    elif len(tests) == 1 and len(tests[0]) > 1:
        lines += [
            f"{pad}    if {tests[0][0]}",
            *(part for text in tests[0][1:] for part in _choice(f"or {text}", indent + 4)),
        ]
    else:
        for at, choices in enumerate(tests):
            lines += condition("and" if at else "if", choices, indent + 4)
    return [*lines, f"{pad}]"]


def _either(choices: Sequence[str], is_one_of_many: bool) -> str:
    text = " or ".join(choices)
    return f"({text})" if len(choices) > 1 and is_one_of_many else text


def condition(lead: str, choices: Sequence[str], indent: int) -> list[str]:
    """`lead (choice or choice)`: one condition of a comprehension."""
    pad = " " * indent
    text = " or ".join(choices)
    line = f"{pad}{lead} ({text})" if len(choices) > 1 else f"{pad}{lead} {text}"
    if len(line) <= WIDTH:
        return [line]
    lines = [f"{pad}{lead} ("]
    for at, choice in enumerate(choices):
        lines += _choice(f"or {choice}" if at else choice, indent + 4)
    return [*lines, f"{pad})"]


def _choice(text: str, indent: int) -> list[str]:
    """One alternative; a call that is too long is split at its arguments."""
    if len(text) + indent <= WIDTH or not text.endswith(")"):
        return [" " * indent + text]
    opening, _, rest = text.partition("(")
    return bracketed(f"{opening}(", [part.strip() for part in rest[:-1].split(",")], ")", indent)


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
