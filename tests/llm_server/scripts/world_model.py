"""A world model: reads the call that it is told about, and predicts a row and an answer that fit the schemas.

The others here answer as models do that are not up to it. What a conversation holds decides: each rejection that it
has is one more answer that was not good enough.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from compoworld_core.storage.digest import JsonObject
from tests.llm_server.reply import Reply

Predict = Callable[[JsonObject], Any]
"""The answer to a call, by the document that describes it."""


def document_of(request: JsonObject) -> JsonObject:
    """What the request says about the call."""
    told = next(message["content"] for message in request["messages"] if message["role"] == "user")
    found: JsonObject = json.loads(told)
    return found


def rejections_of(request: JsonObject) -> int:
    """How many answers were rejected so far."""
    return sum(message["role"] == "assistant" for message in request["messages"])


def plausible(document: JsonObject) -> JsonObject:
    """A new row in the first table where the call may write, and an answer in the form that the tool promises."""
    tool, call = document["tool"], document["call"]
    table = next(iter(document["tables"]), None)
    changes = []
    if tool["effect"] != "read" and table is not None:
        row, key = document["tables"][table]["row"], document["next_ids"][table]
        required = {name: row["properties"][name] for name in row.get("required", ()) if name != "id"}
        values = {name: _filled(schema, row, call, name) for name, schema in required.items()}
        for name in {field for fields in document["tables"][table]["unique"] for field in fields} & values.keys():
            values[name] = f"{key}@example.com" if "mail" in name else f"{name} of {key}"
        changes = [{"op": "insert", "table": table, "key": key, "values": values}]
    returns = tool["returns"]
    told = {"done": True, "at": call["time"]} if returns is None else _filled(returns, returns, call, "answer")
    return {"changes": changes, "observation": told}


def breaks_types(document: JsonObject) -> JsonObject:
    """A row whose texts are numbers."""
    predicted = plausible({**document, "tool": {**document["tool"], "effect": "write"}})
    for change in predicted["changes"]:
        change["values"] = {name: 7 if isinstance(value, str) else value for name, value in change["values"].items()}
    return predicted


def writes_anyway(document: JsonObject) -> JsonObject:
    """A change, whatever the tool's effect."""
    return plausible({**document, "tool": {**document["tool"], "effect": "write"}})


def chats(document: JsonObject) -> str:
    """Words about the call, and no prediction."""
    return f"Sure! The tool {document['tool']['name']} would now do its work."


class Simulator:
    """Answers as a world model.

    Args:
        answers: What it predicts first, and after each rejection; the last stays.
        fenced: Whether it writes its answer as a block of code.
    """

    def __init__(self, *answers: Predict, fenced: bool = False) -> None:
        self._answers = answers or (plausible,)
        self._fenced = fenced

    def __call__(self, request: JsonObject) -> Reply:
        place = min(rejections_of(request), len(self._answers) - 1)
        predicted = self._answers[place](document_of(request))
        text = predicted if isinstance(predicted, str) else json.dumps(predicted, ensure_ascii=False)
        return Reply(f"```json\n{text}\n```" if self._fenced else text)


def simulator(*answers: str, fenced: bool = False) -> Simulator:
    """A world model by the names of what it predicts, for a server of its own process."""
    return Simulator(*(_BY_NAME[name] for name in answers), fenced=fenced)


_BY_NAME: dict[str, Predict] = {item.__name__: item for item in (plausible, breaks_types, writes_anyway, chats)}


def _filled(schema: Any, root: JsonObject, call: JsonObject, name: str) -> Any:
    """A value of a schema: the call's argument of that name where it fits, or else the simplest there is."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _filled(schema[key][0], root, call, name)
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema["type"][0] if isinstance(schema.get("type"), list) else schema.get("type")
    match kind:
        case "string":
            return _text(schema, call, name)
        case "integer" | "number":
            return max(schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return True
        case "array":
            return [_filled(schema["items"], root, call, name) for _ in range(schema.get("minItems", 0))]
        case "object":
            parts = schema.get("properties", {})
            return {part: _filled(parts[part], root, call, part) for part in schema.get("required", parts)}
    return None


def _text(schema: JsonObject, call: JsonObject, name: str) -> str:
    argument = call["arguments"].get(name)
    if isinstance(argument, str):
        return argument
    forms = {"date-time": call["time"], "date": call["time"][:10], "email": call["user"]["email"]}
    return str(forms.get(schema.get("format", ""), call["user"]["email"] if "mail" in name else f"some {name}"))
