"""What a run cost: by stage and model, and for each thing that was accepted.

Stages note in their sidecars what models took, at the prices that were configured. An answer counts whether it was paid
in this attempt, lay in the journal, or is part of a session or prediction that was kept, so the cost is that of the
result, however often the run was stopped on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from compoworld_core.data import Data
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.run import RunRecord
from compoworld_core.pipeline.wording import counted
from compoworld_core.rollouts.selection import SelectionRules, select
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage import Store, read_dataset, read_sidecars
from compoworld_core.synthesis.datasets import VERIFICATIONS
from compoworld_core.tasks.datasets import ATTEMPTS, TASKS
from compoworld_core.tasks.sampler import ACCEPTED


class Spend(Data):
    """What a model took for an item.

    Attributes:
        item: What it was for: a spec, an attempt, a task, a tool.
        journaled: Those of the requests whose answers were there already.
        cached_tokens: Those of the prompt tokens that an endpoint had in a cache.
        usd: US dollars.
    """

    model: str
    item: str
    requests: int
    journaled: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    usd: Decimal

    @staticmethod
    def total(parts: Iterable[Spend], model: str = "", item: str = "") -> Spend:
        """The sum, under a name."""
        sums: Counter[str] = Counter()
        usd = Decimal(0)
        for part in parts:
            sums.update({name: getattr(part, name) for name in _COUNTED})
            usd += part.usd
        return Spend(model=model, item=item, usd=usd, **{name: sums[name] for name in _COUNTED})


_COUNTED: Final = ("requests", "journaled", "prompt_tokens", "cached_tokens", "completion_tokens")


class StageCost(Data):
    """What a stage cost.

    Attributes:
        spend: By model and item.
        unit: What is accepted, in the plural.
        accepted: How many came of each item of which any came.
    """

    stage: str
    spend: tuple[Spend, ...]
    unit: str
    accepted: dict[str, int]

    @property
    def total(self) -> Spend:
        """All models, all items."""
        return Spend.total(self.spend)

    @property
    def models(self) -> list[Spend]:
        """By model."""
        return [
            Spend.total((part for part in self.spend if part.model == name), model=name)
            for name in sorted({part.model for part in self.spend})
        ]

    @property
    def items(self) -> list[Spend]:
        """By item, all models."""
        by_item: dict[str, list[Spend]] = {}
        for part in self.spend:
            by_item.setdefault(part.item, []).append(part)
        return [Spend.total(by_item[item], item=item) for item in sorted(by_item)]

    @property
    def size(self) -> int:
        """How many are accepted."""
        return sum(self.accepted.values())

    @property
    def usd_per_accepted(self) -> Decimal | None:
        """What one accepted thing cost, with all that was spent on the others; None where there is none."""
        return self.total.usd / self.size if self.size else None


def cost_of(store: Store, graph: StageGraph, record: RunRecord, rules: SelectionRules) -> list[StageCost]:
    """What each stage of a run cost that asked a model, in the order of stages.

    Args:
        rules: Which trajectories count as accepted.
    """
    costs = []
    for name in graph.order:
        output = graph[name].outputs[0].name  # all of a stage's sidecars say the same
        sidecars = read_sidecars(store, record.location(output)) if output in record.datasets else []
        spend = tuple(Spend.model_validate(entry) for sidecar in sidecars for entry in sidecar.get("spend", ()))
        if spend:
            unit, accepted = _ACCEPTED[name]
            counts = Counter(accepted(store, record, rules))
            costs.append(StageCost(stage=name, spend=spend, unit=unit, accepted=counts))
    return costs


Accepted = Callable[[Store, RunRecord, SelectionRules], Iterable[str]]
"""Names the item of each thing that was accepted."""


def _verified_services(store: Store, record: RunRecord, rules: SelectionRules) -> Iterable[str]:
    packages = read_dataset(store, record.location("services"), SERVICES)
    written = {package.digest for package in packages if package.origin != "library"}
    verifications = read_dataset(store, record.location("verifications"), VERIFICATIONS)
    return {item.service for item in verifications if item.outcome == "verified" and item.package in written}


def _tasks(store: Store, record: RunRecord, rules: SelectionRules) -> Iterable[str]:
    attempts = read_dataset(store, record.location("attempts"), ATTEMPTS)
    return (f"{item.profile}/{item.number}" for item in attempts if item.outcome == ACCEPTED)


def _trajectories(store: Store, record: RunRecord, rules: SelectionRules) -> Iterable[str]:
    tasks = read_dataset(store, record.location("tasks"), TASKS)
    selection = select(read_dataset(store, record.location("trajectories"), TRAJECTORIES), tasks, rules)
    return (task for (task, _), outcome in selection.outcomes.items() if outcome.reason == "kept")


def _trials(store: Store, record: RunRecord, rules: SelectionRules) -> Iterable[str]:
    trials = read_dataset(store, record.location("evaluations"), EVALUATIONS)
    return (trial.task for trial in trials if trial.passed is not None and trial.usd is not None)


_ACCEPTED: Final[Mapping[str, tuple[str, Accepted]]] = {
    "synthesize": ("verified services", _verified_services),
    "validate": ("verified services", _verified_services),
    "sample-tasks": ("accepted tasks", _tasks),
    "distill": ("selected trajectories", _trajectories),
    "evaluate": ("scored trials", _trials),
}
"""What is accepted of what a stage makes; one that asks models has a line here."""


def document(costs: list[StageCost]) -> JsonObject:
    """The cost for machines."""
    return {
        "usd": str(sum((cost.total.usd for cost in costs), Decimal(0))),
        "stages": {
            cost.stage: {
                "usd": str(cost.total.usd),
                "accepted": {"unit": cost.unit, "count": cost.size, "usd_each": _rounded(cost.usd_per_accepted)},
                "models": {part.model: _numbers(part) for part in cost.models},
                "items": {
                    part.item: {**_numbers(part), "accepted": cost.accepted.get(part.item, 0)} for part in cost.items
                },
            }
            for cost in costs
        },
    }


def _numbers(spend: Spend) -> JsonObject:
    return spend.model_dump(mode="json", exclude={"model", "item"})


def _rounded(usd: Decimal | None) -> str | None:
    return None if usd is None else f"{usd:.6f}"


def table(costs: list[StageCost]) -> Iterator[str]:
    """The cost for people."""
    if not costs:
        yield "no model was asked: everything was made by rules, at no cost"
        return
    head = ("stage", "model", "requests", "journaled", "prompt tokens", "cached", "completion tokens", "US dollars")
    rows = [(cost.stage, *_columns(part)) for cost in costs for part in cost.models]
    everything = Spend.total((part for cost in costs for part in cost.spend), model="all")
    yield from _aligned([head, *rows, ("all", *_columns(everything))])
    yield ""
    for cost in costs:
        each = f", {cost.usd_per_accepted:.4f} US dollars each" if cost.usd_per_accepted is not None else ""
        yield f"{cost.stage}: {counted(cost.size, cost.unit)} for {cost.total.usd:.4f} US dollars{each}"


def _columns(spend: Spend) -> tuple[str, ...]:
    cached = f"{spend.cached_tokens / spend.prompt_tokens:.0%}" if spend.prompt_tokens else "-"
    numbers = (f"{getattr(spend, name):,}" for name in ("requests", "journaled", "prompt_tokens"))
    return (spend.model, *numbers, cached, f"{spend.completion_tokens:,}", f"{spend.usd:.4f}")


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as their widest cell; the first two hold names, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells)
