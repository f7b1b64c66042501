"""The pool: all models of a process, asked side by side, each answer paid for once.

A question goes through the same steps whoever asks it: is the answer in the journal; is there money left; which server
has room; and before the answer is used, it is journaled. What was sent is seen through even if nobody waits for it any
more, for it has to be paid anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from compoworld_core.errors import InputError
from compoworld_core.llm.budget import Purse
from compoworld_core.llm.completion import BYTES_PER_TOKEN, is_empty, read_answer, usage_of, with_usage
from compoworld_core.llm.config import Budget, ModelConfig
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.ledger import Ledger
from compoworld_core.llm.messages import AssistantMessage, Message, Usage
from compoworld_core.llm.model import ChatModel, FailureKind, ModelFailure
from compoworld_core.llm.request import Request, chat_body
from compoworld_core.llm.servers import Flight, Patience, Servers
from compoworld_core.storage.digest import JsonObject

_FIRST_GUESS: Final = 4096
"""Tokens of an answer of a model whose longest answer is not known."""

_NEW_SHARE: Final = 0.05
"""How much of an estimate the latest answer makes up."""


class ModelPool:
    """Models behind endpoints; an async context manager, to be entered in the loop that uses it.

    Args:
        models: By the names that stages use.
        journal: Where answers are kept.
        budget: The most that all of them may take together.
        patience: How long to try.

    Raises:
        InputError: A model has no endpoint, or an endpoint no key.
    """

    def __init__(
        self,
        models: Mapping[str, ModelConfig],
        journal: Journal,
        budget: Budget | None = None,
        *,
        patience: Patience | None = None,
    ) -> None:
        self._models = {name: Served(name, config, patience or Patience()) for name, config in models.items()}
        self._journal = journal
        self._purse = Purse(budget or Budget())
        self._ledger = Ledger({name: config.price for name, config in models.items()})
        self._flights: dict[tuple[str, int], tuple[Flight, asyncio.Task[JsonObject]]] = {}
        self._counted: set[int] = set()

    async def __aenter__(self) -> Self:
        self._purse.start(asyncio.get_running_loop().time())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See what was sent through, unless the process is to stop at once."""
        tasks = [task for _, task in self._flights.values()]
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for model in self._models.values():
            await model.servers.close()

    def model(self, name: str, *, item: str, sample: int = 0) -> ChatModel:
        """A model, ready to be asked.

        Args:
            item: What its answers are for: a task, a service, a tool.
            sample: Tells apart answers to the same question.
        """
        return _Asked(self, self._known(name), item, sample)

    async def complete(self, name: str, body: JsonObject, *, item: str, sample: int = 0) -> tuple[JsonObject, Usage]:
        """The completion, not streamed, that answers the body of a chat-completion request, and what it took.

        What the configuration says about the model and its parameters goes before what the body says.

        Raises:
            ModelFailure: There is no usable answer.
            InputError: There is no such model, or a server does not accept its key.
            BudgetExhausted: Nothing more may be spent.
            TransientError: There is no answer now, but there may be later.
        """
        model = self._known(name)
        return await self.answer(model, Request.of(model.config, body), item, sample)

    def repeat(self, name: str, *, item: str, requests: int, usage: Usage) -> None:
        """Count answers that nobody asks for again, since what they came to is kept."""
        price = self._known(name).config.price
        self._purse.charge(usage, price.of(usage))
        self._ledger.note(name, item, usage, requests=requests, journaled=True)

    def spend(self) -> list[JsonObject]:
        """What was spent by model and item, for `Shard.notes["spend"]`."""
        return self._ledger.plain()

    async def answer(self, model: Served, request: Request, item: str, sample: int) -> tuple[JsonObject, Usage]:
        """A journaled completion and what it took; raises as `complete` does."""
        place = (request.key, sample)
        if place in self._flights:
            flight, task = self._flights[place]
            self._ledger.note(model.name, item, None, journaled=True)
        else:
            flight = Flight()
            task = asyncio.create_task(self._fetch(flight, model, request, item, sample))
            self._flights[place] = flight, task
            task.add_done_callback(lambda task: self._landed(place, task))
        flight.waiters += 1
        try:
            completion = await asyncio.shield(task)
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.is_sent and not task.done():
                task.cancel()
                self._flights.pop(place, None)
        usage = model.usage(completion, request)
        if is_empty(completion):
            is_filtered = completion["choices"][0]["finish_reason"] == "content_filter"
            kind: FailureKind = "filtered" if is_filtered else "empty"
            raise ModelFailure(kind, f"{model.name}: there is nothing in the answer", usage)
        return completion, usage

    async def _fetch(self, flight: Flight, model: Served, request: Request, item: str, sample: int) -> JsonObject:
        slug = model.config.model
        stored = await self._journal.find(slug, request.key, sample)
        if stored is not None:
            self._count(model, item, model.usage(stored, request), (request.key, sample), journaled=True)
            return stored
        estimate = model.estimate(request)
        async with self._purse.held(estimate, model.config.price.of(estimate)):
            conversation = f"{item}\n{sample}"
            completion, thrown_away = await model.servers.ask(
                request, conversation, estimate, flight, self._purse.check
            )
            model.learn(completion, request)
            if thrown_away:  # they were paid for this answer, and whoever finds it in the journal has to know
                took = Usage.total(model.usage(answer, request) for answer in (completion, *thrown_away))
                completion = with_usage(completion, took)
            self._count(model, item, model.usage(completion, request), (request.key, sample), journaled=False)
            return await self._journal.keep(slug, request.key, sample, completion)

    def _count(self, model: Served, item: str, usage: Usage, place: tuple[str, int], *, journaled: bool) -> None:
        """Charge an answer the first time that this process meets it."""
        is_new = hash(place) not in self._counted
        if is_new:
            self._counted.add(hash(place))
            self._purse.charge(usage, model.config.price.of(usage))
        self._ledger.note(model.name, item, usage if is_new else None, journaled=journaled)

    def _landed(self, place: tuple[str, int], task: asyncio.Task[JsonObject]) -> None:
        if self._flights.get(place, (None, None))[1] is task:
            del self._flights[place]
        if not task.cancelled():
            task.exception()  # whoever still waits has it; where nobody does, it is no news

    def _known(self, name: str) -> Served:
        if name not in self._models:
            raise InputError(f"there is no model {name!r}; there is {', '.join(sorted(self._models)) or 'none'}")
        return self._models[name]


