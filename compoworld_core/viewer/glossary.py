"""The project's own words, each with a sentence for those who meet it on the page first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from compoworld_core.rollouts.selection import Reason
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.planner.ingredients import SPECIAL
from compoworld_core.tasks.task import Split

DATASETS: Final[Mapping[str, str]] = {
    "specs": "what services promise, as their sources describe them, in one form",
    "rejections": "servers and tools of a source that could not be brought to that form",
    "services": "executable services: the library's, and those that were written from specs",
    "omissions": "tools of specs that no service has, with the reason",
    "verifications": "the judgement on every tool that was written, or left to a world model, with its evidence",
    "tasks": "tasks that passed every gate",
    "attempts": "every try at a task, and what became of it",
    "trajectories": "episodes: what was said, called and changed, and how it was judged",
    "sft_models": "the model that imitated verified trajectories, with how that went",
    "grpo_models": "the model that went on to learn from its own rollouts, with how that went",
    "evaluations": "attempts of policies at held-out tasks",
}

OUTCOMES: Final[Mapping[str, str]] = {
    "verified": "passed every check, so agents may use it",
    "world_model": "left to a model that predicts its answers, since what it does is not kept in rows; tasks use it "
    "only where the configuration lets them",
    "quarantined": "failed a check, so agents do not get it",
}

OMITTED: Final[Mapping[str, str]] = {
    "world_model": "left to a world model: what they do is not kept in rows",
    "unclear": "the author could not tell what they mean",
    "author": "the author failed on the whole spec, or forgot them",
    "budget": "the author was stopped by its budget",
    "disallowed": "their code reaches for what it may not have",
    "definition": "their code fails when it is loaded",
    "service": "their code is not one complete service",
    "host": "their code did not survive being loaded",
    "tools": "their code has other tools or parameters than the spec",
    "schema": "their tables can't be held",
}

SPLITS: Final[Mapping[Split, str]] = {
    "sft": "for training: verified trajectories of these tasks are what a model imitates",
    "rl": "for training: a model works on these tasks itself and is rewarded by their rubrics",
    "eval_task": "held out for evaluation: new tasks, with services in combinations that training tasks have, too",
    "eval_combo": "held out for evaluation: combinations that no training task has, of services or of the tools of one",
    "eval_service": "held out for evaluation: with services that no training task visits",
}

LEFT_OUT: Final[Mapping[Reason, str]] = {
    "not_well_formed": "have a call whose arguments are no JSON object",
    "failed": "were not verified",
    "world_model": "have answers of a world model",
    "contaminated": "overlap with the texts to stay clear of",
    "duplicate": "make nearly the same calls as another of their task",
    "near_duplicate": "say nearly the same as another",
    "over_cap": "are more of their task than wanted",
    "over_count": "are more in all than wanted",
}

CAPABILITIES: Final[Mapping[str, str]] = {
    "derived_value": "work out what nobody can look up",
    "fan_out": "do something for every row that matches",
    "guard": "check again right before acting",
    "hand_off": "tell the person in charge",
    "join": "find something by what another service says",
    "latest": "find the row with the most or the least",
    "near_duplicate": "not take what looks almost the same",
    "policy_branch": "follow the rules that are in force",
    "stale_reread": "read again what has changed meanwhile",
    "untouched": "leave alone what only resembles",
}


def letters() -> dict[str, str]:
    """What each letter of a shape stands for, as the ingredients of plans say it themselves."""
    return {item.letter: _sentence(item.__doc__) for item in sorted(SPECIAL, key=lambda item: item.letter)}


def shape_in_words(shape: str) -> list[list[str]]:
    """A task's shape, part by part: `FK-9` is what F and K stand for, and nine writes."""
    special, _, writes = shape.rpartition("-")
    known = letters()
    if not writes.isdecimal() or not (special == "plain" or set(special) <= set(known)):
        return []
    parts = [] if special == "plain" else [[letter, known[letter]] for letter in special]
    return [*parts, [writes, "write" if writes == "1" else "writes"]]


def explained(words: Iterable[str], meanings: Mapping[Any, str]) -> tuple[tuple[str, str], ...]:
    """Those of the words that have a meaning, with it."""
    return tuple((word, meanings[word]) for word in words if word in meanings)


def as_json() -> JsonObject:
    """What the page's script explains."""
    return {"splits": dict(SPLITS), "outcomes": dict(OUTCOMES), "capabilities": dict(CAPABILITIES)}


def _sentence(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0].rstrip(".") if doc else ""
