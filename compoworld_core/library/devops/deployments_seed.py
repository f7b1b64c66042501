"""What a delivery platform looks like on a working day: every app has a past, and most have something under way."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.devops.deployments_rows import (
    App,
    Build,
    Deployment,
    DeploymentsState,
    Environment,
    Release,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

MOST_APPS: Final = 40

_KINDS: Final = (
    ("api", "Answers the requests of all other parts."),
    ("portal", "What customers see in the browser."),
    ("worker", "Does the nightly jobs."),
    ("mobile", "The app for the field staff."),
    ("reports", "Turns figures into tables and charts."),
)
_NOTES: Final = (
    "Faster search; the export keeps the column order.",
    "Fixes the rounding of totals in the summary.",
    "New filter by region; smaller download.",
    "Sign-in remembers the last used language.",
    "Clearer messages when a file can't be read.",
)
_FAILURES: Final = (
    "3 of 412 tests failed in the summary module",
    "The image could not be pushed: the registry did not answer",
    "Lint: unused import in the export module",
    "The integration tests ran out of memory",
)
_BRANCHES: Final = ("feature/export-columns", "fix/rounding", "feature/region-filter", "chore/update-packages")
_SCENES: Final = (
    "waiting",
    "approved",
    "tested",
    "waiting",
    "waiting",
    "mine",
    "launching",
    "waiting",
    "arriving",
    "built",
)
"""What is under way at each app, in turns."""


def populate(state: DeploymentsState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """All staff, an app for each project, and what has been built and deployed in the last two months."""
    for person in universe.staff:
        state.engineers.insert(
            name=person.name, email=person.email, username=person.username, team=person.department or "Operations"
        )
    seed = _Seed(state, universe, rng, start)
    apps = [seed.app(number) for number in range(min(len(universe.projects), MOST_APPS))]
    for number in range(0, len(apps), 6):
        seed.retired_app(number)
    seed.freezes(apps)


class _Seed:
    """Adds one app after the other."""

    def __init__(self, state: DeploymentsState, universe: Universe, rng: random.Random, start: datetime) -> None:
        self.state, self.universe, self.rng, self.start = state, universe, rng, start
        self.me = universe.user.email
        self.others = [person.email for person in universe.staff if person.email != self.me]

    def ago(self, days: int) -> datetime:
        return self.start - timedelta(days=days, minutes=self.rng.randint(5, 480))

    def app(self, number: int) -> App:
        rng, state = self.rng, self.state
        project = self.universe.projects[number]
        kind, description = rng.choice(_KINDS)
        name = f"{project.name.removeprefix('Project ').lower().replace(' ', '-')}-{kind}"
        owner = self.me if number % 3 == 1 else project.owner
        app = state.apps.insert(
            name=name,
            project_name=project.name,
            owner_email=owner,
            repository_url=f"https://git.{self.universe.home.domain}/{name}",
            default_branch="main",
            description=description,
            registered_on=(self.start - timedelta(days=rng.randint(90, 700))).date(),
        )
        scene = _SCENES[number % len(_SCENES)]
        author = rng.choice(self.others)
        first, second, third = self._history(app, author)
        colleague, approver = rng.sample([email for email in self.others if email != author], 2)
        me = () if number % 4 == 2 or scene == "mine" else (self.me,)
        approvers = tuple(dict.fromkeys((*me, *({owner} - {self.me}), approver)))
        staging = self._environment(app, "staging", ())
        production = self._environment(app, "production", approvers)
        development = self._environment(app, "development", ())
        if number % 2 == 0:
            self._deploy(development, third, 1, author, "running" if number % 4 else "approved")
        self._deploy(production, first, 40, author, "succeeded", approved_by=approver)
        self._deploy(staging, second, 21, author, "succeeded")
        self._deploy(production, second, 20, author, "succeeded", approved_by=approver)
        self._run(staging, second)
        self._run(production, second)
        if scene == "arriving":
            self._deploy(staging, third, 0, author, "running")
        elif scene != "built":
            self._deploy(staging, third, 2, author, "succeeded")
            self._run(staging, third)
        note = "Tested in staging since yesterday; please approve."
        if scene == "waiting":
            self._deploy(production, third, 0, colleague, "pending_approval", note=note)
        elif scene == "mine":
            self._deploy(production, third, 0, self.me, "pending_approval", note=note)
        elif scene == "approved":
            self._deploy(production, third, 1, colleague, "approved", approved_by=approver, note=note)
        elif scene == "launching":
            self._deploy(production, third, 0, colleague, "running", approved_by=approver, note=note)
        elif scene == "tested":
            self._deploy(production, third, 1, colleague, "rejected", note=note, decided_by=approver)
        if number % 4 == 3:
            locked_by = self.me if number % 8 == 3 else approver
            state.environments.update(staging.id, locked_by=locked_by, lock_reason="Load test until the evening.")
        return app

    def retired_app(self, number: int) -> None:
        """An app of the user's that nobody works on any more; one old release still runs."""
        project = self.universe.projects[number]
        name = f"{project.name.removeprefix('Project ').lower().replace(' ', '-')}-legacy"
        app = self.state.apps.insert(
            name=name,
            project_name=project.name,
            owner_email=self.me,
            repository_url=f"https://git.{self.universe.home.domain}/{name}",
            description="Replaced last year; kept for reading old records.",
            registered_on=(self.start - timedelta(days=self.rng.randint(900, 1500))).date(),
        )
        build = self._build(app, self.rng.randint(400, 700), 58, "passed", self.rng.choice(self.others))
        release = self.state.releases.insert(
            app_id=app.id,
            build_id=build.id,
            version=f"{self.rng.randint(1, 3)}.{self.rng.randint(0, 9)}.0",
            notes="Last release before the replacement.",
            created_by=self.me,
            created_at=self.ago(57),
        )
        production = self._environment(app, "production", (self.me,))
        self._deploy(production, release, 55, self.rng.choice(self.others), "succeeded", approved_by=self.me)
        self._run(production, release)

    def freezes(self, apps: list[App]) -> None:
        """A freeze in the past, one now for a single app, and some to come."""
        rng, day = self.rng, timedelta(days=1)
        month_end = self.start.replace(hour=18, minute=0) + rng.randint(9, 14) * day
        plans = (
            ("Year-end closing", "The books are closed.", None, self.ago(45), 10, self.others[0]),
            ("Stock count", "The counts must not move.", apps[-1].id, self.ago(1), 3, self.others[1]),
            ("Month-end closing", "Finance needs steady systems.", None, month_end, 3, self.others[0]),
            ("Trade fair", "Demonstrations all week.", apps[0].id, month_end + 12 * day, 5, self.me),
            ("Data centre move", "Machines are switched off.", None, month_end + 20 * day, 2, self.me),
        )
        for name, reason, app_id, starts_at, days, creator in plans:
            self.state.freezes.insert(
                name=name,
                reason=reason,
                app_id=app_id,
                starts_at=starts_at,
                ends_at=starts_at + days * day,
                created_by=creator,
            )

    # Parts of an app

    def _history(self, app: App, author: str) -> tuple[Release, Release, Release]:
        """Builds of the last weeks, three of them released; the versions count up."""
        rng = self.rng
        number, major, minor = rng.randint(40, 300), rng.randint(1, 6), rng.randint(0, 8)
        released = []
        for place, days in enumerate((45, 24, 4)):
            build = self._build(app, number + 1 + 2 * place, days, "passed", author)
            release = self.state.releases.insert(
                app_id=app.id,
                build_id=build.id,
                version=f"{major}.{minor + place}.{rng.randint(0, 2)}",
                notes=rng.choice(_NOTES),
                created_by=rng.choice((author, app.owner_email)),
                created_at=self.start - timedelta(days=days - 1, minutes=600),
            )
            released.append(release)
        self._build(app, number + 6, 3, rng.choice(("failed", "cancelled")), rng.choice((author, self.me)))
        if rng.random() < 0.75:
            self._build(app, number + 7, 1, "passed", author)
        self._build(app, number + 8, 1, "running", rng.choice((author, self.me)))
        self._build(app, number + 9, 0, "queued", rng.choice((author, self.me)))
        return released[0], released[1], released[2]

    def _build(self, app: App, number: int, days: int, status: str, author: str) -> Build:
        rng = self.rng
        queued = self.ago(days)
        started = queued + timedelta(seconds=rng.randint(5, 200))
        finished = started + timedelta(seconds=rng.randint(90, 1500))
        lines = [f"{queued:%H:%M:%S} Queued by {author}"]
        fields: dict[str, Any] = {}
        if status != "queued":
            fields["started_at"] = started
            lines += [f"{started:%H:%M:%S} Started", f"{started:%H:%M:%S} Restored {rng.randint(60, 900)} packages"]
        if status in ("passed", "failed", "cancelled"):
            fields["finished_at"] = finished
        if status == "passed":
            lines += [
                f"{finished:%H:%M:%S} {rng.randint(200, 900)} tests passed",
                f"{finished:%H:%M:%S} Finished: passed",
            ]
        elif status == "failed":
            fields["failure_reason"] = rng.choice(_FAILURES)
            lines.append(f"{finished:%H:%M:%S} Failed: {fields['failure_reason']}")
        elif status == "cancelled":
            lines.append(f"{finished:%H:%M:%S} Cancelled by {author}")
        branch = "main" if status == "passed" else rng.choice(("main", *_BRANCHES))
        build = self.state.builds.insert(
            app_id=app.id,
            number=number,
            branch=branch,
            commit=f"{rng.getrandbits(48):012x}",
            status=status,
            triggered_by=author,
            queued_at=queued,
            **fields,
        )
        self.state.logs.insert(build_id=build.id, text="\n".join(lines))
        return build

    def _environment(self, app: App, tier: str, approvers: tuple[str, ...]) -> Environment:
        host = app.name if tier == "production" else f"{app.name}-{tier}"
        return self.state.environments.insert(
            app_id=app.id, tier=tier, url=f"https://{host}.{self.universe.home.domain}", approver_emails=approvers
        )

    def _run(self, environment: Environment, release: Release) -> None:
        self.state.environments.update(environment.id, current_release_id=release.id, current_version=release.version)

    def _deploy(
        self,
        environment: Environment,
        release: Release,
        days: int,
        requested_by: str,
        status: str,
        *,
        approved_by: str | None = None,
        decided_by: str | None = None,
        note: str = "",
    ) -> Deployment:
        requested = self.ago(days)
        started = requested + timedelta(minutes=self.rng.randint(2, 4))
        fields: dict[str, Any] = {}
        if status in ("running", "succeeded"):
            fields["started_at"] = started
        if status == "succeeded":
            fields["finished_at"] = started + timedelta(seconds=self.rng.randint(20, 600))
        deployment = self.state.deployments.insert(
            app_id=environment.app_id,
            environment_id=environment.id,
            release_id=release.id,
            tier=environment.tier,
            version=release.version,
            status=status,
            requested_by=requested_by,
            requested_at=requested,
            note=note,
            approved_by=approved_by,
            **fields,
        )
        if decider := approved_by or decided_by:
            self.state.approvals.insert(
                deployment_id=deployment.id,
                decision="approved" if approved_by else "rejected",
                decided_by=decider,
                comment="" if approved_by else "Wait until the figures were checked by finance.",
                decided_at=requested + timedelta(minutes=1),
            )
        return deployment
