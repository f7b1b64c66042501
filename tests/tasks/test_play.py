from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from compoworld_core.services.running import CallResult
from compoworld_core.tasks.gates import run_gates
from compoworld_core.tasks.play import Stage, play
from compoworld_core.tasks.task import Solution
from compoworld_core.worlds.world import World
from tests.tasks.crafted import account, candidate, step


def test_playing_does_not_alter_the_world_that_is_given(world: World) -> None:
    before = {name: list(world.rows("mail", name)) for name in world.services["mail"].state.tables}

    played = play(candidate(world).solution, world)

    assert len(played.world.log) == 2
    assert world.log == []
    assert {name: list(world.rows("mail", name)) for name in before} == before


def test_the_answer_states_each_fact_under_its_label(world: World) -> None:
    played = play(candidate(world).solution, world)

    assert played.answer.splitlines() == [f"Tier: {account(world)['tier']}", f"Note: {played.facts[1]}"]
    assert played.refused == ()


def test_a_step_that_cannot_be_made_is_refused_and_the_rest_goes_on(world: World) -> None:
    solution = Solution(
        steps=(
            step("s1", "crm", "get_account", account_id="acc_none"),
            step("s2", "crm", "get_account", account_id={"$ref": "s1.data.id"}),
            step("s3", "crm", "get_account", account_id=account(world)["id"]),
        )
    )

    played = play(solution, world)

    assert played.refused == ("s1", "s2")
    assert set(played.envelopes) == {"s1", "s3"}


def test_variants_of_a_solution_see_only_their_own_writes(world: World) -> None:
    base = candidate(world).solution
    stage = Stage(world)

    full = stage.play(base)
    without_mail = stage.play(Solution(values=base.values, steps=(base.steps[0], base.steps[2])))
    again = stage.play(base)

    assert len(list(full.world.changed_rows("mail", "messages"))) == 1
    assert len(list(without_mail.world.changed_rows("mail", "messages"))) == 0
    assert again.answer == full.answer
    assert again.world is full.world


def test_a_read_after_a_write_is_answered_anew(world: World) -> None:
    key = account(world)["id"]
    solution = Solution(
        steps=(
            step("s1", "crm", "list_activities", account_id=key),
            step("s2", "crm", "log_activity", write=True, account_id=key, kind="note", subject="New"),
            step("s3", "crm", "list_activities", account_id=key),
        )
    )

    played = play(solution, world)

    assert len(played.envelopes["s3"]["data"]["items"]) == len(played.envelopes["s1"]["data"]["items"]) + 1


def test_no_call_is_made_twice_on_one_stage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[tuple[str, str, int]] = Counter()
    call = World.call

    def counted(self: World, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        made[tool, str(arguments), len(self.log)] += 1
        return call(self, tool, arguments)

    monkeypatch.setattr(World, "call", counted)
    report = run_gates(candidate(world), world, least_edges=4)

    assert report.passed
    assert made["search_accounts", str({"name": account(world)["name"]}), 0] == 1
