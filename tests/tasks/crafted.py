"""A task small enough to spoil in one place at a time, and catalogues of library services under several names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.conditions import Answer, Condition, RowRef, Rows, Stated, Test
from compoworld_core.services.facts import Fact
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import Row
from compoworld_core.tasks.gates import Candidate
from compoworld_core.tasks.rubric import Criterion, Rubric
from compoworld_core.tasks.sampler import ServiceTools
from compoworld_core.tasks.task import AnswerFact, Solution, Step
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin, UniverseSeed, WorldRecipe
from compoworld_core.worlds.world import World, open_world

LIBRARY = ("crm", "drive", "invoicing", "mail")
START = datetime(2026, 2, 12, 8, 30, tzinfo=UTC)


M = TypeVar("M", bound=BaseModel)


def changed(model: M, **fields: Any) -> M:
    """The model, validated anew, with some fields replaced."""
    return type(model)(**{**{name: getattr(model, name) for name in type(model).model_fields}, **fields})


def no_host(package: ServicePackage) -> Any:
    """Library services need none."""
    raise AssertionError(f"{package.name} is not of the library")


def catalogue_of(copies: int) -> tuple[Catalogue, list[ServiceTools]]:
    """The library services, each under so many names, with all their tools."""
    packages: list[ServicePackage] = []
    classes = {}
    for name in LIBRARY:
        for copy in range(copies):
            alias = f"{name}_{copy}" if copy else name
            packages.append(changed(library_package(name), name=alias))
            classes[alias] = library_services()[name]
    tools = [ServiceTools(item, tuple(sorted(tool.name for tool in item.spec.tools))) for item in packages]
    return Catalogue(packages, classes, no_host), tools


def world_of(catalogue: Catalogue, *names: str, seed: int = 3) -> World:
    """A world of library services with all their tools."""
    pins = tuple(
        ServicePin(name=item.name, package=item.digest, tools=tuple(sorted(tool.name for tool in item.spec.tools)))
        for item in catalogue.packages
        if item.name in names
    )
    recipe = WorldRecipe(services=pins, universe=UniverseSeed(seed=seed), start_time=START)
    return open_world(recipe, catalogue)


def account(world: World) -> Row:
    """The account that the crafted task is about."""
    return next(iter(world.rows("crm", "accounts")))


def other_tier(world: World) -> str:
    """A tier that some other account has."""
    tier = account(world)["tier"]
    return str(next(row["tier"] for row in world.rows("crm", "accounts") if row["tier"] != tier))


def step(
    key: str, service: str, tool: str, /, *, write: bool = False, after: tuple[str, ...] = (), **args: Any
) -> Step:
    """A step of a solution."""
    return Step(id=key, service=service, tool=tool, arguments=args, effect="write" if write else "read", after=after)


def criterion(name: str, condition: Condition) -> Criterion:
    """A criterion that says no more than its name."""
    return Criterion(id=name, description=name, condition=condition, holds_initially=False)


def candidate(world: World) -> Candidate:
    """Write to an account's owner, note it on the account, and report tier and note: passes every gate."""
    row = account(world)
    noted = (
        Test(field="account_id", value=row["id"]),
        Test(field="kind", value="note"),
        Test(field="subject", op="contains", value="Review sent"),
    )
    note = RowRef(service="crm", table="activities", where=noted, change="created", field="id")
    return Candidate(
        instruction=(
            f'Look up the account "{row["name"]}" in Crm. Send its owner a mail message with subject "Account review" '
            'that states the billing id of the account. Then note "Review sent" on the account. Tell me the tier of '
            "the account and the id of the note."
        ),
        solution=Solution(
            values={"account.id": {"$ref": "s1.data.items.0.id"}},
            steps=(
                step("s1", "crm", "search_accounts", name=row["name"]),
                step(
                    "s2",
                    "mail",
                    "send_message",
                    write=True,
                    to=[{"$ref": "s1.data.items.0.owner_email"}],
                    subject="Account review",
                    body={"$text": ["Billing id: ", {"$ref": "s1.data.items.0.billing_id"}]},
                ),
                step(
                    "s3",
                    "crm",
                    "log_activity",
                    write=True,
                    account_id={"$value": "account.id"},
                    kind="note",
                    subject="Review sent",
                ),
            ),
            answer=(
                AnswerFact(label="Tier", value={"$ref": "s1.data.items.0.tier"}),
                AnswerFact(label="Note", value={"$ref": "s3.data.id"}),
            ),
        ),
        rubric=Rubric(
            criteria=(
                criterion(
                    "message",
                    Rows(
                        service="mail",
                        table="messages",
                        where=(
                            Test(field="to", value=[row["owner_email"]]),
                            Test(field="subject", op="contains", value="Account review"),
                            Test(field="body", op="mentions", value=row["billing_id"]),
                        ),
                        change="created",
                        at_most=1,
                    ),
                ),
                criterion("note", Rows(service="crm", table="activities", where=noted, change="created", at_most=1)),
                criterion(
                    "answer",
                    Answer(
                        states=(Stated(fact=Fact(value=row["tier"])), Stated(row=note)),
                        omits=(Stated(fact=Fact(value=other_tier(world))),),
                    ),
                ),
            )
        ),
        walk=("crm", "mail", "crm"),
    )


def with_criteria(base: Candidate, **changed: Condition | None) -> Candidate:
    """The candidate with some criteria replaced, or dropped where the condition is None."""
    kept = [
        item if item.id not in changed else criterion(item.id, condition)
        for item in base.rubric.criteria
        if (condition := changed.get(item.id, item.condition)) is not None
    ]
    return replace(base, rubric=Rubric(criteria=tuple(kept)))


def with_solution(base: Candidate, **fields: Any) -> Candidate:
    """The candidate with some fields of its solution replaced."""
    return replace(base, solution=changed(base.solution, **fields))
