"""Parameters: what the arguments of a call must satisfy before anything is asked to run it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic_core import PydanticSerializationError, from_json, to_json

from compoworld_core.errors import InvalidArguments, LimitExceeded, NotFound, ServiceBug
from compoworld_core.specs.model import ToolSpec
from compoworld_core.specs.validation import validator

MAX_ARGUMENT_BYTES: Final = 1024 * 1024


class Parameters:
    """The parameters of a service's tools; each schema is compiled when it is first needed."""

    __slots__ = ("_schemas", "_service", "_validators")

    def __init__(self, service: str, tools: Iterable[ToolSpec]) -> None:
        self._service = service
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._validators: dict[str, Any] = {}

    def checked(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The arguments as plain JSON that satisfies the tool's parameters.

        Raises:
            ToolError: They don't.
            ServiceBug: The parameters are no JSON Schema.
        """
        try:
            text = to_json(arguments)
            plain = from_json(text, allow_inf_nan=False)
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise InvalidArguments(f"the arguments are not JSON: {str(error)[:200]}") from None
        if len(text) > MAX_ARGUMENT_BYTES:
            raise LimitExceeded(f"the arguments have {len(text)} bytes; at most {MAX_ARGUMENT_BYTES} are accepted")
        compiled = self._validators.get(tool) or self._compiled(tool)
        try:
            wrong = next(compiled.iter_errors(plain), None)
        except ValueError as error:
            raise InvalidArguments(f"the arguments are not acceptable: {str(error)[:200]}") from None
        if wrong is not None:
            where = ".".join(str(part) for part in wrong.instance_path)
            raise InvalidArguments(f"{where + ': ' if where else ''}{wrong.message[:300]}")
        return plain

    def _compiled(self, tool: str) -> Any:
        schema = self._schemas.get(tool)
        if schema is None:
            raise NotFound(f"{self._service} has no tool {tool!r}")
        try:
            compiled = validator(schema)
        except ValueError as error:
            raise ServiceBug(f"the parameters of {tool} are no JSON Schema: {error}") from None
        self._validators[tool] = compiled
        return compiled
