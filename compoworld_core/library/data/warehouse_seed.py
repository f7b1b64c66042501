"""What the warehouse holds at the start: figures of the last months about everybody whom the universe knows.

Figures agree with each other: gross follows from net, returns stay below sales, billable hours below booked ones. That
is what makes near-duplicates of datasets worth telling apart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.data.warehouse_query import run_query
from compoworld_core.library.data.warehouse_reports import next_run
from compoworld_core.library.data.warehouse_rows import (
    Aggregate,
    Dataset,
    DatasetRow,
    Filter,
    QueryDefinition,
    SavedQuery,
    Schedule,
    Sort,
    WarehouseState,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

MOST: Final = 120
"""Organisations, products and projects that have figures at most."""

_ROLES: Final = {
    "Finance": "analyst",
    "Engineering": "engineer",
    "Operations": "engineer",
    "People": "steward",
}
_SALES_TOP: Final = QueryDefinition(
    group_by=("product_name",),
    aggregates=(Aggregate(function="sum", column="units"), Aggregate(function="sum", column="amount")),
    order_by=(Sort(by="sum_amount", direction="desc"),),
    limit=10,
)
_REVENUE_TOP: Final = QueryDefinition(
    group_by=("organisation_name",),
    aggregates=(Aggregate(function="sum", column="amount"),),
    order_by=(Sort(by="sum_amount", direction="desc"),),
    limit=10,
)
_BY_COUNTRY: Final = QueryDefinition(
    group_by=("country",),
    aggregates=(Aggregate(function="sum", column="amount"), Aggregate(function="count")),
    order_by=(Sort(by="country"),),
)
_HOURS: Final = QueryDefinition(
    group_by=("project_name",),
    aggregates=(Aggregate(function="sum", column="hours"),),
    order_by=(Sort(by="project_name"),),
)
_EMPTY_AMOUNTS: Final = QueryDefinition(where=(Filter(column="amount", op="is_null"),))


@dataclass(frozen=True)
class _Names:
    """Who plays which part."""

    me: str
    owners: tuple[str, str, str]
    others: tuple[str, ...]


def populate(state: WarehouseState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """All staff as users, eight datasets with rows, and what people did with them in the last weeks."""
    for person in universe.staff:
        role = "analyst" if person.email == universe.user.email else _ROLES.get(person.department, "viewer")
        state.users.insert(name=person.name, email=person.email, role=role)
    others = tuple(person.email for person in universe.staff if person.email != universe.user.email)
    first, second, third = rng.sample(others, 3)
    names = _Names(universe.user.email, (first, second, third), others)
    seed = _Seed(state, universe, rng, start, names)
    seed.fill()


class _Seed:
    """Fills one warehouse."""

    def __init__(
        self, state: WarehouseState, universe: Universe, rng: random.Random, start: datetime, names: _Names
    ) -> None:
        self.state, self.universe, self.rng, self.start, self.names = state, universe, rng, start, names
        self.months = _months(start.date(), 4)

    def ago(self, days: int) -> datetime:
        return self.start - timedelta(days=days, minutes=self.rng.randint(5, 600))

    def fill(self) -> None:
        me, (finance, trade, work) = self.names.me, self.names.owners
        net = self.dataset("revenue_net_monthly", "revenue", finance, "Invoiced revenue per customer, net of tax.", 9)
        gross = self.dataset("revenue_gross_monthly", "revenue", me, "Invoiced revenue per customer, tax included.", 8)
        sold = self.dataset("units_sold_monthly", "sales", me, "Units sold per product, with their list value.", 6)
        back = self.dataset("units_returned_monthly", "sales", trade, "Units sent back per product.", 70)
        booked = self.dataset("project_hours_booked", "hours", work, "Hours that staff booked on projects.", 5, True)
        billed = self.dataset("project_hours_billable", "hours", me, "Hours that customers are billed for.", 40)
        draft = self.dataset("revenue_forecast_draft", "revenue", finance, "First guess of this year's revenue.", 200)
        margin = self.dataset("customer_margin", "revenue", finance, "What remains of revenue after cost.", 12, True)
        self.revenue(net, gross)
        self.sales(sold, back)
        self.hours(booked, billed)
        self.yearly(draft, margin)
        self.state.datasets.update(draft.id, status="deprecated", replaced_by_id=net.id)
        for upstream, downstream, how in (
            (net, gross, "Net amount plus 20 % tax."),
            (booked, billed, "Booked hours without internal work."),
            (net, draft, "Last year's revenue plus 5 %."),
            (net, margin, "Net amount less the cost of goods."),
            (sold, margin, "Cost of goods by unit."),
        ):
            self.state.lineage.insert(upstream_id=upstream.id, downstream_id=downstream.id, transformation=how)
        self.access((net, gross, sold, booked, billed, margin))
        self.quality(net, gross, sold, billed)
        self.queries(net, gross, sold, booked)
        self.history((gross, sold, billed))

    def dataset(
        self, name: str, subject: str, owner: str, description: str, loaded_days_ago: int, restricted: bool = False
    ) -> Dataset:
        return self.state.datasets.insert(
            name=name,
            subject=subject,
            description=description,
            owner_email=owner,
            access="restricted" if restricted else "open",
            tags={"revenue": ("finance",), "sales": ("trade",), "hours": ("projects",)}[subject],
            refresh_interval_days=31,
            last_loaded_at=self.ago(loaded_days_ago),
            created_on=(self.start - timedelta(days=self.rng.randint(250, 900))).date(),
        )

    # Rows

    def row(self, dataset: Dataset, period: date, **fields: Any) -> DatasetRow:
        return self.state.rows.insert(
            dataset_id=dataset.id,
            period=period,
            loaded_at=dataset.last_loaded_at,
            loaded_by=dataset.owner_email,
            **fields,
        )

    def revenue(self, net: Dataset, gross: Dataset) -> None:
        rng = self.rng
        for organisation in self.universe.organisations[:MOST]:
            usual = rng.randint(800, 24_000)
            about = {"organisation_name": organisation.name, "country": organisation.country}
            for month in self.months[:3]:
                amount = _cents(Decimal(usual) * rng.randint(70, 130) / 100 + Decimal(rng.randint(0, 99)) / 100)
                self.row(net, month, amount=amount, **about)
                known = rng.random() > 0.06
                self.row(gross, month, amount=_cents(amount * Decimal("1.2")) if known else None, **about)

    def sales(self, sold: Dataset, back: Dataset) -> None:
        rng = self.rng
        for product in self.universe.products[:MOST]:
            about = {"sku": product.sku, "product_name": product.name}
            for month in self.months[:3]:
                units = rng.randint(4, 160)
                self.row(sold, month, units=units, amount=_cents(product.price * units), **about)
            returned = rng.randint(0, 4)
            self.row(back, self.months[1], units=returned, amount=_cents(product.price * returned), **about)

    def hours(self, booked: Dataset, billed: Dataset) -> None:
        rng = self.rng
        for project in self.universe.projects[:MOST]:
            team = {project.owner: None, **dict.fromkeys(rng.sample(self.names.others, 2))}
            for member in team:
                for month in self.months[1:3]:
                    total = rng.randint(8, 120)
                    about = {"project_name": project.name, "employee_email": member}
                    self.row(booked, month, hours=total, **about)
                    self.row(billed, month, hours=total * rng.randint(40, 95) // 100, **about)

    def yearly(self, draft: Dataset, margin: Dataset) -> None:
        """One row per organisation. They come last, so that few tools start from rows that the user may not read."""
        for organisation in self.universe.organisations[:MOST]:
            about = {"organisation_name": organisation.name, "country": organisation.country}
            usual = Decimal(self.rng.randint(10_000, 280_000))
            self.row(draft, self.months[0], amount=usual, **about)
            self.row(margin, self.months[0], amount=_cents(usual * self.rng.randint(8, 40) / 100), **about)

    # What people did

    def access(self, datasets: Sequence[Dataset]) -> None:
        net, gross, sold, booked, billed, margin = datasets
        me, (finance, trade, work) = self.names.me, self.names.owners
        colleagues = [email for email in self.names.others if email not in (finance, trade, work)]
        pick = self.rng.sample(colleagues, min(len(colleagues), 8))
        end = (self.start + timedelta(days=45)).date()
        for dataset, who, level, expires_on, status in (
            (net, {"grantee_email": me}, "write", None, "active"),
            (booked, {"role": "analyst"}, "read", None, "active"),
            (booked, {"role": "steward"}, "read", None, "active"),
            (margin, {"grantee_email": trade}, "read", end, "active"),
            (gross, {"grantee_email": pick[0]}, "write", None, "active"),
            (sold, {"grantee_email": pick[1]}, "write", end, "active"),
            (billed, {"grantee_email": pick[2]}, "write", (self.start - timedelta(days=20)).date(), "active"),
            (sold, {"role": "engineer"}, "write", None, "active"),
            (billed, {"grantee_email": pick[3]}, "write", None, "active"),
            (gross, {"grantee_email": pick[4]}, "write", None, "revoked"),
        ):
            self.state.grants.insert(
                dataset_id=dataset.id,
                level=level,
                status=status,
                expires_on=expires_on,
                granted_by=dataset.owner_email,
                granted_at=self.ago(self.rng.randint(50, 200)),
                **who,
            )
        reasons = (
            "I correct the figures of my customers every month.",
            "We load the numbers of the new shop from here on.",
            "For the yearly review.",
        )
        for place, (dataset, requester, status) in enumerate(
            (
                (gross, pick[5], "pending"),
                (sold, pick[6], "pending"),
                (billed, pick[5], "pending"),
                (gross, pick[7], "pending"),
                (booked, pick[6], "declined"),
                (margin, pick[7], "pending"),
            )
        ):
            self.state.access_requests.insert(
                dataset_id=dataset.id,
                requester_email=requester,
                level="write" if dataset.access == "open" or dataset in (gross, sold, billed) else "read",
                justification=reasons[place % 3],
                status=status,
                requested_at=self.ago(place + 1),
                decided_by=dataset.owner_email if status != "pending" else None,
                decision_note="Please use the billable hours instead." if status != "pending" else "",
            )

    def quality(self, net: Dataset, gross: Dataset, sold: Dataset, billed: Dataset) -> None:
        checks = self.state.quality_checks
        for dataset, column, kind, threshold, failing in (
            (net, "amount", "not_null", None, 0),
            (gross, "amount", "not_null", None, 1),
            (gross, "amount", "minimum", Decimal(0), 0),
            (sold, "units", "maximum", Decimal(150), 2),
            (billed, "hours", "maximum", Decimal(100), 0),
            (sold, "product_name", "not_null", None, None),
        ):
            never = failing is None
            checks.insert(
                dataset_id=dataset.id,
                column=column,
                kind=kind,
                threshold=threshold,
                last_status="never_run" if never else "failed" if failing else "passed",
                failing_rows=failing or 0,
                last_run_at=None if never else self.ago(31),
                created_by=dataset.owner_email,
            )
        issues = (
            "Twice as much as in any other month.",
            "The credit note is missing here.",
            "Looks like the figure of another customer.",
            "Should this not be in the month before?",
        )
        for place, dataset in enumerate((gross, sold, billed, net, gross, sold)):
            row = self.rng.choice(self.state.rows.where(dataset_id=dataset.id))
            is_open = place < 4
            self.state.flags.insert(
                dataset_id=dataset.id,
                row_id=row.id,
                issue=issues[place % 4],
                status="open" if is_open else "resolved",
                raised_by=self.rng.choice(self.names.others),
                raised_at=self.ago(place + 1),
                resolution="" if is_open else "Compared with the invoices; the figure is right.",
                resolved_by=None if is_open else dataset.owner_email,
            )

    def queries(self, net: Dataset, gross: Dataset, sold: Dataset, booked: Dataset) -> None:
        me, (finance, trade, work) = self.names.me, self.names.owners
        plans: tuple[tuple[str, Dataset, str, QueryDefinition, Schedule, tuple[str, ...]], ...] = (
            ("Largest customers", net, finance, _REVENUE_TOP, "monthly", (finance, trade)),
            ("Largest customers, tax included", gross, me, _REVENUE_TOP, "manual", ()),
            ("Best-selling products", sold, me, _SALES_TOP, "weekly", (me, trade)),
            ("Revenue by country", net, trade, _BY_COUNTRY, "monthly", (trade,)),
            ("Hours by project", booked, work, _HOURS, "weekly", (work,)),
            ("Amounts still missing", gross, me, _EMPTY_AMOUNTS, "daily", (me,)),
        )
        for name, dataset, owner, definition, schedule, recipients in plans:
            days = self.rng.randint(1, 6)
            query = self.state.saved_queries.insert(
                name=name,
                dataset_id=dataset.id,
                owner_email=owner,
                definition=definition,
                schedule=schedule,
                recipient_emails=tuple(dict.fromkeys(recipients)),
                next_run_on=next_run(self.start.date(), schedule),
                last_run_at=self.ago(days),
            )
            self.run(query, dataset)

    def run(self, query: SavedQuery, dataset: Dataset) -> None:
        """What the query found when it last ran."""
        rows = self.state.rows.where(dataset_id=dataset.id, status="current")
        answer = run_query(rows, dataset.subject, query.definition)
        self.state.query_runs.insert(
            saved_query_id=query.id,
            ran_by=query.owner_email,
            ran_at=query.last_run_at,
            columns=answer.columns,
            rows=answer.rows,
            total_rows=answer.total,
        )

    def history(self, datasets: Sequence[Dataset]) -> None:
        """Some rows were corrected or retracted since they were loaded."""
        for place, dataset in enumerate((*datasets, *datasets)):
            rows = self.state.rows.where(
                lambda row: bool(row.amount or row.hours), dataset_id=dataset.id, status="current"
            )
            row = self.rng.choice(rows)
            entry = {
                "dataset_id": dataset.id,
                "row_id": row.id,
                "changed_by": dataset.owner_email,
                "changed_at": self.ago(place + 1),
            }
            if place >= len(datasets):
                self.state.rows.update(row.id, status="retracted")
                self.state.changes.insert(action="retracted", reason="Belongs to another customer.", **entry)
                continue
            column = "hours" if row.hours is not None else "amount"
            value = row.hours if row.hours is not None else row.amount
            self.state.changes.insert(
                action="corrected",
                column=column,
                old_value=str(value + 10 if value is not None else 0),
                new_value=str(value),
                reason="A late booking was missing.",
                **entry,
            )


def _cents(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def _months(today: date, count: int) -> list[date]:
    """First days of the last months before this one, latest first."""
    found = [today.replace(day=1)]
    for _ in range(count):
        found.append((found[-1] - timedelta(days=1)).replace(day=1))
    return found[1:]
