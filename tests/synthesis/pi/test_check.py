"""The check command: it finds what admission would, in words that never vary; the guides keep to what it accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compoworld_core.llm.prompts import load_prompt
from compoworld_core.services.hosted import HostPool
from compoworld_core.synthesis.admission import admit
from compoworld_core.synthesis.bench import Bench
from compoworld_core.synthesis.build import build_package
from compoworld_core.synthesis.claims import check_challenges as run_challenges
from compoworld_core.synthesis.pi.check import Report, check_challenges, check_service
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.synthesis.selftest import dump_tests
from tests.synthesis.pi import planted
from tests.synthesis.rules.drafts import NUMBER, TEXT, optional, service, tool

PRIORITY = optional({"type": "string", "enum": ["low", "high"]})
STATUS = optional({"type": "string", "enum": ["active", "archived"]})

NOTEBOOK = service(
    tool("add_note", "Add a note.", title=TEXT, body=TEXT, priority=PRIORITY),
    tool("get_note", "Get a note.", note_id=TEXT),
    tool("list_notes", "List notes.", status=STATUS, limit=optional(NUMBER), cursor=optional(TEXT)),
    tool("archive_note", "Archive a note.", note_id=TEXT),
    tool("delete_note", "Delete a note.", note_id=TEXT),
    name="notebook",
)


@pytest.fixture(scope="module")
def pool() -> Iterator[HostPool]:
    with HostPool(call_s=2.0) as pool:
        yield pool


def examples(guide: str) -> dict[str, str]:
    """The files that a guide shows."""
    text = load_prompt("compoworld_core.synthesis.pi", guide, 1).text
    return dict(re.findall(r"^```\w+ ([\w.]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_the_guides_example_passes_its_own_check(pool: HostPool) -> None:
    assert check_service(NOTEBOOK, examples("author-guide"), pool) == Report((), "whole")


def test_the_guides_example_is_admitted_and_withstands_the_other_guides_challenges(pool: HostPool) -> None:
    files, challenges = examples("author-guide"), examples("adversary-guide")["challenges.json"]
    package = build_package(NOTEBOOK, files["service.py"], "pi", files["tests.json"], pool, challenges=challenges)

    found = run_challenges(Bench(package, pool.backend(package), 0))

    assert found["get_note"].detail == "withstood 2 independent challenges"
    assert found["delete_note"].passed
    assert found["archive_note"].detail == "no independent challenge reached it"


def changed(files: Mapping[str, str], name: str, old: str, new: str) -> dict[str, str]:
    assert old in files[name]
    return {**files, name: files[name].replace(old, new)}


def left_out(*tools: str) -> str:
    return json.dumps([{"tool": name, "candidate_for": "nobody", "reason": "unclear"} for name in tools])


GOOD = examples("author-guide")


@pytest.mark.parametrize(
    ("files", "made", "problem"),
    [
        ({}, "nothing", "tests.json: is not there"),
        ({"tests.json": "[]"}, "nothing", "service.py: is not there"),
        ({**GOOD, "tests.json": '[{"name": 1}]'}, "nothing", "tests.json: 0.name"),
        ({**GOOD, "left_out.json": "{}"}, "nothing", "left_out.json: "),
        (changed(GOOD, "service.py", "from typing", "import os\nfrom typing"), "draft", "disallowed: service.py:5"),
        (changed(GOOD, "service.py", "def get_note", "def get_notes"), "draft", "the spec has no tool get_notes"),
        ({**GOOD, "left_out.json": left_out("get_note")}, "whole", "get_note: is in service.py and in left_out.json"),
        ({**GOOD, "left_out.json": left_out("burn")}, "whole", "burn: is in left_out.json, but the spec has no such"),
        (changed(GOOD, "tests.json", '"tool": "get_note", "kind": "error"', '"tool": "get_note", "kind": "normal"'),
         "whole", "get_note: has no test of kind 'error'"),
        (changed(GOOD, "service.py", 'status="archived")', 'status="active")'), "whole", "archive_note: self_tests: "),
        (changed(GOOD, "service.py", "return self.state.notes.get(note_id)", "return 1 / 0"),
         "whole", "get_note: never_breaks: ZeroDivisionError"),
    ],
    ids=["nothing", "no-service", "tests", "left-out", "import", "tool", "both", "unknown", "untested", "wrong", "bug"],
)  # fmt: skip
def test_what_is_wrong_is_said(files: dict[str, str], made: str, problem: str, pool: HostPool) -> None:
    report = check_service(NOTEBOOK, files, pool)

    assert report.made == made
    assert problem in report.text
    assert report.text.startswith("FAILED\n")
    assert report == check_service(NOTEBOOK, files, pool)


def test_tools_may_all_be_left_out(pool: HostPool) -> None:
    files = {"tests.json": "[]", "left_out.json": left_out(*(item.name for item in NOTEBOOK.tools))}

    assert check_service(NOTEBOOK, files, pool).passed


def test_a_tool_may_not_be_forgotten(pool: HostPool) -> None:
    spec = service(*NOTEBOOK.tools, tool("burn_note", "Burn a note.", note_id=TEXT), name="notebook")

    assert "burn_note: is neither in service.py nor in left_out.json" in check_service(spec, GOOD, pool).text


def test_a_vacuous_author_hears_nothing_of_what_admission_will_find(pool: HostPool) -> None:
    draft = planted.planting("constant")(planted.SPEC)
    tests = dump_tests(draft.tests)
    package = build_package(planted.SPEC, draft.source, "pi", tests, pool)

    report = check_service(planted.SPEC, {"service.py": draft.source, "tests.json": tests}, pool)

    assert report.passed
    assert [item.outcome for item in admit(package, pool.backend(package))] == ["quarantined"]


def challenge(**changes: Any) -> list[dict[str, Any]]:
    base = {"name": "c", "tool": "get_note", "kind": "normal", "steps": [{"tool": "get_note"}], **changes}
    return [base]


@pytest.mark.parametrize(
    ("challenges", "problem"),
    [
        (challenge(given=[{"table": "notes", "row": {}}]), "has given rows"),
        (challenge(tool="burn_note"), "the spec has no tool 'burn_note'"),
        (challenge(steps=[{"tool": "list_notes"}]), "never calls get_note"),
        (challenge(steps=[{"tool": "get_note", "expect": {"contains": [""]}}]), "an empty text is in every answer"),
        (challenge(), "add_note: has 0 challenges"),
        (challenge(), "get_note: has 1 challenges; write at least 2"),
    ],
    ids=["given", "unknown", "elsewhere", "empty", "none", "few"],
)
def test_challenges_are_checked_for_their_form(challenges: list[dict[str, Any]], problem: str) -> None:
    assert problem in check_challenges(NOTEBOOK, {"challenges.json": json.dumps(challenges)}).text


def test_well_formed_challenges_pass() -> None:
    tests = [test for test in RulesAuthor().write(NOTEBOOK).tests if not test.given]
    names = {item.name for item in NOTEBOOK.tools}
    enough = [test for test in tests for _ in range(2)]
    more = [item for name in sorted(names) for item in challenge(tool=name, steps=[{"tool": name}]) * 2]

    text = json.dumps([*json.loads(dump_tests(enough)), *more])

    assert check_challenges(NOTEBOOK, {"challenges.json": text}) == Report((), "whole")
