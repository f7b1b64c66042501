"""What the author makes of a spec before it writes any source: entities with fields, and one operation per tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from compoworld_core.synthesis.rules.naming import CLASS_NAMES_IN_USE, class_name, table_name
from compoworld_core.synthesis.rules.nouns import Words
from compoworld_core.synthesis.rules.reading import Parameter, Reading
from compoworld_core.synthesis.rules.types import TypeExpr

OperationKind = Literal["get", "list", "count", "create", "update", "delete", "transition", "append", "detach"]


class Unwritable(Exception):
    """A tool that the rules cannot write.

    Attributes:
        is_external: Whether a world model could answer it; else its meaning is unclear.
    """

    def __init__(self, reason: str, *, is_external: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_external = is_external


@dataclass
class EntityField:
    """A field of an entity.

    Attributes:
        is_given: Whether every creation gives it; else it may be absent.
        default: Source of its default, where it has one other than None.
        automatic: Source of the value that a creation fills in by itself.
        reference: The entity whose id it carries.
        is_made: Whether a creation may give it.
    """

    name: str
    type: TypeExpr
    is_given: bool = False
    default: str | None = None
    automatic: str | None = None
    reference: EntityModel | None = None
    is_made: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether a row may hold None."""
        return not self.is_given and self.default is None and self.automatic is None


@dataclass
class EntityModel:
    """An entity and its table.

    Attributes:
        noun: Words of its name.
        is_numeric: Whether tools give its id as a number.
        status: Name of the field that holds its state in its life, where it has one.
        states: Legal values of that field, in order.
        initial: State of a new row.
        natural: Fields that identify a row besides its id.
        scopes: Fields that tools give along with the id to say where the row belongs.
        has_creation: Whether a tool makes rows; else they only come from the universe.
    """

    noun: Words
    fields: dict[str, EntityField] = field(default_factory=dict)
    is_numeric: bool = False
    status: str | None = None
    states: list[str] = field(default_factory=list)
    initial: str = ""
    natural: list[str] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)
    has_creation: bool = False
    class_name: str = ""

    def settle_name(self, taken: set[str], service: str) -> None:
        """Choose the class's name such that it hides nothing."""
        taken |= CLASS_NAMES_IN_USE
        name = class_name(" ".join(self.noun))
        if {name, f"{name}Id", f"{name}Number"} & taken:
            name = class_name(f"{service} {' '.join(self.noun)}")
        while {name, f"{name}Id", f"{name}Number"} & taken:
            name += "Record"
        taken |= {name, f"{name}Id", f"{name}Number"}
        self.class_name = name

    @property
    def name(self) -> str:
        """Snake case name."""
        return "_".join(self.noun)

    @property
    def label(self) -> str:
        """Name in prose."""
        return " ".join(self.noun)

    @property
    def table(self) -> str:
        """Name of the table."""
        return table_name(self.name)

    @property
    def id_type(self) -> str:
        """Alias of the type of its ids."""
        return f"{self.class_name}Id"

    @property
    def number_type(self) -> str:
        """Alias of the type of ids that tools give as numbers."""
        return f"{self.class_name}Number"

    def texts(self) -> list[EntityField]:
        """Fields that a search for words looks into."""
        return [item for item in self.fields.values() if item.type.is_textual or _holds_texts(item.type)]


def _holds_texts(type_: TypeExpr) -> bool:
    return type_.kind == "list" and type_.item is not None and type_.item.is_textual


@dataclass(frozen=True)
class Setting:
    """A parameter whose value goes into a field."""

    parameter: Parameter
    field: str


@dataclass(frozen=True)
class Filter:
    """A parameter that narrows a list.

    Attributes:
        test: How the row's field and the argument are compared; `words` looks into all texts, `hides` leaves
            rows of the state `value` out unless the argument is true.
    """

    parameter: Parameter
    test: Literal["equal", "member", "among", "overlap", "at_least", "at_most", "words", "hides", "key"]
    field: str = ""
    value: str = ""


@dataclass(frozen=True)
class Paging:
    """Which parameters cut a list."""

    limit: Parameter | None = None
    cursor: Parameter | None = None
    offset: Parameter | None = None
    page: Parameter | None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All of them that there are."""
        return tuple(item for item in (self.limit, self.cursor, self.offset, self.page) if item is not None)


@dataclass
class Operation:
    """What a tool does, in terms of entities.

    Attributes:
        key: Parameter that carries the id of the row that the tool is about.
        match: Parameters and fields that find that row, where there is no key, or that it must also have.
        settings: Parameters that are stored.
        filters: Parameters that narrow a list.
        is_latest: Whether a tool without key reads the last of the rows that match.
        newest_first: Whether a list runs backwards.
        state: State that listed rows must be in.
        sort_field: Field by which a list is sorted.
        target: State that a transition leads to.
        requires: States from which the tool works; empty means all but the target.
        forbids: States in which it does not.
        flag: Boolean field that a transition sets, with its value, instead of a state.
        group: Field by which a count is broken down.
        total: Field that is added up.
        types: Type of each parameter, by Python name.
        references: Entity that a parameter carries the id of, by Python name.
    """

    reading: Reading
    kind: OperationKind
    entity: EntityModel
    key: Parameter | None = None
    match: list[Setting] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    paging: Paging = Paging()
    is_latest: bool = False
    newest_first: bool = False
    sort_field: str | None = None
    state: str = ""
    target: str = ""
    requires: list[str] = field(default_factory=list)
    forbids: list[str] = field(default_factory=list)
    flag: tuple[str, bool] | None = None
    group: str | None = None
    total: str | None = None
    types: dict[str, TypeExpr] = field(default_factory=dict)
    references: dict[str, EntityModel] = field(default_factory=dict)
    parent: EntityModel | None = None

    @property
    def is_write(self) -> bool:
        """Whether the tool changes rows."""
        return self.kind not in ("get", "list", "count")

    @property
    def used(self) -> set[str]:
        """Names of the parameters that influence what happens."""
        names = {item.parameter.name for item in (*self.match, *self.settings)}
        names |= {item.parameter.name for item in self.filters}
        names |= {item.name for item in self.paging.parameters}
        return names | ({self.key.name} if self.key else set())


@dataclass
class ServicePlan:
    """Everything that the module is written from."""

    entities: list[EntityModel]
    operations: list[Operation]
    unwritable: Sequence[tuple[str, Unwritable]]
