from __future__ import annotations

import pytest
from pydantic import ValidationError

from compoworld_core.tasks.play import play
from compoworld_core.tasks.rubric import Rubric, first_failure, verify
from compoworld_core.tasks.task import Solution
from compoworld_core.worlds.world import World
from tests.tasks.crafted import candidate


def test_a_verdict_names_what_failed_in_the_rubrics_order(world: World) -> None:
    base = candidate(world)
    half_done = Solution(values=base.solution.values, steps=base.solution.steps[:2])

    played = play(half_done, world)
    verdict = verify(base.rubric, played.world, "done")

    assert verdict.criteria == ("message", "note", "answer")
    assert verdict.passed == (True, False, False)
    assert verdict.failed == ("note", "answer")
    assert verdict.score == pytest.approx(1 / 3)
    assert not verdict.success


def test_a_full_pass_has_no_first_failure(world: World) -> None:
    base = candidate(world)
    played = play(base.solution, world)

    assert verify(base.rubric, played.world, played.answer).success
    assert first_failure(base.rubric, played.world, played.answer) is None
    assert first_failure(base.rubric, played.world, None) == "answer"
    assert first_failure(base.rubric, world, played.answer) is not None


def test_an_empty_rubric_is_an_error() -> None:
    with pytest.raises(ValidationError):
        Rubric(criteria=())


def test_judging_leaves_the_world_as_it_is(world: World) -> None:
    base = candidate(world)
    before = list(world.rows("mail", "messages"))

    verify(base.rubric, world, "")

    assert list(world.rows("mail", "messages")) == before
    assert world.log == []
