"""The journal: every answer that was paid for, stored before it is used.

An answer is known by what was asked: model, parameters, tools, messages, and the index of the sample. Whoever asks the
same again, after a kill or on another machine, is given the stored answer. Of two that asked at the same time one
stores first, and both go on with that answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

from compoworld_core.errors import StorageError
from compoworld_core.llm.completion import is_completion
from compoworld_core.llm.messages import json_text
from compoworld_core.storage.digest import JsonObject
from compoworld_core.storage.files import FileStore
from compoworld_core.storage.store import Store

ROOT: Final = "journal"

_THREADS: Final = 8

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Journal:
    """Answers in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reads_at_once = isinstance(store, FileStore)
        # Of its own: whoever else uses threads must not wait for disks, nor answers for them.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="journal")

    async def find(self, model: str, key: str, sample: int) -> JsonObject | None:
        """The stored answer.

        Args:
            model: As its servers know it; for people who look into the store.
            key: Digest of the request.

        Raises:
            StorageError: What is stored is damaged.
        """
        name = _name(model, key, sample)
        # To look for a local file takes less time than to hand the task to a thread.
        data = self._store.read(name) if self._reads_at_once else await self._aside(self._store.read, name)
        return None if data is None else self._read(name, data)

    async def keep(self, model: str, key: str, sample: int, completion: JsonObject) -> JsonObject:
        """Store an answer; returns the one that is stored, which another may have been quicker to bring.

        Raises:
            StorageError: The store is full, or what is stored is damaged.
        """
        return await self._aside(self._keep, _name(model, key, sample), completion)

    async def _aside(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _keep(self, name: str, completion: JsonObject) -> JsonObject:
        if self._store.create(name, json_text(completion).encode()):
            return completion
        data = self._store.read(name)
        if data is None:
            raise StorageError(f"{self._store.uri}/{name}: was removed while it was used")
        return self._read(name, data)

    def _read(self, name: str, data: bytes) -> JsonObject:
        try:
            stored = json.loads(data)
        except (ValueError, RecursionError):
            stored = None
        if not is_completion(stored):
            raise StorageError(
                f"{self._store.uri}/{name}: the stored answer is damaged; remove it and run again: it is asked for anew"
            )
        answer: JsonObject = stored
        return answer


def _name(model: str, key: str, sample: int) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:80] or "model"
    return f"{ROOT}/{slug}/{key[:2]}/{key}-{sample}.json"
