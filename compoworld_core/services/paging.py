"""Paging: the one way in which tools cut long lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from compoworld_core.errors import InvalidArguments
from compoworld_core.services.entity import Page

T = TypeVar("T")


def paginate(rows: Sequence[T], limit: int = 20, cursor: str | None = None) -> Page[T]:
    """The rows after the cursor, at most `limit` of them.

    Raises:
        InvalidArguments: The cursor is not one that an earlier page returned, or the limit is not positive.
    """
    if limit < 1:
        raise InvalidArguments(f"limit: {limit} is below 1")
    start = 0
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit()) or int(cursor) > len(rows):
            raise InvalidArguments(f"cursor: {cursor[:40]!r} is not a cursor of this list")
        start = int(cursor)
    end = start + limit
    return Page(items=tuple(rows[start:end]), total=len(rows), next_cursor=str(end) if end < len(rows) else None)
