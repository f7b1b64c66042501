"""The forms that bindings must have, checked before any of them is evaluated.

A planner writes bindings as they should be; an agent writes what it likes. What is wrong is said with its place, so
that the agent can mend it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from compoworld_core.tasks.bindings import binding_operator

MOST_PARTS: Final = 400
"""Parts of a value, those of the named values that it refers to included."""


class Problem(NamedTuple):
    """Something that is wrong with a submission.

    Attributes:
        path: Where, as in `solution.steps.2.arguments.to`.
    """

    path: str
    reason: str


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Selection(_Form):
    from_: Any = Field(alias="from")
    where: dict[str, Any]
    take: str


class _Pick(_Selection):
    nth: Annotated[int, Field(ge=0, le=200)] = 0
    most: str | None = None
    least: str | None = None


class _FactOf(_Form):
    step: str
    name: Any
    of: Any = None


class _Choice(_Form):
    on: Any
    cases: dict[str, Any]
    otherwise: Any


_Path = Annotated[str, StringConstraints(pattern=r"^[^.]+(\.[^.]+)*$", max_length=300)]
_Operands = Annotated[list[Any], Field(min_length=2, max_length=20)]
_Pair = Annotated[list[Any], Field(min_length=2, max_length=2)]

_FORMS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "$value": TypeAdapter(str),
    "$ref": TypeAdapter(_Path),
    "$pick": TypeAdapter(_Pick),
    "$sum": TypeAdapter(_Selection),
    "$fact": TypeAdapter(_FactOf),
    "$text": TypeAdapter(Annotated[list[Any], Field(min_length=1, max_length=60)]),
    "$add": TypeAdapter(_Operands),
    "$sub": TypeAdapter(_Operands),
    "$mul": TypeAdapter(_Operands),
    "$round": TypeAdapter(_Pair),
    "$shift": TypeAdapter(_Pair),
    "$choose": TypeAdapter(_Choice),
}


class Bindings:
    """Checks values of a solution, whose named values may refer to each other in any order but not in a circle."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._sizes: dict[str, int] = {}

    def problems(self, value: Any, path: str, steps: Collection[str]) -> Iterator[Problem]:
        """What is wrong with a value.

        Args:
            path: Where it stands.
            steps: The steps whose answers it may use.
        """
        found = list(self._found(value, path, steps))
        yield from found
        if not found and self._size(value, ()) > MOST_PARTS:
            yield Problem(path, f"has more than {MOST_PARTS} parts, named values included, or refers to itself")

    def _found(self, value: Any, path: str, steps: Collection[str]) -> Iterator[Problem]:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._found(item, f"{path}.{index}", steps)
        if not isinstance(value, dict):
            return
        operator = binding_operator(value)
        if operator is None:
            marked = next((key for key in value if key.startswith("$")), None)
            if marked is not None:
                reason = "is no binding" if len(value) == 1 else "has to be the only key of its object"
                yield Problem(path, f"{marked} {reason}; there are {', '.join(_FORMS)}")
                return
            for key, item in value.items():
                yield from self._found(item, f"{path}.{key}", steps)
            return
        inside = value[operator]
        try:
            _FORMS[operator].validate_python(inside)
        except ValidationError as error:
            for fault in error.errors()[:3]:
                place = ".".join(map(str, (path, operator, *fault["loc"])))
                yield Problem(place, fault["msg"])
            return
        place = f"{path}.{operator}"
        if operator == "$value":
            if inside not in self._values:
                yield Problem(place, f"solution.values has no {inside!r}")
            return
        used = inside.split(".")[0] if operator == "$ref" else inside["step"] if operator == "$fact" else None
        if used is not None and used not in steps:
            yield Problem(place, f"{used} is no step whose answer can be used here; earlier steps can")
        if operator == "$round" and not (isinstance(inside[1], int) and 0 <= inside[1] <= 6):
            yield Problem(place, "the second operand is the number of decimal places, 0 to 6")
        if operator != "$ref":
            yield from self._found(inside, place, steps)

    def _size(self, value: Any, within: tuple[str, ...]) -> int:
        """How many parts a value has once named values are put in; beyond the most where they go in a circle."""
        name = value.get("$value") if isinstance(value, dict) and len(value) == 1 else None
        if isinstance(name, str) and name in self._values:
            if name in within:
                return MOST_PARTS + 1
            if name not in self._sizes:
                self._sizes[name] = 1 + self._size(self._values[name], (*within, name))
            return self._sizes[name]
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return min(1 + sum(self._size(item, within) for item in items), MOST_PARTS + 1)
