"""What a calendar holds: people with working hours, rooms, and events that take up both.

An event stores its start and its length; when it ends follows from them. Who has not answered an invitation follows
from the lists of those who have.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, get_args

from compoworld_core.services.sdk import (
    City,
    Day,
    Email,
    Entity,
    Field,
    Id,
    PersonName,
    ProjectName,
    Quantity,
    Rule,
    Semantic,
    State,
    Table,
    Test,
    Text,
    Timestamp,
    Title,
    table,
)

PersonId = Annotated[str, Id("calendar_person", prefix="cpn")]
RoomId = Annotated[str, Id("meeting_room", prefix="room")]
EventId = Annotated[str, Id("calendar_event", prefix="evt")]

Minutes = Annotated[int, Field(ge=5, le=1440), Semantic("minutes")]
Attendees = Annotated[tuple[Email, ...], Field(max_length=100)]
Reason = Annotated[str, Field(pattern=r"\S", max_length=1000), Semantic("text")]
"""A text that says something."""
StartHour = Annotated[int, Field(ge=0, le=23)]
EndHour = Annotated[int, Field(ge=1, le=24)]
UtcOffset = Annotated[str, Field(pattern=r"^[+-](0\d|1[0-4]):(00|15|30|45)$"), Semantic("utc_offset")]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Response = Literal["accepted", "tentative", "declined"]
Feature = Literal["projector", "video", "whiteboard", "phone"]
Status = Literal["confirmed", "cancelled"]

WEEK: Final[tuple[Weekday, ...]] = get_args(Weekday)


class CalendarPerson(Entity):
    """A colleague, with the whole hours between which they work, by the clock where they are."""

    id: PersonId
    name: PersonName
    email: Email
    city: City
    utc_offset: UtcOffset = "+00:00"
    start_hour: StartHour = 9
    end_hour: EndHour = 17
    workdays: Annotated[tuple[Weekday, ...], Field(min_length=1, max_length=7)] = WEEK[:5]


class Room(Entity):
    """A meeting room. One that is out of service can't be booked."""

    id: RoomId
    name: Title
    city: City
    capacity: Quantity
    features: tuple[Feature, ...] = ()
    is_in_service: bool = True


class Event(Entity):
    """An event as it is stored. The organiser takes part and is not among the attendees."""

    id: EventId
    title: Title
    description: Text = ""
    organiser_email: Email
    attendees: Attendees = ()
    accepted: Attendees = ()
    tentative: Attendees = ()
    declined: Attendees = ()
    start: Timestamp
    minutes: Minutes = 30
    room_id: RoomId | None = None
    project: ProjectName | None = None
    is_private: bool = False
    status: Status = "confirmed"
    cancel_reason: Reason | None = None


class CalendarEvent(Entity):
    """An event as it is shown: with its end, its room's name and those who have not answered yet."""

    id: EventId
    title: Title
    description: Text
    organiser_email: Email
    attendees: tuple[Email, ...]
    accepted: tuple[Email, ...]
    tentative: tuple[Email, ...]
    declined: tuple[Email, ...]
    needs_action: tuple[Email, ...]
    start: Timestamp
    end: Timestamp
    minutes: Minutes
    room_id: RoomId | None
    room_name: Title | None
    project: ProjectName | None
    is_private: bool
    status: Status
    cancel_reason: Reason | None


class Span(Entity):
    """A stretch of time; the end is not part of it."""

    start: Timestamp
    end: Timestamp


class BusySpan(Entity):
    """A stretch of time taken by an event, which is not named where it is private and the user has no part in it."""

    email: Email
    start: Timestamp
    end: Timestamp
    event_id: EventId | None
    title: Title | None


class FreeBusy(Entity):
    """When somebody is busy."""

    email: Email
    name: PersonName
    busy: tuple[BusySpan, ...]
    busy_minutes: Quantity


class Agenda(Entity):
    """A person's day."""

    email: Email
    name: PersonName
    day: Day
    is_workday: bool
    events: tuple[CalendarEvent, ...]
    private_events: Quantity
    busy_minutes: Quantity


class Conflicts(Entity):
    """What stands in the way of an event. Attendees' conflicts can be overruled, those of the room can't."""

    can_be_booked: bool
    attendee_conflicts: tuple[BusySpan, ...]
    room_conflicts: tuple[Span, ...]
    outside_working_hours: tuple[Email, ...]
    unknown: tuple[Email, ...]


class CalendarState(State):
    """Tables of the calendar."""

    people: Table[CalendarPerson] = table(
        unique=("email",),
        rules=(
            Rule(
                satisfies=(Test(field="start_hour", op="lt", other="end_hour"),),
                message="working hours must end after they start",
            ),
        ),
    )
    rooms: Table[Room] = table(unique=("name",))
    events: Table[Event] = table(
        rules=(
            Rule(
                where=(Test(field="status", value="confirmed"),),
                satisfies=(Test(field="cancel_reason"),),
                message="an event that takes place has no reason for its cancellation",
            ),
        )
    )


def end_of(event: Event) -> datetime:
    """When an event ends."""
    return event.start + timedelta(minutes=event.minutes)


def participants(event: Event) -> tuple[str, ...]:
    """The organiser and the attendees."""
    return (event.organiser_email, *event.attendees)


def takes_part(event: Event, email: str) -> bool:
    """Whether an event takes up somebody's time: all but those who declined are expected."""
    return email in participants(event) and email not in event.declined
