"""Envelopes: the two shapes that every tool call is answered in."""

from __future__ import annotations

from typing import Any

from compoworld_core.errors import ToolError

Envelope = dict[str, Any]
"""`{"success": true, "data": …}` or `{"success": false, "error": {"code", "message"}}`."""


def success(data: Any) -> Envelope:
    """A successful answer."""
    return {"success": True, "data": data}


def failure(error: ToolError) -> Envelope:
    """The answer that a refusal becomes."""
    return {"success": False, "error": {"code": error.code, "message": error.message}}
