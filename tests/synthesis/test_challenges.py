"""Challenges as a gate: who is blamed, and that nobody gets through unchallenged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.synthesis.admission import Admission, admit
from compoworld_core.synthesis.build import build_package
from compoworld_core.synthesis.rules import RulesAuthor
from compoworld_core.synthesis.selftest import Expectation, SelfTest, Step, dump_tests
from tests.synthesis.rules.drafts import TEXT, service, tool

SPEC = service(tool("create_note", text=TEXT), tool("get_note", note_id=TEXT))


@pytest.fixture(scope="module")
def pool() -> Iterator[HostPool]:
    with HostPool() as pool:
        yield pool


def challenge(tool: str, *steps: Step, kind: Any = "normal") -> SelfTest:
    return SelfTest(name=f"challenge to {tool}", tool=tool, kind=kind, steps=steps)


def create(text: str = "a text of its own", **expect: Any) -> Step:
    return Step(tool="create_note", arguments={"text": text}, expect=Expectation(**expect))


def get(key: Any, **expect: Any) -> Step:
    return Step(tool="get_note", arguments={"note_id": key}, expect=Expectation(**expect))


NEW = {"$ref": "s1.data.id"}
HONEST = (
    challenge("create_note", create(contains=["a text of its own"])),
    challenge("get_note", create(), get(NEW, contains=["a text of its own"])),
)


def packed(pool: HostPool, challenges: str, source: str | None = None) -> ServicePackage:
    draft = RulesAuthor().write(SPEC)
    return build_package(SPEC, source or draft.source, "pi", dump_tests(draft.tests), pool, challenges=challenges)


def admitted(pool: HostPool, challenges: str | Sequence[SelfTest]) -> dict[str, Admission]:
    text = challenges if isinstance(challenges, str) else dump_tests(challenges)
    package = packed(pool, text)
    return {item.tool: item for item in admit(package, pool.backend(package))}


def test_a_service_that_withstands_its_challenges_is_verified_with_the_evidence(pool: HostPool) -> None:
    admissions = admitted(pool, HONEST)

    assert {item.outcome for item in admissions.values()} == {"verified"}
    for item in admissions.values():
        (finding,) = [check for check in item.checks if check.check == "withstands_challenges"]
        assert finding.detail == "withstood 1 independent challenges"


def test_where_nobody_was_asked_nothing_is_missed(pool: HostPool) -> None:
    admissions = admitted(pool, "")

    assert {item.outcome for item in admissions.values()} == {"verified"}
    assert not any(check.check == "withstands_challenges" for item in admissions.values() for check in item.checks)


def test_a_challenge_that_fails_quarantines_its_tool_only(pool: HostPool) -> None:
    admissions = admitted(pool, (*HONEST, challenge("get_note", create(), get(NEW, contains=["another"]))))

    assert admissions["create_note"].outcome == "verified"
    assert admissions["get_note"].reason == (
        "withstands_challenges: challenge to get_note: step 2, get_note: the answer does not contain 'another'"
    )


def test_who_fails_before_the_tool_is_called_is_to_blame(pool: HostPool) -> None:
    admissions = admitted(pool, (*HONEST, challenge("get_note", create(error="already_exists"), get(NEW))))

    assert admissions["get_note"].outcome == "verified"
    assert "expected already_exists" in admissions["create_note"].reason


@pytest.mark.parametrize(
    ("challenges", "reason"),
    [
        ("[]", "no independent challenge reached it"),
        (dump_tests([HONEST[0]]), "no independent challenge reached it"),
        (dump_tests([challenge("get_note", Step(tool="burn_note"), get("x"))]), "no independent challenge reached it"),
        ("nonsense", "the challenges are unreadable"),
    ],
    ids=["none", "others", "left-out-tools", "unreadable"],
)
def test_a_tool_that_nobody_challenged_is_not_verified(pool: HostPool, challenges: str, reason: str) -> None:
    assert reason in admitted(pool, challenges)["get_note"].reason


def test_challenges_are_part_of_what_is_shipped(pool: HostPool) -> None:
    without, challenged = packed(pool, ""), packed(pool, dump_tests(HONEST))

    assert "challenges.json" not in without.files()
    assert challenged.files()["challenges.json"] == dump_tests(HONEST)
    assert without.digest != challenged.digest
