"""The arguments that matter, where a tool wraps them all in one object parameter."""

from __future__ import annotations

from typing import Final

from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.references import resolve

_WRAPPERS: Final = frozenset({"params", "input", "request", "args", "arguments", "data", "body", "payload", "options"})


def payload(parameters: JsonObject) -> tuple[str | None, JsonObject]:
    """The wrapping parameter's name and the schema inside it; None and the parameters themselves if nothing is wrapped.

    On the wire the wrapper stays; looking through it is for telling what a tool is about.
    """
    properties = parameters.get("properties", {})
    if len(properties) == 1:
        name, schema = next(iter(properties.items()))
        inner = resolve(schema, parameters)
        if name in _WRAPPERS and inner.get("properties"):
            return name, inner
    return None, parameters
