"""The catalogue: which datasets there are, whose they are, how fresh, and what they are computed from."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from compoworld_core.library.data.warehouse_desk import Desk
from compoworld_core.library.data.warehouse_query import COLUMNS, KEYS
from compoworld_core.library.data.warehouse_rows import (
    Dataset,
    DatasetDescription,
    DatasetId,
    DatasetName,
    Freshness,
    Lineage,
    LineageId,
    LineageLink,
    LineageNode,
    Reason,
    Subject,
    WarehouseUser,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Email,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    Page,
    Query,
    Tag,
    Text,
    paginate,
    tool,
)

RefreshDays = Annotated[int, Field(ge=1, le=400)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=20)]


class Catalogue(Desk):
    """Tools on colleagues, datasets and lineage."""

    @tool(effect="read")
    def list_warehouse_users(
        self, name: Query | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[WarehouseUser]:
        """List the colleagues who use the warehouse, with their roles, in alphabetical order of their names.

        Args:
            name: Part of the person's name, in any case.
            limit: Most colleagues to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.users.where(lambda row: part in row.name.casefold())
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def list_datasets(
        self,
        name: Query | None = None,
        subject: Subject | None = None,
        owner_email: Email | None = None,
        access: Literal["open", "restricted"] | None = None,
        tag: Tag | None = None,
        stale_only: bool = False,
        include_deprecated: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Dataset]:
        """List datasets that satisfy all given filters, in alphabetical order. Everybody sees the whole catalogue.

        Args:
            name: Part of the dataset's name or description, in any case.
            subject: Only datasets about this: `revenue` by organisation, `sales` by product, `hours` by project.
            owner_email: Only datasets of this colleague.
            access: Only open or only restricted datasets.
            tag: Only datasets with exactly this tag.
            stale_only: Whether to leave out datasets that were loaded in time.
            include_deprecated: Whether to return deprecated datasets too.
            limit: Most datasets to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.datasets.where(
            lambda row: (
                (part in row.name.casefold() or part in row.description.casefold())
                and (tag is None or tag in row.tags)
                and (include_deprecated or row.status == "active")
                and (not stale_only or self.is_stale(row))
            ),
            **given(subject=subject, owner_email=owner_email, access=access),
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_dataset(self, dataset_id: DatasetId) -> Dataset:
        """Get a dataset's entry in the catalogue.

        Args:
            dataset_id: The dataset.
        """
        return self.state.datasets.get(dataset_id)

    @tool(effect="read")
    def describe_dataset(self, dataset_id: DatasetId) -> DatasetDescription:
        """Get a dataset's columns, its key, the number of its rows and the months that they cover.

        Args:
            dataset_id: The dataset.
        """
        dataset = self.state.datasets.get(dataset_id)
        current = self.current_rows(dataset_id)
        periods = [row.period for row in current]
        return DatasetDescription(
            dataset_id=dataset_id,
            columns=COLUMNS[dataset.subject],
            key=KEYS[dataset.subject],
            current_rows=len(current),
            retracted_rows=len(self.state.rows.where(dataset_id=dataset_id, status="retracted")),
            first_period=min(periods, default=None),
            last_period=max(periods, default=None),
        )

    @tool(effect="write")
    def create_dataset(
        self,
        name: DatasetName,
        subject: Subject,
        description: Reason,
        access: Literal["open", "restricted"] = "restricted",
        tags: Tags = (),
        refresh_interval_days: RefreshDays = 31,
    ) -> Dataset:
        """Create an empty dataset that you own; its name must not be taken.

        Args:
            name: Name, e.g. "revenue_net_monthly".
            subject: What its rows are about, which settles its columns: `revenue` by organisation, `sales` by product,
                `hours` by project and employee.
            description: What the figures mean.
            access: Whether everybody may read it, or only who has a grant.
            tags: Words to find it by.
            refresh_interval_days: Days after a load by which the next one is due.
        """
        return self.state.datasets.insert(
            name=name,
            subject=subject,
            description=description,
            owner_email=self.user.email,
            access=access,
            tags=tuple(dict.fromkeys(tags)),
            refresh_interval_days=refresh_interval_days,
            created_on=self.today,
        )

    @tool(effect="write")
    def update_dataset(
        self,
        dataset_id: DatasetId,
        description: Reason | None = None,
        owner_email: Email | None = None,
        access: Literal["open", "restricted"] | None = None,
        tags: Tags | None = None,
        refresh_interval_days: RefreshDays | None = None,
    ) -> Dataset:
        """Change the given fields of an active dataset. Only its owner may do this.

        Args:
            dataset_id: The dataset.
            description: What the figures mean.
            owner_email: Colleague who owns it from now on.
            access: Whether everybody may read it, or only who has a grant.
            tags: All its tags from now on.
            refresh_interval_days: Days after a load by which the next one is due.
        """
        self.active(self.owned(dataset_id))
        fields = changes(
            description=description,
            owner_email=None if owner_email is None else self.colleague(owner_email).email,
            access=access,
            tags=None if tags is None else tuple(dict.fromkeys(tags)),
            refresh_interval_days=refresh_interval_days,
        )
        return self.state.datasets.update(dataset_id, **fields)

    @tool(effect="write")
    def deprecate_dataset(self, dataset_id: DatasetId, replaced_by_id: DatasetId | None = None) -> Dataset:
        """Deprecate a dataset for good: it can still be read, but not be written. Only its owner may do this.

        No saved query may run on it on a schedule, and no active dataset may be computed directly from it.

        Args:
            dataset_id: The dataset.
            replaced_by_id: Active dataset about the same subject to use instead.
        """
        dataset = self.active(self.owned(dataset_id))
        if replaced_by_id is not None:
            other = self.active(self.state.datasets.get(replaced_by_id))
            if other.id == dataset_id or other.subject != dataset.subject:
                raise InvalidArguments(f"replaced_by_id: give another dataset about {dataset.subject}")
        blocking = [row.id for row in self.state.saved_queries.where(dataset_id=dataset_id) if row.schedule != "manual"]
        for link in self.state.lineage.where(upstream_id=dataset_id):
            if self.state.datasets.get(link.downstream_id).status == "active":
                blocking.append(link.downstream_id)
        if blocking:
            raise FailedPrecondition(f"{dataset.name} is still used by {', '.join(blocking)}")
        return self.state.datasets.update(dataset_id, status="deprecated", replaced_by_id=replaced_by_id)

    # Freshness

    @tool(effect="read")
    def get_dataset_freshness(self, dataset_id: DatasetId) -> Freshness:
        """Say when a dataset was loaded, when the next load is due, and which of its upstream datasets are overdue.

        Args:
            dataset_id: The dataset.
        """
        dataset = self.state.datasets.get(dataset_id)
        loaded = dataset.last_loaded_at
        upstream = [self.state.datasets.get(node.dataset_id) for node in self._reach(dataset_id, "upstream")]
        return Freshness(
            dataset_id=dataset_id,
            last_loaded_at=loaded,
            due_at=None if loaded is None else loaded + timedelta(days=dataset.refresh_interval_days),
            is_stale=self.is_stale(dataset),
            stale_upstream_ids=tuple(row.id for row in upstream if self.is_stale(row)),
        )

    @tool(effect="write")
    def record_dataset_refresh(self, dataset_id: DatasetId) -> Dataset:
        """Note that a dataset was loaded now. Every dataset that it is directly computed from must be fresh.

        Args:
            dataset_id: The dataset, which you must be allowed to write.
        """
        self.writable(dataset_id)
        for link in self.state.lineage.where(downstream_id=dataset_id):
            upstream = self.state.datasets.get(link.upstream_id)
            if self.is_stale(upstream):
                raise FailedPrecondition(f"{upstream.name} ({upstream.id}), from which it is computed, is overdue")
        return self.state.datasets.update(dataset_id, last_loaded_at=self.now)

    # Lineage

    @tool(effect="read")
    def list_lineage_links(
        self,
        upstream_id: DatasetId | None = None,
        downstream_id: DatasetId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[LineageLink]:
        """List which dataset is directly computed from which, oldest link first.

        Args:
            upstream_id: Only links from this dataset.
            downstream_id: Only links to this dataset.
            limit: Most links to return.
            cursor: `next_cursor` of the previous page.
        """
        for dataset_id in (upstream_id, downstream_id):
            if dataset_id is not None:
                self.state.datasets.get(dataset_id)
        rows = self.state.lineage.where(**given(upstream_id=upstream_id, downstream_id=downstream_id))
        return paginate(rows, limit, cursor)

    @tool(effect="read")
    def get_dataset_lineage(self, dataset_id: DatasetId) -> Lineage:
        """Get all datasets that a dataset is computed from, directly or not, and all that are computed from it.

        Args:
            dataset_id: The dataset.
        """
        self.state.datasets.get(dataset_id)
        return Lineage(
            dataset_id=dataset_id,
            upstream=self._reach(dataset_id, "upstream"),
            downstream=self._reach(dataset_id, "downstream"),
        )

    @tool(effect="write")
    def add_lineage_link(
        self, upstream_id: DatasetId, downstream_id: DatasetId, transformation: Text = ""
    ) -> LineageLink:
        """Note that a dataset is computed from another one. Links must not go round in a circle.

        Args:
            upstream_id: The source, which you must be allowed to read.
            downstream_id: The dataset that is computed from it, which you must be allowed to write.
            transformation: How it is computed.
        """
        self.readable(upstream_id)
        self.writable(downstream_id)
        if self.state.lineage.first(upstream_id=upstream_id, downstream_id=downstream_id) is not None:
            raise AlreadyExists(f"{downstream_id} is linked to {upstream_id} already")
        if upstream_id == downstream_id or any(
            node.dataset_id == upstream_id for node in self._reach(downstream_id, "downstream")
        ):
            raise FailedPrecondition(f"{upstream_id} is computed from {downstream_id}; links must not form a circle")
        return self.state.lineage.insert(
            upstream_id=upstream_id, downstream_id=downstream_id, transformation=transformation
        )

    @tool(effect="write")
    def remove_lineage_link(self, link_id: LineageId) -> LineageLink:
        """Remove a link between two datasets.

        Args:
            link_id: The link; you must be allowed to write the dataset that is computed.
        """
        link = self.state.lineage.get(link_id)
        self.writable(link.downstream_id)
        return self.state.lineage.delete(link_id)

    def _reach(self, dataset_id: str, direction: Literal["upstream", "downstream"]) -> tuple[LineageNode, ...]:
        """Datasets that links lead to, nearest first; each once, also where links form a circle."""
        distance = {dataset_id: 0}
        queue = [dataset_id]
        for here in queue:
            links = (
                self.state.lineage.where(downstream_id=here)
                if direction == "upstream"
                else self.state.lineage.where(upstream_id=here)
            )
            for link in links:
                there = link.upstream_id if direction == "upstream" else link.downstream_id
                if there not in distance:
                    distance[there] = distance[here] + 1
                    queue.append(there)
        found = [self.state.datasets.get(key) for key in queue[1:]]
        return tuple(
            LineageNode(
                dataset_id=row.id,
                name=row.name,
                owner_email=row.owner_email,
                status=row.status,
                last_loaded_at=row.last_loaded_at,
                distance=distance[row.id],
            )
            for row in found
        )
