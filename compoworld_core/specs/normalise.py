"""Brings any server description to the normalised form: repaired where possible, rejected with a reason where not.

Every raw tool ends as a `ToolSpec` or as a `Rejection`, and so does every server; no JSON value makes this fail. A
repair never narrows what a tool accepts without saying so: its name is in `ToolSpec.repairs`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, get_args

from compoworld_core.specs.arguments import documented_arguments, object_from_documentation
from compoworld_core.specs.domains import infer_domain
from compoworld_core.specs.model import Domain, Effect, JsonObject, Rejection, ServiceSpec, ToolSpec
from compoworld_core.specs.names import service_name, tool_names
from compoworld_core.specs.schema import repair_parameters, repair_returns
from compoworld_core.specs.validation import validator
from compoworld_core.specs.values import Budget
from compoworld_core.specs.verbs import common_prefix, parse_name, tokenise

MAX_DESCRIPTION: Final = 8_000
MAX_NAME: Final = 300
MAX_TOOLS: Final = 1_000

_SCHEMA_KEYS: Final = ("inputSchema", "input_schema", "parameters", "arguments")
_HINTS: Final = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})


@dataclass(frozen=True, slots=True)
class _Draft:
    """A tool whose parts are repaired and whose name is not yet settled."""

    name: str
    description: str
    parameters: JsonObject
    returns: JsonObject | None
    annotations: JsonObject
    budget: Budget

    def same_as(self, other: _Draft) -> bool:
        return (self.description, self.parameters, self.returns) == (other.description, other.parameters, other.returns)


def normalise_server(raw: object, origin: str) -> tuple[ServiceSpec | None, list[Rejection]]:
    """The service that a raw server describes, and everything about it that had to be rejected.

    Args:
        raw: A server record `{"server" | "name", "tools", …}`, a `tools/list` result, or the response around that.
        origin: Where it was read from, such as `servers.jsonl:12`; its part before the line becomes the spec's source.
    """
    label = Budget()
    if isinstance(raw, list):
        raw = {"tools": raw}
    if not isinstance(raw, dict):
        return None, [_reject_server(origin, "", "not_an_object", f"expected a JSON object, found {_kind(raw)}")]
    server = _outer(raw)
    name = _server_name(server, origin, label)
    listed = _listed_tools(server)
    if isinstance(listed, str):
        return None, [_reject_server(origin, name, "no_tools", listed)]
    rejections: list[Rejection] = []
    drafts: list[_Draft] = []
    known: dict[str, list[_Draft]] = {}
    for position, raw_tool in enumerate(listed):
        draft = _draft_tool(raw_tool) if len(drafts) < MAX_TOOLS else ("too_many_tools", f"more than {MAX_TOOLS} tools")
        if isinstance(draft, _Draft) and any(draft.same_as(other) for other in known.get(draft.name, ())):
            draft = ("duplicate", "the same tool is listed before")
        if isinstance(draft, _Draft):
            drafts.append(draft)
            known.setdefault(draft.name, []).append(draft)
        else:
            reason, detail = draft
            rejections.append(_reject_tool(origin, name, _tool_label(raw_tool, position), reason, detail))
    if not drafts:
        rejections.append(_reject_server(origin, name, "no_valid_tools", f"none of {len(listed)} tools is usable"))
        return None, rejections
    tools = _finish_tools(drafts)
    title = _text(server.get("title"), 200, label)
    description = _text(server.get("description"), MAX_DESCRIPTION, label)
    spec = ServiceSpec(
        name=service_name(name),
        title=title,
        description=description,
        domain=_domain(server, name, title, description, tools),
        source=re.sub(r":\d+$", "", label.text(origin, MAX_NAME)),
        original_name=name,
        tools=tools,
    )
    return spec, rejections


def _outer(raw: JsonObject) -> JsonObject:
    """The record that holds name and tools: without a JSON-RPC envelope, with a nested `server` object laid open."""
    server = dict(raw)
    for key in ("result", "server", "serverInfo"):
        nested = server.get(key)
        if isinstance(nested, dict):
            server = {**server, **nested} if key != "serverInfo" else {**nested, **server}
            if key == "server":
                server["server"] = nested.get("name")
    return server


def _server_name(server: JsonObject, origin: str, label: Budget) -> str:
    """The name at the source, or the origin's where it has none."""
    for key in ("server", "name", "title"):
        if isinstance(server.get(key), str) and server[key].strip():
            return label.text(server[key].strip(), MAX_NAME)
    stem, _, line = origin.rpartition(":")
    if stem and line.isdecimal():
        return label.text(f"{re.sub(r'[.]jsonl?([.]gz)?$', '', stem)}_{line}", MAX_NAME)
    return label.text(origin, MAX_NAME)


def _listed_tools(server: JsonObject) -> list[object] | str:
    """The raw tools, or why there are none."""
    if isinstance(server.get("error"), dict) and "tools" not in server:
        return "the response is a JSON-RPC error"
    tools = server.get("tools")
    if isinstance(tools, dict):
        return [
            {"name": name, **tool} if isinstance(tool, dict) else {"name": name, "inputSchema": tool}
            for name, tool in tools.items()
        ]
    if not isinstance(tools, list):
        return f"`tools` should be a list, found {'nothing' if tools is None else _kind(tools)}"
    return tools or "`tools` is empty"


