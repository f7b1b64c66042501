"""What a schema from a stranger may cost whoever evaluates it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import compoworld_core
from compoworld_core.specs.keywords import repair_pattern
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.validation import validator
from compoworld_core.specs.values import Budget

COSTLY = ["(?=a{65000}b)", "a{20000}b", "^(?:(?=a{30000})a|[a-z0-9])+$", "^((a{0,100}){0,100}){0,100}$"]
ENDLESS = [r"^(\w+\s?)*$(?!x)", r"^(a+)+\1$", r"(.*)(.*)(.*)(.*)(.*)(.*)(.*)\1x"]
USUAL = [r"^[\w.-]{1,256}$", r"^(?!-)[a-z0-9-]{1,63}(?<!-)$", r"^.{1,1000}$", r"^\d{4}-\d{2}-\d{2}$", r"^(\w)\1$"]


@pytest.mark.parametrize("pattern", COSTLY)
def test_a_pattern_that_costs_its_size_at_every_character_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regex"):
        validator({"pattern": pattern})
    assert repair_pattern(pattern, Budget()) is None


@pytest.mark.parametrize("pattern", [*ENDLESS, *USUAL])
def test_other_patterns_are_answered_soon_whatever_the_text(pattern: str) -> None:
    compiled = validator({"pattern": pattern})
    start = time.process_time()
    for text in ("a" * 200_000 + "!", "ab " * 70_000, "a" * 30 + "\n"):
        compiled.is_valid(text)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_patterns_are_kept(pattern: str) -> None:
    assert repair_pattern(pattern, Budget()) == pattern


def test_schemas_are_compiled_nowhere_else() -> None:
    room = Path(compoworld_core.__file__).parent
    users = {path.relative_to(room).as_posix() for path in room.rglob("*.py") if "jsonschema_rs" in path.read_text()}

    assert users == {"specs/validation.py"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 50_000_000},
        {"type": "array", "items": {"type": "string"}, "minItems": 1_000_000},
        {"type": "object", "minProperties": 10**9},
    ],
)
def test_a_minimum_that_nobody_would_send_is_dropped(schema: dict[str, object]) -> None:
    tool = {"name": "create_note", "description": "d", "inputSchema": {"type": "object", "properties": {"x": schema}}}

    spec, _ = normalise_server({"name": "notes", "tools": [tool]}, "here")

    assert spec is not None
    assert not {"minLength", "minItems", "minProperties"} & spec.tools[0].parameters["properties"]["x"].keys()
    assert "drop-unreachable-minimum" in spec.tools[0].repairs
