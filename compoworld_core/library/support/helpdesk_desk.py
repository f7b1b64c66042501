"""What all tools of the helpdesk share: who may do what to a ticket, how its status moves, and when it is due.

Every change of status goes through `moved`, so that waiting for the requester never counts against a ticket.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from compoworld_core.library.support.helpdesk_rows import (
    MAX_TAGS,
    PRIORITIES,
    REOPEN_DAYS,
    UNSOLVED,
    HelpdeskAgent,
    HelpdeskState,
    ReplyKind,
    SlaTarget,
    Ticket,
    TicketReply,
)
from compoworld_core.services.sdk import FailedPrecondition, LimitExceeded, NotFound, Service


def urgency(ticket: Ticket) -> tuple[int, datetime, str]:
    """Sorts tickets most urgent first, then by when they are due."""
    return -PRIORITIES.index(ticket.priority), ticket.due_at, ticket.id


def with_tags(ticket: Ticket, *tags: str) -> tuple[str, ...]:
    """The ticket's tags and the new ones, in lower case, each once."""
    found = tuple(dict.fromkeys((*ticket.tags, *(tag.lower() for tag in tags))))
    if len(found) > MAX_TAGS:
        raise LimitExceeded(f"{ticket.id} would have {len(found)} tags; {MAX_TAGS} are the most")
    return found


class Desk(Service[HelpdeskState]):
    """Base of the helpdesk's tools."""

    def agent(self, email: str) -> HelpdeskAgent:
        """The colleague with an address."""
        found = self.state.agents.first(email=email.lower())
        if found is None:
            raise NotFound(f"no helpdesk agent has the e-mail address {email!r}")
        return found

    def me(self) -> str:
        """The acting user's address, as it is stored."""
        return self.user.email.lower()

    def unsolved_of(self, email: str) -> int:
        """How many unsolved tickets are assigned to an agent."""
        return len(self.state.tickets.where(lambda row: row.status in UNSOLVED, assignee_email=email))

    def free_agent(self, email: str) -> HelpdeskAgent:
        """The colleague with an address, who must have room for another ticket."""
        agent = self.agent(email)
        if (load := self.unsolved_of(agent.email)) >= agent.capacity:
            raise LimitExceeded(f"{agent.email} has {load} unsolved tickets; their capacity is {agent.capacity}")
        return agent

    def ticket(self, ticket_id: str) -> Ticket:
        """The ticket, which must not be closed."""
        ticket = self.state.tickets.get(ticket_id)
        if ticket.merged_into is not None:
            raise FailedPrecondition(f"{ticket_id} was merged into {ticket.merged_into}; work on that one")
        if ticket.status == "closed":
            raise FailedPrecondition(f"{ticket_id} is closed for good; create a follow-up ticket instead")
        return ticket

    def unsolved(self, ticket_id: str) -> Ticket:
        """The ticket, which must be new, open or pending."""
        ticket = self.ticket(ticket_id)
        if ticket.status not in UNSOLVED:
            raise FailedPrecondition(f"{ticket_id} is {ticket.status}; reopen it first")
        return ticket

    # Due times

    def target(self, priority: str) -> SlaTarget:
        """The target of a priority."""
        found = self.state.sla_targets.first(priority=priority)
        if found is None:
            raise FailedPrecondition(f"there is no SLA target for the priority {priority}")
        return found

    def due(self, priority: str, created_at: datetime, started_at: datetime, paused_seconds: int) -> dict[str, Any]:
        """When a ticket has to be answered and solved."""
        target = self.target(priority)
        pause = timedelta(seconds=paused_seconds)
        return {
            "reply_due_at": created_at + timedelta(hours=target.reply_hours),
            "due_at": started_at + timedelta(hours=target.solve_hours) + pause,
        }

    def is_overdue(self, ticket: Ticket) -> bool:
        """Whether the ticket waits for us and is past its due time."""
        return ticket.status in ("new", "open") and ticket.due_at < self.now

    # Status

    def moved(self, ticket: Ticket, status: str, **fields: Any) -> Ticket:
        """Give a ticket a status and other fields; leaving `pending` adds the pause to its due time."""
        changed: dict[str, Any] = {"status": status, "pending_since": None, **fields}
        if status == "pending":
            changed["pending_since"] = ticket.pending_since or self.now
        elif ticket.pending_since is not None and "due_at" not in fields:
            pause = max(0, int((self.now - ticket.pending_since).total_seconds()))
            changed["paused_seconds"] = ticket.paused_seconds + pause
            changed["due_at"] = ticket.due_at + timedelta(seconds=pause)
        return self.state.tickets.update(ticket.id, **changed)

    def reopened(self, ticket: Ticket) -> Ticket:
        """Open a solved ticket again; the time for solving it starts anew and its rating goes."""
        if ticket.status != "solved" or ticket.solved_at is None:
            raise FailedPrecondition(f"{ticket.id} is {ticket.status}, not solved")
        if self.now - ticket.solved_at > timedelta(days=REOPEN_DAYS):
            raise FailedPrecondition(
                f"{ticket.id} was solved on {ticket.solved_at.date()}, more than {REOPEN_DAYS} days ago; "
                "create a follow-up ticket instead"
            )
        return self.moved(
            ticket,
            "open",
            solved_at=None,
            resolution=None,
            satisfaction=None,
            satisfaction_comment=None,
            sla_started_at=self.now,
            paused_seconds=0,
            due_at=self.due(ticket.priority, ticket.created_at, self.now, 0)["due_at"],
        )

    def solved(self, ticket: Ticket, resolution: str) -> Ticket:
        """Solve a ticket, which must be somebody's; an escalation ends with it."""
        if ticket.assignee_email is None:
            raise FailedPrecondition(f"{ticket.id} is assigned to nobody; assign it first")
        return self.moved(ticket, "solved", solved_at=self.now, resolution=resolution, is_escalated=False)

    def say(self, ticket: Ticket, kind: ReplyKind, author: str, body: str) -> TicketReply:
        """Add to what was said on a ticket."""
        return self.state.replies.insert(
            ticket_id=ticket.id, kind=kind, author_email=author, body=body, written_at=self.now
        )

    def answer(self, ticket: Ticket, body: str) -> tuple[Ticket, TicketReply]:
        """Write to the requester in the user's name; the first such answer is the one that the SLA asks for."""
        fields = {} if ticket.first_replied_at is not None else {"first_replied_at": self.now}
        status = "open" if ticket.status == "new" else ticket.status
        reply = self.say(ticket, "public_reply", self.me(), body)
        if fields or status != ticket.status:
            ticket = self.moved(ticket, status, **fields)
        return ticket, reply
