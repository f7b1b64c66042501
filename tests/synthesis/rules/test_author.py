"""What the rules author promises about any draft."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.host.allowlist import check_source
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.sources import read_specs
from compoworld_core.specs.sources.bundled import BundledSource
from compoworld_core.synthesis import rules
from compoworld_core.synthesis.author import Draft
from compoworld_core.synthesis.rules import RulesAuthor
from compoworld_core.synthesis.selftest import run_test
from tests.synthesis.rules.drafts import NUMBER, TEXT, load, optional, service, start, tool

BUNDLED = read_specs(BundledSource())[0]


def check(spec: ServiceSpec, draft: Draft) -> None:
    """Every tool is accounted for, and the source keeps the spec's contract."""
    left_out = [item.tool for item in draft.left_out]
    assert sorted([*draft.implemented, *left_out]) == sorted(item.name for item in spec.tools)
    assert bool(draft.source) == bool(draft.implemented)
    if not draft.source:
        return
    check_source(draft.source, "service.py")
    exported = load(draft).spec()
    assert {item.name for item in exported.tools} == set(draft.implemented)
    promised = {item.name: item.parameters for item in spec.tools}
    for item in exported.tools:
        wanted = promised[item.name]
        assert set(item.parameters.get("properties", {})) == set(wanted.get("properties", {}))
        assert set(item.parameters.get("required", ())) == set(wanted.get("required", ()))


@pytest.mark.parametrize("spec", BUNDLED, ids=lambda spec: spec.name)
def test_bundled_service_is_written_and_passes_its_own_tests(spec: ServiceSpec) -> None:
    draft = RulesAuthor().write(spec)
    check(spec, draft)
    running = start(spec, draft)
    assert [item.detail for test in draft.tests if not (item := run_test(running, test)).passed] == []
    for kind in ("normal", "error"):
        assert {item.tool for item in draft.tests if item.kind == kind} == set(draft.implemented)


def test_most_bundled_tools_are_written() -> None:
    drafts = [RulesAuthor().write(spec) for spec in BUNDLED]
    written = sum(len(draft.implemented) for draft in drafts)
    assert all(draft.implemented for draft in drafts)
    assert written >= 0.9 * sum(len(spec.tools) for spec in BUNDLED)


def test_the_same_spec_gives_the_same_draft() -> None:
    assert RulesAuthor().write(BUNDLED[0]) == RulesAuthor().write(BUNDLED[0])


@pytest.mark.parametrize(
    ("spec", "candidate_for", "word"),
    [
        (service(tool("fetch_url", url=TEXT)), "world_model", "fetch"),
        (service(tool("run_code", code=TEXT)), "world_model", "code"),
        (service(tool("generate_image", prompt=TEXT)), "world_model", "generate"),
        (service(tool("convert_currency", amount=NUMBER, to=TEXT)), "world_model", "convert"),
        (service(tool("get_weather", city=TEXT)), "world_model", "weather"),
        (service(tool("list_notes", api_key=TEXT)), "nobody", "api_key"),
        (service(tool("get_article", article_id=TEXT)), "world_model", "article"),
        (service(tool("manage_note", action=TEXT, note_id=TEXT), tool("list_notes")), "nobody", "action"),
    ],
    ids=lambda value: value.tools[0].name if isinstance(value, ServiceSpec) else "",
)
def test_a_tool_that_rows_cannot_answer_is_left_out_with_a_reason(
    spec: ServiceSpec, candidate_for: str, word: str
) -> None:
    left_out = {item.tool: item for item in RulesAuthor().write(spec).left_out}
    found = left_out[spec.tools[0].name]
    assert found.candidate_for == candidate_for
    assert word in found.reason


_NAMES = st.one_of(
    st.sampled_from(
        "id from class limit page query status self key rows item items name owner_email note_id noteId due_date "
        "before min_total tags data type format model_config __x__ 1st é status[] a.b cursor offset sort from".split()
    ),
    st.text(max_size=8),
)
_SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "format": "date"},
            {"type": "string", "format": "date-time"},
            {"type": "string", "pattern": "^(?=a)b$"},
            {"type": "string", "enum": ["a", "b'\"", "all"], "default": "a"},
            {"type": "integer", "minimum": 1, "default": 0},
            {"type": "number", "maximum": 10, "default": 2.5},
            {"type": "boolean", "default": False},
            {"type": ["string", "null"]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            {},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda part: {"type": "array", "items": part, "minItems": 1, "default": []}, inner),
        st.builds(
            lambda parts: {"type": "object", "properties": parts, "required": list(parts)[:1]},
            st.dictionaries(_NAMES, inner, max_size=3),
        ),
    ),
    max_leaves=4,
)
_TOOLS = st.fixed_dictionaries(
    {
        "name": st.builds(
            lambda verb, noun: f"{verb}_{noun}",
            st.sampled_from("create get list update delete close search count send assign tag mark set foo".split()),
            st.sampled_from(
                "note notes page pages note_comment state format list service entity_paid user by_id".split()
            ),
        ),
        "description": st.text(max_size=60),
        "inputSchema": st.builds(
            lambda parts, count: {"type": "object", "properties": parts, "required": list(parts)[:count]},
            st.dictionaries(_NAMES, _SCHEMAS, max_size=5),
            st.integers(0, 3),
        ),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_TOOLS, min_size=1, max_size=7))
def test_any_normalised_spec_gives_a_module_that_loads(tools: list[dict[str, Any]]) -> None:
    spec, _ = normalise_server({"server": "any", "tools": tools}, "test")
    if spec is not None:
        check(spec, RulesAuthor().write(spec))


def test_the_author_knows_words_and_no_whole_tools() -> None:
    """A rule for one tool or one server would not be a rule."""
    names = {name for spec in BUNDLED for name in (spec.name, *(item.name for item in spec.tools)) if "_" in name}
    for file in Path(rules.__path__[0]).glob("*.py"):
        code = _without_docstrings(ast.parse(file.read_text(encoding="utf-8")))
        constants = (node.value for node in ast.walk(code) if isinstance(node, ast.Constant))
        strings = [value for value in constants if isinstance(value, str)]
        assert names & {word for value in strings for word in value.split()} == set(), file.name


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not isinstance(part, ast.Expr)]
    return tree


def test_a_drafted_module_reads_like_a_written_one() -> None:
    spec = service(
        tool("create_note", "Write a note.", title=TEXT, body=optional(TEXT)),
        tool("archive_note", "Put a note away.", note_id=TEXT),
        name="notes",
    )
    assert RulesAuthor().write(spec).source == NOTES


NOTES = '''"""A desk."""

from __future__ import annotations

from typing import Annotated, Literal

from compoworld_core.services.sdk import Entity, FailedPrecondition, Id, Service, State, Table, Text, Title, tool

NoteId = Annotated[str, Id("note")]


class Note(Entity):
    """A note."""

    id: NoteId
    title: Title
    body: Text | None = None
    status: Literal["active", "archived"] = "active"


class NotesState(State):
    """Everything that the notes keeps."""

    notes: Table[Note]


class Notes(Service[NotesState]):
    """A desk."""

    domain = "support"

    @tool(effect="write")
    def create_note(self, title: Title, body: Text | None = None) -> Note:
        """Write a note."""
        return self.state.notes.insert(title=title, body=body)

    @tool(effect="write")
    def archive_note(self, note_id: NoteId) -> Note:
        """Put a note away."""
        note = self.state.notes.get(note_id)
        if note.status == "archived":
            raise FailedPrecondition(f"note {note.id} is already archived")
        return self.state.notes.update(note.id, status="archived")
'''
