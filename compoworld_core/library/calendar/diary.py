"""What all tools of the calendar share: which times and days are sensible, who is busy when, and who may see what.

All times are kept and shown at the offset of the calendar's own clock, whatever offset they came with, and days run
from midnight to midnight on that clock. Only working hours are local to the person who has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone
from typing import Final

from compoworld_core.library.calendar.records import (
    WEEK,
    BusySpan,
    CalendarEvent,
    CalendarPerson,
    CalendarState,
    Event,
    Room,
    Span,
    end_of,
    participants,
    takes_part,
)
from compoworld_core.services.sdk import (
    FailedPrecondition,
    InvalidArguments,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    Service,
)

HORIZON: Final = timedelta(days=730)
"""How far ahead events can be planned."""


class Diary(Service[CalendarState]):
    """Base of the calendar's tools."""

    # Times

    def moment(self, value: datetime) -> datetime:
        """A time on the calendar's clock, at most two years from now."""
        moment: datetime | None
        try:
            moment = value.astimezone(self.now.tzinfo)
        except (OverflowError, ValueError):
            moment = None
        if moment is None or not abs(moment - self.now) <= HORIZON:
            raise InvalidArguments(f"start: {value.isoformat()} is more than two years from now")
        return moment

    def future(self, value: datetime) -> datetime:
        """A time on the calendar's clock that is not past."""
        moment = self.moment(value)
        if moment < self.now:
            raise FailedPrecondition(f"start: {moment.isoformat()} is past; it is {self.now.isoformat()} now")
        return moment

    def midnight(self, day: date) -> datetime:
        """The first moment of a day on the calendar's clock."""
        if abs(day - self.today) > HORIZON:
            raise InvalidArguments(f"{day} is more than two years from now")
        return datetime.combine(day, time(), self.now.tzinfo)

    def period(self, from_day: date, to_day: date, most: int) -> tuple[datetime, datetime]:
        """From the first moment of one day to the last of another."""
        first, last = self.midnight(from_day), self.midnight(to_day)
        if last < first:
            raise InvalidArguments(f"to_day: {to_day} is before {from_day}")
        if (last - first).days >= most:
            raise InvalidArguments(f"to_day: the period may have at most {most} days, not {(last - first).days + 1}")
        return first, last + timedelta(days=1)

    # People

    def person(self, email: str) -> CalendarPerson:
        """The colleague with an address."""
        person = self.state.people.first(email=email.lower())
        if person is None:
            raise NotFound(f"nobody with the address {email!r} has a calendar here")
        return person

    def works(self, person: CalendarPerson, start: datetime, minutes: int) -> bool:
        """Whether a stretch of time lies within one working day of somebody."""
        local = start.astimezone(offset(person))
        first = local.hour * 60 + local.minute
        return (
            WEEK[local.weekday()] in person.workdays
            and first >= person.start_hour * 60
            and first + minutes <= person.end_hour * 60
        )

    # Events

    def event(self, event_id: str) -> Event:
        """An event that the user may see."""
        event = self.state.events.get(event_id)
        if not self.may_see(event):
            raise PermissionDenied(f"{event_id} is private, and you have no part in it")
        return event

    def own_event(self, event_id: str) -> Event:
        """An event that the user may change: one that they organise and that is not over."""
        event = self.event(event_id)
        if event.organiser_email != self.user.email.lower():
            raise PermissionDenied(f"only {event.organiser_email}, who organises {event_id}, can change it")
        return self.upcoming(event)

    def upcoming(self, event: Event) -> Event:
        """The event, if it is neither cancelled nor over."""
        if event.status == "cancelled":
            raise FailedPrecondition(f"{event.id} is cancelled")
        if end_of(event) <= self.now:
            raise FailedPrecondition(f"{event.id} is over")
        return event

    def may_see(self, event: Event) -> bool:
        """Whether the user may know what an event is about."""
        return not event.is_private or self.user.email.lower() in participants(event)

    def between(self, start: datetime, end: datetime) -> list[Event]:
        """Events that take place and overlap a stretch of time, by start."""
        rows = self.state.events.where(lambda row: row.start < end and end_of(row) > start, status="confirmed")
        return sorted(rows, key=lambda row: row.start)

    def shown(self, event: Event) -> CalendarEvent:
        """The event as agents see it."""
        answered = {*event.accepted, *event.tentative, *event.declined}
        return CalendarEvent(
            **dict(event),
            end=end_of(event),
            room_name=None if event.room_id is None else self.state.rooms.get(event.room_id).name,
            needs_action=tuple(item for item in event.attendees if item not in answered),
        )

    # Conflicts

    def busy(self, emails: Iterable[str], events: Iterable[Event]) -> list[BusySpan]:
        """What takes up the time of some people, person by person."""
        events = list(events)
        return [
            BusySpan(
                email=email,
                start=event.start,
                end=end_of(event),
                event_id=event.id if self.may_see(event) else None,
                title=event.title if self.may_see(event) else None,
            )
            for email in emails
            for event in events
            if takes_part(event, email)
        ]

    def require_free(self, emails: Iterable[str], start: datetime, minutes: int, but_for: str | None = None) -> None:
        """Refuse a time at which one of the people has something else."""
        events = [row for row in self.between(start, start + timedelta(minutes=minutes)) if row.id != but_for]
        if taken := self.busy(emails, events):
            names = "; ".join(
                f"{item.email} has {item.event_id or 'a private event'} from {item.start.isoformat()} "
                f"to {item.end.isoformat()}"
                for item in taken[:5]
            )
            raise FailedPrecondition(f"not everybody is free: {names}; set allow_conflicts to book it all the same")

    def bookings(self, room_id: str, start: datetime, minutes: int, but_for: str | None = None) -> list[Event]:
        """Other events that have a room in a stretch of time."""
        rows = self.between(start, start + timedelta(minutes=minutes))
        return [row for row in rows if row.room_id == room_id and row.id != but_for]

    def require_room(
        self, room_id: str, start: datetime, minutes: int, people: int, but_for: str | None = None
    ) -> Room:
        """The room, which must be in service, free and large enough."""
        room = self.state.rooms.get(room_id)
        if not room.is_in_service:
            raise FailedPrecondition(f"{room_id} ({room.name}) is out of service")
        if people > room.capacity:
            raise LimitExceeded(f"{room_id} ({room.name}) holds {room.capacity} people, not {people}")
        if taken := self.bookings(room_id, start, minutes, but_for):
            first = taken[0]
            raise FailedPrecondition(
                f"{room_id} ({room.name}) is booked from {first.start.isoformat()} to {end_of(first).isoformat()}"
            )
        return room


def offset(person: CalendarPerson) -> timezone:
    """The zone that somebody works in."""
    hours, minutes = person.utc_offset[1:].split(":")
    distance = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-distance if person.utc_offset[0] == "-" else distance)


def addresses(emails: Iterable[str], but_for: str = "") -> tuple[str, ...]:
    """Addresses in lower case, each once."""
    return tuple(email for email in dict.fromkeys(item.lower() for item in emails) if email != but_for)


def span(event: Event) -> Span:
    """When an event takes place."""
    return Span(start=event.start, end=end_of(event))
