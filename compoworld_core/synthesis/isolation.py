"""Isolation: worlds that are used in turns answer as they do alone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from compoworld_core.services.arguments import Arguments
from compoworld_core.services.running import RunningService
from compoworld_core.synthesis.bench import Bench, Misbehaved
from compoworld_core.synthesis.finding import Finding
from compoworld_core.synthesis.trial import Trial, shown

Script = list[tuple[str, Mapping[str, Any]]]


class Isolation:
    """One script of all tools' calls for each of two worlds, played alone and in turns.

    A third world, a twin of the first, plays the same calls backwards in between: what it writes concerns the very rows
    that the first one reads.
    """

    def __init__(self, bench: Bench, trials: Sequence[Trial], seed: int) -> None:
        self._bench = bench
        home = [(trial.name, trial.samples[0].arguments) for trial in trials if trial.samples]
        away = _script(bench, trials, seed)
        alone = [
            _play(bench, [(bench.home.running.fork(), home)])[0],
            _play(bench, [(bench.away.running.fork(), away)])[0],
        ]
        turns = _play(
            bench,
            [
                (bench.home.running.fork(), home),
                (bench.home.running.fork(), home[::-1]),
                (bench.away.running.fork(), away),
            ],
        )
        self._differing = {
            tool
            for first, second in ((alone[0], turns[0]), (alone[1], turns[2]))
            for (tool, one), (_, other) in zip(first, second, strict=True)
            if one is not None and other is not None and one != other
        }
        self._played = {tool for tool, _ in (*home, *away)}

    def finding(self, trial: Trial) -> Finding | None:
        """What was found about one tool."""
        if trial.name not in self._played:
            return None
        passed = trial.name not in self._differing
        detail = "two worlds in turns answered as each does alone"
        return Finding(
            check="keeps_worlds_apart",
            passed=passed,
            detail=detail if passed else "answered differently when another world was used in turns",
            cases=5,
        )


def _script(bench: Bench, trials: Sequence[Trial], seed: int) -> Script:
    script: Script = []
    for trial in trials:
        rng = random.Random(f"isolation/{seed}/{trial.name}")
        arguments = next(Arguments(trial.tool, bench.away.vocabulary, rng).candidates(), None)
        if arguments is not None:
            script.append((trial.name, arguments))
    return script


def _play(bench: Bench, parts: Sequence[tuple[RunningService, Script]]) -> list[list[tuple[str, str | None]]]:
    """Play scripts in turns, one call each; None stands for a call of a tool that misbehaves."""
    played: list[list[tuple[str, str | None]]] = [[] for _ in parts]
    for turn in range(max((len(script) for _, script in parts), default=0)):
        for place, (running, script) in enumerate(parts):
            if turn < len(script):
                tool, arguments = script[turn]
                bench.subject = tool
                try:
                    played[place].append((tool, shown(bench.call(running, tool, arguments))))
                except Misbehaved:
                    played[place].append((tool, None))
    return played
