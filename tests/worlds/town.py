"""Two small services that clash in a tool's name, and the worlds made of them."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Annotated, Any

from compoworld_core.services.package import ServicePackage
from compoworld_core.services.sdk import Email, Entity, Id, Page, Service, State, Table, Text, Timestamp, paginate, tool
from compoworld_core.services.service import Service as AnyService
from compoworld_core.services.universe import Universe
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import Insert, Plant, Reaction, ServicePin, UniverseSeed, WorldRecipe
from compoworld_core.worlds.world import World, open_world
from tests.services.workshop import START, Workshop, package_of, rows

NoteId = Annotated[str, Id("note", prefix="note")]


class Note(Entity):
    """A note."""

    id: NoteId
    author: Email
    body: Text
    at: Timestamp | None = None
    lot: int = 0


class BoardState(State):
    """All notes."""

    notes: Table[Note]


class Board(Service[BoardState]):
    """A notice board."""

    domain = "communication"

    @classmethod
    def populate(cls, state: BoardState, universe: Universe, rng: random.Random, start: datetime) -> None:
        state.notes.insert(author=universe.user.email, body="Welcome")

    @tool(effect="write")
    def post(self, body: Text) -> Note:
        """Pin a note to the board."""
        return self.state.notes.insert(author=self.user.email, body=body, at=self.now, lot=self.rng.randint(0, 10**9))

    @tool(effect="write")
    def remove(self, note_id: NoteId) -> None:
        """Take a note off."""
        self.state.notes.delete(note_id)

    @tool(effect="read")
    def search(self) -> Page[Note]:
        """List notes."""
        return paginate(tuple(self.state.notes))


SERVICES: dict[str, type[AnyService[Any]]] = {"workshop": Workshop, "board": Board}
PACKAGES: dict[str, ServicePackage] = {name: package_of(service) for name, service in SERVICES.items()}


def no_host(package: ServicePackage) -> Any:
    raise AssertionError("nothing here needs a host")


def catalogue() -> Catalogue:
    return Catalogue(PACKAGES.values(), SERVICES, no_host)


CATALOGUE = catalogue()


def pin(name: str) -> ServicePin:
    package = PACKAGES[name]
    return ServicePin(name=name, package=package.digest, tools=tuple(item.name for item in package.spec.tools))


def recipe(
    *,
    services: tuple[ServicePin, ...] | None = None,
    seed: int = 7,
    plants: tuple[Plant, ...] = (),
    reactions: tuple[Reaction, ...] = (),
) -> WorldRecipe:
    return WorldRecipe(
        services=services or (pin("workshop"), pin("board")),
        universe=UniverseSeed(seed=seed),
        start_time=START,
        plants=plants,
        reactions=reactions,
    )


def opened(**parts: Any) -> World:
    return open_world(recipe(**parts), CATALOGUE)


def note(body: str, **more: Any) -> Insert:
    return Insert(service="board", table="notes", values={"author": "c@d.example", "body": body, **more})


def everything(world: World) -> dict[str, Any]:
    """All rows of all services, with counters and clocks."""
    return {name: rows(service.state) for name, service in world.services.items()}


def bodies(world: World) -> list[str]:
    return [row["body"] for row in world.rows("board", "notes")]
