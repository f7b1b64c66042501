"""Timeline: the dates of one row, told from their names, fit each other and the world's today.

Every name speaks of a stage in the life of a thing: it is begun, it changes, it is finished; or it starts, ends and is
due. What has happened lies before today, what is planned mostly after it, and no stage comes before an earlier one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

from compoworld_core.specs.verbs import tokenise

Stage = Literal["born", "begun", "changed", "finished", "start", "end", "due"]

PAST: Final[frozenset[Stage]] = frozenset({"born", "begun", "changed", "finished"})
"""Stages that lie before today."""

LATER: Final[dict[Stage, frozenset[Stage]]] = {
    "born": frozenset({"begun", "changed", "finished", "start", "end", "due"}),
    "begun": frozenset({"changed", "finished", "start", "end", "due"}),
    "changed": frozenset({"finished"}),
    "start": frozenset({"finished", "end", "due"}),
    "finished": frozenset(),
    "end": frozenset(),
    "due": frozenset(),
}
"""By stage, those that never come before it."""

_WINDOWS: Final[dict[Stage, tuple[int, int]]] = {
    "born": (-22_000, -8_000),
    "begun": (-60, -3),
    "changed": (-20, -1),
    "finished": (-10, -1),
    "start": (-15, 25),
    "end": (-5, 60),
    "due": (-5, 40),
}
"""First and last day, counted from today."""
_LONG_END = (-10, 300)
_OVER = (-40, -11)
"""When something started that is finished by now."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOISE = _words("on at date day time datetime timestamp utc iso is was the")
_BORN = _words("birthday birth birthdate born dob")
_DUE = _words(
    "due deadline close closing needed expected estimated eta target planned plan scheduled schedule next review"
    " renewal renew renews send remind reminder followup removal delivery promised requested_for appointment snooze"
)
_END = _words(
    "end ends ending to until till out returns return expires expire expiry expiration closes before upper latest"
    " finish arrival arrives checkout stop stops max"
)
_LONG = _words("expires expire expiry expiration valid warranty contract certificate license subscription policy")
_START = _words(
    "start starts starting from begin begins in departs departure depart leaves effective opens after checkin pickup"
    " collection go launch lower min activation"
)
_BEGUN = _words(
    "created creation opened applied application received receipt placed submitted submission purchased purchase bought"
    " ordered order signed issued issue invoice discovered discovery detected joined registered registration reported"
    " requested request hired hire published posted raised filed logged started commenced introduced uploaded added"
    " invited enrolled founded acquired since made written recorded drafted first entered booked"
)
_FINISHED = _words(
    "completed completion closed resolved resolution ended finished returned delivered retired terminated left archived"
    " deleted removed arrived cancelled canceled decommissioned settled"
)
_REPORTED = _words("report run export statement usage")
"""Things that look back on the days from which and to which they go."""
_COMING = _words(
    "event meeting appointment reservation booking visit session trip shift interview travel flight departure webinar"
    " holiday reminder"
)
"""Things whose bare date is that on which they will take place."""


def stage_of(name: str, about: str = "") -> Stage:
    """The stage that a field's name speaks of.

    Args:
        about: What the field belongs to, which tells what a bare `date` is.
    """
    tokens = [token for token in tokenise(name) if token not in _NOISE]
    found = set(tokens)
    if found & _BORN:
        return "born"
    if "week" in found:
        return "changed"
    if found & _DUE:
        return "due"
    if "last" in found:
        return "end" if len(tokens) == 1 else "changed"
    if found & _FINISHED:
        return "finished"
    if found & _END and not found & {"start", "starts", "from"}:
        return "end"
    if found & _START or tokens == ["first"]:
        return "start"
    if found & _BEGUN:
        return "begun"
    return "start" if (found or set(tokenise(about))) & _COMING else "changed"


class Timeline:
    """The moments of one row."""

    def __init__(self, rng: random.Random, start: datetime, fields: Iterable[str] = (), about: str = "") -> None:
        """A row without moments.

        Args:
            start: Now.
            fields: Names of all dates that the row has, as far as they are known.
            about: What a row is.
        """
        self._rng = rng
        self._start = start
        self._about = about
        self._stages: dict[str, Stage] = {name: stage_of(name, about) for name in fields}
        self._moments: dict[str, tuple[Stage, datetime]] = {}

    def moment(self, name: str, *, is_day: bool) -> datetime:
        """A field's moment, at a quarter of an hour of a working day; the same whenever it is asked for.

        Args:
            is_day: Whether only the day is shown, so that what starts need not end within hours.
        """
        if name in self._moments:
            return self._moments[name][1]
        stage = stage_of(name, self._about)
        if stage == "end":
            for other, begins in self._stages.items():
                if begins == "start" and other not in self._moments:
                    self.moment(other, is_day=is_day)
        others = list(self._moments.values())
        earliest = max((moment for other, moment in others if stage in LATER[other]), default=None)
        latest = min((moment for other, moment in others if other in LATER[stage]), default=None)
        starts = [moment for other, moment in others if other == "start"]
        if stage == "end" and starts:
            found = max(starts) + self._span(name, is_day=is_day)
        else:
            ends = [moment for other, moment in others if other == "end"]
            if stage == "start" and ends:
                latest = min(min(ends) - self._span(name, is_day=is_day), latest or min(ends))
            found = self._between(self._window(name, stage), earliest, latest)
        if "week" in tokenise(name):
            found -= timedelta(days=found.weekday())
        if stage in PAST:
            found = min(found, self._start)
        self._moments[name] = (stage, found)
        return found

    def _window(self, name: str, stage: Stage) -> tuple[int, int]:
        is_over = "finished" in self._stages.values() or bool(_REPORTED & set(tokenise(self._about)))
        if stage == "start" and is_over:
            return _OVER
        return _LONG_END if stage == "end" and self._is_long(name) else _WINDOWS[stage]

    def _is_long(self, name: str) -> bool:
        return bool({*tokenise(name), *tokenise(self._about)} & _LONG)

    def _span(self, name: str, *, is_day: bool) -> timedelta:
        """How long something lasts."""
        if not is_day:
            return timedelta(minutes=self._rng.choice((30, 45, 60, 60, 90, 120, 180)))
        if self._is_long(name):
            return timedelta(days=self._rng.choice((90, 180, 365, 730)))
        return timedelta(days=self._rng.randint(1, 9))

    def _between(self, window: tuple[int, int], earliest: datetime | None, latest: datetime | None) -> datetime:
        low, high = window
        if latest is not None:
            low, high = (min(day, self._day_of(latest)) for day in (low, high))
        if earliest is not None:
            low, high = (max(day, self._day_of(earliest)) for day in (low, high))
        morning = self._start.replace(hour=8, minute=0, second=0, microsecond=0)
        found = morning + timedelta(days=self._rng.randint(low, high), minutes=15 * self._rng.randint(0, 39))
        if latest is not None:
            found = min(found, latest)
        return found if earliest is None else max(found, earliest)

    def _day_of(self, moment: datetime) -> int:
        return (moment.date() - self._start.date()).days
