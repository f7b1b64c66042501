"""From an author's source to a package: what the code declares, joined with what the spec promised.

The source is read and run by a guest only. What comes back is data about the service, as untrusted as the code, so it
is kept to what the parent can hold: schemas that compile without fetching anything, rows that can be drawn, tools that
the spec knows. An agent sees the spec's own schemas; the code adds what values mean, and what a call changes.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import ValidationError

from compoworld_core.errors import CompoWorldError, ServiceBug
from compoworld_core.services import seeding
from compoworld_core.services.host.reply import CodeRefused
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import describe_validation_error
from compoworld_core.services.schema import ServiceSchema, TableSchema, semantic_of
from compoworld_core.services.semantics import SEMANTIC_KEY
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import JsonObject, ServiceSpec, ToolSpec
from compoworld_core.specs.validation import validator

BuildReason = Literal["disallowed", "definition", "service", "host", "tools", "schema"]

MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 40
MAX_LEAST_CHARS: Final = 2000
"""What exported schemas may hold, so that checking and drawing rows stays cheap here."""


class BuildError(CompoWorldError):
    """A source can't become a package.

    Attributes:
        reason: `disallowed` (not on the allowlist), `definition` (it fails when defined), `service` (not exactly one
            complete service), `host` (it did not survive its definition), `tools` (other tools or parameters than the
            spec's) or `schema` (its tables can't be held).
    """

    def __init__(self, reason: BuildReason, message: str) -> None:
        super().__init__(message)
        self.reason: BuildReason = reason
        self.message = message


def build_package(
    spec: ServiceSpec,
    source: str,
    author: str,
    tests: str,
    pool: HostPool,
    *,
    modelled: Collection[str] = (),
    challenges: str = "",
    provenance: Mapping[str, str] | None = None,
) -> ServicePackage:
    """Package a service module that was written for a spec.

    Args:
        spec: What the service has to promise.
        source: The module.
        author: Who wrote it.
        tests: The author's self-tests, as data.
        pool: Where the module is run to see what it declares.
        modelled: Tools of the spec that it leaves to a world model; those with schemas too costly to check are dropped.
        challenges: Tests by somebody else, as data.
        provenance: How it was written.

    Returns:
        The package; its spec has the implemented tools only.

    Raises:
        BuildError: The source can't become a package.
        IsolationError: Untrusted code can't be confined here.
    """
    tables, exported = _export(source, pool)
    _check_tables(tables)
    _check_tools(exported)
    implemented = {tool.name for tool in exported.tools}
    return ServicePackage(
        name=spec.name,
        origin="synthesised",
        author=author,
        code={"service.py": source},
        spec=join(spec, exported),
        tables=tables,
        tests=tests,
        challenges=challenges,
        provenance=dict(provenance or {}),
        modelled=tuple(
            tool
            for tool in spec.tools
            if tool.name in modelled and tool.name not in implemented and _can_be_modelled(tool)
        ),
    )


def _can_be_modelled(tool: ToolSpec) -> bool:
    return not any(True for schema in (tool.parameters, tool.returns or {}) for _ in _unholdable(schema))


def join(spec: ServiceSpec, exported: ServiceSpec) -> ServiceSpec:
    """The spec less the tools that are not implemented, with meanings and effects as the code declares them.

    Raises:
        BuildError: The code has tools or parameters that the spec doesn't have, or lacks parameters.
    """
    implemented = {tool.name: tool for tool in exported.tools}
    if unknown := implemented.keys() - {tool.name for tool in spec.tools}:
        raise BuildError("tools", f"the spec has no tool {', '.join(sorted(unknown))}")
    tools = (_joined(tool, implemented[tool.name]) for tool in spec.tools if tool.name in implemented)
    return ServiceSpec.model_validate({**dict(spec), "tools": tuple(tools)})


def _joined(promised: ToolSpec, exported: ToolSpec) -> ToolSpec:
    wanted, found = (set(item.properties) for item in (promised, exported))
    if wanted != found:
        raise BuildError(
            "tools",
            f"{promised.name} has other parameters than the spec: missing {sorted(wanted - found)}, "
            f"too many {sorted(found - wanted)}",
        )
    returns = exported.returns
    if promised.returns is not None:
        returns = annotate(promised.returns, exported.returns or {})
    return ToolSpec(
        name=promised.name,
        description=promised.description,
        parameters=annotate(promised.parameters, exported.parameters),
        returns=returns,
        effect=exported.effect,
        original_name=promised.original_name,
        repairs=promised.repairs,
    )


def annotate(schema: JsonObject, exported: JsonObject) -> JsonObject:
    """The schema with the semantic words that another schema of the same values has."""
    annotated: JsonObject = _annotate(schema, exported, exported, MAX_DEPTH)
    return annotated


def _annotate(schema: Any, exported: Any, root: JsonObject, depth: int) -> Any:
    exported = _resolved(exported, root)
    if not isinstance(schema, dict) or not isinstance(exported, dict) or depth == 0:
        return schema
    marked = dict(schema)
    if isinstance(properties := schema.get("properties"), dict):
        known = exported.get("properties", {})
        marked["properties"] = {
            name: _annotate(part, known.get(name), root, depth - 1) for name, part in properties.items()
        }
    if isinstance(schema.get("items"), dict) and "items" in exported:
        marked["items"] = _annotate(schema["items"], exported["items"], root, depth - 1)
    word = semantic_of(exported)
    if word is not None and semantic_of(marked) is None:
        marked[SEMANTIC_KEY] = word
    return marked


def _resolved(schema: Any, root: JsonObject) -> Any:
    """The schema behind a reference to a definition, or behind the only branch that isn't null."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, dict):
            return schema
        branches = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
        if len(branches) == 1:
            schema = branches[0]
        elif isinstance(name := schema.get("$ref"), str):
            schema = root.get("$defs", {}).get(name.removeprefix("#/$defs/"))
        else:
            return schema
    return None


