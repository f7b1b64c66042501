"""Copy-on-write tables: why a fork costs the same at ten rows and at a million.

A table is a shared, read-only base plus an overlay of changed rows and tombstones. Forking shares both; the first write
after a fork copies the overlay, never the base. The overlay is also the diff between the start of an episode and now.
Every write goes through here: it validates the touched row and the constraints that the row can break, and notes in the
state's journal how to take it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from compoworld_core.errors import AlreadyExists, FailedPrecondition, NotFound
from compoworld_core.services.record import RecordType, Row
from compoworld_core.services.schema import TableSchema

if TYPE_CHECKING:
    from compoworld_core.services.state import State

R = TypeVar("R")

FIRST_ID = 1001

_ABSENT: Any = object()


class Base(Generic[R]):
    """Rows that never change, with the indexes and the digest that are computed from them once."""

    __slots__ = ("_digest", "_indexes", "_places", "rows")

    def __init__(self, rows: dict[str, R]) -> None:
        self.rows = rows
        self._indexes: dict[tuple[str, ...], dict[Any, tuple[str, ...]]] = {}
        self._places: dict[str, int] | None = None
        self._digest: str | None = None

    def index(self, fields: tuple[str, ...], type_: RecordType[R]) -> dict[Any, tuple[str, ...]]:
        """Keys by the values of some fields."""
        found = self._indexes.get(fields)
        if found is None:
            lists: dict[Any, list[str]] = {}
            for key, record in self.rows.items():
                lists.setdefault(_values(record, fields, type_), []).append(key)
            found = self._indexes[fields] = {value: tuple(keys) for value, keys in lists.items()}
        return found

    def places(self) -> dict[str, int]:
        """Position of each key."""
        if self._places is None:
            self._places = {key: place for place, key in enumerate(self.rows)}
        return self._places

    def digest(self, type_: RecordType[R]) -> str:
        """sha256 of the rows' canonical JSON, in order."""
        if self._digest is None:
            sha = hashlib.sha256()
            for record in self.rows.values():
                sha.update(json.dumps(type_.view(record), sort_keys=True, separators=(",", ":")).encode())
            self._digest = sha.hexdigest()
        return self._digest


def _values(record: Any, fields: tuple[str, ...], type_: RecordType[Any]) -> Any:
    if len(fields) == 1:
        return type_.field(record, fields[0])
    return tuple(type_.field(record, name) for name in fields)


class JournalEntry(NamedTuple):
    """One write: what it changed, and what undoes it."""

    table: Table[Any]
    key: str
    before: Any
    after: Any
    overlaid: Any
    counter: int


