"""A service's state: its tables, and the journal that makes every call a transaction.

Writes land in the tables at once and are noted in the journal; `commit` turns the journal into row changes, `rollback`
takes every write back. Whoever drives the service (the world) decides which of the two happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_origin, get_type_hints

from compoworld_core.services.conditions import Rule
from compoworld_core.services.entity import Entity
from compoworld_core.services.record import EntityRecords, RecordType, Row
from compoworld_core.services.schema import ForeignKey, ServiceSchema, TableSchema
from compoworld_core.services.semantics import Id
from compoworld_core.services.table import JournalEntry, Table
from compoworld_core.services.tool import without_titles


class RowChange(NamedTuple):
    """What one committed call did to one row. `before` is None for a new row, `after` for a deleted one."""

    table: Table[Any]
    key: str
    before: Any
    after: Any

    @property
    def is_real(self) -> bool:
        """Whether the row is another than before."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return not self.table.type.same(self.before, self.after)

    @property
    def before_row(self) -> Row | None:
        """JSON view of the row before the call."""
        return None if self.before is None else self.table.type.view(self.before)

    @property
    def after_row(self) -> Row | None:
        """JSON view of the row after the call."""
        return None if self.after is None else self.table.type.view(self.after)


@dataclass(frozen=True)
class TableOptions:
    """Constraints of a table, as `table(...)` declares them."""

    unique: tuple[tuple[str, ...], ...] = ()
    rules: tuple[Rule, ...] = ()


def table(*, unique: tuple[str | tuple[str, ...], ...] = (), rules: tuple[Rule, ...] = ()) -> Any:
    """Declare constraints of a table: `tickets: Table[Ticket] = table(unique=("number",))`.

    Foreign keys need no declaration: a field typed with another table's id type is one.
    """
    return TableOptions(tuple((item,) if isinstance(item, str) else item for item in unique), rules)


class State:
    """Tables by name. Library services subclass it; hosted services get one from their schema."""

    tables: dict[str, Table[Any]]
    journal: list[JournalEntry]
    writes: int
    """Committed calls that changed something; the service's clock and random numbers follow it."""

    _options: ClassVar[Mapping[str, TableOptions]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._options = {name: value for name, value in vars(cls).items() if isinstance(value, TableOptions)}
        for name in cls._options:
            delattr(cls, name)

    def __init__(self, tables: Mapping[str, Table[Any]]) -> None:
        self.tables = dict(tables)
        self.journal = []
        self.writes = 0
        for name, item in self.tables.items():
            item.attach(self)
            setattr(self, name, item)

    @classmethod
    def empty(cls) -> Self:
        """A state of this class without rows."""
        schema, entities = cls.declaration()
        types: dict[str, RecordType[Any]] = {name: EntityRecords(entity) for name, entity in entities.items()}
        return cls({name: Table(name, schema.tables[name], types[name]) for name in schema.tables})

    @staticmethod
    def from_schema(schema: ServiceSchema) -> State:
        """A state without rows whose rows are validated by JSON Schema alone."""
        return State({name: Table(name, item, item.records) for name, item in schema.tables.items()})

    @classmethod
    def declaration(cls) -> tuple[ServiceSchema, dict[str, type[Entity]]]:
        """The tables as data, and the entity class of each."""
        return _declaration(cls)  # type: ignore[arg-type]  # classes are hashable

    def fork(self) -> Self:
        """A state with the same rows; neither sees the other's later writes."""
        twin = object.__new__(type(self))
        State.__init__(twin, {name: item.fork() for name, item in self.tables.items()})
        twin.writes = self.writes
        return twin

    def seal(self) -> None:
        """Make the rows of now the base that diffs count from."""
        self.journal.clear()
        for item in self.tables.values():
            item.seal()

    def commit(self, *, counted: bool = True) -> tuple[RowChange, ...]:
        """End the transaction and keep its writes.

        Args:
            counted: Whether the service's clock moves on; it doesn't for what the world itself does.

        Returns:
            Net changes by row, in the order in which the rows were first written.
        """
        journal = self.journal
        if not journal:
            return ()
        if len(journal) == 1:
            entry = journal[0]
            change = RowChange(entry.table, entry.key, entry.before, entry.after)
            kept: tuple[RowChange, ...] = (change,) if change.is_real else ()
        else:
            spans: dict[tuple[str, str], tuple[JournalEntry, JournalEntry]] = {}
            for entry in journal:
                place = (entry.table.name, entry.key)
                spans[place] = (spans[place][0] if place in spans else entry, entry)
            changes = [RowChange(a.table, a.key, a.before, b.after) for a, b in spans.values()]
            kept = tuple([change for change in changes if change.is_real])
        journal.clear()
        if kept and counted:
            self.writes += 1
        return kept

    def rollback(self) -> None:
        """End the transaction and take all its writes back."""
        for entry in reversed(self.journal):
            entry.table.undo(entry)
        self.journal.clear()

    def base_digests(self) -> dict[str, str]:
        """Digest of each table's sealed rows."""
        return {name: item.base_digest() for name, item in self.tables.items()}


@cache
def _declaration(cls: type[Any]) -> tuple[ServiceSchema, dict[str, type[Entity]]]:
    hints = get_type_hints(cls, include_extras=True)
    entities = {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is Table}
    ids = {name: _id_marker(entity, "id") for name, entity in entities.items()}
    by_word = {marker.word: name for name, marker in ids.items()}
    tables = {}
    for name, entity in entities.items():
        options = cls._options.get(name, TableOptions())
        fields = set(entity.model_fields)
        for unknown in {field for group in options.unique for field in group} - fields:
            raise TypeError(f"{cls.__qualname__}.{name}: unique field {unknown!r} is not a field of {entity.__name__}")
        tables[name] = TableSchema(
            entity=ids[name].word.removeprefix("id:"),
            row=without_titles(entity.model_json_schema(mode="serialization")),
            id_prefix=ids[name].prefix,
            unique=options.unique,
            foreign_keys=tuple(
                ForeignKey(field=field, table=by_word[marker.word])
                for field in entity.model_fields
                if field != "id"
                and (marker := _find_id(hints_of(entity)[field])) is not None
                and marker.word in by_word
            ),
            rules=options.rules,
        )
    return ServiceSchema(tables=tables), entities


def hints_of(entity: type[Entity]) -> dict[str, Any]:
    """A model's annotations with their metadata."""
    return get_type_hints(entity, include_extras=True)


def _find_id(annotation: Any) -> Id | None:
    for part in (*getattr(annotation, "__metadata__", ()), *get_args(annotation)):
        found = part if isinstance(part, Id) else _find_id(part)
        if found is not None:
            return found
    return None


def _id_marker(entity: type[Entity], field: str) -> Id:
    marker = _find_id(hints_of(entity).get(field))
    if marker is None:
        raise TypeError(f"{entity.__qualname__} needs a field `id` typed Annotated[str, Id(...)] to be a table's row")
    return marker
