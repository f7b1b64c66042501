"""A comparison as a table: in a terminal, in Markdown, as a page, and as Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.comparison import COMPARISONS, Compared
from compoworld_core.evaluation.scoreboard import console
from compoworld_core.storage import Store, open_store
from compoworld_core.storage.digest import canonical_json
from compoworld_core.storage.parts import PartWriter

if TYPE_CHECKING:
    from rich.table import Table

HEADS: Final = ("score of", "score", "tasks × trials", "run", "run's score", "difference", "comparable", "why")
_RIGHT: Final = ("score", "run's score", "difference")
_NOTHING: Final = "–"


@dataclass(frozen=True)
class Section:
    """The lines that have one title, as text."""

    title: str
    about: str
    lines: tuple[tuple[str, ...], ...]


def sections(compared: Sequence[Compared]) -> list[Section]:
    """The comparison in words, figure by figure."""
    found = []
    for (title, metric, source, basis), own in groupby(
        compared, key=lambda line: (line.title, line.metric, line.source, line.basis)
    ):
        about = "; ".join(part for part in (metric, basis, source) if part)
        found.append(Section(title, about, tuple(_line(item) for item in own)))
    return found


def _line(item: Compared) -> tuple[str, ...]:
    is_percent = item.unit == "percent"
    return (
        item.other,
        _score(item.other_score, item.other_low, item.other_high, is_percent),
        f"{_count(item.other_tasks)} × {_count(item.other_trials)}",
        item.run or "no run",
        _score(item.run_score, item.run_low, item.run_high, is_percent) + _lost(item),
        _NOTHING if item.difference is None else _number(item.difference, is_percent, "+"),
        item.comparable or _NOTHING,
        "; ".join((*item.reasons, *_gained(item), *_untold(item))),
    )


def _score(value: float | None, low: float | None, high: float | None, is_percent: bool) -> str:
    if value is None:
        return _NOTHING
    ends = "" if low is None or high is None else f" [{_number(low, is_percent)}, {_number(high, is_percent)}]"
    return f"{_number(value, is_percent)}{ends}"


def _number(value: float, is_percent: bool, sign: str = "") -> str:
    return f"{value:{sign}.2f}" if is_percent else f"{value:{sign}.3f}"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _lost(item: Compared) -> str:
    """What stands beside every score of a run: its size, errors, drops and gaps."""
    if item.run is None:
        return ""
    lost = ((item.errors, "errors"), (item.dropped, "dropped"), (item.missing, "missing"))
    told = [f"{_count(item.run_tasks)} × {_count(item.run_trials)}", *(f"{number} {what}" for number, what in lost)]
    return f" ({', '.join(told)})"


def _gained(item: Compared) -> tuple[str, ...]:
    if item.shared is None:
        return ()
    if item.gained is None or item.gained_low is None or item.gained_high is None or item.p_value is None:
        return ("no task was scored in both",)
    ends = f"[{item.gained_low:+.2f}, {item.gained_high:+.2f}]"
    return (f"on the {item.shared:,} tasks of both {item.gained:+.2f} {ends}, p = {item.p_value:.2g}",)


def _untold(item: Compared) -> tuple[str, ...]:
    who = "not published" if item.source else "neither tells"
    return (f"{who}: {', '.join(item.untold)}",) if item.untold else ()


def show(compared: Sequence[Compared]) -> None:
    """Print the table."""
    console().print(table(compared))


def table(compared: Sequence[Compared]) -> Table:
    """For a terminal; what is comparable is green, what is not is dim."""
    from rich.table import Table
    from rich.text import Text

    found = Table(title="Runs beside published figures", title_justify="left", show_lines=False, pad_edge=False)
    for head in HEADS:
        found.add_column(head, justify="right" if head in _RIGHT else "left", overflow="fold")
    styles = {"yes": "green", "as far as told": "yellow", "no": "dim", _NOTHING: ""}
    for section in sections(compared):
        found.add_section()
        found.add_row(Text(section.title, style="bold"), *[""] * (len(HEADS) - 2), Text(section.about, style="italic"))
        for line in section.lines:
            found.add_row(*(Text(cell, style=styles[line[6]]) for cell in line))
    return found


def markdown(compared: Sequence[Compared]) -> str:
    """As Markdown, a table for each figure."""
    parts = ["# Runs beside published figures\n"]
    for section in sections(compared):
        parts += [f"## {_cell(section.title)}\n", f"{_cell(section.about)}\n"]
        parts.append(f"| {' | '.join(HEADS)} |")
        parts.append(f"|{'|'.join('---:' if head in _RIGHT else '---' for head in HEADS)}|")
        parts += [f"| {' | '.join(map(_cell, line))} |" for line in section.lines]
        parts.append("")
    return "\n".join(parts)


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.split())


def html(compared: Sequence[Compared]) -> str:
    """As one page that needs nothing else; whatever it contains is shown as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("compoworld_core.evaluation")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.get_template("comparison.html")
    return page.render(sections=sections(compared), heads=HEADS, right=_RIGHT)


def write(compared: Sequence[Compared], target: str) -> None:
    """Write the table to a file or S3 object, in the form that its name ends in: .html, .md, .parquet or .json.

    Raises:
        InputError: The name ends in nothing of these.
        StorageError: It is taken.
    """
    folder, name = os.path.split(target)
    ending = os.path.splitext(name)[1]
    if ending == ".parquet":
        _write_parquet(compared, open_store(folder or "."), name)
        return
    forms: dict[str, Callable[[Sequence[Compared]], str]] = {".html": html, ".md": markdown, ".json": _json}
    if ending not in forms:
        raise InputError(f"{target}: needs a name that ends in {', '.join(forms)} or .parquet")
    with open_store(folder or ".").write(name) as file:
        file.write(forms[ending](compared).encode())


def _json(compared: Sequence[Compared]) -> str:
    return canonical_json([item.model_dump() for item in compared])


def _write_parquet(compared: Sequence[Compared], store: Store, name: str) -> None:
    with store.write(name) as file, closing(PartWriter(file, COMPARISONS)) as writer:
        for item in compared:
            writer.add(COMPARISONS.plain(item), len(item.title))
