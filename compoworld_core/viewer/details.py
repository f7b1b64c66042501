"""What the page shows of one service, task or trajectory when it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compoworld_core.llm.messages import AssistantMessage, ToolCall
from compoworld_core.rollouts.trajectory import Call, Change, Trajectory
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import JsonObject, ToolSpec
from compoworld_core.synthesis.admission import Admission
from compoworld_core.tasks.rubric import Criterion
from compoworld_core.tasks.task import Task
from compoworld_core.viewer.glossary import shape_in_words
from compoworld_core.viewer.legible import clipped, digestible
from compoworld_core.viewer.walks import picture_of_task, picture_of_trajectory, source_of
from compoworld_core.viewer.wording import condition_in_words, operation_in_words, spoken

_MOST_CHANGES = 100
_MOST_CALLS = 400


def service_detail(package: ServicePackage, admissions: Sequence[Admission]) -> JsonObject:
    """A service: its tables, and each tool with its outcome and the evidence."""
    specs = {tool.name: tool for tool in (*package.spec.tools, *package.modelled)}
    return {
        "title": package.spec.title,
        "description": package.spec.description,
        "source": package.spec.source,
        "author": package.author,
        "digest": package.digest,
        "tables": [[name, table.entity, list(table.properties)] for name, table in package.tables.tables.items()],
        "tools": [_tool(admission, specs.get(admission.tool)) for admission in admissions]
        or [_tool(None, tool) for tool in package.spec.tools],
    }


def _tool(admission: Admission | None, spec: ToolSpec | None) -> JsonObject:
    shown: JsonObject = {
        "name": admission.tool if admission else spec.name if spec else "",
        "description": clipped(spec.description, 400) if spec else "",
        "effect": spec.effect if spec else "",
        "repairs": list(spec.repairs) if spec else [],
    }
    if admission is None:
        return {**shown, "outcome": "unjudged", "reason": "", "checks": [], "card": []}
    card = admission.scorecard
    numbers = [("calls made", str(card.calls)), ("self-tests", str(card.self_tests)), ("cases", str(card.cases))]
    numbers += [("of them illegal", str(card.illegal_cases))]
    numbers += [("arguments with influence", f"{card.influential_arguments} of {card.arguments}")]
    if card.error_codes:
        numbers.append(("refusals seen", ", ".join(card.error_codes)))
    if card.mutation_score is not None:
        numbers.append(("mutants rejected", f"{card.mutation_score:.0%}"))
    return {
        **shown,
        "outcome": admission.outcome,
        "reason": clipped(admission.reason, 600),
        "checks": [
            [item.check, item.passed, clipped(item.detail, 400), item.cases, item.is_gate] for item in admission.checks
        ],
        "card": [list(pair) for pair in numbers] if card.calls else [],
    }


def task_detail(task: Task) -> JsonObject:
    """A task: instruction, walk, rubric, solution, and what was prepared in its world."""
    sources = {name: source_of(binding) for name, binding in task.solution.values.items()}
    core = set(task.core)
    return {
        "instruction": clipped(task.instruction),
        "author": task.author,
        "start_time": task.recipe.start_time.isoformat(),
        "seed": str(task.recipe.universe.seed),
        "scale": task.recipe.universe.scale,
        "shape": task.shape,
        "shape_words": shape_in_words(task.shape),
        "picture": picture_of_task(task).as_json(),
        "criteria": [_criterion(item) for item in task.rubric.criteria],
        "steps": [
            {
                "id": step.id,
                "service": step.service,
                "tool": step.tool,
                "effect": step.effect,
                "after": list(step.after),
                "arguments": [[name, digestible(spoken(value, sources))] for name, value in step.arguments.items()],
            }
            for step in task.solution.steps
        ],
        "values": [
            [name, sources[name] or "", digestible(spoken(value, sources))]
            for name, value in task.solution.values.items()
        ],
        "answer": [[fact.label, digestible(spoken(fact.value, sources))] for fact in task.solution.answer],
        "plants": [
            [operation_in_words(plant.do), digestible(getattr(plant.do, "values", {})), digestible(plant.facts)]
            for plant in task.recipe.plants
        ],
        "reactions": [
            [
                clipped(condition_in_words(reaction.when), 2_000),
                [[operation_in_words(item), digestible(getattr(item, "values", {}))] for item in reaction.apply],
            ]
            for reaction in task.recipe.reactions
        ],
        "distractors": [[pin.name, len(pin.tools)] for pin in task.recipe.services if pin.name not in core],
        "edges": [[edge.source_service, edge.target_service, edge.argument] for edge in task.edges],
    }


def _criterion(criterion: Criterion) -> JsonObject:
    return {
        "id": criterion.id,
        "description": clipped(criterion.description, 2_000),
        "initially": criterion.holds_initially,
        "words": clipped(condition_in_words(criterion.condition), 4_000),
    }


def trajectory_detail(trajectory: Trajectory, criteria: Mapping[str, Criterion]) -> JsonObject:
    """A trajectory, turn by turn.

    Args:
        criteria: The task's criteria by id, where the task is known.
    """
    verdict = trajectory.verdict
    usage = trajectory.usage
    judged = zip(verdict.criteria, verdict.passed, strict=True) if verdict else ()
    return {
        "answer": None if trajectory.answer is None else clipped(trajectory.answer),
        "error": [trajectory.error.kind, trajectory.error.message] if trajectory.error else None,
        "finish": trajectory.finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens],
        "verdict": [
            [
                name,
                clipped(criteria[name].description, 2_000) if name in criteria else "",
                passed,
                criteria[name].holds_initially if name in criteria else None,
            ]
            for name, passed in judged
        ],
        "picture": picture_of_trajectory(trajectory).as_json(),
        "turns": _turns(trajectory),
        "left_out": max(0, len(trajectory.calls) - _MOST_CALLS),
    }


def _turns(trajectory: Trajectory) -> list[JsonObject]:
    """One entry per assistant message, each of its calls beside what came of it."""
    turns: list[JsonObject] = []
    calls = iter(trajectory.calls[:_MOST_CALLS])
    for message in trajectory.messages:
        if isinstance(message, AssistantMessage):
            made = [(asked, call) for asked in message.tool_calls if (call := next(calls, None)) is not None]
            if message.tool_calls and not made and len(trajectory.calls) > _MOST_CALLS:
                break
            turns.append(
                {
                    "said": clipped(message.content),
                    "thought": clipped(message.reasoning_content or ""),
                    "calls": [_call(asked, call) for asked, call in made],
                }
            )
    return turns


def _call(asked: ToolCall, call: Call) -> JsonObject:
    arguments: Any = asked.arguments if call.arguments is None else call.arguments
    name = call.name
    if call.name == "call_tool" and isinstance(call.arguments, dict):
        name = str(call.arguments.get("tool_name", call.name))
        arguments = call.arguments.get("arguments", {})
    error = call.envelope.get("error")
    return {
        "index": call.index,
        "name": clipped(name, 200),
        "is_real": call.name == "call_tool",
        "service": call.service,
        "tool": call.tool,
        "arguments": digestible(arguments),
        "is_malformed": call.arguments is None,
        "succeeded": call.envelope.get("success") is True,
        "code": clipped(str(error.get("code", "")), 100) if isinstance(error, dict) else "",
        "envelope": digestible(call.envelope),
        "changes": [_change(item) for item in call.changes[:_MOST_CHANGES]],
        "more_changes": max(0, len(call.changes) - _MOST_CHANGES),
        "bug": clipped(call.bug, 4_000) if call.bug else "",
        "world_model": call.world_model,
    }


def _change(change: Change) -> JsonObject:
    """A row change by field; only the fields that differ."""
    before, after = change.before or {}, change.after or {}
    fields = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {
        "row": f"{change.service}.{change.table}",
        "key": change.key,
        "cause": change.cause,
        "kind": "created" if change.before is None else "deleted" if change.after is None else "updated",
        "fields": [[name, *(digestible(row.get(name), 2_000) for row in (before, after))] for name in fields],
    }
