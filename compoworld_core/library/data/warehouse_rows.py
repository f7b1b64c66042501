"""What a data warehouse holds: datasets with their rows, and everything that is known and ruled about them.

All rows lie in one table. A dataset's subject says which columns its rows fill, and which of these tell its rows apart.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from compoworld_core.services.sdk import (
    Country,
    Currency,
    Day,
    Email,
    Entity,
    Field,
    Id,
    Money,
    OrganisationName,
    PersonName,
    ProductName,
    ProjectName,
    Quantity,
    Rule,
    Semantic,
    Sku,
    State,
    Table,
    Tag,
    Test,
    Text,
    Timestamp,
    table,
)

WarehouseUserId = Annotated[str, Id("warehouse_user", prefix="whu")]
DatasetId = Annotated[str, Id("dataset", prefix="dset")]
RowId = Annotated[str, Id("dataset_row", prefix="row")]
ChangeId = Annotated[str, Id("dataset_change", prefix="chg")]
LineageId = Annotated[str, Id("lineage_link", prefix="lin")]
GrantId = Annotated[str, Id("dataset_grant", prefix="grant")]
AccessRequestId = Annotated[str, Id("dataset_access_request", prefix="dar")]
CheckId = Annotated[str, Id("quality_check", prefix="qc")]
FlagId = Annotated[str, Id("data_flag", prefix="flag")]
SavedQueryId = Annotated[str, Id("saved_query", prefix="sq")]
QueryRunId = Annotated[str, Id("query_run", prefix="run")]

DatasetName = Annotated[str, Field(min_length=1, max_length=80, pattern=r"\S"), Semantic("dataset_name")]
QueryName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"\S"), Semantic("title")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=2000), Semantic("text")]
"""A text that says something."""

Amount = Annotated[Money, Field(ge=-1_000_000_000, le=1_000_000_000)]
Units = Annotated[Quantity, Field(le=1_000_000_000)]
Hours = Annotated[int, Field(ge=0, le=100_000), Semantic("hours")]

Subject = Literal["revenue", "sales", "hours"]
Measure = Literal["amount", "units", "hours"]
Column = Literal[
    "period",
    "organisation_name",
    "country",
    "sku",
    "product_name",
    "project_name",
    "employee_email",
    "amount",
    "units",
    "hours",
]
Role = Literal["viewer", "analyst", "engineer", "steward"]
Level = Literal["read", "write"]
AccessLevel = Literal["none", "read", "write", "owner"]
Schedule = Literal["manual", "daily", "weekly", "monthly"]
Cell = str | int | None

MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)


class WarehouseUser(Entity):
    """A colleague with an account in the warehouse."""

    id: WarehouseUserId
    name: PersonName
    email: Email
    role: Role


class Dataset(Entity):
    """A table of the warehouse.

    Attributes:
        access: Everybody reads an open dataset; a restricted one needs a grant.
        refresh_interval_days: Days after a load by which the next one is due.
    """

    id: DatasetId
    name: DatasetName
    subject: Subject
    description: Text
    owner_email: Email
    access: Literal["open", "restricted"] = "open"
    status: Literal["active", "deprecated"] = "active"
    replaced_by_id: DatasetId | None = None
    currency: Currency = "EUR"
    tags: Annotated[tuple[Tag, ...], Field(max_length=20)] = ()
    refresh_interval_days: Annotated[int, Field(ge=1, le=400)] = 31
    last_loaded_at: Timestamp | None = None
    created_on: Day


class DatasetRow(Entity):
    """A row of a dataset; columns that its dataset doesn't have are empty. `period` is the first day of a month.

    A retracted row is kept, but no query sees it.
    """

    id: RowId
    dataset_id: DatasetId
    period: Day
    organisation_name: OrganisationName | None = None
    country: Country | None = None
    sku: Sku | None = None
    product_name: ProductName | None = None
    project_name: ProjectName | None = None
    employee_email: Email | None = None
    amount: Amount | None = None
    units: Units | None = None
    hours: Hours | None = None
    status: Literal["current", "retracted"] = "current"
    loaded_at: Timestamp
    loaded_by: Email


class DatasetChange(Entity):
    """An entry of the audit trail; it never changes. `column`, old and new value are those of a correction."""

    id: ChangeId
    dataset_id: DatasetId
    row_id: RowId
    action: Literal["appended", "corrected", "retracted", "restored"]
    column: Column | None = None
    old_value: Annotated[str, Field(max_length=200)] | None = None
    new_value: Annotated[str, Field(max_length=200)] | None = None
    reason: Text = ""
    changed_by: Email
    changed_at: Timestamp


class LineageLink(Entity):
    """One dataset is computed from another."""

    id: LineageId
    upstream_id: DatasetId
    downstream_id: DatasetId
    transformation: Text = ""


class DatasetGrant(Entity):
    """A right on a dataset, of one person or of everybody with a role. The right to write includes reading."""

    id: GrantId
    dataset_id: DatasetId
    grantee_email: Email | None = None
    role: Role | None = None
    level: Level
    status: Literal["active", "revoked"] = "active"
    expires_on: Day | None = None
    granted_by: Email
    granted_at: Timestamp


class DatasetAccessRequest(Entity):
    """Somebody's request for a right on a dataset, which the dataset's owner decides."""

    id: AccessRequestId
    dataset_id: DatasetId
    requester_email: Email
    level: Level
    justification: Text
    status: Literal["pending", "approved", "declined"] = "pending"
    requested_at: Timestamp
    decided_by: Email | None = None
    decision_note: Text = ""
    grant_id: GrantId | None = None


class QualityCheck(Entity):
    """A promise about a column, and how it did last time.

    Attributes:
        kind: `not_null`: every row has a value. `minimum`, `maximum`: no value is below or above the threshold.
        failing_rows: Rows that broke the promise when it was last checked.
    """

    id: CheckId
    dataset_id: DatasetId
    column: Column
    kind: Literal["not_null", "minimum", "maximum"]
    threshold: Amount | None = None
    last_status: Literal["never_run", "passed", "failed"] = "never_run"
    failing_rows: Quantity = 0
    last_run_at: Timestamp | None = None
    created_by: Email


class DataFlag(Entity):
    """A doubt about a row, until somebody resolves it."""

    id: FlagId
    dataset_id: DatasetId
    row_id: RowId
    issue: Text
    status: Literal["open", "resolved"] = "open"
    raised_by: Email
    raised_at: Timestamp
    resolution: Text = ""
    resolved_by: Email | None = None


# Queries

FilterOp = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "is_null", "not_null"]
FilterValue = Annotated[str, Field(max_length=2000)]


class Filter(Entity):
    """A condition on a column. An empty value fulfils no condition but `is_null`."""

    column: Column = Field(description="Column of the dataset.")
    op: FilterOp = Field(
        default="eq", description="`contains` looks for a part of a text, in any case; all others are exact."
    )
    value: FilterValue | None = Field(
        default=None,
        description="What to compare with, as text: `250.00`, `2026-01-01`, a name. For `in`, several values with `|` "
        "between them; none for `is_null` and `not_null`.",
    )


class Aggregate(Entity):
    """A figure over the rows of a group; its result column is named `sum_amount`, or `count` without a column."""

    function: Literal["count", "sum", "avg", "min", "max"] = Field(
        description="Empty values are left out; `avg` is rounded half up to two decimals."
    )
    column: Column | None = Field(
        default=None, description="Column of the dataset; only `count` works without one, and then counts rows."
    )


class Sort(Entity):
    """An order of result rows; empty values come last."""

    by: str = Field(max_length=60, description="A column of the result, e.g. `period` or `sum_amount`.")
    direction: Literal["asc", "desc"] = Field(default="asc", description="Smallest or largest first.")


Columns = Annotated[tuple[Column, ...], Field(max_length=10)]
Where = Annotated[tuple[Filter, ...], Field(max_length=10)]
Groups = Annotated[tuple[Column, ...], Field(max_length=4)]
Aggregates = Annotated[tuple[Aggregate, ...], Field(max_length=8)]
Sorts = Annotated[tuple[Sort, ...], Field(max_length=4)]
RowLimit = Annotated[int, Field(ge=1, le=200)]


class QueryDefinition(Entity):
    """What to compute from a dataset's rows."""

    columns: Columns = ()
    where: Where = ()
    group_by: Groups = ()
    aggregates: Aggregates = ()
    order_by: Sorts = ()
    limit: RowLimit = 50


