"""Methods: the source of each tool."""

from __future__ import annotations

from compoworld_core.synthesis.rules.expressions import stored
from compoworld_core.synthesis.rules.layout import bracketed, paragraph
from compoworld_core.synthesis.rules.listings import write_count, write_list
from compoworld_core.synthesis.rules.model import EntityModel, Operation, Setting
from compoworld_core.synthesis.rules.naming import method_name, prose, quoted
from compoworld_core.synthesis.rules.signature import annotation, default_of, ordered

BODY = 8


class MethodWriter:
    """Writes the methods of one service; notes which helpers they call."""

    def __init__(self) -> None:
        self.helpers: set[str] = set()
        self._names: set[str] = set()

    def write(self, operation: Operation) -> list[str]:
        """The lines of a tool's method."""
        tool = operation.reading.tool
        name = method_name(tool.name)
        while name in self._names:
            name += "_"
        self._names.add(name)
        effect = "write" if operation.is_write else "read"
        renamed = "" if name == tool.name else f", name={quoted(tool.name)}"
        body = getattr(self, f"_{operation.kind}")(operation)
        return [
            f'    @tool(effect="{effect}"{renamed})',
            *self._signature(operation, name),
            *_docstring(operation),
            *body,
        ]

    def _signature(self, operation: Operation, name: str) -> list[str]:
        parts = ["self"]
        for item in ordered(operation):
            default = default_of(item, operation)
            parts.append(
                f"{item.name}: {annotation(item, operation)}" + (f" = {default}" if default is not None else "")
            )
        return bracketed(f"def {name}(", parts, f") -> {_result(operation)}:", 4)

    # Reading

    def _get(self, operation: Operation) -> list[str]:
        row = _variable(operation)
        if operation.key is not None and not operation.match:
            lines, key = self._key(operation)
            return [*lines, f"        return {_table(operation)}.get({key})"]
        if operation.is_latest:
            return _latest(operation)
        return [*self._locate(operation, row), f"        return {row}"]

    def _list(self, operation: Operation) -> list[str]:
        self._note_search(operation)
        return write_list(operation, _variable(operation))

    def _count(self, operation: Operation) -> list[str]:
        self._note_search(operation)
        return write_count(operation, _variable(operation))

    def _note_search(self, operation: Operation) -> None:
        if any(item.test == "words" for item in operation.filters):
            self.helpers.add("_matches")

    # Writing

    def _create(self, operation: Operation) -> list[str]:
        lines = self._check_parent(operation)
        direct: list[str] = []
        given: list[str] = []
        if operation.key is not None:
            direct.append(f"id={stored(operation, operation.key)}")
        set_fields = {item.field for item in operation.settings}
        for item in operation.settings:
            field = operation.entity.fields[item.field]
            is_absent = default_of(item.parameter, operation) == "None"
            text = f"{item.field}={stored(operation, item.parameter)}"
            (given if is_absent and not field.is_optional else direct).append(text)
        for field in operation.entity.fields.values():
            if field.automatic and field.name not in set_fields:
                direct.append(f"{field.name}={field.automatic}")
        arguments = [*direct, *self._given(given)]
        return [*lines, *bracketed(f"return {_table(operation)}.insert(", arguments, ")", BODY)]

    def _update(self, operation: Operation) -> list[str]:
        return self._changed(operation, [])

    def _transition(self, operation: Operation) -> list[str]:
        if operation.flag is not None:
            field, value = operation.flag
            return self._changed(operation, [f"{field}={value}"])
        return self._changed(operation, [f"{operation.entity.status}={quoted(operation.target)}"])

    def _delete(self, operation: Operation) -> list[str]:
        row = _variable(operation)
        checks = self._check_states(operation, row)
        if operation.key is not None and not operation.match and not checks:
            lines, key = self._key(operation)
            return [*lines, f"        return {_table(operation)}.delete({key})"]
        return [*self._locate(operation, row), *checks, f"        return {_table(operation)}.delete({row}.id)"]

    def _changed(self, operation: Operation, fixed: list[str]) -> list[str]:
        row = _variable(operation)
        direct: list[str] = list(fixed)
        given: list[str] = []
        for item in operation.settings:
            text = f"{item.field}={stored(operation, item.parameter)}"
            (given if default_of(item.parameter, operation) == "None" else direct).append(text)
        checks = self._check_states(operation, row)
        arguments = [*direct, *self._given(given)]
        if operation.key is not None and not operation.match and not checks:
            lines, key = self._key(operation)
            return [*lines, *bracketed(f"return {_table(operation)}.update(", [key, *arguments], ")", BODY)]
        return [
            *self._locate(operation, row),
            *checks,
            *bracketed(f"return {_table(operation)}.update(", [f"{row}.id", *arguments], ")", BODY),
        ]

    def _given(self, parts: list[str]) -> list[str]:
        if not parts:
            return []
        self.helpers.add("_given")
        return [f"**_given({', '.join(parts)})"]

    # Pieces

    def _key(self, operation: Operation) -> tuple[list[str], str]:
        key = operation.key
        assert key is not None
        lines = []
        if default_of(key, operation) == "None":
            lines = [f"        if {key.name} is None:", f'            raise InvalidArguments("give {key.wire}")']
        return lines, stored(operation, key, is_present=True)

    def _locate(self, operation: Operation, row: str) -> list[str]:
        """Statements that bind `row` to the row which the tool is about."""
        table, label = _table(operation), operation.entity.label
        if operation.key is not None:
            lines, key = self._key(operation)
            lines.append(f"        {row} = {table}.get({key})")
            for item in operation.match:
                lines += [
                    f"        if {row}.{item.field} != {stored(operation, item.parameter)}:",
                    f'            raise NotFound(f"no {label} {{{operation.key.name}!r}} with {_said(item)}")',
                ]
            return lines
        pairs = [f"{item.field}={stored(operation, item.parameter)}" for item in operation.match]
        said = ", ".join(_said(item) for item in operation.match)
        return [
            *bracketed(f"{row} = {table}.first(", pairs, ")", BODY),
            f"        if {row} is None:",
            *bracketed("raise NotFound(", [f'f"no {label} with {said}"'], ")", 12),
        ]

    def _check_states(self, operation: Operation, row: str) -> list[str]:
        entity = operation.entity
        lines: list[str] = []
        if operation.flag is not None:
            field, value = operation.flag
            test = f"{row}.{field}" if value else f"not {row}.{field}"
            word = field.removeprefix("is_").replace("_", " ")
            said = f"is already {word}" if value else f"is not {word}"
            return [
                f"        if {test}:",
                f'            raise FailedPrecondition(f"{entity.label} {{{row}.id}} {said}")',
            ]
        status = f"{row}.{entity.status}"
        chosen = next((item.parameter for item in operation.settings if item.field == entity.status), None)
        if operation.kind == "update" and chosen is not None and chosen.is_required:
            lines += _refusal(f"{status} == {chosen.name}", f"{entity.label} {{{row}.id}} is already {{{chosen.name}}}")
        return [*lines, *_state_checks(operation, entity, row)]

    def _check_parent(self, operation: Operation) -> list[str]:
        parent = operation.parent
        if parent is None or not (operation.requires or operation.forbids):
            return []
        for item in operation.settings:
            if operation.references.get(item.parameter.name) is parent and item.parameter.is_required:
                row = (
                    parent.noun[-1]
                    if parent.noun[-1] not in {part.name for part in operation.reading.parameters}
                    else "row"
                )
                key = stored(operation, item.parameter)
                return [f"        {row} = self.state.{parent.table}.get({key})", *_state_checks(operation, parent, row)]
        return []


