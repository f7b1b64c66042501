"""A task made by hand over real library services: a customer complains, a policy decides, the account changes hands.

Mail, drive and CRM matter, invoicing distracts. The policy has an outdated version, the account's owner changes while
the case is opened, and everything that the agent needs is found in some service.
"""

from __future__ import annotations

from datetime import UTC, datetime

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.conditions import Answer, Before, Event, RowRef, Rows, Stated, Test, Unchanged
from compoworld_core.services.facts import Fact
from compoworld_core.services.universe import Universe
from compoworld_core.tasks.rubric import Criterion, Rubric
from compoworld_core.tasks.task import AnswerFact, InformationEdge, Solution, Split, Step, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import Insert, Plant, Reaction, ServicePin, UniverseSeed, Update, WorldRecipe

START = datetime(2026, 2, 12, 8, 30, tzinfo=UTC)
SERVICES = ("crm", "drive", "invoicing", "mail")
SUBJECT = "Our delivery last week"


def open_catalogue() -> Catalogue:
    """The four library services; nothing of it runs in a host."""

    def no_host(package: object) -> None:
        raise AssertionError(f"{package} is not of the library")

    return Catalogue([library_package(name) for name in SERVICES], library_services(), no_host)  # type: ignore[arg-type]


def complaint_task(*, seed: int = 8141, split: Split = "sft", services: tuple[ServicePin, ...] | None = None) -> Task:
    """The task in the world of a seed; different seeds have different people."""
    universe = Universe.generate(seed)
    customer = universe.contacts[0]
    newcomer = next(  # accounts start with owners from other departments
        person.email for person in universe.staff[1:] if person.department in ("Finance", "Operations", "Engineering")
    )
    account = "acc_1001"
    new_case = (Test(field="kind", value="complaint"), Test(field="account_id", value=account))
    case_id = RowRef(service="crm", table="cases", where=new_case, change="created", field="id")
    recipe = WorldRecipe(
        services=services or tuple(pin(name) for name in SERVICES),
        universe=UniverseSeed(seed=seed),
        start_time=START,
        plants=(
            Plant(
                do=Insert(
                    service="mail",
                    table="messages",
                    values={
                        "sender": customer.email,
                        "to": [universe.user.email],
                        "subject": SUBJECT,
                        "body": "Two crates were wet when they arrived. Please look into it.",
                        "sent_at": "2026-02-11T16:05:00+00:00",
                    },
                )
            ),
            _policy(universe, "Complaints (2025)", "2025-01-08T09:00:00+00:00", "low"),
            _policy(universe, "Complaints, in force from 2026", "2026-01-05T09:00:00+00:00", "high"),
        ),
        reactions=(
            Reaction(
                when=Rows(service="crm", table="cases", where=new_case, change="created"),
                apply=(Update(service="crm", table="accounts", key=account, values={"owner_email": newcomer}),),
            ),
        ),
    )
    return Task(
        instruction=(
            f"{customer.organisation} complained about last week's delivery by mail. Open a complaint for them in the "
            "CRM, with the priority that our current complaints policy in the drive asks for. Accounts are being "
            "handed over these days, so look up who owns the account after you have opened it. Then answer the mail, "
            "copying the owner, and give the case's id. Tell me the id and the owner's address when you are done."
        ),
        recipe=recipe,
        rubric=Rubric(
            criteria=(
                Criterion(
                    id="case",
                    description="a complaint with high priority is open on the account",
                    condition=Rows(
                        service="crm",
                        table="cases",
                        where=(*new_case, Test(field="priority", value="high")),
                        change="created",
                    ),
                    holds_initially=False,
                ),
                Criterion(
                    id="one_case",
                    description="no other case was opened",
                    condition=Rows(service="crm", table="cases", change="created", at_least=0, at_most=1),
                    holds_initially=True,
                ),
                Criterion(
                    id="reply",
                    description="the customer has an answer with the id, and the new owner a copy",
                    condition=Rows(
                        service="mail",
                        table="messages",
                        where=(
                            Test(field="to", op="contains", value=customer.email),
                            Test(field="cc", op="contains", value=newcomer),
                            Test(field="body", op="mentions", row=case_id),
                        ),
                        change="created",
                        at_most=1,
                    ),
                    holds_initially=False,
                ),
                Criterion(
                    id="case_first",
                    description="the case was opened before the answer was sent",
                    condition=Before(
                        earlier=Event(service="crm", table="cases", change="created"),
                        later=Event(service="mail", table="messages", change="created"),
                    ),
                    holds_initially=False,
                ),
                Criterion(
                    id="deals",
                    description="deals are as they were",
                    condition=Unchanged(service="crm", table="deals"),
                    holds_initially=True,
                ),
                Criterion(
                    id="answer",
                    description="the answer names case and owner",
                    condition=Answer(states=(Stated(row=case_id, kind="text"), Stated(fact=_text(newcomer)))),
                    holds_initially=False,
                ),
            )
        ),
        solution=Solution(
            values={"owner": {"$ref": "s6.data.owner_email"}},
            steps=(
                _read("s1", "mail", "search_messages", query="delivery last week"),
                _read("s2", "crm", "find_contact_by_email", email={"$ref": "s1.data.items.0.sender"}),
                _read("s3", "drive", "search_documents", query="complaints"),
                _read("s4", "drive", "get_document", document_id={"$ref": "s3.data.items.0.id"}),
                Step(
                    id="s5",
                    service="crm",
                    tool="create_case",
                    arguments={
                        "account_id": {"$ref": "s2.data.account_id"},
                        "kind": "complaint",
                        "summary": SUBJECT,
                        "priority": {"$fact": {"step": "s4", "name": "priority"}},
                    },
                    effect="write",
                ),
                _read("s6", "crm", "get_account", account_id={"$ref": "s2.data.account_id"}),
                Step(
                    id="s7",
                    service="mail",
                    tool="reply_to_message",
                    arguments={
                        "message_id": {"$ref": "s1.data.items.0.id"},
                        "body": {"$text": ["We are looking into it; your case is ", {"$ref": "s5.data.id"}, "."]},
                        "cc": [{"$value": "owner"}],
                    },
                    effect="write",
                    after=("s5",),
                ),
            ),
            answer=(
                AnswerFact(label="Case", value={"$ref": "s5.data.id"}),
                AnswerFact(label="Account owner", value={"$value": "owner"}),
            ),
        ),
        walk=("mail", "crm", "drive", "crm", "mail"),
        core=("mail", "crm", "drive"),
        edges=(
            InformationEdge(
                source="s1",
                target="s2",
                source_service="mail",
                target_service="crm",
                argument="email",
                criterion="case",
            ),
        ),
        capabilities=("join", "policy_branch", "stale_reread"),
        difficulty="easy",
        split=split,
        shape="complaint",
        author="hand",
    )


def pin(package: str, name: str = "") -> ServicePin:
    """A library service with all its tools, under its own or another name."""
    found = library_package(package)
    return ServicePin(name=name or package, package=found.digest, tools=tuple(tool.name for tool in found.spec.tools))


def _read(step: str, service: str, tool: str, **arguments: object) -> Step:
    return Step(id=step, service=service, tool=tool, arguments=dict(arguments), effect="read")


def _policy(universe: Universe, title: str, updated_at: str, priority: str) -> Plant:
    return Plant(
        do=Insert(
            service="drive",
            table="documents",
            values={
                "title": title,
                "text": f"Damage in transit is handled with {priority} priority.",
                "owner": universe.staff[1].email,
                "updated_at": updated_at,
            },
        ),
        facts={"priority": priority},
    )


def _text(value: str) -> Fact:
    return Fact(kind="text", value=value)
