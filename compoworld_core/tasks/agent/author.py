"""The agent author's attempts: a session for each draw, many side by side, in an order that nobody's speed decides.

A session that has ended is kept with its transcript and never held again. What it handed in is judged anew by whoever
takes it up, so a task counts by the gates that there are now.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from compoworld_core.errors import CompoWorldError, TransientError
from compoworld_core.llm.messages import to_chat
from compoworld_core.llm.model import ChatModel
from compoworld_core.llm.sessions import Session, find, keep
from compoworld_core.storage import Store, digest
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.agent.session import Held, SessionLimits, hold_session, opening, prompts
from compoworld_core.tasks.agent.submission import Submission
from compoworld_core.tasks.agent.trial import Refused, TryingRoom
from compoworld_core.tasks.agent.workbench import AUTHOR_TOOLS, Workbench
from compoworld_core.tasks.sampler import (
    ACCEPTED,
    Attempt,
    Authoring,
    Draw,
    Draws,
    ServiceTools,
    TaskSettings,
    nothing_fits,
)
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue

KIND: Final = "task_author"
BUG: Final = "bug"
_MOST_TRANSIENT: Final = 3
"""Attempts in a row that may fail for want of an answer: more are an outage, and would use up the tries."""


@dataclass(frozen=True)
class Writer:
    """The model that writes.

    Attributes:
        name: What records call it.
        parameters: What decides its answers, beside the messages.
        model: The model for an item, which names what its answers are for: `standard/3`, the profile and the attempt.
        repeat: Counts for an item what a session took that is not held again.
    """

    name: str
    parameters: JsonObject
    model: Callable[[str], ChatModel]
    repeat: Callable[[str, Session], None]


@dataclass(frozen=True)
class _Made:
    attempt: Attempt
    is_transient: bool = False


async def author_tasks(
    settings: TaskSettings,
    services: Sequence[ServiceTools],
    catalogue: Catalogue,
    writer: Writer,
    store: Store,
    shard: int,
    shards: int,
    *,
    limits: SessionLimits | None = None,
    concurrency: int = 16,
) -> AsyncIterator[Attempt]:
    """The agent's attempts of one shard, in order, until it has its part of the tasks or has tried often enough.

    No more sessions are begun than tasks are missing, so every one counts and none is held for nothing.

    Args:
        store: Where sessions are kept.
        concurrency: Most sessions in progress at a time.

    Raises:
        InputError: There are too few services for the profile.
        BudgetExhausted: Nothing more may be spent. What was answered is journaled.
        TransientError: The model does not answer at all.
    """
    draws = Draws(settings, services)
    desk = _Desk(catalogue, writer, store, limits or SessionLimits(), settings)
    missing = settings.wanted(shard, shards)
    places = iter(range(missing * settings.attempts_per_task))
    running: deque[asyncio.Task[_Made]] = deque()
    failed_in_a_row = 0
    gate = asyncio.Semaphore(concurrency)
    try:
        while missing:
            while len(running) < missing and (place := next(places, None)) is not None:
                running.append(asyncio.create_task(desk.attempt(draws, place * shards + shard, gate)))
            if not running:
                return
            made = await running.popleft()
            missing -= made.attempt.task is not None
            failed_in_a_row = failed_in_a_row + 1 if made.is_transient else 0
            yield made.attempt
            if failed_in_a_row == _MOST_TRANSIENT:
                raise TransientError(f"{_MOST_TRANSIENT} sessions in a row got no answer: {made.attempt.detail}")
    finally:
        for unfinished in running:
            unfinished.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _Desk:
    """Makes single attempts."""

    def __init__(
        self, catalogue: Catalogue, writer: Writer, store: Store, limits: SessionLimits, settings: TaskSettings
    ) -> None:
        self._catalogue = catalogue
        self._writer = writer
        self._store = store
        self._limits = limits
        self._seed = settings.seed
        self._prompts = tuple(prompt.label for prompt in prompts())

    async def attempt(self, draws: Draws, number: int, gate: asyncio.Semaphore) -> _Made:
        """Take up the session of a draw, or hold it."""
        async with gate:
            draw = draws.draw(number)
            if draw.recipe is None:
                return _Made(nothing_fits(draw))
            try:
                return await self._worked_on(draw, TryingRoom(draw, draw.recipe, self._catalogue))
            except CompoWorldError:
                raise
            except Exception as bug:  # it costs this attempt only
                return _Made(draw.attempt(BUG, f"{type(bug).__name__}: {bug}"))

    async def _worked_on(self, draw: Draw, room: TryingRoom) -> _Made:
        key = self._key(draw)
        item = f"{draw.profile}/{draw.number}"
        known = await asyncio.to_thread(find, self._store, key)
        taken = None if known is None else self._taken(draw, room, key, known)
        if known is not None and taken is not None:
            self._writer.repeat(item, known)
            return _Made(taken)
        bench = Workbench(room, self._limits.submissions)
        held = await hold_session(
            self._writer.model(item), bench, opening(draw, room.open(), self._limits), self._limits
        )
        session = self._session(draw, held, bench)
        kept = await asyncio.to_thread(keep, self._store, key, session)
        taken = None if kept == session else self._taken(draw, room, key, kept)
        return _Made(taken or self._recorded(draw, key, session, bench.accepted), held.is_transient)

    def _key(self, draw: Draw) -> str:
        """Digest of all that decides how a session goes."""
        return digest(
            {
                "kind": KIND,
                "world": draw.recipe,
                "core": sorted(draw.core),
                "walk": draw.walk,
                "profile": draw.profile,
                "split": draw.split,
                "number": draw.number,
                "prompts": self._prompts,
                "tools": AUTHOR_TOOLS,
                "model": self._writer.parameters,
                "limits": self._limits,
            }
        )

    def _session(self, draw: Draw, held: Held, bench: Workbench) -> Session:
        result: dict[str, Any] = {
            "detail": held.detail,
            "turns": held.turns,
            "refused": [item.gate for item in bench.refused],
        }
        if bench.submitted is not None:
            result["submission"] = bench.submitted.model_dump(mode="json")
        return Session(
            kind=KIND,
            item=f"task/{self._seed}/{draw.profile}/{draw.number}",
            model=self._writer.name,
            prompts=self._prompts,
            transcript=tuple(to_chat(message) for message in held.messages),
            requests=held.requests,
            usage=held.usage,
            outcome=held.outcome,
            result=result,
        )

    def _taken(self, draw: Draw, room: TryingRoom, key: str, session: Session) -> Attempt | None:
        """The attempt of a session that has ended before; None where its task no longer passes."""
        if session.outcome != ACCEPTED:
            return self._recorded(draw, key, session, None)
        try:
            task = room.judge(Submission.model_validate(session.result["submission"]))
        except Refused:
            return None
        return self._recorded(draw, key, session, task)

    @staticmethod
    def _recorded(draw: Draw, key: str, session: Session, task: Task | None) -> Attempt:
        result = session.result
        authoring = Authoring(
            session=key,
            model=session.model,
            prompts=session.prompts,
            turns=result["turns"],
            refused=tuple(result["refused"]),
            prompt_tokens=session.usage.prompt_tokens,
            completion_tokens=session.usage.completion_tokens,
        )
        walk = {} if task is None else {"walk": task.walk}
        return draw.attempt(session.outcome, result["detail"], authoring=authoring, task=task, **walk)
