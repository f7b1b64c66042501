"""Events: who makes them, who changes them, and who answers.

Only the organiser changes an event, only before it is over, and everybody answers for themselves. A new time asks all
attendees again.
"""

from __future__ import annotations

from compoworld_core.library.calendar.diary import Diary, addresses
from compoworld_core.library.calendar.records import (
    Attendees,
    CalendarEvent,
    Event,
    EventId,
    Minutes,
    Reason,
    Response,
    RoomId,
    end_of,
    participants,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    PermissionDenied,
    ProjectName,
    Query,
    Text,
    Timestamp,
    Title,
    paginate,
    tool,
)

MOST_ATTENDEES = 100


class Events(Diary):
    """Tools on events."""

    # Finding

    @tool(effect="read")
    def list_calendar_events(
        self,
        query: Query = "",
        from_day: Day | None = None,
        to_day: Day | None = None,
        person_email: Email | None = None,
        organiser_email: Email | None = None,
        room_id: RoomId | None = None,
        project: ProjectName | None = None,
        include_cancelled: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[CalendarEvent]:
        """List events that satisfy all given filters, past ones too, earliest first.

        Other people's private events are left out.

        Args:
            query: Words that must all occur in the title or the description, in any order and case; empty for all.
            from_day: Only events that end after this day has begun.
            to_day: Only events that start before this day is over.
            person_email: Only events that this person organises or is invited to, even if they declined.
            organiser_email: Only events that this person organises.
            room_id: Only events in this room.
            project: Only events for this project, by its exact name.
            include_cancelled: Whether to return cancelled events too.
            limit: Most events to return.
            cursor: `next_cursor` of the previous page.
        """
        if room_id is not None:
            self.state.rooms.get(room_id)
        words = query.casefold().split()
        first = None if from_day is None else self.midnight(from_day)
        last = None if to_day is None else self.period(to_day, to_day, 1)[1]
        person = None if person_email is None else person_email.lower()
        organiser = None if organiser_email is None else organiser_email.lower()

        def matches(row: Event) -> bool:
            if not self.may_see(row) or (row.status == "cancelled" and not include_cancelled):
                return False
            if (first is not None and end_of(row) <= first) or (last is not None and row.start >= last):
                return False
            if person is not None and person not in participants(row):
                return False
            if organiser is not None and row.organiser_email != organiser:
                return False
            if (room_id is not None and row.room_id != room_id) or (project is not None and row.project != project):
                return False
            text = f"{row.title}\n{row.description}".casefold()
            return all(word in text for word in words)

        return self._page(self.state.events.where(matches), limit, cursor)

    @tool(effect="read")
    def list_pending_invitations(self, limit: Limit = 20, cursor: Cursor | None = None) -> Page[CalendarEvent]:
        """List events to come that the user is invited to and has not answered yet, earliest first.

        Args:
            limit: Most events to return.
            cursor: `next_cursor` of the previous page.
        """
        me = self.user.email.lower()
        rows = self.state.events.where(
            lambda row: (
                me in row.attendees
                and me not in (*row.accepted, *row.tentative, *row.declined)
                and end_of(row) > self.now
            ),
            status="confirmed",
        )
        return self._page(rows, limit, cursor)

    @tool(effect="read")
    def get_calendar_event(self, event_id: EventId) -> CalendarEvent:
        """Get an event.

        Args:
            event_id: The event; other people's private events can't be read.
        """
        return self.shown(self.event(event_id))

    # Organising

    @tool(effect="write")
    def create_calendar_event(
        self,
        title: Title,
        start: Timestamp,
        minutes: Minutes = 30,
        attendees: Attendees = (),
        room_id: RoomId | None = None,
        description: Text = "",
        project: ProjectName | None = None,
        is_private: bool = False,
        allow_conflicts: bool = False,
    ) -> CalendarEvent:
        """Create an event that the user organises, and invite its attendees.

        It is refused where the room is taken, and also where the user or a colleague has something else at that time,
        unless conflicts are allowed. People outside the company can be invited too; of them only events here are known.

        Args:
            title: What it is about, in one line.
            start: When it starts, with UTC offset; not in the past.
            minutes: How long it lasts.
            attendees: Addresses of the people to invite, besides the user.
            room_id: Room to book; it must be free, in service and hold everybody.
            description: Agenda or other details.
            project: Name of the project that it is for.
            is_private: Whether only those who take part may see what it is about.
            allow_conflicts: Whether to go ahead although somebody has something else at that time.
        """
        me = self.user.email.lower()
        start = self.future(start)
        invited = addresses(attendees, but_for=me)
        if not allow_conflicts:
            self.require_free((me, *invited), start, minutes)
        if room_id is not None:
            self.require_room(room_id, start, minutes, 1 + len(invited))
        event = self.state.events.insert(
            title=title,
            description=description,
            organiser_email=me,
            attendees=invited,
            start=start,
            minutes=minutes,
            room_id=room_id,
            project=project,
            is_private=is_private,
        )
        return self.shown(event)

    @tool(effect="write")
    def update_event_details(
        self,
        event_id: EventId,
        title: Title | None = None,
        description: Text | None = None,
        project: ProjectName | None = None,
        is_private: bool | None = None,
    ) -> CalendarEvent:
        """Change the given details of an event that the user organises. Answers of attendees stay as they are.

        Args:
            event_id: The event, neither cancelled nor over.
            title: New title.
            description: New details, in place of the old ones.
            project: Name of the project that it is for.
            is_private: Whether only those who take part may see what it is about.
        """
        given = {"title": title, "description": description, "project": project, "is_private": is_private}
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes:
            raise InvalidArguments(f"give at least one of {', '.join(given)}")
        return self._update(self.own_event(event_id), **changes)

    @tool(effect="write")
    def reschedule_event(
        self, event_id: EventId, start: Timestamp, minutes: Minutes | None = None, allow_conflicts: bool = False
    ) -> CalendarEvent:
        """Move an event that the user organises to another time. All attendees have to answer again.

        Its room must be free at the new time. So must everybody who takes part, unless conflicts are allowed.

        Args:
            event_id: The event, neither cancelled nor over.
            start: New start, with UTC offset; not in the past.
            minutes: New length; as long as before, if left out.
            allow_conflicts: Whether to go ahead although somebody has something else at the new time.
        """
        event = self.own_event(event_id)
        start = self.future(start)
        length = minutes or event.minutes
        if (start, length) == (event.start, event.minutes):
            raise FailedPrecondition(f"{event_id} is at that time already")
        if not allow_conflicts:
            self.require_free(participants(event), start, length, but_for=event_id)
        if event.room_id is not None:
            self.require_room(event.room_id, start, length, len(participants(event)), but_for=event_id)
        return self._update(event, start=start, minutes=length, accepted=(), tentative=(), declined=())

    @tool(effect="write")
    def cancel_event(self, event_id: EventId, reason: Reason | None = None) -> CalendarEvent:
        """Cancel an event that the user organises. It can't be taken back; room and people are free again.

        Args:
            event_id: The event, neither cancelled nor over.
            reason: What the attendees are told.
        """
        return self._update(self.own_event(event_id), status="cancelled", cancel_reason=reason)

    @tool(effect="write")
    def hand_over_event(self, event_id: EventId, organiser_email: Email) -> CalendarEvent:
        """Make a colleague the organiser of an event. The user, who organised it, becomes an attendee who accepted.

        Args:
            event_id: The event, neither cancelled nor over.
            organiser_email: Address of the colleague who takes over, invited so far or not.
        """
        event = self.own_event(event_id)
        heir = self.person(organiser_email).email
        me = event.organiser_email
        if heir == me:
            raise FailedPrecondition(f"{heir} organises {event_id} already")
        if heir not in event.attendees:
            self._require_place(event)
        answers = _without(event, heir)
        return self._update(
            event,
            organiser_email=heir,
            attendees=(*(item for item in event.attendees if item != heir), me),
            **answers | {"accepted": (*answers["accepted"], me)},
        )

    @tool(effect="write")
    def invite_to_event(self, event_id: EventId, email: Email, allow_conflicts: bool = False) -> CalendarEvent:
        """Invite one more person to an event that the user organises.

        Args:
            event_id: The event, neither cancelled nor over.
            email: Address of the person, who must be free at that time unless conflicts are allowed.
            allow_conflicts: Whether to go ahead although the person has something else at that time.
        """
        event = self.own_event(event_id)
        email = email.lower()
        if email in participants(event):
            raise AlreadyExists(f"{email} takes part in {event_id} already")
        self._require_place(event)
        if not allow_conflicts:
            self.require_free((email,), event.start, event.minutes, but_for=event_id)
        return self._update(event, attendees=(*event.attendees, email))

    @tool(effect="write")
    def uninvite_from_event(self, event_id: EventId, attendee: Email) -> CalendarEvent:
        """Take somebody off the attendees of an event that the user organises.

        Args:
            event_id: The event, neither cancelled nor over.
            attendee: Address of the attendee.
        """
        event = self.own_event(event_id)
        attendee = attendee.lower()
        if attendee not in event.attendees:
            raise NotFound(f"{attendee} is not among the attendees of {event_id}")
        attendees = tuple(item for item in event.attendees if item != attendee)
        return self._update(event, attendees=attendees, **_without(event, attendee))

    # Answering

    @tool(effect="write")
    def respond_to_event(self, event_id: EventId, response: Response) -> CalendarEvent:
        """Answer an invitation on behalf of the user. A later answer replaces an earlier one.

        Args:
            event_id: An event that the user is invited to, neither cancelled nor over.
            response: The answer. Who declines is free at that time.
        """
        event = self.upcoming(self.event(event_id))
        me = self.user.email.lower()
        if me == event.organiser_email:
            raise FailedPrecondition(f"you organise {event_id}; only attendees answer")
        if me not in event.attendees:
            raise PermissionDenied(f"you are not invited to {event_id}")
        answers = _without(event, me)
        return self._update(event, **answers | {response: (*answers[response], me)})

    # Inner workings

    def _page(self, rows: tuple[Event, ...], limit: int, cursor: str | None) -> Page[CalendarEvent]:
        page = paginate(sorted(rows, key=lambda row: row.start), limit, cursor)
        items = tuple(self.shown(row) for row in page.items)
        return Page(items=items, total=page.total, next_cursor=page.next_cursor)

    def _update(self, event: Event, **changes: object) -> CalendarEvent:
        return self.shown(self.state.events.update(event.id, **changes))

    def _require_place(self, event: Event) -> None:
        """Refuse one person more than the event or its room takes."""
        if len(event.attendees) >= MOST_ATTENDEES:
            raise LimitExceeded(f"an event has at most {MOST_ATTENDEES} attendees")
        room = None if event.room_id is None else self.state.rooms.get(event.room_id)
        if room is not None and len(participants(event)) >= room.capacity:
            raise LimitExceeded(f"{room.id} ({room.name}) holds {room.capacity} people, and no more")


def _without(event: Event, email: str) -> dict[str, tuple[str, ...]]:
    """The answers to an event but for one person's."""
    answers = {"accepted": event.accepted, "tentative": event.tentative, "declined": event.declined}
    return {name: tuple(item for item in emails if item != email) for name, emails in answers.items()}
