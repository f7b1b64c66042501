"""The rows of a helpdesk: tickets, what was said on them, and the promises they are measured by."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from compoworld_core.services.sdk import (
    Email,
    Entity,
    Field,
    Id,
    OrganisationName,
    PersonName,
    Quantity,
    Rule,
    Semantic,
    Sku,
    State,
    Table,
    Tag,
    Test,
    Text,
    Timestamp,
    Title,
    table,
)

AgentId = Annotated[str, Id("helpdesk_agent", prefix="hag")]
SlaTargetId = Annotated[str, Id("sla_target", prefix="sla")]
TicketId = Annotated[str, Id("ticket", prefix="tkt")]
ReplyId = Annotated[str, Id("ticket_reply", prefix="rpl")]
MacroId = Annotated[str, Id("macro", prefix="mac")]

Message = Annotated[str, Field(pattern=r"\S", max_length=20_000), Semantic("text")]
"""A text that says something."""
Score = Annotated[int, Field(ge=1, le=5)]

Team = Literal["frontline", "technical", "billing"]
Channel = Literal["email", "phone", "web", "chat"]
Category = Literal["hardware", "software", "delivery", "billing", "account", "how_to"]
TicketPriority = Literal["low", "normal", "high", "urgent"]
TicketStatus = Literal["new", "open", "pending", "solved", "closed"]
ReplyKind = Literal["public_reply", "internal_note", "requester_reply"]
Outcome = Literal["unchanged", "pending", "solved"]

PRIORITIES: Final[tuple[TicketPriority, ...]] = ("low", "normal", "high", "urgent")
UNSOLVED: Final[tuple[TicketStatus, ...]] = ("new", "open", "pending")
TEAM_OF: Final[dict[Category, Team]] = {
    "hardware": "technical",
    "software": "technical",
    "delivery": "frontline",
    "billing": "billing",
    "account": "billing",
    "how_to": "frontline",
}
"""The team that a new ticket of a category goes to."""
REOPEN_DAYS = 14
MAX_TAGS = 10


class HelpdeskAgent(Entity):
    """A colleague who works on tickets; each team has one lead, to whom its tickets are escalated."""

    id: AgentId
    name: PersonName
    email: Email
    team: Team
    is_lead: bool = False
    capacity: Quantity


class AgentWorkload(Entity):
    """An agent with the number of unsolved tickets that are assigned to them."""

    id: AgentId
    name: PersonName
    email: Email
    team: Team
    is_lead: bool
    capacity: Quantity
    unsolved_tickets: Quantity


class SlaTarget(Entity):
    """How soon a ticket of a priority is to be answered and solved."""

    id: SlaTargetId
    priority: TicketPriority
    reply_hours: Quantity
    solve_hours: Quantity


class Ticket(Entity):
    """A request for help. Its due times follow from its priority.

    Attributes:
        sla_started_at: When the time for solving it began: at its creation, or when it was last reopened.
        paused_seconds: How long it has been pending since then; that time doesn't count.
    """

    id: TicketId
    subject: Title
    description: Text = ""
    requester_email: Email
    requester_name: PersonName
    organisation: OrganisationName | None = None
    channel: Channel = "email"
    category: Category
    sku: Sku | None = None
    priority: TicketPriority = "normal"
    status: TicketStatus = "new"
    team: Team
    assignee_email: Email | None = None
    is_escalated: bool = False
    tags: tuple[Tag, ...] = ()
    created_at: Timestamp
    sla_started_at: Timestamp
    paused_seconds: Quantity = 0
    reply_due_at: Timestamp
    due_at: Timestamp
    first_replied_at: Timestamp | None = None
    pending_since: Timestamp | None = None
    solved_at: Timestamp | None = None
    resolution: Message | None = None
    satisfaction: Score | None = None
    satisfaction_comment: Text | None = None
    merged_into: TicketId | None = None
    follow_up_of: TicketId | None = None


class TicketReply(Entity):
    """Something said on a ticket: to the requester, by the requester, or among colleagues."""

    id: ReplyId
    ticket_id: TicketId
    kind: ReplyKind
    author_email: Email
    body: Message
    written_at: Timestamp


class Macro(Entity):
    """A canned answer: text with placeholders, and what it does to a ticket."""

    id: MacroId
    title: Title
    body: Message
    outcome: Outcome = "unchanged"
    tags: tuple[Tag, ...] = ()


class MacroApplied(Entity):
    """What applying a macro did."""

    ticket: Ticket
    reply: TicketReply


class TicketSla(Entity):
    """How a ticket stands against its targets at this moment."""

    ticket_id: TicketId
    priority: TicketPriority
    reply_hours: Quantity
    solve_hours: Quantity
    reply_due_at: Timestamp
    due_at: Timestamp
    first_replied_at: Timestamp | None
    solved_at: Timestamp | None
    is_paused: bool
    is_reply_late: bool
    is_overdue: bool


class RequesterProfile(Entity):
    """What is known of somebody who asks for help."""

    email: Email
    name: PersonName
    organisation: OrganisationName | None
    tickets: Quantity
    unsolved_tickets: Quantity
    average_satisfaction: float | None
    last_ticket_id: TicketId
    last_ticket_at: Timestamp


class QueueStatistics(Entity):
    """A team's unsolved work in numbers."""

    team: Team
    new: Quantity
    open: Quantity
    pending: Quantity
    unassigned: Quantity
    escalated: Quantity
    overdue: Quantity
    average_satisfaction: float | None


_IS_SOLVED = Test(field="status", op="in", value=["solved", "closed"])


class HelpdeskState(State):
    """Tables of the helpdesk."""

    agents: Table[HelpdeskAgent] = table(unique=("email",))
    sla_targets: Table[SlaTarget] = table(unique=("priority",))
    tickets: Table[Ticket] = table(
        rules=(
            Rule(
                where=(_IS_SOLVED,),
                satisfies=(Test(field="resolution", op="ne"), Test(field="solved_at", op="ne")),
                message="a solved or closed ticket needs a resolution and the time at which it was solved",
            ),
            Rule(
                where=(Test(field="status", op="in", value=list(UNSOLVED)),),
                satisfies=(Test(field="resolution"), Test(field="solved_at"), Test(field="satisfaction")),
                message="a ticket that is not solved has no resolution, no time of solution and no rating",
            ),
            Rule(
                where=(Test(field="status", value="pending"),),
                satisfies=(Test(field="pending_since", op="ne"),),
                message="a pending ticket needs the time since when it is pending",
            ),
            Rule(
                where=(Test(field="status", op="ne", value="pending"),),
                satisfies=(Test(field="pending_since"),),
                message="only a pending ticket has a time since when it is pending",
            ),
            Rule(
                where=(Test(field="merged_into", op="ne"),),
                satisfies=(Test(field="status", value="closed"),),
                message="a ticket that was merged into another one is closed",
            ),
        )
    )
    replies: Table[TicketReply] = table()
    macros: Table[Macro] = table(unique=("title",))
