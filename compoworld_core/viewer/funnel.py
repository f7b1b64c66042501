"""The funnel: for each stage what went in, what came through, and why the rest did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.synthesis.admission import Admission
from compoworld_core.tasks.sampler import ACCEPTED, DEAD_END, Attempt
from compoworld_core.viewer.legible import clipped

_MOST_REASONS = 8
_LONGEST_LABEL = 120


@dataclass(frozen=True)
class Reason:
    """Why some did not come through, with one example."""

    label: str
    count: int
    example: str = ""


@dataclass(frozen=True)
class Sieve:
    """One stage.

    Attributes:
        unit: What is counted, in the plural.
        reasons: The most frequent first; the rest is summed up in the last.
    """

    title: str
    unit: str
    came: int
    kept: int
    reasons: tuple[Reason, ...] = ()
    note: str = ""

    @property
    def lost(self) -> int:
        """How many did not come through."""
        return self.came - self.kept

    @property
    def share(self) -> float:
        """Part that came through, 0 to 1."""
        return self.kept / self.came if self.came else 0.0


@dataclass
class Losses:
    """Reasons as they are counted."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, label: str, example: str = "", count: int = 1) -> None:
        """Count a loss."""
        label = clipped(label, _LONGEST_LABEL)
        self.counts[label] += count
        self.examples.setdefault(label, example)

    def reasons(self) -> tuple[Reason, ...]:
        """The reasons, the most frequent first."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        shown = [Reason(label, count, self.examples[label]) for label, count in ranked[:_MOST_REASONS]]
        rest = sum(count for _, count in ranked[_MOST_REASONS:])
        if rest:
            shown.append(Reason(f"{len(ranked) - _MOST_REASONS} other reasons", rest))
        return tuple(shown)


def crawl_sieves(specs: Sequence[ServiceSpec], rejections: Sequence[Rejection]) -> list[Sieve]:
    """Servers and tools that were read, and those that became specs."""
    sieves = []
    kept = {"server": len(specs), "tool": sum(len(spec.tools) for spec in specs)}
    repaired = Counter(repair for spec in specs for tool in spec.tools for repair in dict.fromkeys(tool.repairs))
    for subject, title in (("server", "Servers read"), ("tool", "Tools read")):
        losses = Losses()
        for rejection in rejections:
            if rejection.subject == subject:
                losses.add(_words(rejection.reason), rejection.detail)
        note = ""
        if subject == "tool" and repaired:
            most = ", ".join(f"{_words(name)} ({count:,})" for name, count in repaired.most_common(3))
            tools = sum(1 for spec in specs for tool in spec.tools if tool.repairs)
            note = f"{tools:,} were repaired on the way; most often: {most}."
        came = kept[subject] + losses.counts.total()
        sieves.append(Sieve(title, f"{subject}s", came, kept[subject], losses.reasons(), note))
    return [sieve for sieve in sieves if sieve.came]


def synthesis_sieve(specs: Sequence[ServiceSpec], packages: Sequence[ServicePackage]) -> Sieve | None:
    """Specs that became services."""
    written = {package.name for package in packages}
    kept = sum(spec.name in written for spec in specs)
    losses = Losses()
    for spec in specs:
        if spec.name not in written:
            losses.add("no tool could be written", spec.name)
    return Sieve("Services written", "specs", len(specs), kept, losses.reasons()) if specs else None


def admission_sieve(specs: Sequence[ServiceSpec], admissions: Sequence[Admission]) -> Sieve | None:
    """Tools that passed their checks."""
    judged = {(admission.service, admission.tool) for admission in admissions}
    losses = Losses()
    for admission in admissions:
        if admission.outcome == "world_model":
            losses.add("left to a world model", f"{admission.service}.{admission.tool}: {admission.reason}")
        elif admission.outcome == "quarantined":
            check = admission.reason.partition(":")[0]
            label = f"quarantined: {_words(check)}" if check != admission.reason else "quarantined"
            losses.add(label, f"{admission.service}.{admission.tool}: {admission.reason}")
    unwritten = [
        f"{spec.name}.{tool.name}" for spec in specs for tool in spec.tools if (spec.name, tool.name) not in judged
    ]
    if unwritten:
        losses.add("not written by the author", unwritten[0], len(unwritten))
    came = len(admissions) + len(unwritten)
    kept = sum(admission.outcome == "verified" for admission in admissions)
    return Sieve("Tools admitted", "tools", came, kept, losses.reasons()) if came else None


def attempt_sieve(attempts: Iterable[Attempt]) -> Sieve | None:
    """Tries to make a task, and those that passed every gate."""
    came = kept = 0
    losses = Losses()
    for attempt in attempts:
        came += 1
        if attempt.outcome == ACCEPTED:
            kept += 1
        else:
            losses.add(_stem(attempt), attempt.detail)
    return Sieve("Tasks attempted", "attempts", came, kept, losses.reasons()) if came else None


@dataclass
class Episodes:
    """Trajectories as they stream by."""

    losses: Losses = field(default_factory=Losses)
    came: int = 0
    verified: int = 0
    steps: int = 0
    calls: int = 0

    def add(self, trajectory: Trajectory) -> None:
        """Count one."""
        self.came += 1
        if trajectory.succeeded:
            self.verified += 1
            self.steps += trajectory.n_steps
            self.calls += trajectory.n_real_tool_calls
        elif trajectory.error is not None:
            self.losses.add(f"ended with an error: {trajectory.error.kind}", trajectory.error.message)
        elif trajectory.verdict is None:
            self.losses.add("not judged", trajectory.id)
        else:
            failed = trajectory.verdict.failed
            self.losses.add("criteria do not hold", f"{trajectory.task_id}: {', '.join(failed)}")

    @property
    def mean_steps(self) -> float:
        """Assistant messages per verified trajectory."""
        return self.steps / self.verified if self.verified else 0.0

    @property
    def mean_calls(self) -> float:
        """Calls of services' tools per verified trajectory."""
        return self.calls / self.verified if self.verified else 0.0

    @property
    def sieve(self) -> Sieve | None:
        """Episodes, and those that were verified."""
        if not self.came:
            return None
        return Sieve("Episodes run", "trajectories", self.came, self.verified, self.losses.reasons())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _stem(attempt: Attempt) -> str:
    """The gate, or what kind of dead end without what differs from attempt to attempt."""
    outcome = _words(attempt.outcome)
    if attempt.outcome != DEAD_END:
        return f"gate: {outcome}"
    kind = attempt.detail.partition(" after ")[0]
    for service in sorted(attempt.core, key=len, reverse=True):
        kind = kind.replace(service, "a service")
    return f"{outcome}: {kind}" if kind else outcome
