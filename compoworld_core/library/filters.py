"""What a caller gave: arguments that may be left out, as filters of rows or as fields to change."""

from __future__ import annotations

from typing import Any

from compoworld_core.services.sdk import InvalidArguments


def given(**filters: Any) -> dict[str, Any]:
    """The filters that the caller set; addresses are compared in lower case, as they are stored."""
    return {
        name: value.lower() if name.endswith(("email", "_by")) else value
        for name, value in filters.items()
        if value is not None
    }


def changes(**fields: Any) -> dict[str, Any]:
    """The fields that the caller wants changed.

    Raises:
        InvalidArguments: There are none.
    """
    found = given(**fields)
    if not found:
        raise InvalidArguments(f"give at least one field to change: {', '.join(fields)}")
    return found
