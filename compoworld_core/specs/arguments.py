"""Parameters written without JSON Schema: flat argument lists, and "Args:" sections of a description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from compoworld_core.specs.keywords import type_words
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.values import Budget

MAX_ARGUMENTS: Final = 512
_SECTION = re.compile(r"^[ \t]*(?:arg(?:ument)?s|param(?:eter)?s|inputs?)[ \t]*:[ \t]*$", re.IGNORECASE | re.MULTILINE)
_ENTRY = re.compile(
    r"^[ \t]*[-*]?[ \t]*[`\"*]{0,2}([A-Za-z_]\w{0,63})[`\"*]{0,2}[ \t]*(?:\(([^()\n]{1,80})\))?[ \t]*:[ \t]*(.*)$"
)
_HEADING = re.compile(
    r"^[ \t]*(?:returns?|yields?|raises|examples?|notes?|output|usage|response|errors?|important|warnings?)\b[^\n]*:",
    re.IGNORECASE,
)
_OPTIONAL = re.compile(r"\boptional\b|\bdefaults?\b", re.IGNORECASE)


def object_from_arguments(arguments: list[object], budget: Budget) -> JsonObject:
    """The raw object schema for a list of `{name, type, description | desc, required | optional}`.

    An argument is required if it says `required: true`, or says neither that nor `optional: true`; `required: null`
    means not required.
    """
    properties: JsonObject = {}
    required: list[str] = []
    for argument in arguments[:MAX_ARGUMENTS]:
        if isinstance(argument, str):
            argument = {"name": argument}
        name = argument.get("name") if isinstance(argument, dict) else None
        if not isinstance(argument, dict) or not isinstance(name, str) or not name or name in properties:
            budget.note("drop-unusable-argument")
            continue
        nested = argument.get("schema")
        schema = dict(nested) if isinstance(nested, dict) else {}
        schema.update({key: value for key, value in argument.items() if key not in ("name", "schema", "in")})
        is_required = schema.pop("required", True if argument.get("optional") is not True else None)
        schema.pop("optional", None)
        properties[name] = schema
        if is_required is True or is_required == "true":
            required.append(name)
    if len(arguments) > MAX_ARGUMENTS:
        budget.note("drop-excess-properties")
    return {"type": "object", "properties": properties, "required": required}


def documented_arguments(description: str) -> dict[str, JsonObject]:
    """The arguments that an "Args:" section documents: name → raw schema with `description` and `optional`."""
    section = _SECTION.search(description)
    if section is None:
        return {}
    found: dict[str, JsonObject] = {}
    entry_indent: int | None = None
    for line in description[section.end() :].splitlines()[1:200]:
        if not line.strip():
            if found:
                break
            continue
        indent = len(line) - len(line.lstrip())
        if _HEADING.match(line):
            break
        match = _ENTRY.match(line)
        if match and (entry_indent is None or indent <= entry_indent):
            entry_indent = indent
            name, note, text = match[1], match[2] or "", match[3].strip()
            if name.lower() == "none":
                break
            words = [word for part in note.split(",") if (word := type_words(part))]
            found[name] = {
                **(words[0] if words else {}),
                "description": text,
                "optional": bool(_OPTIONAL.search(note) or _OPTIONAL.search(text)),
            }
        elif found and entry_indent is not None and indent > entry_indent:
            last = found[next(reversed(found))]
            last["description"] = f"{last['description']} {line.strip()}".strip()
        elif found:
            break
        if len(found) >= MAX_ARGUMENTS:
            break
    return found


def object_from_documentation(documented: Mapping[str, JsonObject]) -> JsonObject:
    """The raw object schema for arguments that only the description documents."""
    properties = {
        name: {key: value for key, value in schema.items() if key != "optional"} for name, schema in documented.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, schema in documented.items() if not schema["optional"]],
    }
