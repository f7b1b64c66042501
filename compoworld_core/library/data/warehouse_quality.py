"""Quality: checks of whole columns, and doubts about single rows."""

from __future__ import annotations

from typing import Literal

from compoworld_core.library.data.warehouse_desk import Desk
from compoworld_core.library.data.warehouse_query import COLUMNS
from compoworld_core.library.data.warehouse_rows import (
    MEASURES,
    Amount,
    CheckId,
    Column,
    DataFlag,
    DatasetId,
    DatasetRow,
    FlagId,
    QualityCheck,
    Reason,
    RowId,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    Page,
    paginate,
    tool,
)


class Quality(Desk):
    """Tools on quality checks and flags."""

    @tool(effect="read")
    def list_quality_checks(
        self,
        dataset_id: DatasetId | None = None,
        last_status: Literal["never_run", "passed", "failed"] | None = None,
        column: Column | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[QualityCheck]:
        """List quality checks with their last results, oldest check first.

        Args:
            dataset_id: Only checks of this dataset.
            last_status: Only checks with this result.
            column: Only checks of this column.
            limit: Most checks to return.
            cursor: `next_cursor` of the previous page.
        """
        if dataset_id is not None:
            self.state.datasets.get(dataset_id)
        rows = self.state.quality_checks.where(**given(dataset_id=dataset_id, last_status=last_status, column=column))
        return paginate(rows, limit, cursor)

    @tool(effect="write")
    def create_quality_check(
        self,
        dataset_id: DatasetId,
        column: Column,
        kind: Literal["not_null", "minimum", "maximum"],
        threshold: Amount | None = None,
    ) -> QualityCheck:
        """Add a check to a dataset; it must not have the same one yet.

        Args:
            dataset_id: The dataset, which you must be allowed to write.
            column: The column; only `not_null` works on columns that are not numbers.
            kind: `not_null`: every row has a value. `minimum` and `maximum`: no value is below or above the threshold.
            threshold: Limit of the values; required for `minimum` and `maximum`, and for these only.
        """
        dataset = self.writable(dataset_id)
        if column not in COLUMNS[dataset.subject]:
            raise InvalidArguments(f"column: {dataset.name} has {', '.join(COLUMNS[dataset.subject])}")
        if (kind == "not_null") != (threshold is None):
            raise InvalidArguments("threshold: give it for minimum and maximum, and for these only")
        if kind != "not_null" and column not in MEASURES:
            raise InvalidArguments(f"column: {column} has no numbers")
        same = self.state.quality_checks.first(dataset_id=dataset_id, column=column, kind=kind, threshold=threshold)
        if same is not None:
            raise AlreadyExists(f"{same.id} checks this already")
        return self.state.quality_checks.insert(
            dataset_id=dataset_id, column=column, kind=kind, threshold=threshold, created_by=self.user.email
        )

    @tool(effect="write")
    def run_quality_check(self, check_id: CheckId) -> QualityCheck:
        """Check the current rows of a dataset now and note how many fail; empty values fail `not_null` only.

        Args:
            check_id: The check; you must be allowed to read its dataset.
        """
        check = self.state.quality_checks.get(check_id)
        self.readable(check.dataset_id)
        failing = sum(self._fails(check, row) for row in self.current_rows(check.dataset_id))
        return self.state.quality_checks.update(
            check_id, last_status="failed" if failing else "passed", failing_rows=failing, last_run_at=self.now
        )

    @tool(effect="write")
    def delete_quality_check(self, check_id: CheckId) -> QualityCheck:
        """Delete a check.

        Args:
            check_id: The check; you must be allowed to write its dataset.
        """
        self.writable(self.state.quality_checks.get(check_id).dataset_id)
        return self.state.quality_checks.delete(check_id)

    @tool(effect="read")
    def list_data_flags(
        self,
        dataset_id: DatasetId | None = None,
        row_id: RowId | None = None,
        status: Literal["open", "resolved"] | None = None,
        raised_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DataFlag]:
        """List doubts about rows that satisfy all given filters, latest first.

        Args:
            dataset_id: Only flags in this dataset.
            row_id: Only flags of this row.
            status: Only flags with this status.
            raised_by: Only flags that this colleague raised.
            limit: Most flags to return.
            cursor: `next_cursor` of the previous page.
        """
        if dataset_id is not None:
            self.state.datasets.get(dataset_id)
        if row_id is not None:
            self.state.rows.get(row_id)
        rows = self.state.flags.where(**given(dataset_id=dataset_id, row_id=row_id, status=status, raised_by=raised_by))
        return paginate(sorted(rows, key=lambda row: row.raised_at)[::-1], limit, cursor)

    @tool(effect="write")
    def flag_dataset_row(self, row_id: RowId, issue: Reason) -> DataFlag:
        """Raise a doubt about a current row, for those who may write its dataset.

        Args:
            row_id: The row; you must be allowed to read its dataset, and not have an open flag on it.
            issue: What seems wrong.
        """
        row = self.state.rows.get(row_id)
        self.readable(row.dataset_id)
        if row.status != "current":
            raise FailedPrecondition(f"{row_id} is {row.status}")
        mine = self.state.flags.first(row_id=row_id, status="open", raised_by=self.user.email)
        if mine is not None:
            raise AlreadyExists(f"your flag {mine.id} on {row_id} is still open")
        return self.state.flags.insert(
            dataset_id=row.dataset_id, row_id=row_id, issue=issue, raised_by=self.user.email, raised_at=self.now
        )

    @tool(effect="write")
    def resolve_data_flag(self, flag_id: FlagId, resolution: Reason) -> DataFlag:
        """Resolve an open flag. Who raised it may do this, and who may write the dataset.

        Args:
            flag_id: The flag.
            resolution: What was found or done.
        """
        flag = self.state.flags.get(flag_id)
        if flag.raised_by != self.user.email:
            self.writable(flag.dataset_id)
        if flag.status == "resolved":
            raise FailedPrecondition(f"{flag_id} was resolved already")
        return self.state.flags.update(flag_id, status="resolved", resolution=resolution, resolved_by=self.user.email)

    def _fails(self, check: QualityCheck, row: DatasetRow) -> bool:
        value = getattr(row, check.column)
        if value is None or check.threshold is None:
            return value is None and check.kind == "not_null"
        return bool(value < check.threshold if check.kind == "minimum" else value > check.threshold)