class Served:
    """A model of the pool, with what its answers took so far."""

    def __init__(self, name: str, config: ModelConfig, patience: Patience) -> None:
        if not config.endpoints:
            raise InputError(f"llm.models.{name}: has no endpoints; say where it is served")
        self.name = name
        self.config = config
        self.servers = Servers(config, patience)
        self._bytes_per_token = float(BYTES_PER_TOKEN)
        self._completion_tokens = float(config.max_tokens or _FIRST_GUESS)

    def usage(self, completion: JsonObject, request: Request) -> Usage:
        """What an answer took."""
        return usage_of(completion, len(request.content))

    def estimate(self, request: Request) -> Usage:
        """What an answer may take, by what the ones before it took."""
        prompt, completed = int(len(request.content) / self._bytes_per_token), int(self._completion_tokens)
        return Usage(prompt_tokens=prompt, completion_tokens=completed)

    def learn(self, completion: JsonObject, request: Request) -> None:
        """Remember what an answer took."""
        usage = self.usage(completion, request)
        sizes = (len(request.content) / max(1, usage.prompt_tokens), usage.completion_tokens)
        self._bytes_per_token += _NEW_SHARE * (sizes[0] - self._bytes_per_token)
        # Upwards at once: what is thought to take too little lets too many begin.
        self._completion_tokens = max(
            self._completion_tokens + _NEW_SHARE * (sizes[1] - self._completion_tokens), float(sizes[1])
        )


class _Asked:
    """A model of the pool, for one item."""

    def __init__(self, pool: ModelPool, model: Served, item: str, sample: int) -> None:
        self._pool = pool
        self._model = model
        self._item = item
        self._sample = sample

    @property
    def name(self) -> str:
        """See `ChatModel.name`."""
        return self._model.name

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """See `ChatModel.respond`."""
        request = Request.of(self._model.config, chat_body(messages, tools))
        return read_answer(*await self._pool.answer(self._model, request, self._item, self._sample))
