"""The held-out suite: what bounds its scores, what is a policy's own fault, and that the same seed says the same."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from compoworld_core.errors import InputError, TransientError
from compoworld_core.evaluation.calls import count_calls
from compoworld_core.evaluation.figures import figures
from compoworld_core.evaluation.heldout import run_trials
from compoworld_core.evaluation.references import REFERENCES
from compoworld_core.evaluation.trial import Trial
from compoworld_core.llm.config import Price
from compoworld_core.llm.messages import AssistantMessage, Usage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.rollouts.distill import Notes
from compoworld_core.rollouts.episode import EpisodeLimits, run_episode
from compoworld_core.rollouts.policy import PolicyFactory
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world
from tests.rollouts.complaint import complaint_task, open_catalogue
from tests.rollouts.policies import DONE, Scripted, calls, looping

TASKS = [complaint_task(seed=seed, split="eval_combo") for seed in (8141, 8142, 8143)]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return open_catalogue()


def tried(catalogue: Catalogue, policies: PolicyFactory, *, trials: int = 1, **options: Any) -> list[Trial]:
    async def everything() -> list[Trial]:
        known: dict[str, Any] = {"limits": EpisodeLimits(max_steps=30), "price": None, "versions": {}, "concurrency": 2}
        found = run_trials(TASKS, catalogue, policies, model="it", trials=trials, notes=Notes(), **{**known, **options})
        return [trial async for trial, _ in found]

    return asyncio.run(everything())


def reference(catalogue: Catalogue, name: str, seed: int = 0, trials: int = 1) -> list[Trial]:
    return tried(catalogue, REFERENCES[name](catalogue, seed), trials=trials)


def test_the_oracle_passes_everything(catalogue: Catalogue) -> None:
    found = figures(reference(catalogue, "oracle"))

    assert (found.passed.value, found.earned.value, found.valid_calls.value) == (1, 1, 1)


def test_doing_nothing_passes_nothing_but_what_holds_anyway(catalogue: Catalogue) -> None:
    trials = reference(catalogue, "no-op")

    assert all(trial.criteria == trial.idle for trial in trials)
    assert figures(trials).partial.value == pytest.approx(2 / 6)
    assert (figures(trials).passed.value, figures(trials).earned.value) == (0, 0)


def test_a_random_agent_makes_valid_calls_and_passes_nothing(catalogue: Catalogue) -> None:
    trials = reference(catalogue, "random", trials=2)

    assert [(trial.task, trial.trial) for trial in trials] == [(task.id, trial) for task in TASKS for trial in (0, 1)]
    assert all(trial.calls == trial.valid_calls and trial.calls for trial in trials)
    assert figures(trials).passed.value == 0


def test_the_same_seed_has_the_same_trials_and_another_has_others(catalogue: Catalogue) -> None:
    def drawn(seed: int) -> list[Any]:
        agent = REFERENCES["random"](catalogue, seed)
        played = asyncio.run(run_episode(TASKS[0], catalogue, agent(TASKS[0], 0)))
        return [call.arguments for call in played.calls]

    assert reference(catalogue, "random", seed=1) == reference(catalogue, "random", seed=1)
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("says", "passed", "error"),
    [
        pytest.param(ValueError, False, "policy: ValueError: by design", id="it breaks"),
        pytest.param(looping(), False, "limit: no answer after 30 messages", id="it never ends"),
        pytest.param(TransientError, None, "transient: TransientError: by design", id="nobody answers"),
    ],
)
def test_a_policy_answers_for_its_own_failures_only(
    catalogue: Catalogue, says: Any, passed: bool | None, error: str
) -> None:
    trials = tried(catalogue, lambda task, trial: Scripted(says))

    assert {(trial.passed, trial.error) for trial in trials} == {(passed, error)}
    assert all(trial.criteria == (trial.idle if passed is not None else ()) for trial in trials)


def test_a_world_that_does_not_open_is_no_failure_of_the_policy(catalogue: Catalogue) -> None:
    def policies(task: Any, trial: int) -> Any:
        raise InputError("the world is not there")

    trials = tried(catalogue, policies)

    assert {(trial.passed, trial.score, trial.criteria) for trial in trials} == {(None, None, ())}
    assert all(trial.error and "the world is not there" in trial.error for trial in trials)


def test_a_model_that_ran_out_of_room_has_failed(catalogue: Catalogue) -> None:
    def full() -> Any:
        raise ModelFailure("context", "5000 tokens, too many")

    (error,) = {trial.error for trial in tried(catalogue, lambda task, trial: Scripted(full))}

    assert error == "limit: ModelFailure: 5000 tokens, too many"


def test_trials_tell_what_they_took(catalogue: Catalogue) -> None:
    answer = AssistantMessage(content="Done.", usage=Usage(prompt_tokens=1000, completion_tokens=10))
    price = Price(prompt=Decimal(3), completion=Decimal(100))

    trial = tried(catalogue, lambda task, trial: Scripted(answer), price=price, versions={"grader": "g"})[0]

    assert (trial.prompt_tokens, trial.completion_tokens, trial.usd, trial.steps) == (1000, 10, 0.004, 1)
    assert (trial.domain, trial.difficulty, trial.versions) == ("eval_combo", "easy", {"grader": "g"})


@pytest.mark.parametrize(
    ("says", "made", "valid"),
    [
        pytest.param([calls(("list_services", {}), ("list_tools", {"service": "crm"})), DONE], 2, 2, id="valid"),
        pytest.param([calls(("list_tools", {"service": 7})), DONE], 1, 0, id="wrong type"),
        pytest.param([calls(("list_tools", {})), DONE], 1, 0, id="lacks one"),
        pytest.param([calls(("list_tools", "{oops")), DONE], 1, 0, id="no object"),
        pytest.param([calls(("open_case", {})), DONE], 1, 0, id="no meta-tool"),
        pytest.param([calls(("call_tool", {"tool_name": "nothing", "arguments": {}})), DONE], 1, 0, id="no tool"),
        pytest.param(
            [calls(("call_tool", {"tool_name": "get_account", "arguments": {}})), DONE], 1, 0, id="inner lacks one"
        ),
        pytest.param(
            [calls(("call_tool", {"tool_name": "get_account", "arguments": {"account_id": "acc_9"}})), DONE],
            1,
            1,
            id="valid, although nothing is found",
        ),
        pytest.param([AssistantMessage(content="<tool_call>\n<function=list_tools")], 1, 0, id="broken markup"),
        pytest.param([ValueError], 1, 0, id="unreadable"),
        pytest.param([DONE], 0, 0, id="none"),
    ],
)
def test_calls_are_valid_by_the_schemas_of_their_tools(
    catalogue: Catalogue, says: list[Any], made: int, valid: int
) -> None:
    played = asyncio.run(run_episode(TASKS[0], catalogue, Scripted(*says)))

    assert count_calls(played, open_world(TASKS[0].recipe, catalogue).tools) == (made, valid)
