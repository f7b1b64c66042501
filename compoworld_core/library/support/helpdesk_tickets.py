"""Opening tickets and passing them around: who works on what, how urgently, and what belongs together."""

from __future__ import annotations

from compoworld_core.library.filters import changes
from compoworld_core.library.support.helpdesk_desk import Desk, with_tags
from compoworld_core.library.support.helpdesk_rows import (
    MAX_TAGS,
    PRIORITIES,
    TEAM_OF,
    Category,
    Channel,
    Message,
    Team,
    Ticket,
    TicketId,
    TicketPriority,
)
from compoworld_core.services.sdk import (
    Email,
    FailedPrecondition,
    InvalidArguments,
    LimitExceeded,
    OrganisationName,
    PersonName,
    Sku,
    Tag,
    Text,
    Title,
    tool,
)


class Tickets(Desk):
    """Tools that open tickets and change what they say about themselves."""

    @tool(effect="write")
    def create_ticket(
        self,
        requester_email: Email,
        subject: Title,
        category: Category,
        description: Text = "",
        requester_name: PersonName | None = None,
        organisation: OrganisationName | None = None,
        priority: TicketPriority = "normal",
        channel: Channel = "email",
        sku: Sku | None = None,
        assignee_email: Email | None = None,
        tags: tuple[Tag, ...] = (),
    ) -> Ticket:
        """Open a ticket for somebody. Its category decides the team, its priority the due times.

        Args:
            requester_email: E-mail address of the person who asks for help.
            subject: The matter in one line.
            category: What it is about.
            description: What the person wrote or said.
            requester_name: The person's name; needed unless they have had a ticket before.
            organisation: Where the person works; taken from their latest ticket, if left out.
            priority: How urgent it is.
            channel: How the person got in touch.
            sku: Article number of the product that it is about.
            assignee_email: E-mail address of the agent who is to work on it; the ticket then goes to their team.
            tags: Tags, kept in lower case; ten at most.
        """
        email = requester_email.lower()
        earlier = self.state.tickets.where(requester_email=email)
        last = max(earlier, key=lambda row: row.created_at, default=None)
        name = requester_name or (last.requester_name if last else None)
        if name is None:
            raise InvalidArguments(f"requester_name: {email} has had no ticket before, so their name is needed")
        agent = None if assignee_email is None else self.free_agent(assignee_email)
        kept = tuple(dict.fromkeys(tag.lower() for tag in tags))
        if len(kept) > MAX_TAGS:
            raise LimitExceeded(f"tags: {len(kept)} are more than the {MAX_TAGS} that a ticket can carry")
        return self.state.tickets.insert(
            subject=subject,
            description=description,
            requester_email=email,
            requester_name=name,
            organisation=organisation or (last.organisation if last else None),
            channel=channel,
            category=category,
            sku=sku,
            priority=priority,
            status="new" if agent is None else "open",
            team=TEAM_OF[category] if agent is None else agent.team,
            assignee_email=None if agent is None else agent.email,
            tags=kept,
            created_at=self.now,
            sla_started_at=self.now,
            **self.due(priority, self.now, self.now, 0),
        )

    @tool(effect="write")
    def create_follow_up_ticket(
        self, ticket_id: TicketId, description: Message, priority: TicketPriority | None = None
    ) -> Ticket:
        """Open a new ticket on a matter whose ticket is closed; requester, category, product and tags are taken over.

        Args:
            ticket_id: The closed ticket. One that can still be reopened, or that was merged, is refused.
            description: What has come up again.
            priority: How urgent it is; that of the closed ticket, if left out.
        """
        old = self.state.tickets.get(ticket_id)
        if old.merged_into is not None:
            raise FailedPrecondition(f"{ticket_id} was merged into {old.merged_into}; follow up on that one")
        if old.status != "closed":
            raise FailedPrecondition(f"{ticket_id} is {old.status}; only a closed ticket is followed up by a new one")
        urgency = priority or old.priority
        return self.state.tickets.insert(
            subject=old.subject if old.subject.startswith("Follow-up: ") else f"Follow-up: {old.subject}"[:300],
            description=description,
            requester_email=old.requester_email,
            requester_name=old.requester_name,
            organisation=old.organisation,
            channel=old.channel,
            category=old.category,
            sku=old.sku,
            priority=urgency,
            team=old.team,
            tags=old.tags,
            follow_up_of=ticket_id,
            created_at=self.now,
            sla_started_at=self.now,
            **self.due(urgency, self.now, self.now, 0),
        )

    @tool(effect="write")
    def update_ticket(
        self,
        ticket_id: TicketId,
        subject: Title | None = None,
        category: Category | None = None,
        sku: Sku | None = None,
        organisation: OrganisationName | None = None,
    ) -> Ticket:
        """Change the given fields of a ticket that is not closed. It stays with its team and agent.

        Args:
            ticket_id: The ticket.
            subject: The matter in one line.
            category: What it is about.
            sku: Article number of the product that it is about.
            organisation: Where the requester works.
        """
        ticket = self.ticket(ticket_id)
        fields = changes(subject=subject, category=category, sku=sku, organisation=organisation)
        return self.state.tickets.update(ticket.id, **fields)

    @tool(effect="write")
    def set_ticket_priority(self, ticket_id: TicketId, priority: TicketPriority) -> Ticket:
        """Change the priority of an unsolved ticket.

        Its due times are worked out anew: the new priority's hours, counted from when the ticket was opened or
        last reopened, plus the time that it was pending.

        Args:
            ticket_id: The ticket.
            priority: Another priority than the one that it has.
        """
        ticket = self.unsolved(ticket_id)
        if ticket.priority == priority:
            raise FailedPrecondition(f"{ticket_id} has priority {priority} already")
        due = self.due(priority, ticket.created_at, ticket.sla_started_at, ticket.paused_seconds)
        return self.state.tickets.update(ticket_id, priority=priority, **due)

    # Who works on it

    @tool(effect="write")
    def assign_ticket(self, ticket_id: TicketId, assignee_email: Email) -> Ticket:
        """Give an unsolved ticket to an agent who has room for it. It goes to their team; a new ticket becomes open.

        Args:
            ticket_id: The ticket.
            assignee_email: E-mail address of the agent.
        """
        ticket = self.unsolved(ticket_id)
        if ticket.assignee_email == assignee_email.lower():
            raise FailedPrecondition(f"{ticket_id} is assigned to {ticket.assignee_email} already")
        agent = self.free_agent(assignee_email)
        return self.state.tickets.update(
            ticket_id,
            assignee_email=agent.email,
            team=agent.team,
            status="open" if ticket.status == "new" else ticket.status,
        )

    @tool(effect="write")
    def unassign_ticket(self, ticket_id: TicketId) -> Ticket:
        """Take an unsolved ticket from its agent; it stays with the team.

        Args:
            ticket_id: The ticket, which must be assigned to somebody and not be escalated.
        """
        ticket = self.unsolved(ticket_id)
        if ticket.assignee_email is None:
            raise FailedPrecondition(f"{ticket_id} is assigned to nobody")
        if ticket.is_escalated:
            raise FailedPrecondition(
                f"{ticket_id} is escalated and must stay with somebody; assign it to another agent"
            )
        return self.state.tickets.update(ticket_id, assignee_email=None)

    @tool(effect="write")
    def transfer_ticket(self, ticket_id: TicketId, team: Team, note: Message) -> Ticket:
        """Hand an unsolved ticket over to another team, where nobody works on it yet.

        Args:
            ticket_id: The ticket.
            team: The team that takes over.
            note: What the team needs to know; it becomes an internal note.
        """
        ticket = self.unsolved(ticket_id)
        if ticket.team == team:
            raise FailedPrecondition(f"{ticket_id} lies with {team} already")
        if ticket.is_escalated:
            raise FailedPrecondition(f"{ticket_id} is escalated; end the escalation first")
        self.say(ticket, "internal_note", self.me(), note)
        return self.state.tickets.update(ticket_id, team=team, assignee_email=None)

    @tool(effect="write")
    def escalate_ticket(self, ticket_id: TicketId, reason: Message) -> Ticket:
        """Escalate an unsolved ticket: its team's lead takes it over, and its priority rises by one step.

        Due times follow the new priority. The lead takes it whatever their capacity.

        Args:
            ticket_id: The ticket, which must not be escalated already.
            reason: Why it can't go on as before; it becomes an internal note.
        """
        ticket = self.unsolved(ticket_id)
        if ticket.is_escalated:
            raise FailedPrecondition(f"{ticket_id} is escalated already")
        lead = self.state.agents.first(team=ticket.team, is_lead=True)
        if lead is None:
            raise FailedPrecondition(f"the team {ticket.team} has no lead")
        priority = PRIORITIES[min(PRIORITIES.index(ticket.priority) + 1, len(PRIORITIES) - 1)]
        self.say(ticket, "internal_note", self.me(), f"Escalated: {reason}"[:20_000])
        return self.state.tickets.update(
            ticket_id,
            is_escalated=True,
            assignee_email=lead.email,
            priority=priority,
            status="open" if ticket.status == "new" else ticket.status,
            **self.due(priority, ticket.created_at, ticket.sla_started_at, ticket.paused_seconds),
        )

    @tool(effect="write")
    def end_ticket_escalation(self, ticket_id: TicketId, note: Message) -> Ticket:
        """End the escalation of an unsolved ticket. Agent and priority stay until they are changed.

        Args:
            ticket_id: The escalated ticket.
            note: Why it is no longer needed; it becomes an internal note.
        """
        ticket = self.unsolved(ticket_id)
        if not ticket.is_escalated:
            raise FailedPrecondition(f"{ticket_id} is not escalated")
        self.say(ticket, "internal_note", self.me(), note)
        return self.state.tickets.update(ticket_id, is_escalated=False)

    # What belongs together

    @tool(effect="write")
    def merge_tickets(self, ticket_id: TicketId, into_ticket_id: TicketId) -> Ticket:
        """Merge a duplicate into another ticket of the same requester or organisation; answers the ticket that stays.

        The duplicate is closed for good. Its text is added to the other ticket as an internal note, its tags are
        added too, and the more urgent of the two priorities applies. Both tickets must be unsolved.

        Args:
            ticket_id: The duplicate, which is closed.
            into_ticket_id: The ticket that stays.
        """
        self.state.tickets.get(into_ticket_id)
        duplicate, kept = self.unsolved(ticket_id), self.unsolved(into_ticket_id)
        if duplicate.id == kept.id:
            raise InvalidArguments("into_ticket_id: a ticket can't be merged into itself")
        is_same_organisation = duplicate.organisation is not None and duplicate.organisation == kept.organisation
        if duplicate.requester_email != kept.requester_email and not is_same_organisation:
            raise FailedPrecondition(f"{ticket_id} and {into_ticket_id} are of different requesters and organisations")
        tags = with_tags(kept, *duplicate.tags)
        text = f"{duplicate.id} was merged into this ticket.\n{duplicate.subject}\n{duplicate.description}"
        self.say(kept, "internal_note", self.me(), text[:20_000].strip())
        self.moved(
            duplicate,
            "closed",
            merged_into=kept.id,
            solved_at=self.now,
            resolution=f"Merged into {kept.id}",
            is_escalated=False,
        )
        priority = max(duplicate.priority, kept.priority, key=PRIORITIES.index)
        due = self.due(priority, kept.created_at, kept.sla_started_at, kept.paused_seconds)
        return self.state.tickets.update(kept.id, tags=tags, priority=priority, **due)

    @tool(effect="write")
    def tag_ticket(self, ticket_id: TicketId, tag: Tag) -> Ticket:
        """Put a tag on a ticket that is not closed; it can carry ten.

        Args:
            ticket_id: The ticket.
            tag: The tag, kept in lower case.
        """
        ticket = self.ticket(ticket_id)
        if tag.lower() in ticket.tags:
            raise FailedPrecondition(f"{ticket_id} carries the tag {tag.lower()!r} already")
        return self.state.tickets.update(ticket_id, tags=with_tags(ticket, tag))

    @tool(effect="write")
    def untag_ticket(self, ticket_id: TicketId, tag: Tag) -> Ticket:
        """Take a tag off a ticket that is not closed.

        Args:
            ticket_id: The ticket.
            tag: A tag that it carries, in any case.
        """
        ticket = self.ticket(ticket_id)
        if tag.lower() not in ticket.tags:
            raise FailedPrecondition(f"{ticket_id} does not carry the tag {tag.lower()!r}")
        return self.state.tickets.update(ticket_id, tags=tuple(item for item in ticket.tags if item != tag.lower()))