class Table(Generic[R]):
    """Rows by key, in the order of their creation. `Table[Ticket]` annotates a field of a `State`.

    A row that is deleted and then inserted again under its own id is back at its old place.
    """

    __slots__ = ("_base", "_index", "_overlay", "_shared", "_state", "counter", "name", "schema", "type")

    def __init__(self, name: str, schema: TableSchema, type_: RecordType[R]) -> None:
        self.name = name
        self.schema = schema
        self.type = type_
        self.counter = FIRST_ID
        self._base: Base[R] = Base({})
        self._overlay: dict[str, R | None] = {}
        self._shared = False
        self._index: dict[tuple[str, ...], dict[Any, set[str]]] | None = None
        self._state: State

    # Reading

    def find(self, key: str) -> R | None:
        """The row with this key, or None."""
        record = self._overlay.get(key, _ABSENT)
        return self._base.rows.get(key) if record is _ABSENT else record

    def get(self, key: str) -> R:
        """The row with this key.

        Raises:
            NotFound: There is none.
        """
        record = self._overlay.get(key, _ABSENT)
        if record is _ABSENT:
            record = self._base.rows.get(key)
        if record is None:
            raise NotFound(f"no {self.schema.entity.replace('_', ' ')} with id {str(key)[:80]!r}")
        return record  # type: ignore[no-any-return]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.find(key) is not None

    def __iter__(self) -> Iterator[R]:
        overlay, base = self._overlay, self._base.rows
        if not overlay:
            yield from base.values()
            return
        overlay = dict(overlay)  # the loop's body may write
        for key, record in base.items():
            current = overlay.get(key, record)
            if current is not None:
                yield current
        for key, added in overlay.items():
            if added is not None and key not in base:
                yield added

    def __len__(self) -> int:
        base = self._base.rows
        return len(base) + sum((record is not None) - (key in base) for key, record in self._overlay.items())

    def where(self, predicate: Callable[[R], bool] | None = None, /, **equal: Any) -> tuple[R, ...]:
        """Rows whose fields equal the given values and that pass the predicate, in table order."""
        if equal:
            fields = tuple(equal)
            wanted = next(iter(equal.values())) if len(fields) == 1 else tuple(equal.values())
            rows = [record for key in self._keys_with(fields, wanted) if (record := self.find(key)) is not None]
        else:
            rows = list(self)
        return tuple(record for record in rows if predicate is None or predicate(record))

    def first(self, predicate: Callable[[R], bool] | None = None, /, **equal: Any) -> R | None:
        """The first row that `where` would return, or None."""
        return next(iter(self.where(predicate, **equal)), None)

    # Writing

    def insert(self, /, **fields: Any) -> R:
        """Add a row; without `id` the table issues the next one.

        Raises:
            InvalidArguments: A field has an illegal value.
            AlreadyExists: The id or a unique value is taken.
            NotFound: A foreign key points nowhere.
            FailedPrecondition: The row breaks a rule of the table.
        """
        counter = self.counter
        if fields.get("id") is None:
            fields["id"] = self._issue()
        try:
            record = self.type.build(fields)
            key = self.type.field(record, "id")
            if self.find(key) is not None:
                raise AlreadyExists(f"there is already a {self.schema.entity.replace('_', ' ')} with id {key!r}")
            self._check(record, None)
        except BaseException:
            self.counter = counter
            raise
        self._put(key, None, record, counter)
        return record

    def update(self, key: str, /, **fields: Any) -> R:
        """Replace some fields of a row.

        Raises:
            NotFound: No such row, or a foreign key points nowhere.
            InvalidArguments: A field has an illegal value.
            AlreadyExists: A unique value is taken.
            FailedPrecondition: The row would break a rule of the table, or change its id.
        """
        record = self.get(key)
        changed = self.type.change(record, fields)
        if "id" in fields and self.type.field(changed, "id") != key:
            raise FailedPrecondition("an id can't be changed")
        self._check(changed, fields)
        self._put(key, record, changed, self.counter)
        return changed

    def delete(self, key: str) -> R:
        """Remove a row.

        Raises:
            NotFound: There is none.
            FailedPrecondition: Another row still refers to it.
        """
        record = self.get(key)
        for name, table in self._state.tables.items():
            for foreign in table.schema.foreign_keys:
                if foreign.table == self.name and any(
                    key in _ids(table.type.field(other, foreign.field)) for other in table if other is not record
                ):
                    raise FailedPrecondition(f"{key} is still referred to by {name}.{foreign.field}")
        self._put(key, record, None, self.counter)
        return record

    def next_id(self) -> str:
        """The id that the next inserted row gets unless it brings its own."""
        counter = self.counter
        try:
            return self._issue()
        finally:
            self.counter = counter

    # For the world

    def attach(self, state: State) -> None:
        """Make the table part of a state, whose journal its writes go to."""
        self._state = state

    def fork(self) -> Table[R]:
        """A table with the same rows; neither sees the other's later writes."""
        twin: Table[R] = object.__new__(type(self))
        twin.name, twin.schema, twin.type, twin.counter = self.name, self.schema, self.type, self.counter
        twin._base, twin._overlay, twin._index = self._base, self._overlay, None
        twin._shared = self._shared = True
        return twin

    def seal(self) -> None:
        """Fold the overlay into a new base; from here on, the overlay is the diff."""
        if self._overlay:
            self._base = Base({self.type.field(record, "id"): record for record in self})
            self._overlay, self._shared, self._index = {}, False, None

    def undo(self, entry: JournalEntry) -> None:
        """Take one write back; the journal's entries are undone newest first."""
        if self._shared:
            self._overlay, self._shared = dict(self._overlay), False
        if entry.overlaid is _ABSENT:
            del self._overlay[entry.key]
        else:
            self._overlay[entry.key] = entry.overlaid
        self.counter = entry.counter
        self._index = None

    def changed(self) -> Iterator[tuple[str, R | None, R | None]]:
        """(key, row when sealed, row now) of every row that differs from the sealed base."""
        for key, record in self._overlay.items():
            original = self._base.rows.get(key)
            if record is not original and (record is None or original is None or not self.type.same(record, original)):
                yield key, original, record

    def base_rows(self) -> Iterator[R]:
        """Rows as they were when sealed."""
        return iter(self._base.rows.values())

    def base_digest(self) -> str:
        """Digest of the rows as they were when sealed."""
        return self._base.digest(self.type)

    def overlay_rows(self) -> dict[str, Row | None]:
        """JSON view of the overlay; None marks a deleted row."""
        return {key: None if record is None else self.type.view(record) for key, record in self._overlay.items()}

    def load(self, base: Base[R], overlay: Mapping[str, R | None], counter: int) -> None:
        """Take over rows that were validated before, as a guest does with the rows that its world sends."""
        self._base, self._overlay, self.counter = base, dict(overlay), counter
        self._shared, self._index = False, None

    # Inner workings

    def _issue(self) -> str:
        """The next id, past those that callers chose themselves."""
        start = f"{self.schema.id_prefix}_" if self.schema.id_prefix else ""
        while True:
            issued = f"{start}{self.counter}"
            self.counter += 1
            if self.find(issued) is None:
                return issued

    def _put(self, key: str, before: R | None, after: R | None, counter: int) -> None:
        if self._shared:
            self._overlay, self._shared = dict(self._overlay), False
        overlaid = self._overlay.get(key, _ABSENT)
        self._overlay[key] = after
        self._state.journal.append(JournalEntry(self, key, before, after, overlaid, counter))
        if self._index is not None:
            for fields, keys in self._index.items():
                if overlaid is not _ABSENT and overlaid is not None:
                    keys.get(_values(overlaid, fields, self.type), set()).discard(key)
                if after is not None:
                    keys.setdefault(_values(after, fields, self.type), set()).add(key)

    def _check(self, record: R, changed: Mapping[str, Any] | None) -> None:
        """Check the constraints that a new row, or a row with some changed fields, can break."""
        schema = self.schema
        for fields in schema.unique:
            if changed is None or not changed.keys().isdisjoint(fields):
                self._check_unique(record, fields)
        for foreign in schema.foreign_keys:
            if changed is None or foreign.field in changed:
                target = self._state.tables[foreign.table]
                for key in _ids(self.type.field(record, foreign.field)):
                    target.get(key)
        if schema.rules:
            row = self.type.view(record)
            for rule in schema.rules:
                if rule.broken_by(row):
                    raise FailedPrecondition(rule.message)

    def _check_unique(self, record: R, fields: tuple[str, ...]) -> None:
        value = _values(record, fields, self.type)
        if value is None:
            return
        own = self.type.field(record, "id")
        if any(key != own for key in self._keys_with(fields, value)):
            shown = value if len(fields) > 1 else (value,)
            pairs = ", ".join(f"{name} {str(part)!r}" for name, part in zip(fields, shown, strict=True))
            raise AlreadyExists(f"there is already a {self.schema.entity.replace('_', ' ')} with {pairs}")

    def _keys_with(self, fields: tuple[str, ...], value: Any) -> list[str]:
        """Keys of the current rows with these field values, in table order."""
        overlay = self._overlay
        base_keys = self._base.index(fields, self.type).get(value, ())
        if not overlay:
            return list(base_keys)
        if self._index is None:
            self._index = {}
        keys = self._index.get(fields)
        if keys is None:
            keys = self._index[fields] = {}
            for key, record in overlay.items():
                if record is not None:
                    keys.setdefault(_values(record, fields, self.type), set()).add(key)
        added = keys.get(value)
        found = [key for key in base_keys if key not in overlay]
        if not added:
            return found
        if len(added) > 1 or found:
            places = self._base.places()
            added_places = {key: len(places) + place for place, key in enumerate(overlay)} if len(added) > 1 else {}
            return sorted((*found, *added), key=lambda key: places.get(key, added_places.get(key, len(places))))
        return list(added)


def _ids(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
