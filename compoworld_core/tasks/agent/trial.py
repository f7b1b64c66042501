"""Trials: an agent's drafts, run. What passes everything becomes a task, and what does not is told why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from compoworld_core.errors import InputError
from compoworld_core.tasks.agent.guards import guards
from compoworld_core.tasks.agent.submission import Draft, DraftSolution, Scenery, Submission
from compoworld_core.tasks.agent.traits import capabilities, shape
from compoworld_core.tasks.gates import Candidate, GateReport, run_gates
from compoworld_core.tasks.mutation import tempted
from compoworld_core.tasks.play import Played, Stage
from compoworld_core.tasks.rubric import Criterion, Rubric, first_failure
from compoworld_core.tasks.sampler import PROFILES, Draw, with_fields
from compoworld_core.tasks.task import AnswerFact, Solution, Step, Task, Temptation
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import WorldRecipe
from compoworld_core.worlds.world import World, open_world

AUTHOR = "agent"
_MOST_STEPS_PER_VISIT = 2


class Refused(Exception):
    """A draft fails a gate.

    Attributes:
        gate: Which one.
        detail: What failed it.
    """

    def __init__(self, gate: str, detail: str) -> None:
        super().__init__(f"{gate}: {detail}")
        self.gate = gate
        self.detail = detail


@dataclass(frozen=True)
class Trial:
    """A draft in its world, played."""

    world: World
    solution: Solution
    stage: Stage
    played: Played


class TryingRoom:
    """Where the drafts of one session are tried, each in a fresh world."""

    def __init__(self, draw: Draw, recipe: WorldRecipe, catalogue: Catalogue) -> None:
        self.draw = draw
        self._recipe = recipe
        self._catalogue = catalogue

    def open(self, scenery: Scenery | None = None) -> World:
        """The world, with plants and reactions or as empty as it was drawn.

        Raises:
            Refused: A plant is refused.
        """
        if scenery is None:
            return open_world(self._recipe, self._catalogue)
        recipe = with_fields(self._recipe, plants=scenery.plants, reactions=scenery.reactions)
        try:
            return open_world(recipe, self._catalogue)
        except InputError as error:
            raise Refused("plants", str(error)) from None

    def play(self, draft: Draft) -> Trial:
        """Run a draft's solution.

        Raises:
            Refused: A plant is refused.
        """
        world = self.open(draft)
        solution = solution_of(draft.solution, world)
        stage = Stage(world)
        return Trial(world, solution, stage, stage.play(solution))

    def judge(self, submission: Submission) -> Task:
        """Run all gates.

        Raises:
            Refused: A gate fails.
        """
        trial = self.play(submission)
        walk = tuple(service for service, _ in groupby(step.service for step in trial.solution.steps))
        self._require_walk(walk, trial.solution.steps)
        if misplaced := self.draw.misplaced(trial.solution):
            raise Refused("split", f"{misplaced}; solve the task with others")
        wanted = tuple(
            Criterion(id=item.id, description=item.description, condition=item.condition, holds_initially=False)
            for item in submission.criteria
        )
        kept = guards(trial.played, trial.world, self.draw.core, wanted)
        own = Candidate(submission.instruction, trial.solution, Rubric(criteria=wanted), walk)
        if not trial.played.refused:
            _require_tempting(trial, Rubric(criteria=(*wanted, *kept)))
        report = self._gated(own, kept, trial.world)
        shown = capabilities(trial.solution, trial.played, trial.world, report.edges)
        return Task(
            instruction=submission.instruction,
            recipe=trial.world.recipe,
            rubric=report.rubric,
            solution=trial.solution,
            walk=walk,
            core=tuple(sorted(self.draw.core)),
            edges=report.edges,
            capabilities=shown,
            difficulty=self.draw.profile,
            split=self.draw.split,
            shape=shape(shown, trial.solution),
            author=AUTHOR,
        )

    def _gated(self, own: Candidate, kept: Sequence[Criterion], world: World) -> GateReport:
        rubric = Rubric(criteria=(*own.rubric.criteria, *kept))
        candidate = Candidate(own.instruction, own.solution, rubric, own.walk)
        edges = PROFILES[self.draw.profile].edges
        report = run_gates(candidate, world, least_edges=edges, seed=self.draw.number)
        if not report.passed:
            raise Refused(report.failed, report.detail)
        return report

    def _require_walk(self, walk: tuple[str, ...], steps: Sequence[Step]) -> None:
        fewest, most = PROFILES[self.draw.profile].visits
        missing = sorted(set(self.draw.core) - set(walk))
        if missing:
            raise Refused("walk", f"the solution does not visit {', '.join(missing)}")
        length, unit = len(walk), "visits, repeats collapsed,"
        if len(self.draw.core) == 1:
            length, unit, most = len(steps), "calls", most * _MOST_STEPS_PER_VISIT
        if not fewest <= length <= most:
            raise Refused("walk", f"the solution makes {length} {unit} where {fewest} to {most} are wanted")


def solution_of(draft: DraftSolution, world: World) -> Solution:
    """The solution in the form of tasks; what a step does to state is taken from its tool."""

    def step(key: str, tool: str, arguments: dict[str, Any], after: tuple[str, ...] = ()) -> Step:
        bound = world.tools[tool]
        effect = "write" if bound.spec.effect == "write" else "read"
        return Step(
            id=key, service=bound.service, tool=bound.spec.name, arguments=arguments, effect=effect, after=after
        )

    return Solution(
        values=dict(draft.values),
        steps=tuple(step(item.id, item.tool, item.arguments, item.after) for item in draft.steps),
        answer=tuple(AnswerFact(label=item.label, value=item.value) for item in draft.answer),
        temptations=tuple(
            Temptation(
                reason=item.reason,
                step=step(f"tempting_{number}", item.tool, item.arguments),
                after=item.after,
                replaces=item.replaces or "",
            )
            for number, item in enumerate(draft.temptations, 1)
        ),
    )


def _require_tempting(trial: Trial, rubric: Rubric) -> None:
    """Temptations go through, and the rubric sees what they do, not only that a later step misses its source."""
    literal = tuple(
        Step(**{**dict(step), "arguments": trial.played.arguments[step.id]}) for step in trial.solution.steps
    )
    for temptation in trial.solution.temptations:
        steps = tuple(tempted(trial.solution, temptation))
        through = steps[: steps.index(temptation.step) + 1]
        tried = trial.stage.play(Solution(values=trial.solution.values, steps=through))
        key = temptation.step.id
        if tried.envelopes.get(key, {}).get("success") is not True:
            reason = tried.unresolved.get(key) or str(tried.envelopes.get(key))
            raise Refused("temptation", f"{temptation.reason} after {temptation.after} comes to {reason[:400]}")
        made = Step(**{**dict(temptation.step), "arguments": tried.arguments[key]})
        careless = Temptation(**{**dict(temptation), "step": made})
        done = trial.stage.play(Solution(steps=tuple(tempted(Solution(steps=literal), careless))))
        if first_failure(rubric, done.world, trial.played.answer) is None:
            raise Refused("temptation", f"with {temptation.reason} after {temptation.after}, all still holds")
