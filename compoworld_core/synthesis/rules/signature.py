"""Signatures: how a tool takes its parameters."""

from __future__ import annotations

from compoworld_core.specs.validation import validator
from compoworld_core.synthesis.rules.model import Operation
from compoworld_core.synthesis.rules.naming import quoted
from compoworld_core.synthesis.rules.reading import Parameter

DEFAULT_LIMIT = 20
_PLAIN = ("str", "int", "float", "bool", "Text", "Title")


def ordered(operation: Operation) -> list[Parameter]:
    """The parameters, those without default first."""
    return sorted(operation.reading.parameters, key=lambda item: default_of(item, operation) is not None)


def annotation(item: Parameter, operation: Operation) -> str:
    """A parameter's annotation."""
    type_ = operation.types[item.name]
    paging = operation.paging
    if item == paging.limit:
        text = f'Annotated[int, Field({", ".join(_limit_bounds(item))}), Semantic("limit")]'
    elif item == paging.cursor:
        text = "Cursor"
    elif item == paging.offset:
        text = "Annotated[int, Field(ge=0)]"
    elif item == paging.page:
        text = f"Annotated[int, Field(ge={page_base(item)})]"
    else:
        text = type_.taken
    is_absent = default_of(item, operation) == "None"
    is_nullable = type_.is_nullable and item not in paging.parameters
    if (is_absent or is_nullable) and text != "Any":
        text += " | None"
    if item.name != item.wire:
        if text.startswith("Annotated[") and text.endswith(")]") and text.count("Annotated[") == 1:
            return f"{text[:-1]}, Field(alias={quoted(item.wire)})]"
        return f"Annotated[{text}, Field(alias={quoted(item.wire)})]"
    return text


def default_of(item: Parameter, operation: Operation) -> str | None:
    """Source of a parameter's default; None where every call must give it."""
    if item.is_required:
        return None
    paging = operation.paging
    if item == paging.limit:
        return str(_clipped(item.default if isinstance(item.default, int | float) else DEFAULT_LIMIT, item))
    if item == paging.offset:
        return str(max(int(item.default), 0)) if isinstance(item.default, int | float) else "0"
    if item == paging.page:
        base = page_base(item)
        return str(max(int(item.default), base)) if isinstance(item.default, int | float) else str(base)
    type_ = operation.types[item.name]
    value = item.default
    if item == paging.cursor or item.name in operation.references or value is None or value == "":
        is_list = type_.kind == "list" and operation.kind == "create" and not type_.taken.startswith("Annotated")
        return "()" if is_list else "None"
    if type_.kind == "list":
        return (
            "()" if value == [] and not type_.taken.startswith("Annotated") and operation.kind == "create" else "None"
        )
    if not _is_legal(item):
        return "None"
    if type_.values:
        return quoted(value) if value in type_.values else "None"
    if type_.kind == "boolean" and isinstance(value, bool):
        return str(value)
    is_plain = type_.taken in _PLAIN or type_.taken.startswith("Annotated[int") or type_.taken == "Quantity"
    if type_.kind == "text" and isinstance(value, str) and is_plain and len(value) < 300:
        return quoted(value)
    if type_.kind == "integer" and isinstance(value, int) and not isinstance(value, bool) and is_plain:
        return str(value)
    if type_.kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return "None"


def page_base(item: Parameter) -> int:
    """Number of the first page."""
    return 0 if item.default == 0 or item.schema.get("minimum") == 0 or "index" in item.words else 1


def _is_legal(item: Parameter) -> bool:
    schema = {key: value for key, value in item.schema.items() if key != "$ref"}
    try:
        return validator(schema).is_valid(item.default)
    except ValueError:
        return False


def _limit_bounds(item: Parameter) -> list[str]:
    high = item.schema.get("maximum")
    return ["ge=1", f"le={int(high)}"] if isinstance(high, int | float) and 1 <= high < 1e9 else ["ge=1"]


def _clipped(value: float, item: Parameter) -> int:
    high = item.schema.get("maximum")
    return max(1, min(int(value), int(high) if isinstance(high, int | float) and high >= 1 else 10**6))
