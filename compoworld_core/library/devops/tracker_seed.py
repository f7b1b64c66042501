"""What lies in a tracker at the start: every project with a past sprint, a running one, and work that waits.

Topics stay clear of what tasks are usually about (refunds, discounts, approvals), so that a planted rule never competes
with one that happens to lie there already.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.devops.tracker_rows import IssueKind, IssueStatus, TrackerState

if TYPE_CHECKING:
    from compoworld_core.services.universe import Project, Universe

_COMPONENTS: Final = ("Backend", "Web client", "Reporting", "Import", "Notifications", "Search")
_LABELS: Final = ("customer", "hardware", "internal", "regression", "pilot", "training")
_TOPICS: Final[tuple[tuple[IssueKind, str, str], ...]] = (
    ("bug", "{product} page shows the wrong stock", "The page keeps yesterday's number until it is reloaded."),
    ("bug", "Login fails after a password change", "The old session is not ended, so the first login is refused."),
    ("bug", "Import stops at umlauts", "The file is read as ASCII; names with umlauts end the import."),
    ("bug", "Time zone is lost in reminders", "Reminders arrive one hour early since the clocks changed."),
    ("bug", "Search ignores hyphens", "Articles such as {sku} are only found without the hyphen."),
    ("task", "Update the libraries", "Three of them are two major versions behind."),
    ("task", "Move the nightly job to the new server", "The old server is switched off at the end of the quarter."),
    ("task", "Write a load test for the order form", "Two hundred users at once is what we promise."),
    ("task", "Clean up the audit table", "Rows older than two years can go to the archive."),
    ("task", "Document the export format of the {product}", "Partners keep asking for the meaning of the columns."),
    ("story", "Customers see the delivery day of a {product}", "As a customer I want to know when to be at home."),
    ("story", "Filter the list by warehouse", "As a planner I want to see only what lies in one place."),
    ("story", "Send a summary every Monday", "As a manager I want one message instead of twenty."),
    ("story", "Scan {sku} labels with the phone", "As a picker I want to work without the old scanner."),
)
_COMMENTS: Final = (
    "I can reproduce it on the test system.",
    "Let us talk about this on Thursday before anybody starts.",
    "The customer confirmed that this is what they meant.",
    "This is smaller than it looks; half a day should do.",
    "I have put the log files into the project folder.",
)
_NOTES: Final = ("Analysis", "First version", "Tests", "Review", "Clean-up")


@dataclass
class _Plan:
    """An issue that is to be inserted, with what hangs on it."""

    fields: dict[str, Any]
    comments: list[dict[str, Any]] = field(default_factory=list)
    work: list[dict[str, Any]] = field(default_factory=list)
    id: str = ""


def populate(state: TrackerState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """All staff as users; each project with components, three sprints, eight to twelve issues and links among them.

    Every other project has the user on its team.
    """
    for person in universe.staff:
        state.users.insert(name=person.name, email=person.email, username=person.username)
    plans: list[tuple[str, str, list[_Plan]]] = []
    for number, project in enumerate(universe.projects):
        row = state.projects.insert(name=project.name, code=project.code, lead_email=project.owner)
        plans.append((row.id, project.code, _Writer(state, universe, rng, start, project, number).plan(row.id)))
    code_of = {project_id: code for project_id, code, _ in plans}
    numbers = dict.fromkeys(code_of, 0)
    for plan in sorted((plan for _, _, issues in plans for plan in issues), key=lambda plan: plan.fields["created_at"]):
        project_id = plan.fields["project_id"]
        numbers[project_id] += 1
        plan.id = state.issues.insert(key=f"{code_of[project_id]}-{numbers[project_id]}", **plan.fields).id
    everything = [plan for _, _, issues in plans for plan in issues]
    for comment in sorted(_hanging(everything, "comments"), key=lambda item: item["created_at"]):
        state.comments.insert(**comment)
    for entry in sorted(_hanging(everything, "work"), key=lambda item: item["worked_on"]):
        state.work.insert(**entry)
    for number, (_, _, issues) in enumerate(plans):
        _link(state, rng, issues, plans[number - 1][2])


def _hanging(plans: list[_Plan], name: str) -> list[dict[str, Any]]:
    return [{"issue_id": plan.id, **item} for plan in plans for item in getattr(plan, name)]


def _link(state: TrackerState, rng: random.Random, issues: list[_Plan], others: list[_Plan]) -> None:
    """Blockers point from earlier to later plans of a project, or to the next project, so that no circle arises."""
    unfinished = [plan for plan in issues if plan.fields["status"] != "done"]
    done = [plan for plan in issues if plan.fields["status"] == "done"]
    for place in range(0, len(unfinished) - 1, 3):
        state.links.insert(kind="blocks", source_id=unfinished[place].id, target_id=unfinished[place + 1].id)
    if done and unfinished:
        state.links.insert(kind="blocks", source_id=done[0].id, target_id=unfinished[-1].id)
    duplicate = next((plan for plan in done if plan.fields["resolution"] == "duplicate"), None)
    if duplicate is not None:
        original = next(plan for plan in issues if plan is not duplicate)
        state.links.insert(kind="duplicates", source_id=duplicate.id, target_id=original.id)
    if others and others is not issues:
        state.links.insert(kind="relates_to", source_id=rng.choice(issues).id, target_id=rng.choice(others).id)


class _Writer:
    """Writes believable issues of one project."""

    def __init__(
        self,
        state: TrackerState,
        universe: Universe,
        rng: random.Random,
        start: datetime,
        project: Project,
        number: int,
    ) -> None:
        self.state, self.universe, self.rng, self.start, self.number = state, universe, rng, start, number
        others = [person.email for person in universe.staff if person.email not in (project.owner, universe.user.email)]
        mine = [universe.user.email] if number % 2 == 0 and project.owner != universe.user.email else []
        self.team = [project.owner, *mine, *rng.sample(others, min(3, len(others)))]
        self.writers = [*self.team, *mine, *mine]

    def plan(self, project_id: str) -> list[_Plan]:
        """The project's issues; its components and sprints are inserted."""
        rng, today = self.rng, self.start.date()
        components = [
            self.state.components.insert(project_id=project_id, name=name, owner_email=rng.choice(self.team)).id
            for name in sorted(rng.sample(_COMPONENTS, 3))
        ]
        first = rng.randint(3, 12)
        begin = today - timedelta(days=rng.randint(3, 12))
        has_active = self.number % 4 != 3
        days = [
            (begin - timedelta(days=14), "closed"),
            (begin, "active" if has_active else "planned"),
            (begin + timedelta(days=14), "planned"),
        ]
        sprints = [
            self.state.sprints.insert(
                project_id=project_id,
                name=f"Sprint {first + place}",
                goal=rng.choice(("Fewer open bugs", "Ready for the pilot", "Faster lists", "A stable import")),
                status=status,
                starts_on=day,
                ends_on=day + timedelta(days=13),
                closed_on=day + timedelta(days=13) if status == "closed" else None,
            ).id
            for place, (day, status) in enumerate(days)
        ]
        running: tuple[IssueStatus, ...] = ("in_progress", "todo", "in_review", "done", "todo", "in_progress")
        wanted: list[tuple[str | None, IssueStatus]] = [(sprints[0], "done") for _ in range(rng.randint(2, 3))]
        wanted += [(sprints[1], status if has_active else "todo") for status in running[: rng.randint(3, 6)]]
        wanted += [(sprints[2], "todo"), *((None, "todo") for _ in range(rng.randint(1, 3)))]
        topics = rng.sample(_TOPICS, len(wanted))
        plans = [
            self._issue(project_id, rng.choice([*components, None]), sprint, status, topic)
            for (sprint, status), topic in zip(wanted, topics, strict=True)
        ]
        if self.number % 3 == 1:
            plans[0].fields["resolution"] = "duplicate"
        return plans

    def _issue(
        self,
        project_id: str,
        component_id: str | None,
        sprint_id: str | None,
        status: IssueStatus,
        topic: tuple[IssueKind, str, str],
    ) -> _Plan:
        rng = self.rng
        product = rng.choice(self.universe.products)
        words = {"product": product.name, "sku": product.sku}
        created = self._ago(16, 45)
        changed = self._ago(1, 6)
        is_nobodys = status == "todo" and rng.random() < 0.4
        due = (self.start + timedelta(days=rng.randint(-8, 30))).date() if rng.random() < 0.6 else None
        kind, title, description = topic
        fields: dict[str, Any] = {
            "project_id": project_id,
            "kind": kind,
            "title": title.format(**words),
            "description": description.format(**words),
            "status": status,
            "priority": rng.choice(("low", "medium", "medium", "medium", "high", "high", "critical")),
            "reporter_email": rng.choice(self.team),
            "assignee_email": None if is_nobodys else rng.choice(self.team),
            "component_id": component_id,
            "sprint_id": sprint_id,
            "estimate_hours": rng.choice((None, 2, 4, 6, 8, 12, 16)),
            "due_on": due,
            "labels": tuple(rng.sample(_LABELS, rng.choice((0, 1, 1, 2)))),
            "watchers": tuple(rng.sample(self.team, rng.randint(1, 3))),
            "created_at": created,
            "updated_at": changed,
            **({"resolution": "completed", "resolved_at": changed} if status == "done" else {}),
        }
        plan = _Plan(fields)
        for _ in range(rng.randint(0, 2)):
            plan.comments.append(
                {
                    "author_email": rng.choice(self.writers),
                    "body": rng.choice(_COMMENTS),
                    "created_at": self._ago(1, 15),
                }
            )
        for _ in range(0 if status == "todo" else rng.randint(1, 3)):
            plan.work.append(
                {
                    "author_email": rng.choice([fields["assignee_email"], *self.writers]),
                    "minutes": 15 * rng.randint(2, 14),
                    "worked_on": self._ago(1, 15).date(),
                    "note": rng.choice(_NOTES),
                }
            )
        return plan

    def _ago(self, least: int, most: int) -> datetime:
        return self.start - timedelta(days=self.rng.randint(least, most), minutes=5 * self.rng.randint(0, 90))
