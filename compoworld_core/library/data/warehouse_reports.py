"""Saved queries: run by hand or on a schedule; each run keeps what it found."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

from compoworld_core.library.data.warehouse_desk import Desk
from compoworld_core.library.data.warehouse_query import check_query, run_query
from compoworld_core.library.data.warehouse_rows import (
    Aggregates,
    Columns,
    Dataset,
    DatasetId,
    Groups,
    QueryDefinition,
    QueryName,
    QueryRun,
    QueryRunId,
    RowLimit,
    SavedQuery,
    SavedQueryId,
    Schedule,
    Sorts,
    Where,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Email,
    FailedPrecondition,
    Field,
    Limit,
    Page,
    PermissionDenied,
    Query,
    paginate,
    tool,
)

Recipients = Annotated[tuple[Email, ...], Field(max_length=30)]


def next_run(after: date, schedule: Schedule) -> date | None:
    """The next day on which a schedule is due: tomorrow, in a week, on the first of the next month, or never."""
    if schedule == "daily":
        return after + timedelta(days=1)
    if schedule == "weekly":
        return after + timedelta(days=7)
    if schedule == "monthly":
        return (after.replace(day=1) + timedelta(days=32)).replace(day=1)
    return None


class Reports(Desk):
    """Tools on saved queries and their runs."""

    @tool(effect="read")
    def list_saved_queries(
        self,
        name: Query | None = None,
        dataset_id: DatasetId | None = None,
        owner_email: Email | None = None,
        schedule: Schedule | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[SavedQuery]:
        """List saved queries that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the query's name, in any case.
            dataset_id: Only queries on this dataset.
            owner_email: Only queries of this colleague.
            schedule: Only queries with this schedule.
            limit: Most queries to return.
            cursor: `next_cursor` of the previous page.
        """
        if dataset_id is not None:
            self.state.datasets.get(dataset_id)
        part = (name or "").casefold()
        rows = self.state.saved_queries.where(
            lambda row: part in row.name.casefold(),
            **given(dataset_id=dataset_id, owner_email=owner_email, schedule=schedule),
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_saved_query(self, saved_query_id: SavedQueryId) -> SavedQuery:
        """Get a saved query with its definition, schedule and recipients.

        Args:
            saved_query_id: The saved query.
        """
        return self.state.saved_queries.get(saved_query_id)

    @tool(effect="write")
    def create_saved_query(
        self,
        name: QueryName,
        dataset_id: DatasetId,
        columns: Columns = (),
        where: Where = (),
        group_by: Groups = (),
        aggregates: Aggregates = (),
        order_by: Sorts = (),
        limit: RowLimit = 50,
    ) -> SavedQuery:
        """Save a query under a name that is not taken; it runs when asked to until it gets a schedule.

        Args:
            name: What it is called.
            dataset_id: The dataset, which must be active and which you must be allowed to read.
            columns: Columns to show; all, if left out. Not with groups or aggregates.
            where: Conditions that all rows fulfil.
            group_by: Columns whose values make a group.
            aggregates: Figures of each group, or of all rows where there are no groups.
            order_by: Order of the result, weightiest first.
            limit: Most result rows.
        """
        dataset = self.active(self.readable(dataset_id))
        definition = QueryDefinition(
            columns=columns, where=where, group_by=group_by, aggregates=aggregates, order_by=order_by, limit=limit
        )
        check_query(dataset.subject, definition)
        return self.state.saved_queries.insert(
            name=name, dataset_id=dataset_id, owner_email=self.user.email, definition=definition
        )

    @tool(effect="write")
    def schedule_saved_query(
        self, saved_query_id: SavedQueryId, schedule: Schedule, recipient_emails: Recipients | None = None
    ) -> SavedQuery:
        """Set when a query of yours runs and who receives the result; the first run is tomorrow at the earliest.

        Args:
            saved_query_id: The saved query.
            schedule: Every day, every seven days, on the first of each month, or only when asked to (`manual`).
            recipient_emails: All recipients from now on, who must be allowed to read the dataset; unchanged, if left
                out.
        """
        query = self._own_query(saved_query_id)
        dataset = self.state.datasets.get(query.dataset_id)
        if schedule != "manual":
            self.active(dataset)
        recipients = query.recipient_emails if recipient_emails is None else self._recipients(dataset, recipient_emails)
        return self.state.saved_queries.update(
            saved_query_id,
            schedule=schedule,
            recipient_emails=recipients,
            next_run_on=next_run(self.today, schedule),
        )

    @tool(effect="write")
    def run_saved_query(self, saved_query_id: SavedQueryId) -> QueryRun:
        """Run a saved query on the rows of now and keep the result. Its schedule goes on from today.

        Args:
            saved_query_id: The saved query; you must be allowed to read its dataset.
        """
        query = self.state.saved_queries.get(saved_query_id)
        dataset = self.readable(query.dataset_id)
        answer = run_query(self.current_rows(dataset.id), dataset.subject, query.definition)
        self.state.saved_queries.update(
            saved_query_id, last_run_at=self.now, next_run_on=next_run(self.today, query.schedule)
        )
        return self.state.query_runs.insert(
            saved_query_id=saved_query_id,
            ran_by=self.user.email,
            ran_at=self.now,
            columns=answer.columns,
            rows=answer.rows,
            total_rows=answer.total,
        )

    @tool(effect="write")
    def delete_saved_query(self, saved_query_id: SavedQueryId) -> SavedQuery:
        """Delete a query of yours together with the results of its runs.

        Args:
            saved_query_id: The saved query.
        """
        self._own_query(saved_query_id)
        for run in self.state.query_runs.where(saved_query_id=saved_query_id):
            self.state.query_runs.delete(run.id)
        return self.state.saved_queries.delete(saved_query_id)

    @tool(effect="read")
    def list_query_runs(
        self,
        saved_query_id: SavedQueryId,
        ran_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[QueryRun]:
        """List what a saved query found each time it ran, latest first.

        Args:
            saved_query_id: The saved query; you must be allowed to read its dataset.
            ran_by: Only runs that this colleague asked for.
            limit: Most runs to return.
            cursor: `next_cursor` of the previous page.
        """
        self.readable(self.state.saved_queries.get(saved_query_id).dataset_id)
        rows = self.state.query_runs.where(**given(saved_query_id=saved_query_id, ran_by=ran_by))
        return paginate(sorted(rows, key=lambda row: row.ran_at)[::-1], limit, cursor)

    @tool(effect="read")
    def get_query_run(self, run_id: QueryRunId) -> QueryRun:
        """Get what a saved query found in one run. Later changes of the rows don't show in it.

        Args:
            run_id: The run; you must be allowed to read the query's dataset.
        """
        run = self.state.query_runs.get(run_id)
        self.readable(self.state.saved_queries.get(run.saved_query_id).dataset_id)
        return run

    def _own_query(self, saved_query_id: str) -> SavedQuery:
        query = self.state.saved_queries.get(saved_query_id)
        if query.owner_email != self.user.email:
            raise PermissionDenied(f"only {query.owner_email}, who owns {query.name!r}, may change it")
        return query

    def _recipients(self, dataset: Dataset, emails: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(self.colleague(email).email for email in emails))
        for email in found:
            if not self.allows(dataset, email, "read"):
                raise FailedPrecondition(f"recipient_emails: {email} is not allowed to read {dataset.name}")
        return found
