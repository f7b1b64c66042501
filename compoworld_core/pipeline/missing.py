"""What a stage lacks when it is run by itself, and the commands that make it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from compoworld_core.errors import InputError
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.runner import committed, resolve
from compoworld_core.pipeline.stage import StagePlan
from compoworld_core.pipeline.wording import command
from compoworld_core.storage import Store


def require_inputs(
    store: Store,
    graph: StageGraph,
    configs: Mapping[str, BaseModel],
    verb: str,
    options: Mapping[str, object],
) -> None:
    """Check that all that a stage reads is committed.

    Args:
        verb: The stage, as it was typed.
        options: What was typed with it, by option; the commands that the message names have the same.

    Raises:
        InputError: Something is missing. The message names every stage that has to run before.
    """
    lacking = _unfinished(store, graph, configs, verb)
    if not lacking:
        return
    needed = [item.name for item in graph[verb].needs(configs[verb]) if graph.producer(item.name) in lacking]
    steps = "".join(f"\n  {command(name, options)}" for name in lacking)
    raise InputError(
        f"{verb} needs {_listed(needed)}, which {store.uri} does not have for this configuration. Run first, in this "
        f"order:{steps}\nor everything at once:\n  {command('run', options)}"
    )


def _unfinished(store: Store, graph: StageGraph, configs: Mapping[str, BaseModel], verb: str) -> list[str]:
    """The stages before this one that are not finished, in order; what follows such a stage isn't either."""
    known: dict[str, StagePlan] = {}
    lacking: list[str] = []
    before = _before(graph, configs, verb)
    for name in (name for name in graph.order if name in before):
        waits = any(graph.producer(item.name) in lacking for item in graph[name].needs(configs[name]))
        if waits or committed(store, resolve(store, graph, configs, name, known)) is None:
            lacking.append(name)
    return lacking


def _before(graph: StageGraph, configs: Mapping[str, BaseModel], verb: str) -> set[str]:
    found: set[str] = set()
    ahead = [verb]
    while ahead:
        name = ahead.pop()
        for item in graph[name].needs(configs[name]):
            if (source := graph.producer(item.name)) not in found:
                found.add(source)
                ahead.append(source)
    return found


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
