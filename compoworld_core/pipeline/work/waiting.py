"""Work that waits for models: rows that come from an event loop, handed to a stage that writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

from pydantic import BaseModel

Row = TypeVar("Row", bound=BaseModel)


def awaited(rows: AsyncIterator[Row]) -> Iterator[Row]:
    """The same rows, from a loop of their own, which stands still while nobody asks for the next."""

    async def next_row() -> Row | None:
        return await anext(rows, None)

    with asyncio.Runner() as runner:
        while (row := runner.run(next_row())) is not None:
            yield row
