"""Everything that a service module needs, and the only project module that an untrusted one may import."""

from pydantic import Field

from compoworld_core.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArguments,
    LimitExceeded,
    NotFound,
    PermissionDenied,
)
from compoworld_core.services.conditions import Rule, Test
from compoworld_core.services.entity import Entity, Page
from compoworld_core.services.paging import paginate
from compoworld_core.services.semantics import (
    City,
    Country,
    Currency,
    Cursor,
    Day,
    Email,
    Id,
    Limit,
    Money,
    OrganisationName,
    Percent,
    PersonName,
    Phone,
    ProductName,
    ProjectName,
    Quantity,
    Query,
    Semantic,
    Sku,
    Tag,
    Text,
    Timestamp,
    Title,
    Url,
    Username,
)
from compoworld_core.services.service import Service
from compoworld_core.services.state import State, table
from compoworld_core.services.table import Table
from compoworld_core.services.tool import tool
from compoworld_core.storage.digest import canonical_json

__all__ = [
    "AlreadyExists",
    "City",
    "Country",
    "Currency",
    "Cursor",
    "Day",
    "Email",
    "Entity",
    "FailedPrecondition",
    "Field",
    "Id",
    "InvalidArguments",
    "Limit",
    "LimitExceeded",
    "Money",
    "NotFound",
    "OrganisationName",
    "Page",
    "Percent",
    "PermissionDenied",
    "PersonName",
    "Phone",
    "ProductName",
    "ProjectName",
    "Quantity",
    "Query",
    "Rule",
    "Semantic",
    "Service",
    "Sku",
    "State",
    "Table",
    "Tag",
    "Test",
    "Text",
    "Timestamp",
    "Title",
    "Url",
    "Username",
    "canonical_json",
    "paginate",
    "table",
    "tool",
]
