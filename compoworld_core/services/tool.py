"""Tools: a method's signature is its contract.

`@tool` derives the JSON Schema that agents see, the validation of arguments and the description from the method's
annotations and Google-style docstring, once per class.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import to_json, to_jsonable_python

from compoworld_core.errors import InvalidArguments
from compoworld_core.services.entity import Entity
from compoworld_core.services.record import describe_validation_error
from compoworld_core.specs.model import JsonObject, ToolSpec

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_MARK = "__compoworld_tool__"

_DATA = ("default", "const", "enum", "examples")
"""Keywords whose values are data, not schemas."""


def tool(*, effect: Literal["read", "write"], name: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """Make a method of a `Service` a tool.

    Args:
        effect: `read` tools never change state; a call that does is a bug.
        name: The tool's name where it isn't a Python identifier; else the method's.
    """

    def mark(function: FunctionT) -> FunctionT:
        setattr(function, _MARK, (effect, name or function.__name__))
        return function

    return mark


class Tool:
    """A tool of a service class: its spec, its argument validation and its function."""

    __slots__ = ("_arguments", "_is_open", "effect", "function", "name", "spec")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.effect, self.name = getattr(function, _MARK)
        doc = docstring_parser.parse(inspect.getdoc(function) or "")
        hints = get_type_hints(function, include_extras=True)
        model = _arguments_model(function, hints, {item.arg_name: item.description or "" for item in doc.params})
        self._arguments = model.__pydantic_validator__
        self.spec = ToolSpec(
            name=self.name,
            description=" ".join(part for part in (doc.short_description, doc.long_description) if part),
            parameters=without_titles(model.model_json_schema()),
            returns=without_titles(TypeAdapter(hints["return"]).json_schema(mode="serialization")),
            effect=self.effect,
            original_name=self.name,
        )
        self._is_open = _is_open(self.spec.parameters)

    @staticmethod
    def is_marked(value: object) -> bool:
        """Whether a class attribute was decorated with `@tool`."""
        return hasattr(value, _MARK)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate JSON arguments into the function's keyword arguments.

        Raises:
            InvalidArguments: They do not satisfy the tool's parameters.
        """
        try:
            text = to_json(arguments)
            if self._is_open and (b"NaN" in text or b"Infinity" in text):
                json.loads(text, parse_constant=_refuse_constant)
            return self._arguments.validate_json(text, strict=True).__dict__  # type: ignore[no-any-return]
        except ValidationError as error:
            raise InvalidArguments(describe_validation_error(error)) from None
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(f"the arguments are not JSON: {str(error)[:200]}") from None

    def run(self, service: object, arguments: Mapping[str, Any]) -> Any:
        """Call the tool on a service instance; the result is JSON."""
        result = self.function(service, **self.bind(arguments))
        if isinstance(result, Entity):
            return result.__pydantic_serializer__.to_python(result, mode="json")
        return to_jsonable_python(result)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


def _is_open(schema: Any) -> bool:
    """Whether some part takes any JSON value, hence also the constants that JSON does not have."""
    if not isinstance(schema, dict):
        return schema is True
    if not schema.keys() & {"type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"}:
        return True
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        return True
    if schema.get("type") == "array" and not schema.keys() & {"items", "prefixItems"}:
        return True
    parts = [schema[key] for key in ("items", "additionalProperties") if key in schema]
    parts += [part for key in ("anyOf", "oneOf", "allOf", "prefixItems") for part in schema.get(key, ())]
    parts += [part for key in ("properties", "$defs", "patternProperties") for part in schema.get(key, {}).values()]
    return any(map(_is_open, parts))


def _arguments_model(
    function: Callable[..., Any], hints: Mapping[str, Any], descriptions: Mapping[str, str]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.name not in hints:
            raise TypeError(f"{function.__qualname__}: parameter {parameter.name!r} has no annotation")
        default = ... if parameter.default is parameter.empty else parameter.default
        info: FieldInfo = Field(default, description=descriptions.get(parameter.name) or None)
        fields[parameter.name] = (hints[parameter.name], info)
    if "return" not in hints:
        raise TypeError(f"{function.__qualname__}: a tool needs a return annotation")
    config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )
    with warnings.catch_warnings():  # only the validator is used, so `json` may shadow a method of the model
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute", category=UserWarning)
        return create_model(function.__name__, __config__=config, **fields)


def without_titles(schema: Any) -> JsonObject:
    """The schema less the titles that Pydantic makes from names."""

    def strip(node: Any, *, in_properties: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                key: value
                if key in _DATA and not in_properties
                else strip(value, in_properties=key in ("properties", "$defs") and not in_properties)
                for key, value in node.items()
                if in_properties or key != "title" or not isinstance(value, str)
            }
        return [strip(item) for item in node] if isinstance(node, list) else node

    return strip(schema)  # type: ignore[no-any-return]
