"""The summary: what a run made, in numbers and distributions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compoworld_core.services.package import ServicePackage
from compoworld_core.synthesis.admission import Admission
from compoworld_core.tasks.task import Task
from compoworld_core.viewer.glossary import CAPABILITIES, SPLITS, explained, letters

_MOST_BARS = 12
_MOST_COLUMNS = 10
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_STEPS = 5


@dataclass(frozen=True)
class Bar:
    """A label and how often it occurs."""

    label: str
    count: int


@dataclass(frozen=True)
class Chart:
    """A distribution.

    Attributes:
        caption: What to take from it, in a sentence.
        rest: What the bars leave out, in a sentence.
        legend: Words among the labels, each with what it means.
        is_ordered: Whether the labels are numbers in order (drawn as columns) rather than names (as rows).
    """

    title: str
    caption: str
    bars: tuple[Bar, ...]
    is_ordered: bool = False
    rest: str = ""
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def most(self) -> int:
        """The largest count."""
        return max((bar.count for bar in self.bars), default=1)

    @property
    def total(self) -> int:
        """The sum of the counts."""
        return sum(bar.count for bar in self.bars)


@dataclass(frozen=True)
class DomainShare:
    """A domain's part of all services and of all verified tools."""

    domain: str
    services: int
    tools: int
    share: float


@dataclass(frozen=True)
class Holdings:
    """Services and tools in numbers."""

    library: int
    synthesised: int
    verified: int
    world_model: int
    quarantined: int

    @property
    def services(self) -> int:
        """All services."""
        return self.library + self.synthesised

    @property
    def tools(self) -> int:
        """All judged tools."""
        return self.verified + self.world_model + self.quarantined

    @property
    def modelled_share(self) -> float:
        """Part of the tools that agents may have which a world model answers."""
        return self.world_model / (self.verified + self.world_model) if self.world_model else 0.0


def count_holdings(packages: Sequence[ServicePackage], admissions: Sequence[Admission]) -> Holdings:
    """Services by origin and tools by outcome."""
    origins = Counter(package.origin for package in packages)
    outcomes = Counter(admission.outcome for admission in admissions)
    return Holdings(
        library=origins["library"],
        synthesised=origins["synthesised"],
        verified=outcomes["verified"],
        world_model=outcomes["world_model"],
        quarantined=outcomes["quarantined"],
    )


def share_by_domain(packages: Sequence[ServicePackage], admissions: Sequence[Admission]) -> tuple[DomainShare, ...]:
    """Every domain that has a service, by its share of the verified tools."""
    domains = {package.name: package.spec.domain for package in packages}
    services = Counter(domains.values())
    tools = Counter(
        domains[admission.service]
        for admission in admissions
        if admission.outcome == "verified" and admission.service in domains
    )
    total = tools.total() or 1
    shares = [DomainShare(name, count, tools[name], tools[name] / total) for name, count in services.items()]
    return tuple(sorted(shares, key=lambda item: (-item.tools, -item.services, item.domain)))


def draw_scale(largest: float) -> tuple[float, ...]:
    """The marks of an axis for shares from 0 to at least `largest`: a few, at round numbers."""
    step = next((step for step in _STEPS if largest <= step * _MOST_STEPS), _STEPS[-1])
    return tuple(round(step * place, 4) for place in range(max(1, math.ceil(round(largest / step, 6))) + 1))


def draw_charts(tasks: Sequence[Task], packages: Sequence[ServicePackage] = ()) -> tuple[Chart, ...]:
    """How varied the tasks are."""
    if not tasks:
        return ()
    lengths = [len(task.walk) for task in tasks]
    edges = [len(task.edges) for task in tasks]
    cores = Counter(frozenset(task.core) for task in tasks)
    shapes = Counter(task.shape for task in tasks)
    capabilities = Counter(name for task in tasks for name in set(task.capabilities))
    synthesised = {package.name for package in packages if package.origin == "synthesised"}
    mixed = sum(not synthesised.isdisjoint(task.core) for task in tasks)
    used = Counter(service for task in tasks for service in task.core)
    return (
        _columns("Walk lengths", f"Visits per task; {_mean(lengths)} on average.", lengths),
        _columns("Information edges", f"Values that travel between steps; {_mean(edges)} per task.", edges),
        _rows("Splits", "What the tasks are for.", Counter(task.split for task in tasks), SPLITS),
        _rows("Capabilities", "Tasks that demand each; a task may demand several.", capabilities, CAPABILITIES),
        replace(
            _rows(
                "Shapes",
                f"A letter for each thing that is special about a plan, and how many writes it has: {len(shapes):,} "
                f"different in {len(tasks):,} tasks.",
                shapes,
            ),
            legend=explained(sorted({letter for shape in shapes for letter in shape.partition("-")[0]}), letters()),
        ),
        _rows(
            "Core services",
            f"{len(cores):,} different sets of core services; {mixed / len(tasks):.0%} of the tasks have a synthesised "
            f"service among theirs. How many of {len(tasks):,} tasks visit each service:",
            used,
        ),
    )


def _rows(title: str, caption: str, counts: Counter[str], meanings: Mapping[Any, str] | None = None) -> Chart:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    bars = [Bar(label, count) for label, count in ranked[:_MOST_BARS]]
    others = ranked[_MOST_BARS:]
    rest = f"And {len(others):,} others, {sum(count for _, count in others):,} in all." if others else ""
    legend = explained((bar.label for bar in bars), meanings or {})
    return Chart(title, caption, tuple(bars), rest=rest, legend=legend)


def _columns(title: str, caption: str, values: Sequence[int]) -> Chart:
    """A column per value, or per range of values where those are many."""
    low, high = min(values), max(values)
    width = (high - low) // _MOST_COLUMNS + 1
    counts = Counter((value - low) // width for value in values)
    bars = tuple(Bar(_range(low + place * width, width), counts[place]) for place in range((high - low) // width + 1))
    return Chart(title, caption, bars, is_ordered=True)


def _range(start: int, width: int) -> str:
    return str(start) if width == 1 else f"{start}–{start + width - 1}"


def _mean(values: Iterable[int]) -> str:
    listed = list(values)
    return f"{sum(listed) / len(listed):.1f}"