def _latest(operation: Operation) -> list[str]:
    pairs = [f"{item.field}={stored(operation, item.parameter)}" for item in operation.match]
    said = ", ".join(_said(item) for item in operation.match)
    return [
        *bracketed(f"rows = {_table(operation)}.where(", pairs, ")", BODY),
        "        if not rows:",
        *bracketed("raise NotFound(", [f'f"no {operation.entity.label} with {said}"'], ")", 12),
        "        return rows[-1]",
    ]


def _state_checks(operation: Operation, entity: EntityModel, row: str) -> list[str]:
    status, label = f"{row}.{entity.status}", entity.label
    if operation.requires:
        wanted = operation.requires
        test = (
            f"!= {quoted(wanted[0])}" if len(wanted) == 1 else f"not in ({', '.join(quoted(item) for item in wanted)})"
        )
        said = " or ".join(wanted)
        return _refusal(f"{status} {test}", f"{label} {{{row}.id}} is {{{status}}}, not {said}")
    refused = [*([operation.target] if operation.target else []), *operation.forbids]
    if not refused:
        return []
    test = f"== {quoted(refused[0])}" if len(refused) == 1 else f"in ({', '.join(quoted(item) for item in refused)})"
    said = f"already {refused[0]}" if len(refused) == 1 and operation.target else f"{{{status}}}"
    return _refusal(f"{status} {test}", f"{label} {{{row}.id}} is {said}")


def _refusal(test: str, message: str) -> list[str]:
    return [f"        if {test}:", *bracketed("raise FailedPrecondition(", [f'f"{message}"'], ")", 12)]


def _said(item: Setting) -> str:
    return f"{item.field.replace('_', ' ').strip()} {{{item.parameter.name}!r}}"


def _table(operation: Operation) -> str:
    return f"self.state.{operation.entity.table}"


def _variable(operation: Operation) -> str:
    """A name for a row that no parameter has."""
    taken = {item.name for item in operation.reading.parameters}
    for name in (operation.entity.noun[-1], operation.entity.name, "row", "record", "one"):
        if name == "item":
            continue
        if name.isidentifier() and name not in taken and method_name(name) == name:
            return name
    return "found"


def _result(operation: Operation) -> str:
    entity = operation.entity.class_name
    if operation.kind == "count":
        return "dict[str, int]" if operation.group else "int"
    if operation.kind == "list":
        return f"Page[{entity}]" if operation.paging.parameters else f"tuple[{entity}, ...]"
    return entity


def _docstring(operation: Operation) -> list[str]:
    first = prose(operation.reading.tool.description or operation.reading.tool.name, 108)
    documented = [(item, prose(item.description, 160)) for item in ordered(operation) if item.description.strip()]
    if not documented:
        return [f'        """{first}"""']
    lines = [f'        """{first}', "", "        Args:"]
    for item, text in documented:
        lines += paragraph(f"{item.name}: {text}", 12)
    return [*lines, '        """']
