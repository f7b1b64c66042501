"""The helpdesk: what is said on a ticket, and how it comes to its end."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.support import helpdesk_seed
from compoworld_core.library.support.helpdesk_desk import with_tags
from compoworld_core.library.support.helpdesk_queues import Queues
from compoworld_core.library.support.helpdesk_rows import (
    MAX_TAGS,
    HelpdeskState,
    Macro,
    MacroApplied,
    MacroId,
    Message,
    Outcome,
    Score,
    Ticket,
    TicketId,
    TicketReply,
)
from compoworld_core.library.support.helpdesk_tickets import Tickets
from compoworld_core.services.sdk import FailedPrecondition, LimitExceeded, Tag, Text, Title, tool

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Helpdesk(Queues, Tickets):
    """Support tickets with replies, due times by priority, escalation, merging, canned answers and ratings."""

    domain = "support"

    # What is said

    @tool(effect="write")
    def reply_to_ticket(self, ticket_id: TicketId, body: Message) -> TicketReply:
        """Answer the requester in your name, for them to read. A new ticket becomes open; the status else stays.

        Args:
            ticket_id: The ticket, which must not be closed.
            body: Text of the answer.
        """
        _, reply = self.answer(self.ticket(ticket_id), body)
        return reply

    @tool(effect="write")
    def add_ticket_note(self, ticket_id: TicketId, body: Message) -> TicketReply:
        """Write an internal note on a ticket, which the requester never sees and which changes nothing else.

        Args:
            ticket_id: The ticket, which must not be closed.
            body: Text of the note.
        """
        return self.say(self.ticket(ticket_id), "internal_note", self.me(), body)

    @tool(effect="write")
    def log_requester_reply(self, ticket_id: TicketId, body: Message) -> TicketReply:
        """Record what the requester answered. A pending ticket becomes open; a solved one is reopened.

        Args:
            ticket_id: The ticket; it must not be closed, nor solved more than 14 days ago.
            body: What the requester wrote or said.
        """
        ticket = self.ticket(ticket_id)
        if ticket.status == "solved":
            ticket = self.reopened(ticket)
        elif ticket.status == "pending":
            ticket = self.moved(ticket, "open")
        return self.say(ticket, "requester_reply", ticket.requester_email, body)

    # How it ends

    @tool(effect="write")
    def set_ticket_pending(self, ticket_id: TicketId) -> Ticket:
        """Let an open ticket wait for its requester. Until it goes on, the time for solving it is paused.

        Args:
            ticket_id: The open ticket, on which the requester must have had an answer.
        """
        ticket = self.ticket(ticket_id)
        if ticket.status != "open":
            raise FailedPrecondition(f"{ticket_id} is {ticket.status}; only an open ticket can wait for its requester")
        if ticket.first_replied_at is None:
            raise FailedPrecondition(f"{ticket_id} has not been answered yet, so the requester knows of no question")
        return self.moved(ticket, "pending")

    @tool(effect="write")
    def resume_ticket(self, ticket_id: TicketId) -> Ticket:
        """Go on with a pending ticket; its due time moves by as long as it was pending.

        Args:
            ticket_id: The pending ticket.
        """
        ticket = self.ticket(ticket_id)
        if ticket.status != "pending":
            raise FailedPrecondition(f"{ticket_id} is {ticket.status}, not pending")
        return self.moved(ticket, "open")

    @tool(effect="write")
    def solve_ticket(self, ticket_id: TicketId, resolution: Message) -> Ticket:
        """Mark an open or pending ticket as solved. An escalation ends with it.

        Args:
            ticket_id: The ticket, which must be assigned to somebody.
            resolution: How it was solved.
        """
        return self.solved(self.unsolved(ticket_id), resolution)

    @tool(effect="write")
    def reopen_ticket(self, ticket_id: TicketId, reason: Message) -> Ticket:
        """Open a solved ticket again, at most 14 days after it was solved.

        The time for solving it starts anew, its resolution becomes part of an internal note and its rating goes.

        Args:
            ticket_id: The solved ticket; a closed one is never reopened.
            reason: Why it has to be looked at again; it becomes an internal note.
        """
        ticket = self.ticket(ticket_id)
        reopened = self.reopened(ticket)
        text = f"Reopened: {reason}"[:15_000]
        self.say(reopened, "internal_note", self.me(), f"{text}\nEarlier resolution: {ticket.resolution}"[:20_000])
        return reopened

    @tool(effect="write")
    def close_ticket(self, ticket_id: TicketId) -> Ticket:
        """Close a solved ticket for good.

        Args:
            ticket_id: The solved ticket.
        """
        ticket = self.ticket(ticket_id)
        if ticket.status != "solved":
            raise FailedPrecondition(f"{ticket_id} is {ticket.status}; only a solved ticket can be closed")
        return self.moved(ticket, "closed")

    @tool(effect="write")
    def rate_ticket(self, ticket_id: TicketId, score: Score, comment: Text | None = None) -> Ticket:
        """Record how satisfied the requester is with a solved ticket, in place of an earlier rating.

        Args:
            ticket_id: The ticket, which must be solved and not closed yet.
            score: From 1, very dissatisfied, to 5, very satisfied.
            comment: What the requester says about it.
        """
        ticket = self.ticket(ticket_id)
        if ticket.status != "solved":
            raise FailedPrecondition(f"{ticket_id} is {ticket.status}; only a solved ticket can be rated")
        return self.state.tickets.update(ticket_id, satisfaction=score, satisfaction_comment=comment)

    # Canned answers

    @tool(effect="write")
    def apply_macro(self, ticket_id: TicketId, macro_id: MacroId) -> MacroApplied:
        """Answer an unsolved ticket with a canned answer, add its tags, and give the ticket the macro's outcome.

        `{requester}`, `{ticket}` and `{agent}` in its text are filled in.

        Args:
            ticket_id: The ticket; it must be assigned to somebody if the macro solves it.
            macro_id: The macro.
        """
        macro = self.state.macros.get(macro_id)
        ticket = self.unsolved(ticket_id)
        tags = with_tags(ticket, *macro.tags)
        text = macro.body
        for name, value in (
            ("{requester}", ticket.requester_name),
            ("{ticket}", ticket.id),
            ("{agent}", self.user.name),
        ):
            text = text.replace(name, value)
        ticket, reply = self.answer(ticket, text[:20_000])
        if tags != ticket.tags:
            ticket = self.state.tickets.update(ticket_id, tags=tags)
        if macro.outcome == "pending":
            ticket = self.moved(ticket, "pending")
        elif macro.outcome == "solved":
            ticket = self.solved(ticket, f"Answered with: {macro.title}")
        return MacroApplied(ticket=ticket, reply=reply)

    @tool(effect="write")
    def create_macro(
        self, title: Title, body: Message, outcome: Outcome = "unchanged", tags: tuple[Tag, ...] = ()
    ) -> Macro:
        """Save a canned answer.

        Args:
            title: Its title, which no other macro may have.
            body: Its text; `{requester}`, `{ticket}` and `{agent}` are filled in when it is applied.
            outcome: Whether a ticket is pending or solved afterwards, or keeps the status that an answer gives it.
            tags: Tags that it puts on a ticket, kept in lower case; ten at most.
        """
        kept = tuple(dict.fromkeys(tag.lower() for tag in tags))
        if len(kept) > MAX_TAGS:
            raise LimitExceeded(f"tags: {len(kept)} are more than the {MAX_TAGS} that a ticket can carry")
        return self.state.macros.insert(title=title, body=body, outcome=outcome, tags=kept)

    @tool(effect="write")
    def delete_macro(self, macro_id: MacroId) -> Macro:
        """Delete a canned answer; tickets that were answered with it stay as they are.

        Args:
            macro_id: The macro.
        """
        return self.state.macros.delete(macro_id)

    @classmethod
    def populate(cls, state: HelpdeskState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """A helpdesk in use: all staff as agents, and tickets of the last weeks in every status."""
        helpdesk_seed.populate(state, universe, rng, start)
