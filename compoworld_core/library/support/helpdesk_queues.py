"""Looking at tickets: finding them, the queues, what is late, and who asks."""

from __future__ import annotations

from collections.abc import Iterable

from compoworld_core.library.filters import given
from compoworld_core.library.support.helpdesk_desk import Desk, urgency
from compoworld_core.library.support.helpdesk_rows import (
    UNSOLVED,
    AgentWorkload,
    Category,
    Macro,
    MacroId,
    QueueStatistics,
    RequesterProfile,
    SlaTarget,
    Team,
    Ticket,
    TicketId,
    TicketPriority,
    TicketReply,
    TicketSla,
    TicketStatus,
)
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    Email,
    Limit,
    NotFound,
    OrganisationName,
    Page,
    Query,
    Sku,
    Tag,
    paginate,
    tool,
)


def _average(tickets: Iterable[Ticket]) -> float | None:
    scores = [ticket.satisfaction for ticket in tickets if ticket.satisfaction is not None]
    return round(sum(scores) / len(scores), 2) if scores else None


class Queues(Desk):
    """Tools that only look."""

    @tool(effect="read")
    def search_tickets(
        self,
        query: Query = "",
        status: TicketStatus | None = None,
        priority: TicketPriority | None = None,
        category: Category | None = None,
        team: Team | None = None,
        assignee_email: Email | None = None,
        requester_email: Email | None = None,
        organisation: OrganisationName | None = None,
        sku: Sku | None = None,
        tag: Tag | None = None,
        created_from: Day | None = None,
        created_to: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Ticket]:
        """Find tickets that satisfy all given filters, newest first.

        Args:
            query: Words that must all occur in subject or description, in any order and case; empty for all.
            status: Exact status; tickets of every status, if left out.
            priority: Exact priority.
            category: Exact category.
            team: Team that the ticket lies with.
            assignee_email: E-mail address of the agent who works on it.
            requester_email: E-mail address of the person who asked.
            organisation: Exact name of the requester's organisation, in any case.
            sku: Exact article number of the product that it is about.
            tag: A tag that the ticket carries, in any case.
            created_from: First day of creation, in UTC.
            created_to: Last day of creation, in UTC.
            limit: Most tickets to return.
            cursor: `next_cursor` of the previous page.
        """
        words = query.casefold().split()

        def matches(row: Ticket) -> bool:
            text = f"{row.subject}\n{row.description}".casefold()
            return (
                all(word in text for word in words)
                and (organisation is None or (row.organisation or "").casefold() == organisation.casefold())
                and (tag is None or tag.lower() in row.tags)
                and (created_from is None or row.created_at.date() >= created_from)
                and (created_to is None or row.created_at.date() <= created_to)
            )

        filters = given(
            status=status,
            priority=priority,
            category=category,
            team=team,
            assignee_email=assignee_email,
            requester_email=requester_email,
            sku=sku,
        )
        return paginate(_newest_first(self.state.tickets.where(matches, **filters)), limit, cursor)

    @tool(effect="read")
    def get_ticket(self, ticket_id: TicketId) -> Ticket:
        """Get a ticket with its status, assignee, due times, resolution and rating.

        Args:
            ticket_id: The ticket.
        """
        return self.state.tickets.get(ticket_id)

    @tool(effect="read")
    def list_ticket_queue(
        self,
        team: Team | None = None,
        unassigned_only: bool = False,
        escalated_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Ticket]:
        """List unsolved tickets in the order of work: most urgent first, then the one that is due first.

        Args:
            team: Only tickets of this team.
            unassigned_only: Whether to leave out tickets that somebody works on.
            escalated_only: Whether to leave out tickets that are not escalated.
            limit: Most tickets to return.
            cursor: `next_cursor` of the previous page.
        """
        rows = self.state.tickets.where(
            lambda row: (
                row.status in UNSOLVED
                and (row.assignee_email is None or not unassigned_only)
                and (row.is_escalated or not escalated_only)
            ),
            **given(team=team),
        )
        return paginate(sorted(rows, key=urgency), limit, cursor)

    @tool(effect="read")
    def list_overdue_tickets(
        self,
        team: Team | None = None,
        assignee_email: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Ticket]:
        """List new and open tickets past their due time, the longest overdue first. Pending tickets are never overdue.

        Args:
            team: Only tickets of this team.
            assignee_email: Only tickets of the agent with this e-mail address.
            limit: Most tickets to return.
            cursor: `next_cursor` of the previous page.
        """
        rows = self.state.tickets.where(self.is_overdue, **given(team=team, assignee_email=assignee_email))
        return paginate(sorted(rows, key=lambda row: (row.due_at, row.id)), limit, cursor)

    @tool(effect="read")
    def list_ticket_replies(
        self,
        ticket_id: TicketId,
        include_internal: bool = True,
        limit: Limit = 50,
        cursor: Cursor | None = None,
    ) -> Page[TicketReply]:
        """List what was said on a ticket, oldest first.

        Args:
            ticket_id: The ticket.
            include_internal: Whether to return internal notes, which the requester never sees.
            limit: Most entries to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.tickets.get(ticket_id)
        rows = self.state.replies.where(
            lambda row: include_internal or row.kind != "internal_note", ticket_id=ticket_id
        )
        return paginate(sorted(rows, key=lambda row: row.written_at), limit, cursor)

    @tool(effect="read")
    def get_ticket_sla(self, ticket_id: TicketId) -> TicketSla:
        """Tell how a ticket stands against its SLA targets: its due times, and whether it is paused or late.

        Args:
            ticket_id: The ticket.
        """
        ticket = self.state.tickets.get(ticket_id)
        target = self.target(ticket.priority)
        return TicketSla(
            ticket_id=ticket.id,
            priority=ticket.priority,
            reply_hours=target.reply_hours,
            solve_hours=target.solve_hours,
            reply_due_at=ticket.reply_due_at,
            due_at=ticket.due_at,
            first_replied_at=ticket.first_replied_at,
            solved_at=ticket.solved_at,
            is_paused=ticket.status == "pending",
            is_reply_late=(ticket.first_replied_at or ticket.solved_at or self.now) > ticket.reply_due_at,
            is_overdue=self.is_overdue(ticket),
        )

    @tool(effect="read")
    def get_requester_profile(self, requester_email: Email) -> RequesterProfile:
        """Tell what is known of somebody who has asked for help: their tickets in numbers, and the latest one.

        Args:
            requester_email: E-mail address of the person, in any case.
        """
        rows = _newest_first(self.state.tickets.where(requester_email=requester_email.lower()))
        if not rows:
            raise NotFound(f"{requester_email!r} has no tickets")
        return RequesterProfile(
            email=rows[0].requester_email,
            name=rows[0].requester_name,
            organisation=rows[0].organisation,
            tickets=len(rows),
            unsolved_tickets=sum(row.status in UNSOLVED for row in rows),
            average_satisfaction=_average(rows),
            last_ticket_id=rows[0].id,
            last_ticket_at=rows[0].created_at,
        )

    @tool(effect="read")
    def get_queue_statistics(self, team: Team) -> QueueStatistics:
        """Tell how much unsolved work a team has, and how satisfied requesters were with what it solved.

        Args:
            team: The team.
        """
        rows = self.state.tickets.where(team=team)
        unsolved = [row for row in rows if row.status in UNSOLVED]
        return QueueStatistics(
            team=team,
            new=sum(row.status == "new" for row in rows),
            open=sum(row.status == "open" for row in rows),
            pending=sum(row.status == "pending" for row in rows),
            unassigned=sum(row.assignee_email is None for row in unsolved),
            escalated=sum(row.is_escalated for row in unsolved),
            overdue=sum(map(self.is_overdue, rows)),
            average_satisfaction=_average(rows),
        )

    @tool(effect="read")
    def list_helpdesk_agents(
        self,
        team: Team | None = None,
        name: Query | None = None,
        leads_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[AgentWorkload]:
        """List the agents with their capacity and their unsolved tickets, in alphabetical order of their names.

        Args:
            team: Only agents of this team.
            name: Part of the person's name, in any case.
            leads_only: Whether to return team leads only.
            limit: Most agents to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.agents.where(
            lambda row: part in row.name.casefold() and (row.is_lead or not leads_only), **given(team=team)
        )
        page = paginate(sorted(rows, key=lambda row: (row.name.casefold(), row.id)), limit, cursor)
        return Page(
            items=tuple(
                AgentWorkload(**agent.model_dump(), unsolved_tickets=self.unsolved_of(agent.email))
                for agent in page.items
            ),
            total=page.total,
            next_cursor=page.next_cursor,
        )

    @tool(effect="read")
    def list_sla_targets(self, priority: TicketPriority | None = None) -> Page[SlaTarget]:
        """List within how many hours tickets have to be answered and solved, by priority, lowest first.

        Args:
            priority: Only the target of this priority.
        """
        return paginate(self.state.sla_targets.where(**given(priority=priority)))

    @tool(effect="read")
    def list_macros(self, query: Query = "", limit: Limit = 20, cursor: Cursor | None = None) -> Page[Macro]:
        """List canned answers, in alphabetical order of their titles.

        Args:
            query: Words that must all occur in title or text, in any order and case; empty for all.
            limit: Most macros to return.
            cursor: `next_cursor` of the previous page.
        """
        words = query.casefold().split()
        rows = self.state.macros.where(lambda row: all(word in f"{row.title}\n{row.body}".casefold() for word in words))
        return paginate(sorted(rows, key=lambda row: (row.title.casefold(), row.id)), limit, cursor)

    @tool(effect="read")
    def get_macro(self, macro_id: MacroId) -> Macro:
        """Get a canned answer.

        Args:
            macro_id: The macro.
        """
        return self.state.macros.get(macro_id)


def _newest_first(tickets: Iterable[Ticket]) -> list[Ticket]:
    return sorted(tickets, key=lambda row: row.created_at)[::-1]
