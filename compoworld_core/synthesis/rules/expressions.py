"""Expressions: a parameter as a row stores it, and the tests of a list's filters."""

from __future__ import annotations

from compoworld_core.synthesis.rules.model import EntityField, Filter, Operation
from compoworld_core.synthesis.rules.naming import quoted
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.signature import default_of
from compoworld_core.synthesis.rules.words import ALL_VALUES


def stored(operation: Operation, item: Parameter, *, is_present: bool = False) -> str:
    """The parameter's value as rows keep it."""
    type_ = operation.types[item.name]
    may_be_none = not is_present and (default_of(item, operation) == "None" or type_.is_nullable)
    text = item.name
    if type_.kind == "json":
        text = f"canonical_json({item.name})"
    elif item.name in operation.references and type_.kind == "integer":
        text = f"str({item.name})"
    elif item.name in operation.references and type_.kind == "list" and type_.item and type_.item.kind == "integer":
        text = f"tuple(str(item) for item in {item.name})"
    return f"None if {item.name} is None else {text}" if may_be_none and text != item.name else text


def alternatives(operation: Operation, item: Filter, row: str) -> list[str]:
    """The ways in which a row passes a filter; the first ones are those in which the filter is not asked for."""
    name = item.parameter.name
    type_ = operation.types[name]
    default = default_of(item.parameter, operation)
    free: list[str] = []
    if default == "None" or type_.is_nullable:
        free.append(f"{name} is None")
    all_value = next((value for value in ALL_VALUES if value in type_.values or value == item.parameter.default), None)
    if all_value is not None:
        free.append(f"{name} == {quoted(all_value)}")
    if item.test == "hides":
        return [*free, name, f"{row}.{item.field} != {quoted(item.value)}"]
    if item.test == "words":
        texts = []
        for text in operation.entity.texts():
            texts.append(f"*{row}.{text.name}" if text.type.kind == "list" else f"{row}.{text.name}")
        return [*free, f"_matches({', '.join([name, *texts])})"]
    if item.test == "key":
        return [*free, f"{row}.id == {stored(operation, item.parameter, is_present=True)}"]
    if item.test == "among" and item.field == "id":
        return [*free, f"{row}.id in {stored(operation, item.parameter, is_present=True)}"]
    field = operation.entity.fields[item.field]
    if default == "False" and item.test == "equal":
        return [f"not {name}", f"{row}.{item.field}"]
    return [*free, _test(operation, item, field, f"{row}.{item.field}")]


def is_strict(item: Filter) -> bool:
    """Whether a bound leaves out the rows that lie on it."""
    return bool({item.parameter.words[0], item.parameter.words[-1]} & {"after", "before", "above", "below"})


def _test(operation: Operation, item: Filter, field: EntityField, kept: str) -> str:
    name = item.parameter.name
    type_ = operation.types[name]
    value = stored(operation, item.parameter, is_present=True)
    if item.test == "member":
        return f"{value} in {kept}" if not field.is_optional else f"({kept} is not None and {value} in {kept})"
    if item.test == "overlap":
        test = f"any(item in {kept} for item in {value})"
        return test if not field.is_optional else f"({kept} is not None and {test})"
    if item.test == "among":
        return f"{kept} in {value}"
    if field.type.kind == "moment" and type_.kind == "day":
        test_value, test_kept = value, f"{kept}.date()"
    elif field.type.kind == "day" and type_.kind == "moment":
        test_value, test_kept = f"{value}.date()", kept
    else:
        test_value, test_kept = value, kept
    if item.test == "equal":
        test = f"{test_kept} == {test_value}"
        return test if test_kept == kept or not field.is_optional else f"({kept} is not None and {test})"
    sign = (">" if item.test == "at_least" else "<") + ("" if is_strict(item) else "=")
    if {field.type.kind, type_.kind} == {"number", "decimal"}:
        test_kept, test_value = (
            (f"float({test_kept})", test_value) if field.type.kind == "decimal" else (test_kept, f"float({value})")
        )
    test = f"{test_kept} {sign} {test_value}"
    return f"({kept} is not None and {test})" if field.is_optional else test
