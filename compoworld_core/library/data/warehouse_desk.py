"""What the warehouse's tools share: who may read and write what, and how rows are found."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, get_args

from compoworld_core.library.data.warehouse_query import KEYS
from compoworld_core.library.data.warehouse_rows import (
    AccessLevel,
    Dataset,
    DatasetRow,
    Level,
    WarehouseState,
    WarehouseUser,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    Service,
)

LEVELS: Final[tuple[AccessLevel, ...]] = get_args(AccessLevel)
"""What a person may do with a dataset; each level includes those before it."""


class Desk(Service[WarehouseState]):
    """Base of the warehouse's tools."""

    def colleague(self, email: str) -> WarehouseUser:
        """The person with an account in the warehouse."""
        found = self.state.users.first(email=email.lower())
        if found is None:
            raise NotFound(f"no warehouse user has the e-mail address {email.lower()!r}")
        return found

    def access_of(self, dataset: Dataset, email: str) -> tuple[AccessLevel, str]:
        """What a person may do with a dataset, and why: the strongest right counts."""
        user = self.state.users.first(email=email)
        found: list[tuple[AccessLevel, str]] = [("none", "the dataset is restricted and no grant covers the person")]
        if dataset.access == "open":
            found.append(("read", "the dataset is open"))
        for grant in self.state.grants.where(dataset_id=dataset.id, status="active"):
            covers = grant.grantee_email == email or (user is not None and grant.role == user.role)
            if covers and (grant.expires_on is None or grant.expires_on >= self.today):
                found.append((grant.level, f"grant {grant.id}"))
        if dataset.owner_email == email:
            found.append(("owner", "the person owns the dataset"))
        return max(found, key=lambda item: LEVELS.index(item[0]))

    def allows(self, dataset: Dataset, email: str, level: Level) -> bool:
        """Whether a person may read or write a dataset."""
        return LEVELS.index(self.access_of(dataset, email)[0]) >= LEVELS.index(level)

    def readable(self, dataset_id: str) -> Dataset:
        """The dataset, which the user must be allowed to read.

        Raises:
            PermissionDenied: The user isn't.
        """
        dataset = self.state.datasets.get(dataset_id)
        if not self.allows(dataset, self.user.email, "read"):
            raise PermissionDenied(f"{dataset.name} is restricted; ask its owner, {dataset.owner_email}, for access")
        return dataset

    def writable(self, dataset_id: str) -> Dataset:
        """The dataset, which must be active and which the user must be allowed to write.

        Raises:
            PermissionDenied: The user isn't.
        """
        dataset = self.readable(dataset_id)
        if not self.allows(dataset, self.user.email, "write"):
            raise PermissionDenied(f"you may only read {dataset.name}; its owner is {dataset.owner_email}")
        return self.active(dataset)

    def owned(self, dataset_id: str) -> Dataset:
        """The dataset, which must be the user's own.

        Raises:
            PermissionDenied: It isn't.
        """
        dataset = self.state.datasets.get(dataset_id)
        if dataset.owner_email != self.user.email:
            raise PermissionDenied(f"only the owner of {dataset.name}, {dataset.owner_email}, may do this")
        return dataset

    def active(self, dataset: Dataset) -> Dataset:
        """The dataset, once it is known not to be deprecated."""
        if dataset.status == "deprecated":
            instead = f"; use {dataset.replaced_by_id}" if dataset.replaced_by_id else ""
            raise FailedPrecondition(f"{dataset.name} is deprecated{instead}")
        return dataset

    def current_rows(self, dataset_id: str) -> tuple[DatasetRow, ...]:
        """The dataset's rows that queries see, in the order of their loading."""
        return self.state.rows.where(dataset_id=dataset_id, status="current")

    def require_free_key(self, dataset: Dataset, values: dict[str, Any]) -> None:
        """Refuse a second current row with the same key.

        Raises:
            AlreadyExists: There is one.
        """
        key = {name: values[name] for name in KEYS[dataset.subject]}
        taken = self.state.rows.first(dataset_id=dataset.id, status="current", **key)
        if taken is not None:
            shown = ", ".join(f"{name} {str(value)!r}" for name, value in key.items())
            raise AlreadyExists(f"{dataset.name} has a current row with {shown}: {taken.id}; correct or retract it")

    def is_stale(self, dataset: Dataset) -> bool:
        """Whether the next load is overdue; a dataset that was never loaded is."""
        loaded = dataset.last_loaded_at
        return loaded is None or self.now - loaded > timedelta(days=dataset.refresh_interval_days)
