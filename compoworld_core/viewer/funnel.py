"""The funnel: for each stage what went in, what came through, and why the rest did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compoworld_core.rollouts.selection import Selection
from compoworld_core.rollouts.trajectory import Trajectory, touches_world_model
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.tasks.sampler import ACCEPTED, DEAD_END, Attempt
from compoworld_core.viewer.glossary import LEFT_OUT, OMITTED
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
        about: What the words mean, in a sentence.
        reasons: The most frequent first; the rest is summed up in the last.
    """

    title: str
    unit: str
    came: int
    kept: int
    reasons: tuple[Reason, ...] = ()
    note: str = ""
    about: str = ""

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
    kinds = (
        ("server", "Servers read", "A server is what a source describes as one MCP server; it becomes a spec."),
        ("tool", "Tools read", "A tool of a server comes through if its description can be brought to one form."),
    )
    for subject, title, about in kinds:
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
        sieves.append(Sieve(title, f"{subject}s", came, kept[subject], losses.reasons(), note, about))
    return [sieve for sieve in sieves if sieve.came]


def synthesis_sieve(specs: Sequence[ServiceSpec], packages: Sequence[ServicePackage]) -> Sieve | None:
    """Specs that became services."""
    written = {package.name for package in packages}
    kept = sum(spec.name in written for spec in specs)
    losses = Losses()
    for spec in specs:
        if spec.name not in written:
            losses.add("no tool could be written", spec.name)
    about = "A spec becomes a service if at least one of its tools could be written as code."
    return Sieve("Services written", "specs", len(specs), kept, losses.reasons(), about=about) if specs else None


def omission_sieve(
    specs: Sequence[ServiceSpec], packages: Sequence[ServicePackage], omissions: Iterable[Omission]
) -> Sieve | None:
    """Tools of specs that services have; each of the others is an omission with its reason."""
    promised = {spec.name: len(spec.tools) for spec in specs}
    came = sum(promised.values())
    kept = sum(len(package.spec.tools) for package in _written(packages) if package.name in promised)
    losses = Losses()
    for omission in omissions:
        losses.add(
            OMITTED.get(omission.reason, _words(omission.reason)),
            f"{omission.service}.{omission.tool}: {omission.detail}",
        )
    if unexplained := came - kept - losses.counts.total():
        losses.add("nobody noted why", count=unexplained)
    about = "An omission is a tool that a spec promises and no service has, since it could not be written."
    return Sieve("Tools written", "tools", came, kept, losses.reasons(), about=about) if came else None


def admission_sieve(packages: Sequence[ServicePackage], admissions: Sequence[Admission]) -> Sieve | None:
    """Tools of services that passed their checks; those that no service has are omissions and not counted here."""
    tools = {(package.name, tool.name) for package in packages for tool in package.spec.tools}
    losses = Losses()
    kept = 0
    for admission in admissions:
        if (admission.service, admission.tool) not in tools:
            continue
        tools.remove((admission.service, admission.tool))
        kept += admission.outcome == "verified"
        example = f"{admission.service}.{admission.tool}: {admission.reason}"
        if admission.outcome == "world_model":
            losses.add("left to a world model", example)
        elif admission.outcome == "quarantined":
            check = admission.reason.partition(":")[0]
            label = f"quarantined: {_words(check)}" if check != admission.reason else "quarantined"
            losses.add(label, example)
    if tools:
        losses.add("not judged", ".".join(min(tools)), len(tools))
    written = sum(len(package.spec.tools) for package in _written(packages))
    library = sum(len(package.spec.tools) for package in packages) - written
    note = f"{written:,} that were written and {library:,} of the library's services."
    about = "A verification is the judgement on one tool: verified if it passed every check, else quarantined."
    came = kept + losses.counts.total()
    return Sieve("Tools admitted", "tools", came, kept, losses.reasons(), note, about) if came else None


def _written(packages: Iterable[ServicePackage]) -> list[ServicePackage]:
    return [package for package in packages if package.origin != "library"]


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
    about = "A dead end is a plan that found nothing to do; a gate is a check that a task must pass to be kept."
    return Sieve("Tasks attempted", "attempts", came, kept, losses.reasons(), about=about) if came else None


@dataclass
class Episodes:
    """Trajectories as they stream by."""

    losses: Losses = field(default_factory=Losses)
    came: int = 0
    verified: int = 0
    steps: int = 0
    calls: int = 0
    predicted: int = 0

    def add(self, trajectory: Trajectory) -> None:
        """Count one."""
        self.came += 1
        self.predicted += touches_world_model(trajectory)
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
        about = "An episode is a policy at work on a task; it is verified if every criterion of the rubric holds."
        note = ""
        if self.predicted:
            note = f"{self.predicted:,} ({self.predicted / self.came:.1%}) have calls that a world model answered."
        return Sieve("Episodes run", "trajectories", self.came, self.verified, self.losses.reasons(), note, about)


def selection_sieve(selection: Selection) -> Sieve | None:
    """Trajectories that are training data."""
    losses = Losses()
    for (task, index), (reason, detail) in selection.outcomes.items():
        if reason != "kept":
            label = LEFT_OUT.get(reason) or f"belong to {_words(reason)}"
            losses.add(label, f"{task}/{index}{f': {detail}' if detail else ''}")
    about = "What export writes by the rules of its section: verified successes of training tasks that repeat no other."
    note = ""
    if selection.size and (tokens := selection.usage.tokens):
        note = f"Each kept one took {tokens / selection.size:,.0f} tokens, with those of the others."
    came = len(selection.outcomes)
    return Sieve("Training data", "trajectories", came, selection.size, losses.reasons(), note, about) if came else None


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
