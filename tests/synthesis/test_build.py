"""From source to package: what is refused, why, and what a package's spec says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.running import RunningService
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.synthesis.build import BuildError, annotate, build_package
from tests.services.desk import CONTEXT

SOURCE = '''"""Notes."""

from __future__ import annotations

from typing import Annotated

from compoworld_core.services.sdk import Email, Entity, Field, Id, Service, State, Table, Tag, table, tool

NoteId = Annotated[str, Id("note", prefix="note")]


class Note(Entity):
    """A note."""

    id: NoteId
    author: Email
    tags: tuple[Tag, ...] = ()


class NotesState(State):
    """All notes."""

    notes: Table[Note]


class Notes(Service[NotesState]):
    """Keeps notes."""

    domain = "documents"

    @tool(effect="write")
    def add_note(self, author: Email, tags: list[Tag] | None = None) -> Note:
        """Write a note."""
        return self.state.notes.insert(author=author, tags=tuple(tags or ()))

    @tool(effect="read")
    def get_note(self, note: Annotated[NoteId, Field(alias="note-id")]) -> Note:
        """Read a note."""
        return self.state.notes.get(note)
'''

TEXT = {"type": "string"}
SPEC = ServiceSpec(
    name="notes",
    description="Notes of a team.",
    domain="documents",
    source="a test",
    original_name="Notes!",
    tools=(
        ToolSpec(
            name="add_note",
            description="Adds a note to the notebook.",
            parameters={
                "type": "object",
                "properties": {"author": {**TEXT, "description": "Who"}, "tags": {"type": "array", "items": TEXT}},
                "required": ["author"],
            },
            original_name="addNote",
            repairs=("renamed",),
        ),
        ToolSpec(
            name="burn_note", description="Destroys a note.", parameters={"type": "object", "properties": {"id": TEXT}}
        ),
        ToolSpec(
            name="get_note",
            description="Reads a note.",
            parameters={"type": "object", "properties": {"note-id": TEXT}, "required": ["note-id"]},
            returns={"type": "object", "properties": {"author": TEXT}},
        ),
    ),
)


@pytest.fixture(scope="module")
def pool() -> Iterator[HostPool]:
    with HostPool(limits=Limits(memory_bytes=256 * 1024 * 1024)) as pool:
        yield pool


def test_the_spec_keeps_its_own_schemas_and_gains_meanings_and_effects(pool: HostPool) -> None:
    package = build_package(SPEC, SOURCE, "rules", "[]", pool)

    assert (package.name, package.origin, package.author) == ("notes", "synthesised", "rules")
    assert [tool.name for tool in package.spec.tools] == ["add_note", "get_note"]
    add, get = package.spec.tools
    assert add.model_dump(exclude={"returns"}) == {
        **SPEC.tools[0].model_dump(exclude={"returns"}),
        "effect": "write",
        "parameters": {
            "type": "object",
            "properties": {
                "author": {**TEXT, "description": "Who", "x-semantic": "email"},
                "tags": {"type": "array", "items": {**TEXT, "x-semantic": "tag"}},
            },
            "required": ["author"],
        },
    }
    assert add.returns is not None
    assert add.returns["properties"]["id"]["x-semantic"] == "id:note"
    assert get.effect == "read"
    assert get.parameters["properties"]["note-id"] == {**TEXT, "x-semantic": "id:note"}
    assert get.returns == {"type": "object", "properties": {"author": {**TEXT, "x-semantic": "email"}}}


def test_a_built_package_runs(pool: HostPool) -> None:
    package = build_package(SPEC, SOURCE, "rules", "[]", pool)
    running = RunningService.start(package, pool.backend(package), CONTEXT, Universe.generate(1))

    made = running.call("add_note", {"author": "ada@example.com", "tags": ["new"]}).envelope

    assert made["success"]
    assert running.call("get_note", {"note-id": made["data"]["id"]}).envelope == made


def test_building_is_deterministic(pool: HostPool) -> None:
    packages = [build_package(SPEC, SOURCE, "rules", "[]", pool) for _ in range(2)]

    assert packages[0] == packages[1]
    assert packages[0].digest == packages[1].digest


def test_a_package_carries_the_tools_that_it_leaves_to_a_world_model(pool: HostPool) -> None:
    bare = build_package(SPEC, SOURCE, "rules", "[]", pool)

    package = build_package(SPEC, SOURCE, "rules", "[]", pool, modelled={"burn_note", "get_note", "unheard_of"})

    assert package.modelled == (SPEC.tools[1],)
    assert package.tool("burn_note") == SPEC.tools[1]
    assert package.spec == bare.spec
    assert package.digest != bare.digest
    assert "modelled.json" not in bare.files()


def replaced(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)


TAGS = "tags: tuple[Tag, ...] = ()"
REFUSED = {
    "not_python": ("def", "disallowed", "service.py:1: not Python"),
    "import": (f"import os\n{SOURCE}", "disallowed", "service.py:1: import of 'os' is not allowed"),
    "every_violation": (replaced('"""Read a note."""', "print(open)"), "disallowed", "'open' is not allowed"),
    "no_service": ('"""Nothing."""\n', "service", "found none"),
    "two_services": (f"{SOURCE}\n\nclass More(Notes):\n    pass\n", "service", "found Notes, More"),
    "no_tools": (SOURCE[: SOURCE.index("    @tool")], "service", "no tools"),
    "no_domain": (replaced('    domain = "documents"\n', ""), "service", "set its domain"),
    "no_state": (replaced("Service[NotesState]", "Service"), "service", "name its state"),
    "foreign_domain": (replaced('"documents"', '"sorcery"'), "host", "sorcery"),
    "fails_at_once": (f"{SOURCE}\nx = 1 // 0\n", "definition", "service.py:41: ZeroDivisionError"),
    "mutable_field": (replaced(TAGS, "tags: list[Tag]"), "definition", "service.py:12: TypeError: Note.tags"),
    "row_without_id": (replaced("    id: NoteId", "    key: NoteId"), "definition", "needs a field `id`"),
    "unknown_unique": (replaced("Table[Note]", 'Table[Note] = table(unique=("size",))'), "definition", "size"),
    "hangs": (f"{SOURCE}\nx = sum(range(10 ** 12))\n", "host", "timeout"),
    "eats_memory": (f"{SOURCE}\nx = len(bytes(10 ** 12))\n", "definition", "MemoryError"),
    "number_as_id": (
        replaced('NoteId = Annotated[str, Id("note"', 'NoteId = Annotated[int, Id("note"'),
        "schema",
        "table notes: the id has to be text",
    ),
    "endless_list": (
        replaced(TAGS, "tags: Annotated[tuple[Tag, ...], Field(min_length=1000000000)]"),
        "schema",
        "too large",
    ),
    "long_text": (replaced("author: Email\n", "author: Annotated[str, Field(min_length=10 ** 9)]\n"), "schema", "2000"),
    "endless_row": (replaced(TAGS, 'parent: "Note | None" = None'), "disallowed", "name of a class"),
    "other_tool": (replaced("def add_note", "def add_memo"), "tools", "the spec has no tool add_memo"),
    "other_parameters": (
        replaced("tags: list[Tag] | None = None", "labels: int = 0").replace("tags=tuple(tags or ())", "tags=()"),
        "tools",
        "missing ['tags'], too many ['labels']",
    ),
}


@pytest.mark.parametrize(("source", "reason", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses_with_a_reason(
    pool: HostPool, monkeypatch: pytest.MonkeyPatch, source: str, reason: str, message: str
) -> None:
    monkeypatch.setattr("compoworld_core.services.hosted.LOAD_S", 1.0 if message == "timeout" else 60.0)

    with pytest.raises(BuildError) as caught:
        build_package(SPEC, source, "rules", "[]", pool)

    assert caught.value.reason == reason
    assert message in caught.value.message


def test_doubling_rows_are_refused_before_any_is_drawn(pool: HostPool) -> None:
    classes = "".join(
        f'class L{n}(Entity):\n    """A level."""\n\n    a: L{n + 1} | None = None\n    b: L{n + 1} | None = None\n\n\n'
        for n in range(25)
    )
    source = replaced(
        "class NotesState", classes + 'class L25(Entity):\n    """The end."""\n\n    a: int = 0\n\n\nclass NotesState'
    )
    source = source.replace(TAGS, f"{TAGS}\n    level: L0 | None = None")

    with pytest.raises(BuildError, match="too large") as caught:
        build_package(SPEC, source, "rules", "[]", pool)

    assert caught.value.reason == "schema"


# What a guest may claim about itself, however it came to say so.

ROW = {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}


def tables(row: Any = ROW, **more: Any) -> dict[str, Any]:
    return {"tables": {"notes": {"entity": "note", "row": row, "id_prefix": "n", **more}}}


CLAIMS = {
    "nothing": {},
    "nonsense": {"tables": 5, "spec": "x"},
    "file_reference": {"tables": tables({**ROW, "$defs": {"a": {"$ref": "file:///etc/passwd"}}})},
    "web_reference": {"tables": tables({**ROW, "properties": {"id": TEXT, "a": {"$ref": "http://127.0.0.1:9/"}}})},
    "no_schema": {"tables": tables({**ROW, "properties": {"id": TEXT, "a": {"type": "teapot"}}})},
    "circle": {"tables": tables({**ROW, "properties": {"id": TEXT, "a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]})},
    "circle_of_definitions": {
        "tables": tables(
            {
                **ROW,
                "properties": {"id": TEXT, "a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}},
            }
        )
    },
    "optional_id": {"tables": tables({**ROW, "required": []})},
    "list": {"tables": tables({"type": "array"})},
    "dangling_unique": {"tables": tables(unique=[["size"]])},
    "dangling_foreign_key": {"tables": tables(foreign_keys=[{"field": "id", "table": "secrets"}])},
    "rule_on_other_rows": {
        "tables": tables(
            rules=[
                {
                    "satisfies": [{"field": "id", "row": {"service": "x", "table": "y", "field": "z"}}],
                    "message": "no",
                }
            ]
        )
    },
    "parameters_of_nonsense": {
        "tables": tables(),
        "spec": SPEC.model_dump() | {"tools": [SPEC.tools[0].model_dump() | {"parameters": {"properties": [1]}}]},
    },
    "returns_from_the_web": {
        "tables": tables(),
        "spec": SPEC.model_dump()
        | {"tools": [SPEC.tools[0].model_dump() | {"returns": {"$ref": "http://127.0.0.1/"}}]},
    },
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_guest_can_claim_nothing_that_harms(
    pool: HostPool, monkeypatch: pytest.MonkeyPatch, claim: dict[str, Any]
) -> None:
    said = {"tables": tables(), "spec": SPEC.model_dump()} | claim if claim else claim
    monkeypatch.setattr("compoworld_core.services.hosted.Host.export", lambda host: said)

    with pytest.raises(BuildError) as caught:
        build_package(SPEC, SOURCE, "rules", "[]", pool)

    assert caught.value.reason == "schema"


def test_annotation_keeps_what_the_spec_already_says() -> None:
    own = {
        "properties": {"who": {**TEXT, "x-semantic": "username"}, "n": {"type": "object", "properties": {"to": TEXT}}}
    }
    exported = {
        "properties": {"who": {"x-semantic": "email"}, "n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
        "$defs": {"N": {"type": "object", "properties": {"to": {"x-semantic": "email"}}}},
    }

    assert annotate(own, exported) == {
        "properties": {
            "who": {**TEXT, "x-semantic": "username"},
            "n": {"type": "object", "properties": {"to": {**TEXT, "x-semantic": "email"}}},
        }
    }
