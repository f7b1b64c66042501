"""Invariants: what holds for every call of every honest tool, whatever the tool is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from compoworld_core.errors import TOOL_ERRORS, CompoWorldError, ToolError
from compoworld_core.services.envelope import Envelope
from compoworld_core.specs.validation import validator
from compoworld_core.storage.digest import canonical_json
from compoworld_core.synthesis.finding import Finding, printable
from compoworld_core.synthesis.trial import Sample, Trial, Tried, overlay, shown

MAX_RESULT_BYTES: Final = 1_000_000
"""Largest answer, as canonical JSON."""

Check = Callable[[Trial], Finding | None]
"""Finds out one thing about a tool; None where the check does not apply to it."""


def survives_hostile_calls(trial: Trial) -> Finding:
    """No generated case is a bug; illegal ones are refused, those of the wrong shape as `invalid_arguments`."""
    accepted = [tried for tried in trial.tried if tried.case.is_legal is False and not _is_refused(tried)]
    return Finding(
        check="survives_hostile_calls",
        passed=not accepted,
        detail=f"not refused as it should be: {_labels(accepted)}" if accepted else _codes_seen(trial),
        cases=len(trial.tried),
    )


def errors_change_nothing(trial: Trial) -> Finding:
    """A refused call leaves the state as it was."""
    refused = [tried for tried in trial.tried if not tried.result.succeeded]
    guilty = [tried for tried in refused if tried.changed_state]
    return Finding(
        check="errors_change_nothing",
        passed=not guilty,
        detail=f"refused and yet changed the state: {_labels(guilty)}" if guilty else "refused calls left no trace",
        cases=len(refused),
    )


def reads_change_nothing(trial: Trial) -> Finding | None:
    """A read tool's calls leave the state as it was."""
    if trial.effect != "read":
        return None
    guilty = [tried for tried in trial.tried if tried.changed_state]
    return Finding(
        check="reads_change_nothing",
        passed=not guilty,
        detail=f"changed the state: {_labels(guilty)}" if guilty else "reads left no trace",
        cases=len(trial.tried),
    )


def is_repeatable(trial: Trial) -> Finding:
    """The same arguments in the same state give the same answer and the same changes, also much later."""
    differing = [sample for sample in trial.samples if shown(trial.call(sample.arguments)) != shown(sample.result)]
    return Finding(
        check="is_repeatable",
        passed=not differing,
        detail=f"answered differently the second time: {_arguments(differing[0])}" if differing else "same answers",
        cases=len(trial.samples),
    )


def leaves_forks_alone(trial: Trial) -> Finding:
    """Calls in one fork of a world do not show in another, nor in the world."""
    running = trial.world.running
    before, twin = overlay(running), running.fork()
    for sample in trial.samples[:1]:
        trial.bench.call(running.fork(), trial.name, sample.arguments)
    intact = overlay(running) == before and overlay(twin) == before
    return Finding(
        check="leaves_forks_alone",
        passed=intact,
        detail="a call in a fork showed nowhere else" if intact else "a call in one fork showed in another",
        cases=len(trial.samples[:1]),
    )


def survives_reload(trial: Trial) -> Finding:
    """Rows written to JSON and read into a new state give the same answers."""
    try:
        running = trial.bench.reloaded(trial.world.running)
    except ToolError as error:
        return Finding(
            check="survives_reload", passed=False, detail=printable(f"rows can't be read back: {error.message}")
        )
    differing = []
    for sample in trial.samples[:2]:
        result = trial.bench.call(running.fork(), trial.name, sample.arguments)
        if shown(result) != shown(sample.result):
            differing.append(sample)
    return Finding(
        check="survives_reload",
        passed=not differing,
        detail=f"answered differently: {_arguments(differing[0])}" if differing else "same answers from reloaded rows",
        cases=len(trial.samples[:2]),
    )


def answers_as_declared(trial: Trial) -> Finding:
    """Envelopes have the legal shape, data is bounded JSON and matches the declared schema."""
    results = [sample.result for sample in trial.samples] + [tried.result for tried in trial.tried]
    validator = _validator(trial.tool.returns)
    faults = [fault for result in results if (fault := _fault(result.envelope, validator)) is not None]
    declared = "bounded JSON" if validator is None else "bounded JSON that matches the declared schema"
    return Finding(
        check="answers_as_declared",
        passed=not faults,
        detail=printable(faults[0]) if faults else f"all answers are {declared}",
        cases=len(results),
    )


INVARIANTS: tuple[Check, ...] = (
    survives_hostile_calls,
    errors_change_nothing,
    reads_change_nothing,
    is_repeatable,
    leaves_forks_alone,
    survives_reload,
    answers_as_declared,
)


def _is_refused(tried: Tried) -> bool:
    if tried.result.succeeded:
        return False
    return not tried.case.is_structural or tried.result.envelope["error"]["code"] == "invalid_arguments"


def _labels(tried: list[Tried]) -> str:
    return ", ".join(item.case.label for item in tried[:5])


def _arguments(sample: Sample) -> str:
    return printable(json.dumps(sample.arguments, sort_keys=True), 160)


def _codes_seen(trial: Trial) -> str:
    codes = sorted({item.result.envelope["error"]["code"] for item in trial.tried if not item.result.succeeded})
    return f"refused with {', '.join(codes)}" if codes else "nothing to refuse"


def _validator(schema: Any) -> Any:
    """The validator of a declared result; a schema that can't be compiled promises nothing."""
    if schema is None:
        return None
    try:
        return validator(schema)
    except ValueError:
        return None


def _fault(envelope: Envelope, validator: Any) -> str | None:
    if envelope.get("success") is True and envelope.keys() == {"success", "data"}:
        data = envelope["data"]
        try:
            size = len(canonical_json(data).encode())
        except CompoWorldError as error:
            # An argument with a lone surrogate may come back; only data of the tool's own making has to be storable.
            return None if "surrogate" in str(error) else f"data is not JSON: {error}"
        if size > MAX_RESULT_BYTES:
            return f"data is {size} bytes long, more than {MAX_RESULT_BYTES}"
        mismatch = None if validator is None else next(validator.iter_errors(data), None)
        return None if mismatch is None else f"data does not match the declared schema: {mismatch.message}"
    if envelope.get("success") is False and envelope.keys() == {"success", "error"}:
        refusal = envelope["error"]
        if isinstance(refusal, dict) and refusal.keys() == {"code", "message"} and refusal["code"] in TOOL_ERRORS:
            return None
    return f"illegal envelope: {envelope}"
