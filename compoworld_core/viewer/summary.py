"""The summary: what a run made, in numbers and distributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compoworld_core.services.package import ServicePackage
from compoworld_core.synthesis.admission import Admission
from compoworld_core.tasks.task import Task

_MOST_BARS = 12


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
        is_ordered: Whether the labels are numbers in order (drawn as columns) rather than names (as rows).
    """

    title: str
    caption: str
    bars: tuple[Bar, ...]
    is_ordered: bool = False
    rest: str = ""

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
        _rows("Splits", "Which set a task belongs to.", Counter(task.split for task in tasks)),
        _rows("Capabilities", "Tasks that demand each; a task may demand several.", capabilities),
        _rows(
            "Shapes",
            f"What is special about a plan, and how many writes it has: {len(shapes):,} kinds in {len(tasks):,} tasks.",
            shapes,
        ),
        _rows(
            "Core services",
            f"{len(cores):,} different sets of core services; {mixed / len(tasks):.0%} of the tasks have a synthesised "
            f"service among theirs. How many of {len(tasks):,} tasks visit each service:",
            used,
        ),
    )


def _rows(title: str, caption: str, counts: Counter[str]) -> Chart:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    bars = [Bar(label, count) for label, count in ranked[:_MOST_BARS]]
    others = ranked[_MOST_BARS:]
    rest = f"And {len(others):,} others, {sum(count for _, count in others):,} in all." if others else ""
    return Chart(title, caption, tuple(bars), rest=rest)


def _columns(title: str, caption: str, values: Sequence[int]) -> Chart:
    """A column per value, or per range of values where those are many."""
    low, high = min(values), max(values)
    width = (high - low) // 16 + 1
    counts = Counter((value - low) // width for value in values)
    bars = tuple(Bar(_range(low + place * width, width), counts[place]) for place in range((high - low) // width + 1))
    return Chart(title, caption, bars, is_ordered=True)


def _range(start: int, width: int) -> str:
    return str(start) if width == 1 else f"{start}–{start + width - 1}"


def _mean(values: Iterable[int]) -> str:
    listed = list(values)
    return f"{sum(listed) / len(listed):.1f}"