def _draft_tool(raw: Any) -> _Draft | tuple[str, str]:
    """The repaired tool, or the reason and detail of its rejection."""
    if not isinstance(raw, dict):
        return "not_an_object", f"expected a JSON object, found {_kind(raw)}"
    budget = Budget()
    if isinstance(raw.get("function"), dict):
        budget.note("unwrap-function")
        raw = raw["function"]
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return "no_name", "the tool has no name"
    if len(name) > MAX_NAME:
        return "name_too_long", f"the name has {len(name)} characters; at most {MAX_NAME} are kept"
    name = budget.text(name, MAX_NAME)
    description = _text(raw.get("description"), MAX_DESCRIPTION, budget)
    documented = documented_arguments(description)
    parameters = _parameters(raw, documented, budget)
    if not description:
        budget.note("describe-from-name")
        description = _description(name, raw.get("title"), budget)
    returns = repair_returns(raw.get("outputSchema"), budget)
    if _invalid(parameters):
        return "schema_invalid", f"the repaired parameters are not JSON Schema 2020-12: {_invalid(parameters)}"
    if returns is not None and _invalid(returns):
        budget.note("drop-returns")
        returns = None
    annotations = raw.get("annotations")
    return _Draft(name, description, parameters, returns, _hints(annotations, budget), budget)


def _parameters(raw: JsonObject, documented: dict[str, JsonObject], budget: Budget) -> JsonObject:
    """The tool's parameters; what the schema leaves out is taken from the description's "Args:" section."""
    found = next((key for key in _SCHEMA_KEYS if raw.get(key) is not None), None)
    if found not in (None, "inputSchema"):
        budget.note("rename-schema-key")
    parameters = repair_parameters(raw.get(found) if found else None, budget)
    if not documented:
        return parameters
    if not parameters["properties"] and not {"anyOf", "oneOf", "allOf", "$ref"} & set(parameters):
        budget.note("parameters-from-docstring")
        return repair_parameters(object_from_documentation(documented), budget)
    for name, schema in parameters["properties"].items():
        text = documented.get(name, {}).get("description", "")
        if text and not schema.get("description") and "$ref" not in schema:
            budget.note("describe-from-docstring")
            schema["description"] = budget.text(text, 1_000)
    return parameters


def _finish_tools(drafts: list[_Draft]) -> tuple[ToolSpec, ...]:
    names = tool_names([draft.name for draft in drafts])
    prefix = common_prefix(names)
    seen: set[str] = set()
    tools: list[ToolSpec] = []
    for draft, name in zip(drafts, names, strict=True):
        if name != draft.name:
            draft.budget.note("rename-duplicate" if draft.name in seen else "rename-tool")
        seen.add(draft.name)
        effect = _effect(draft, prefix)
        tools.append(
            ToolSpec(
                name=name,
                description=draft.description,
                parameters=draft.parameters,
                returns=draft.returns,
                effect=effect,
                original_name=draft.name,
                repairs=draft.budget.repairs,
            )
        )
    return tuple(tools)


def _hints(raw: object, budget: Budget) -> JsonObject:
    """The hints of the MCP specification that are booleans."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        budget.note("clean-annotations")
        return {}
    hints = {key: value for key, value in raw.items() if key in _HINTS and isinstance(value, bool)}
    if set(raw) - set(hints) - {"title"}:
        budget.note("clean-annotations")
    return hints


def _effect(draft: _Draft, prefix: tuple[str, ...]) -> Effect:
    """The effect by the annotations, unless these contradict themselves or the verb; then by the verb."""
    by_name = parse_name(draft.name, prefix).effect
    read_only = draft.annotations.get("readOnlyHint")
    if read_only is None:
        return by_name
    by_hint: Effect = "read" if read_only else "write"
    is_contradictory = (read_only and draft.annotations.get("destructiveHint") is True) or by_name not in (
        "unknown",
        by_hint,
    )
    if is_contradictory:
        draft.budget.note("contradictory-annotations")
        return by_hint if by_name == "unknown" else by_name
    return by_hint


def _domain(server: JsonObject, name: str, title: str, description: str, tools: tuple[ToolSpec, ...]) -> Domain:
    declared: Any = server.get("domain")
    for domain in get_args(Domain):
        if declared == domain:
            return declared  # type: ignore[no-any-return]  # it equals a member of the literal
    categories = server.get("categories")
    labels = [label for label in categories if isinstance(label, str)] if isinstance(categories, list) else []
    return infer_domain(name, title, description, labels[:20], [(tool.name, tool.description) for tool in tools])


def _description(name: str, title: object, budget: Budget) -> str:
    """A sentence made of the title or the name's words."""
    text = _text(title, 200, budget) or " ".join(tokenise(name)) or "tool"
    return f"{text[0].upper()}{text[1:]}."


def _text(raw: object, limit: int, budget: Budget) -> str:
    if isinstance(raw, list) and raw and all(isinstance(line, str) for line in raw):
        budget.note("join-description")
        raw = "\n".join(raw[:200])
    return budget.text(raw.strip(), limit) if isinstance(raw, str) else ""


def _invalid(schema: JsonObject) -> str:
    """Why a schema is not valid and self-contained; empty if it is."""
    try:
        validator(schema)
    except ValueError as error:
        return str(error).splitlines()[0][:300]
    return ""


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def _tool_label(raw: object, position: int) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    return Budget().text(name, MAX_NAME) if isinstance(name, str) and name else f"#{position}"


def _reject_server(origin: str, server: str, reason: str, detail: str) -> Rejection:
    return Rejection(subject="server", origin=origin, server=server, reason=reason, detail=detail)


def _reject_tool(origin: str, server: str, tool: str, reason: str, detail: str) -> Rejection:
    return Rejection(subject="tool", origin=origin, server=server, tool=tool, reason=reason, detail=detail)
