"""Recipes: the data from which a world is rebuilt, exactly, anywhere and at any later time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field

from compoworld_core.data import Data
from compoworld_core.services.conditions import Condition
from compoworld_core.services.universe import Scale
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import digest


class Insert(Data):
    """Add a row; without `id` among the values, the table issues the next one."""

    op: Literal["insert"] = "insert"
    service: str
    table: str
    values: JsonObject


class Update(Data):
    """Replace some fields of a row."""

    op: Literal["update"] = "update"
    service: str
    table: str
    key: str
    values: JsonObject


class Delete(Data):
    """Remove a row."""

    op: Literal["delete"] = "delete"
    service: str
    table: str
    key: str


RowOperation = Annotated[Insert | Update | Delete, Field(discriminator="op")]


class Plant(Data):
    """A row operation that prepares the world before its first snapshot.

    Attributes:
        facts: What a reader takes from the planted row's text, by name; reference solutions refer to them.
    """

    do: RowOperation
    facts: dict[str, str] = Field(default_factory=dict)


class Reaction(Data):
    """The world's own move: when the condition first holds, the operations are applied, once."""

    when: Condition
    apply: tuple[RowOperation, ...] = Field(min_length=1)


class ServicePin(Data):
    """A service of the world: the exact package, and the tools that agents may see."""

    name: str
    package: str
    tools: tuple[str, ...]


class UniverseSeed(Data):
    """Which cast the services talk about."""

    seed: int
    scale: Scale = "small"


class WorldRecipe(Data):
    """Everything that decides what a world is.

    Attributes:
        services: In the order in which agents see them listed.
        start_time: What the clocks of all services show at first.
    """

    services: tuple[ServicePin, ...] = Field(min_length=1)
    universe: UniverseSeed
    start_time: AwareDatetime
    plants: tuple[Plant, ...] = ()
    reactions: tuple[Reaction, ...] = ()

    @cached_property
    def digest(self) -> str:
        """sha256 of the recipe."""
        return digest(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A validated copy, whose digest is its own."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **(update or {})})