# What the code declares


def _export(source: str, pool: HostPool) -> tuple[ServiceSchema, ServiceSpec]:
    host = pool.host({"service.py": source})
    try:
        said = host.export()
        return ServiceSchema.model_validate(said.get("tables")), ServiceSpec.model_validate(said.get("spec"))
    except CodeRefused as error:
        raise BuildError(error.reason, str(error)) from None
    except ServiceBug as error:
        raise BuildError("host", str(error)) from None
    except ValidationError as error:
        raise BuildError("schema", f"the service declares nonsense: {describe_validation_error(error)}") from None
    finally:
        host.close()


def _check_tables(schema: ServiceSchema) -> None:
    """Check that the parent can hold, check and seed these tables.

    Raises:
        BuildError: It can't.
    """
    for name, table in schema.tables.items():
        problem = next(_problems(table, schema), None)
        if problem is not None:
            raise BuildError("schema", f"table {name}: {problem}")
    try:
        seeding.populate(State.from_schema(schema), Universe.generate(0), random.Random(0), _START)
    except Exception as error:  # The schema decides what fails, and how.
        raise BuildError("schema", f"no rows can be drawn: {type(error).__name__}: {str(error)[:300]}") from None


def _check_tools(exported: ServiceSpec) -> None:
    """Check that the exported schemas of the tools can be read.

    Raises:
        BuildError: They can't.
    """
    for tool in exported.tools:
        for schema in (tool.parameters, tool.returns or {}):
            problem = next(_unholdable(schema), None)
            if problem is not None:
                raise BuildError("schema", f"tool {tool.name}: {problem}")


_START: Final = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)


def _problems(table: TableSchema, schema: ServiceSchema) -> Iterator[str]:
    yield from _unholdable(table.row)
    properties = table.row.get("properties")
    if table.row.get("type") != "object" or not isinstance(properties, dict):
        yield "a row has to be an object"
        return
    if not isinstance(properties.get("id"), dict) or properties["id"].get("type") != "string":
        yield "the id has to be text"
    if "id" not in table.row.get("required", ()):
        yield "the id is not required"
    for field in (field for fields in table.unique for field in fields):
        if field not in properties:
            yield f"the unique field {field!r} doesn't exist"
    for foreign in table.foreign_keys:
        if foreign.field not in properties or foreign.table not in schema.tables:
            yield f"the foreign key {foreign.field!r} to {foreign.table!r} leads nowhere"
    for rule in table.rules:
        if any(test.row is not None for test in (*rule.where, *rule.satisfies)):
            yield "a rule compares a row with another row"


def _unholdable(schema: JsonObject) -> Iterator[str]:
    """Why a schema is too costly to draw from, or no schema that stands alone."""
    definitions = schema.get("$defs", {})
    todo: list[tuple[Any, int]] = [({key: value for key, value in schema.items() if key != "$defs"}, 0)]
    count = 0
    while todo:
        node, depth = todo.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            yield "its schema is too large, or endless, with its references followed"
            return
        if isinstance(node, Mapping):
            if _number(node.get("minLength")) > MAX_LEAST_CHARS:
                yield f"a text has to be longer than {MAX_LEAST_CHARS} characters"
            if isinstance(reference := node.get("$ref"), str):
                target = definitions.get(reference.removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
                if target is None:
                    yield f"the reference {reference[:80]!r} leads elsewhere than to its definitions"
                todo.append((target, depth + 1))
            for key, child in node.items():
                times = min(_number(node.get("minItems")), MAX_NODES) if key == "items" else 1
                todo += [(child, depth + 1)] * max(int(times), 1)
        elif isinstance(node, list):
            todo += [(child, depth + 1) for child in node]
    try:
        validator(schema)
    except ValueError as error:
        yield f"it is no JSON Schema: {str(error)[:300]}"


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
