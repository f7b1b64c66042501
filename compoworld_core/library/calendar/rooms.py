"""Rooms, and what is free: the side of the calendar that answers "when and where"."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated, Final

from compoworld_core.library.calendar.diary import Diary, addresses, span
from compoworld_core.library.calendar.records import (
    WEEK,
    Agenda,
    Attendees,
    CalendarEvent,
    CalendarPerson,
    Conflicts,
    EndHour,
    EventId,
    Feature,
    FreeBusy,
    Minutes,
    Room,
    RoomId,
    Span,
    StartHour,
    UtcOffset,
    Weekday,
    takes_part,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    City,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    Page,
    Quantity,
    Query,
    Timestamp,
    paginate,
    tool,
)

PERIOD_DAYS: Final = 31
"""Longest period that free times are looked up in."""
SLOT_STEP: Final = timedelta(minutes=30)

People = Annotated[tuple[Email, ...], Field(min_length=1, max_length=20)]


class Rooms(Diary):
    """Tools on rooms, people and free times."""

    # People

    @tool(effect="read")
    def list_calendar_people(
        self,
        query: Query = "",
        city: City | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[CalendarPerson]:
        """List colleagues with their working hours, in alphabetical order of their names.

        Args:
            query: Words that must all occur in the name or the address, in any order and case; empty for all.
            city: Only people who work in this city.
            limit: Most people to return.
            cursor: `next_cursor` of the previous page.
        """
        words = query.casefold().split()
        rows = self.state.people.where(
            lambda row: (
                (city is None or row.city == city)
                and all(word in f"{row.name}\n{row.email}".casefold() for word in words)
            )
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_working_hours(self, email: Email) -> CalendarPerson:
        """Get the hours and days on which a colleague works, with the UTC offset that the hours are meant at.

        Args:
            email: Address of the colleague.
        """
        return self.person(email)

    @tool(effect="write")
    def set_working_hours(
        self,
        start_hour: StartHour,
        end_hour: EndHour,
        workdays: Annotated[tuple[Weekday, ...], Field(min_length=1, max_length=7)] | None = None,
        utc_offset: UtcOffset | None = None,
    ) -> CalendarPerson:
        """Set the user's own working hours. Events that are there already stay.

        Args:
            start_hour: Hour at which the working day starts, by the clock where the user is.
            end_hour: Hour at which it ends, later than the start.
            workdays: Days of the week on which the user works; as before, if left out.
            utc_offset: Offset of the clock where the user is, e.g. "+01:00"; as before, if left out.
        """
        person = self.person(self.user.email)
        if end_hour <= start_hour:
            raise InvalidArguments(f"end_hour: {end_hour} is not later than {start_hour}")
        days = person.workdays if workdays is None else tuple(day for day in WEEK if day in workdays)
        return self.state.people.update(
            person.id,
            start_hour=start_hour,
            end_hour=end_hour,
            workdays=days,
            utc_offset=utc_offset or person.utc_offset,
        )

    @tool(effect="read")
    def get_day_agenda(self, person_email: Email, day: Day | None = None) -> Agenda:
        """Get a colleague's day: the events that take up their time, earliest first, less those that they declined.

        Private events that the user has no part in are counted but not shown.

        Args:
            person_email: Address of the colleague.
            day: The day, from midnight to midnight by the calendar's clock; today, if left out.
        """
        person = self.person(person_email)
        day = day or self.today
        start, end = self.period(day, day, 1)
        rows = [row for row in self.between(start, end) if takes_part(row, person.email)]
        seen = [row for row in rows if self.may_see(row)]
        return Agenda(
            email=person.email,
            name=person.name,
            day=day,
            is_workday=WEEK[day.weekday()] in person.workdays,
            events=tuple(self.shown(row) for row in seen),
            private_events=len(rows) - len(seen),
            busy_minutes=_minutes([span(row) for row in rows], start, end),
        )

    # Free times

    @tool(effect="read")
    def get_free_busy(
        self,
        emails: People,
        from_day: Day | None = None,
        to_day: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[FreeBusy]:
        """Tell when colleagues are busy: one entry for each of them in the order asked, busy times earliest first.

        Args:
            emails: Addresses of the colleagues.
            from_day: First day; today, if left out.
            to_day: Last day, at most 30 days later; six days later, if left out.
            limit: Most entries to return.
            cursor: `next_cursor` of the previous page.
        """
        people = [self.person(email) for email in addresses(emails)]
        start, end = self._period(from_day, to_day)
        events = self.between(start, end)
        found = []
        for person in people:
            busy = tuple(self.busy((person.email,), events))
            spans = [Span(start=item.start, end=item.end) for item in busy]
            found.append(
                FreeBusy(email=person.email, name=person.name, busy=busy, busy_minutes=_minutes(spans, start, end))
            )
        return paginate(found, limit, cursor)

    @tool(effect="read")
    def find_free_slots(
        self,
        emails: People,
        minutes: Minutes = 30,
        from_day: Day | None = None,
        to_day: Day | None = None,
        room_id: RoomId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Span]:
        """Find times at which colleagues all work and are all free, earliest first. None of them is past.

        Times start on the hour or half past. They may overlap each other.

        Args:
            emails: Addresses of the colleagues; include the user's own where the user takes part.
            minutes: How long the time must be.
            from_day: First day; today, if left out.
            to_day: Last day, at most 30 days later; six days later, if left out.
            room_id: A room that must be free too.
            limit: Most times to return.
            cursor: `next_cursor` of the previous page.
        """
        people = [self.person(email) for email in addresses(emails)]
        start, end = self._period(from_day, to_day)
        room = None if room_id is None else self.state.rooms.get(room_id)
        if room is not None and not room.is_in_service:
            raise FailedPrecondition(f"{room_id} ({room.name}) is out of service")
        length = timedelta(minutes=minutes)
        names = [person.email for person in people]
        taken = [
            span(row)
            for row in self.between(start, end + length)
            if any(takes_part(row, name) for name in names) or (room_id is not None and row.room_id == room_id)
        ]
        slots = []
        at = start
        while at < end:
            if (
                at >= self.now
                and all(self.works(person, at, minutes) for person in people)
                and not any(item.start < at + length and item.end > at for item in taken)
            ):
                slots.append(Span(start=at, end=at + length))
            at += SLOT_STEP
        return paginate(slots, limit, cursor)

    @tool(effect="read")
    def check_event_conflicts(
        self, start: Timestamp, minutes: Minutes, attendees: Attendees = (), room_id: RoomId | None = None
    ) -> Conflicts:
        """Tell what stands in the way of an event at some time, without creating it. The user is counted in.

        Args:
            start: When it would start, with UTC offset.
            minutes: How long it would last.
            attendees: Addresses of the people to invite, besides the user.
            room_id: Room to book.
        """
        start = self.moment(start)
        end = start + timedelta(minutes=minutes)
        everybody = addresses((self.user.email, *attendees))
        known = {person.email: person for person in self.state.people if person.email in everybody}
        room = None if room_id is None else self.state.rooms.get(room_id)
        bookings = [] if room is None else self.bookings(room.id, start, minutes)
        usable = room is None or (room.is_in_service and not bookings and len(everybody) <= room.capacity)
        return Conflicts(
            can_be_booked=usable and start >= self.now,
            attendee_conflicts=tuple(self.busy(everybody, self.between(start, end))),
            room_conflicts=tuple(span(row) for row in bookings),
            outside_working_hours=tuple(
                email for email in everybody if email in known and not self.works(known[email], start, minutes)
            ),
            unknown=tuple(email for email in everybody if email not in known),
        )

    # Rooms

    @tool(effect="read")
    def list_meeting_rooms(
        self,
        name: Query | None = None,
        city: City | None = None,
        min_capacity: Quantity = 0,
        feature: Feature | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Room]:
        """List meeting rooms that satisfy all given filters, smallest first, then by name.

        Args:
            name: Part of the room's name, in any case.
            city: Only rooms in this city.
            min_capacity: Only rooms that hold at least so many people.
            feature: Only rooms that have this.
            limit: Most rooms to return.
            cursor: `next_cursor` of the previous page.
        """
        return paginate(self._rooms(name, city, min_capacity, feature), limit, cursor)

    @tool(effect="read")
    def get_meeting_room(self, room_id: RoomId) -> Room:
        """Get a meeting room.

        Args:
            room_id: The room.
        """
        return self.state.rooms.get(room_id)

    @tool(effect="read")
    def find_available_rooms(
        self,
        start: Timestamp,
        minutes: Minutes = 30,
        min_capacity: Quantity = 0,
        city: City | None = None,
        feature: Feature | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Room]:
        """List rooms that are in service and free for the whole of a stretch of time, smallest first, then by name.

        Args:
            start: When it starts, with UTC offset.
            minutes: How long it lasts.
            min_capacity: Only rooms that hold at least so many people.
            city: Only rooms in this city.
            feature: Only rooms that have this.
            limit: Most rooms to return.
            cursor: `next_cursor` of the previous page.
        """
        start = self.moment(start)
        taken = {row.room_id for row in self.between(start, start + timedelta(minutes=minutes))}
        rooms = self._rooms(None, city, min_capacity, feature)
        return paginate([room for room in rooms if room.is_in_service and room.id not in taken], limit, cursor)

    @tool(effect="read")
    def list_room_bookings(
        self, room_id: RoomId, day: Day | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Span]:
        """List the times at which a room is taken on a day, earliest first. What for is not told.

        Args:
            room_id: The room.
            day: The day, from midnight to midnight by the calendar's clock; today, if left out.
            limit: Most times to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.rooms.get(room_id)
        day = day or self.today
        rows = self.between(*self.period(day, day, 1))
        return paginate([span(row) for row in rows if row.room_id == room_id], limit, cursor)

    @tool(effect="write")
    def book_event_room(self, event_id: EventId, room_id: RoomId) -> CalendarEvent:
        """Book a room for an event that the user organises, in place of the one that it may have.

        Args:
            event_id: The event, neither cancelled nor over.
            room_id: The room; it must be free, in service and hold everybody.
        """
        event = self.own_event(event_id)
        if event.room_id == room_id:
            raise AlreadyExists(f"{event_id} has {room_id} already")
        self.require_room(room_id, event.start, event.minutes, 1 + len(event.attendees))
        return self.shown(self.state.events.update(event_id, room_id=room_id))

    @tool(effect="write")
    def release_event_room(self, event_id: EventId) -> CalendarEvent:
        """Give up the room of an event that the user organises; the event stays.

        Args:
            event_id: The event, neither cancelled nor over.
        """
        event = self.own_event(event_id)
        if event.room_id is None:
            raise FailedPrecondition(f"{event_id} has no room")
        return self.shown(self.state.events.update(event_id, room_id=None))

    # Inner workings

    def _period(self, from_day: date | None, to_day: date | None) -> tuple[datetime, datetime]:
        first = from_day or self.today
        last = to_day or (self.midnight(first) + timedelta(days=6)).date()
        return self.period(first, last, PERIOD_DAYS)

    def _rooms(self, name: str | None, city: str | None, capacity: int, feature: str | None) -> list[Room]:
        part = (name or "").casefold()
        rows = self.state.rooms.where(
            lambda row: (
                part in row.name.casefold()
                and (city is None or row.city == city)
                and row.capacity >= capacity
                and (feature is None or feature in row.features)
            )
        )
        return sorted(rows, key=lambda row: (row.capacity, row.name.casefold()))


def _minutes(spans: list[Span], start: datetime, end: datetime) -> int:
    """Minutes between two times that are covered by spans, which are in the order of their starts."""
    total, reached = timedelta(), start
    for item in spans:
        first, last = max(item.start, reached), min(item.end, end)
        if last > first:
            total += last - first
            reached = last
    return total // timedelta(minutes=1)
