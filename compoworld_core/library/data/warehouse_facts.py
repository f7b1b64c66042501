"""Rows: read and queried by those who may; appended, corrected and retracted with an audit trail."""

from __future__ import annotations

from typing import Any, Literal

from compoworld_core.library.data.warehouse_desk import Desk
from compoworld_core.library.data.warehouse_query import COLUMNS, cell, run_query
from compoworld_core.library.data.warehouse_rows import (
    Aggregates,
    Amount,
    Columns,
    Dataset,
    DatasetChange,
    DatasetId,
    DatasetRow,
    Groups,
    Hours,
    QueryDefinition,
    QueryResult,
    Reason,
    RowId,
    RowLimit,
    Sorts,
    Subject,
    Units,
    Where,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    Country,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    OrganisationName,
    Page,
    ProductName,
    ProjectName,
    Sku,
    paginate,
    tool,
)


class Facts(Desk):
    """Tools on rows."""

    @tool(effect="read")
    def list_dataset_rows(
        self,
        dataset_id: DatasetId,
        period_from: Day | None = None,
        period_to: Day | None = None,
        organisation_name: OrganisationName | None = None,
        sku: Sku | None = None,
        project_name: ProjectName | None = None,
        employee_email: Email | None = None,
        include_retracted: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DatasetRow]:
        """List rows of a dataset that satisfy all given filters, latest month first.

        Args:
            dataset_id: The dataset, which you must be allowed to read.
            period_from: Only rows of this month or later; any day of the month will do.
            period_to: Only rows of this month or earlier; any day of the month will do.
            organisation_name: Only rows about exactly this organisation.
            sku: Only rows about the product with exactly this SKU.
            project_name: Only rows about exactly this project.
            employee_email: Only rows about this colleague.
            include_retracted: Whether to return retracted rows too.
            limit: Most rows to return.
            cursor: `next_cursor` of the previous page.
        """
        self.readable(dataset_id)
        rows = self.state.rows.where(
            lambda row: (
                (include_retracted or row.status == "current")
                and (period_from is None or row.period >= period_from.replace(day=1))
                and (period_to is None or row.period <= period_to.replace(day=1))
            ),
            **given(
                dataset_id=dataset_id,
                organisation_name=organisation_name,
                sku=sku,
                project_name=project_name,
                employee_email=employee_email,
            ),
        )
        return paginate(sorted(rows, key=lambda row: row.period, reverse=True), limit, cursor)

    @tool(effect="read")
    def get_dataset_row(self, row_id: RowId) -> DatasetRow:
        """Get a row, also a retracted one.

        Args:
            row_id: The row; you must be allowed to read its dataset.
        """
        row = self.state.rows.get(row_id)
        self.readable(row.dataset_id)
        return row

    @tool(effect="read")
    def query_dataset(
        self,
        dataset_id: DatasetId,
        columns: Columns = (),
        where: Where = (),
        group_by: Groups = (),
        aggregates: Aggregates = (),
        order_by: Sorts = (),
        limit: RowLimit = 50,
    ) -> QueryResult:
        """Compute a table from the current rows of a dataset: filter, group, aggregate, sort, cut off.

        Without aggregates it shows rows in the order of their loading; with them, one row for each group, or a single
        one where there are no groups. Amounts come as text with two decimals.

        Args:
            dataset_id: The dataset, which you must be allowed to read.
            columns: Columns to show; all, if left out. Not with groups or aggregates.
            where: Conditions that all rows fulfil.
            group_by: Columns whose values make a group.
            aggregates: Figures of each group, or of all rows where there are no groups.
            order_by: Order of the result, weightiest first.
            limit: Most result rows.
        """
        dataset = self.readable(dataset_id)
        definition = QueryDefinition(
            columns=columns, where=where, group_by=group_by, aggregates=aggregates, order_by=order_by, limit=limit
        )
        answer = run_query(self.current_rows(dataset_id), dataset.subject, definition)
        return QueryResult(dataset_id=dataset_id, columns=answer.columns, rows=answer.rows, total_rows=answer.total)

    @tool(effect="read")
    def list_dataset_changes(
        self,
        dataset_id: DatasetId,
        row_id: RowId | None = None,
        action: Literal["appended", "corrected", "retracted", "restored"] | None = None,
        changed_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DatasetChange]:
        """List the audit trail of a dataset, latest change first. Rows loaded before the trail began have no entry.

        Args:
            dataset_id: The dataset, which you must be allowed to read.
            row_id: Only changes of this row.
            action: Only such changes.
            changed_by: Only changes by this colleague.
            limit: Most changes to return.
            cursor: `next_cursor` of the previous page.
        """
        self.readable(dataset_id)
        if row_id is not None:
            self.state.rows.get(row_id)
        rows = self.state.changes.where(
            **given(dataset_id=dataset_id, row_id=row_id, action=action, changed_by=changed_by)
        )
        return paginate(sorted(rows, key=lambda row: row.changed_at)[::-1], limit, cursor)

    # Writing

    @tool(effect="write")
    def append_revenue_row(
        self,
        dataset_id: DatasetId,
        organisation_name: OrganisationName,
        period: Day,
        amount: Amount,
        country: Country | None = None,
    ) -> DatasetRow:
        """Add the revenue with an organisation in a month. There must be no current row for the two yet.

        Args:
            dataset_id: A dataset about revenue, which you must be allowed to write.
            organisation_name: The organisation's full name.
            period: Any day of the month, not after the current one.
            amount: The amount, in the dataset's currency.
            country: The organisation's country; as in its earlier rows, if left out.
        """
        dataset = self._dataset_about(dataset_id, "revenue")
        known = self.state.rows.first(lambda row: row.country is not None, organisation_name=organisation_name)
        return self._append(
            dataset,
            period,
            organisation_name=organisation_name,
            country=country or (known and known.country),
            amount=amount,
        )

    @tool(effect="write")
    def append_sales_row(
        self,
        dataset_id: DatasetId,
        sku: Sku,
        period: Day,
        units: Units,
        amount: Amount,
        product_name: ProductName | None = None,
    ) -> DatasetRow:
        """Add what was sold or returned of a product in a month. There must be no current row for the two yet.

        Args:
            dataset_id: A dataset about sales, which you must be allowed to write.
            sku: The product's stock-keeping unit.
            period: Any day of the month, not after the current one.
            units: Number of units.
            amount: Their worth, in the dataset's currency.
            product_name: The product's name; needed only for an SKU that no row has yet.
        """
        dataset = self._dataset_about(dataset_id, "sales")
        known = self.state.rows.first(lambda row: row.product_name is not None, sku=sku)
        name = known.product_name if known else product_name
        if name is None:
            raise InvalidArguments(f"product_name: no row has the SKU {sku!r} yet, so say what it is")
        if product_name not in (None, name):
            raise FailedPrecondition(f"product_name: {sku} is {name!r}, not {product_name!r}")
        return self._append(dataset, period, sku=sku, product_name=name, units=units, amount=amount)

    @tool(effect="write")
    def append_hours_row(
        self,
        dataset_id: DatasetId,
        project_name: ProjectName,
        employee_email: Email,
        period: Day,
        hours: Hours,
    ) -> DatasetRow:
        """Add the hours of a colleague on a project in a month. There must be no current row for the three yet.

        Args:
            dataset_id: A dataset about hours, which you must be allowed to write.
            project_name: The project.
            employee_email: The colleague, who must be a user of the warehouse.
            period: Any day of the month, not after the current one.
            hours: Whole hours.
        """
        dataset = self._dataset_about(dataset_id, "hours")
        employee = self.colleague(employee_email).email
        return self._append(dataset, period, project_name=project_name, employee_email=employee, hours=hours)

    @tool(effect="write")
    def correct_dataset_row(
        self,
        row_id: RowId,
        reason: Reason,
        amount: Amount | None = None,
        units: Units | None = None,
        hours: Hours | None = None,
    ) -> DatasetRow:
        """Replace figures of a current row; the audit trail keeps the old ones.

        Args:
            row_id: The row; you must be allowed to write its dataset.
            reason: Why the old figure was wrong.
            amount: New amount, in datasets about revenue or sales.
            units: New number of units, in datasets about sales.
            hours: New hours, in datasets about hours.
        """
        row, dataset = self._own_row(row_id, "current")
        fields = changes(amount=amount, units=units, hours=hours)
        for name in fields:
            if name not in COLUMNS[dataset.subject]:
                raise InvalidArguments(f"{name}: {dataset.name} has no such column")
        differing = {name: value for name, value in fields.items() if getattr(row, name) != value}
        if not differing:
            raise FailedPrecondition(f"{row_id} has these figures already")
        for name, value in differing.items():
            old, new = cell(getattr(row, name)), cell(value)
            self._note(
                row,
                "corrected",
                column=name,
                old_value=None if old is None else str(old),
                new_value=str(new),
                reason=reason,
            )
        return self.state.rows.update(row_id, **differing)

    @tool(effect="write")
    def retract_dataset_row(self, row_id: RowId, reason: Reason) -> DatasetRow:
        """Take a current row out of all queries. It is kept and can be restored.

        Args:
            row_id: The row; you must be allowed to write its dataset.
            reason: Why it must not count.
        """
        row, _ = self._own_row(row_id, "current")
        self._note(row, "retracted", reason=reason)
        return self.state.rows.update(row_id, status="retracted")

    @tool(effect="write")
    def restore_dataset_row(self, row_id: RowId, reason: Reason) -> DatasetRow:
        """Let a retracted row count again. No other current row may have taken its place.

        Args:
            row_id: The row; you must be allowed to write its dataset.
            reason: Why it counts after all.
        """
        row, dataset = self._own_row(row_id, "retracted")
        self.require_free_key(dataset, dict(row))
        self._note(row, "restored", reason=reason)
        return self.state.rows.update(row_id, status="current")

    def _dataset_about(self, dataset_id: str, subject: Subject) -> Dataset:
        dataset = self.writable(dataset_id)
        if dataset.subject != subject:
            raise FailedPrecondition(f"{dataset.name} is about {dataset.subject}, not {subject}")
        return dataset

    def _append(self, dataset: Dataset, period: Day, **fields: Any) -> DatasetRow:
        month = period.replace(day=1)
        if month > self.today:
            raise FailedPrecondition(f"period: {month:%Y-%m} has not begun; today is {self.today}")
        self.require_free_key(dataset, {"period": month, **fields})
        row = self.state.rows.insert(
            dataset_id=dataset.id, period=month, loaded_at=self.now, loaded_by=self.user.email, **fields
        )
        self.state.datasets.update(dataset.id, last_loaded_at=self.now)
        self._note(row, "appended")
        return row

    def _own_row(self, row_id: str, status: Literal["current", "retracted"]) -> tuple[DatasetRow, Dataset]:
        row = self.state.rows.get(row_id)
        dataset = self.writable(row.dataset_id)
        if row.status != status:
            raise FailedPrecondition(f"{row_id} is {row.status}")
        return row, dataset

    def _note(self, row: DatasetRow, action: str, **fields: Any) -> None:
        self.state.changes.insert(
            dataset_id=row.dataset_id,
            row_id=row.id,
            action=action,
            changed_by=self.user.email,
            changed_at=self.now,
            **fields,
        )
