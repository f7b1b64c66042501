"""pi's events, read as messages: what was said, and nothing of when."""

from __future__ import annotations

import json
from typing import Any

from compoworld_core.storage.digest import JsonObject


def read_event(line: bytes) -> JsonObject | None:
    """The event in a line of what was printed; None where it is something else."""
    if not line.startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def chat_message(event: JsonObject) -> JsonObject | None:
    """The message that an event completes, as chat-completion endpoints write it; None if it completes none."""
    message = event.get("message")
    if event.get("type") != "message_end" or not isinstance(message, dict):
        return None
    match message.get("role"):
        case "user":
            return {"role": "user", "content": _text(message, "text")}
        case "toolResult":
            return {
                "role": "tool",
                "tool_call_id": _storable(message.get("toolCallId", "")),
                "name": _storable(message.get("toolName", "")),
                "content": _text(message, "text"),
            }
        case "assistant":
            return _assistant(message)
    return None


def failure(event: JsonObject) -> str:
    """Why the model's latest answer failed; empty if it did not."""
    message = event.get("message")
    if event.get("type") == "message_end" and isinstance(message, dict) and message.get("stopReason") == "error":
        return str(message.get("errorMessage") or "the model did not answer")
    return ""


def _assistant(message: JsonObject) -> JsonObject:
    said: JsonObject = {"role": "assistant", "content": _text(message, "text")}
    if thought := _text(message, "thinking"):
        said["reasoning_content"] = thought
    calls = [
        {
            "id": _storable(part.get("id", "")),
            "type": "function",
            "function": {"name": _storable(part.get("name", "")), "arguments": json.dumps(part.get("arguments", {}))},
        }
        for part in _parts(message)
        if part.get("type") == "toolCall"
    ]
    return {**said, "tool_calls": calls} if calls else said


def _text(message: JsonObject, kind: str) -> str:
    if isinstance(message.get("content"), str):
        return _storable(message["content"]) if kind == "text" else ""
    parts = (part.get(kind) for part in _parts(message) if part.get("type") == kind)
    return _storable("\n".join(part for part in parts if isinstance(part, str)))


def _storable(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()


def _parts(message: JsonObject) -> list[dict[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
