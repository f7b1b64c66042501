"""Synthesize: who may be configured to write, and that no tool of a spec gets lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import BudgetExhausted, InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.work.synthesize import SynthesizeConfig, synthesize
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.storage.digest import digest
from compoworld_core.synthesis.author import AuthorFailed, Draft, LeftOut
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.synthesis.rules.author import RulesAuthor
from tests.synthesis.rules.drafts import TEXT, service, tool

SPEC = service(tool("create_note", text=TEXT), tool("get_note", note_id=TEXT), tool("delete_note", note_id=TEXT))
MODELS = "llm: {models: {big: {model: b}, small: {model: s}}}\n"


class Scribe:
    """Hands over what the rules author would, changed."""

    name = "pi"

    def __init__(self, change: Callable[[Draft], Mapping[str, Any]]) -> None:
        self._change = change

    def write(self, spec: ServiceSpec) -> Draft:
        draft = RulesAuthor().write(spec)
        return Draft.model_validate({**dict(draft), **self._change(draft)})


def rows_of(change: Callable[[Draft], Mapping[str, Any]]) -> tuple[list[ServicePackage], dict[str, Omission]]:
    rows = list(synthesize(SPEC, Scribe(change)))
    packages = [row for row in rows if isinstance(row, ServicePackage)]
    return packages, {row.tool: row for row in rows if isinstance(row, Omission)}


def without_deletion(draft: Draft) -> str:
    start = draft.source.index('    @tool(effect="write")\n    def delete_note')
    return draft.source[:start]


def test_a_tool_that_the_author_forgot_is_an_omission() -> None:
    (package,), omissions = rows_of(lambda draft: {"source": without_deletion(draft)})

    assert {item.name for item in package.spec.tools} == {"create_note", "get_note"}
    assert {tool: row.reason for tool, row in omissions.items()} == {"delete_note": "author"}


def test_a_tool_that_is_left_out_and_there_all_the_same_is_no_omission() -> None:
    left = LeftOut(tool="get_note", candidate_for="nobody", reason="unclear")

    (package,), omissions = rows_of(lambda draft: {"left_out": (left,)})

    assert len(package.spec.tools) == 3
    assert not omissions


def test_a_source_that_cannot_be_built_loses_no_tool() -> None:
    left = LeftOut(tool="get_note", candidate_for="world_model", reason="outside")

    packages, omissions = rows_of(lambda draft: {"source": "import os\n", "left_out": (left,)})

    assert not packages
    assert {tool: row.reason for tool, row in omissions.items()} == {
        "create_note": "disallowed",
        "get_note": "world_model",
        "delete_note": "disallowed",
    }


def test_an_author_who_has_nothing_says_why() -> None:
    def fail(draft: Draft) -> Mapping[str, Any]:
        raise AuthorFailed("budget", "its time was spent")

    _, omissions = rows_of(fail)

    assert {(row.reason, row.detail) for row in omissions.values()} == {("budget", "its time was spent")}
    assert len(omissions) == 3


def test_a_spent_stage_is_no_omission() -> None:
    def fail(draft: Draft) -> Mapping[str, Any]:
        raise BudgetExhausted("spent")

    with pytest.raises(BudgetExhausted):
        rows_of(fail)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("synthesize: {author: pi}", "synthesize.model: author pi needs one"),
        ("synthesize: {model: big}", "synthesize.author: is rules, which asks no model"),
        ("synthesize: {author: pi, model: huge}", "synthesize.model: llm.models has no 'huge'; there is big, small"),
        ("synthesize: {author: pi, model: big, adversary: x}", "synthesize.adversary: llm.models has no 'x'"),
    ],
    ids=["no-model", "rules", "unknown", "unknown-adversary"],
)
def test_models_have_to_fit_the_author(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(MODELS + text)

    with pytest.raises(InputError, match=message):
        load_config(file, environment={})


def test_what_is_written_depends_on_how_far_sessions_go_but_not_on_where() -> None:
    base = SynthesizeConfig(author="pi", model="big")
    fields = {name: getattr(base, name) for name in ("author", "model")}
    elsewhere = SynthesizeConfig.model_validate({**fields, "session": {"isolation": "network_policy"}})
    further = SynthesizeConfig.model_validate({**fields, "session": {"turns": 300}})

    assert digest(base) == digest(elsewhere)
    assert digest(base) != digest(further)