class QueryResult(Entity):
    """A table that a query computed; `total_rows` also counts the rows that the limit cut off."""

    dataset_id: DatasetId
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total_rows: Quantity


class SavedQuery(Entity):
    """A query with a name, which the warehouse runs on a schedule and sends to its recipients."""

    id: SavedQueryId
    name: QueryName
    dataset_id: DatasetId
    owner_email: Email
    definition: QueryDefinition
    schedule: Schedule = "manual"
    recipient_emails: Annotated[tuple[Email, ...], Field(max_length=30)] = ()
    next_run_on: Day | None = None
    last_run_at: Timestamp | None = None


class QueryRun(Entity):
    """What a saved query computed at some time; it does not follow the rows afterwards."""

    id: QueryRunId
    saved_query_id: SavedQueryId
    ran_by: Email
    ran_at: Timestamp
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total_rows: Quantity


# Answers of tools


class DatasetDescription(Entity):
    """A dataset's columns and extent; no two current rows share the values of all `key` columns."""

    dataset_id: DatasetId
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    current_rows: Quantity
    retracted_rows: Quantity
    first_period: Day | None
    last_period: Day | None


class Freshness(Entity):
    """Whether a dataset, and what it is computed from, was loaded in time."""

    dataset_id: DatasetId
    last_loaded_at: Timestamp | None
    due_at: Timestamp | None
    is_stale: bool
    stale_upstream_ids: tuple[DatasetId, ...]


class LineageNode(Entity):
    """A dataset at some distance, counted in links."""

    dataset_id: DatasetId
    name: DatasetName
    owner_email: Email
    status: Literal["active", "deprecated"]
    last_loaded_at: Timestamp | None
    distance: Quantity


class Lineage(Entity):
    """What a dataset is computed from, and what is computed from it, nearest first."""

    dataset_id: DatasetId
    upstream: tuple[LineageNode, ...]
    downstream: tuple[LineageNode, ...]


class AccessAnswer(Entity):
    """What a person may do with a dataset, why, and whom to ask for more."""

    dataset_id: DatasetId
    owner_email: Email
    email: Email
    name: PersonName
    role: Role
    level: AccessLevel
    because: str


class WarehouseState(State):
    """Tables of the warehouse."""

    users: Table[WarehouseUser] = table(unique=("email",))
    datasets: Table[Dataset] = table(
        unique=("name",),
        rules=(
            Rule(
                where=(Test(field="replaced_by_id", op="ne"),),
                satisfies=(Test(field="status", value="deprecated"),),
                message="only a deprecated dataset has a replacement",
            ),
        ),
    )
    rows: Table[DatasetRow] = table()
    changes: Table[DatasetChange] = table()
    lineage: Table[LineageLink] = table(
        unique=(("upstream_id", "downstream_id"),),
        rules=(
            Rule(
                satisfies=(Test(field="upstream_id", op="ne", other="downstream_id"),),
                message="a dataset can't be computed from itself",
            ),
        ),
    )
    grants: Table[DatasetGrant] = table(
        rules=(
            Rule(
                where=(Test(field="grantee_email", op="ne"),),
                satisfies=(Test(field="role"),),
                message="a grant is for a person or for a role, not for both",
            ),
            Rule(
                where=(Test(field="grantee_email"),),
                satisfies=(Test(field="role", op="ne"),),
                message="a grant is for a person or for a role",
            ),
        )
    )
    access_requests: Table[DatasetAccessRequest] = table(
        rules=(
            Rule(
                where=(Test(field="status", op="ne", value="pending"),),
                satisfies=(Test(field="decided_by", op="ne"),),
                message="a decided request needs who decided it",
            ),
        )
    )
    quality_checks: Table[QualityCheck] = table(
        rules=(
            Rule(
                where=(Test(field="kind", op="ne", value="not_null"),),
                satisfies=(Test(field="threshold", op="ne"),),
                message="a minimum or maximum needs a threshold",
            ),
        )
    )
    flags: Table[DataFlag] = table(
        rules=(
            Rule(
                where=(Test(field="status", value="resolved"),),
                satisfies=(Test(field="resolved_by", op="ne"),),
                message="a resolved flag needs who resolved it",
            ),
        )
    )
    saved_queries: Table[SavedQuery] = table(unique=("name",))
    query_runs: Table[QueryRun] = table()
