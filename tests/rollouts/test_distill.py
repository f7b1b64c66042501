"""Distillation gives the same rows in the same order, however many episodes run side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from compoworld_core.errors import BudgetExhausted, InputError, StorageError, TransientError
from compoworld_core.llm.messages import AssistantMessage
from compoworld_core.rollouts.distill import Notes, Skip, Stopping, distill
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.policy import Policy, PolicyFactory
from compoworld_core.rollouts.trajectory import TRAJECTORIES, Trajectory
from compoworld_core.storage import DatasetLocation, canonical_json, merge, open_store, read_dataset, write_shard
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from tests.rollouts.complaint import complaint_task
from tests.rollouts.policies import DONE, Scripted, Silent, calls, looping


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return [complaint_task(seed=seed) for seed in (3, 1, 2)]


def collect(
    tasks: list[Task],
    catalogue: Catalogue,
    factory: PolicyFactory,
    samples: int = 1,
    concurrency: int = 8,
    stopping: Stopping | None = None,
    notes: Notes | None = None,
) -> list[Trajectory]:
    async def run() -> list[Trajectory]:
        rows = distill(
            tasks, catalogue, factory, samples=samples, concurrency=concurrency, stopping=stopping, notes=notes
        )
        return [row async for row in rows]

    return asyncio.run(run())


class Slow(Scripted):
    """Lets other episodes go first, more often the earlier its place is."""

    def __init__(self, policy: Policy, pauses: int) -> None:
        self.name, self._policy, self._pauses = policy.name, policy, pauses

    async def respond(self, messages, tools) -> AssistantMessage:  # type: ignore[no-untyped-def]
        for _ in range(self._pauses):
            await asyncio.sleep(0)
        return await self._policy.respond(messages, tools)


def test_trajectories_are_byte_identical_whatever_the_concurrency(tasks: list[Task], catalogue: Catalogue) -> None:
    make = oracles(catalogue)
    places = {task.id: place for place, task in enumerate(tasks)}

    def slow(task: Task, index: int) -> Policy:
        return Slow(make(task, index), 7 - 2 * places[task.id] - index % 2)

    one = collect(tasks, catalogue, make, samples=4, concurrency=1)
    eight = collect(tasks, catalogue, slow, samples=4, concurrency=8)

    assert [canonical_json(row) for row in one] == [canonical_json(row) for row in eight]
    assert [(row.task_id, row.rollout_idx) for row in one] == [(task.id, i) for task in tasks for i in range(4)]
    assert all(row.succeeded for row in one)


def test_failing_episodes_leave_their_siblings_alone(tasks: list[Task], catalogue: Catalogue) -> None:
    oracle = oracles(catalogue)

    def broken_factory(task: Task, index: int) -> Policy:
        raise RuntimeError("no policy today")

    bad: list[PolicyFactory] = [
        lambda *_: Scripted(ZeroDivisionError),
        lambda *_: Scripted(asyncio.CancelledError),
        lambda *_: Scripted("garbage"),
        lambda *_: Scripted(looping()),
        lambda *_: Scripted(calls(("rm", {})), DONE),
        broken_factory,
        lambda *_: object(),  # type: ignore[list-item]
    ]

    def mixed(task: Task, index: int) -> Policy:
        return bad[index // 2](task, index) if index % 2 else oracle(task, index)

    rows = collect(tasks, catalogue, mixed, samples=2 * len(bad))

    assert len(rows) == 3 * 2 * len(bad)
    alone = collect(tasks, catalogue, oracle)
    for row in rows:
        if row.rollout_idx % 2 == 0:
            expected = next(item for item in alone if item.task_id == row.task_id)
            assert row.messages == expected.messages
            assert row.succeeded
        else:
            assert not row.succeeded
    kinds = [row.error and row.error.kind for row in rows if row.rollout_idx % 2][: len(bad)]
    assert kinds == ["policy", "policy", "policy", "limit", None, "policy", "bug"]


def test_world_that_cannot_be_opened_costs_its_own_rows_only(tasks: list[Task], catalogue: Catalogue) -> None:
    data = tasks[0].model_dump()
    data["recipe"]["services"][0]["package"] = "0" * 64

    rows = collect([tasks[0], Task.model_validate(data), tasks[1]], catalogue, oracles(catalogue))

    assert [row.error and row.error.kind for row in rows] == [None, "world", None]


def test_no_more_episodes_run_than_asked_for(tasks: list[Task], catalogue: Catalogue) -> None:
    active, most = 0, 0

    class Counting(Scripted):
        async def respond(self, messages, tools) -> AssistantMessage:  # type: ignore[no-untyped-def]
            nonlocal active, most
            active += 1
            most = max(most, active)
            for _ in range(20):
                await asyncio.sleep(0)
            active -= 1
            return DONE

    collect(tasks, catalogue, lambda *_: Counting(), samples=10, concurrency=3)

    assert most == 3


def test_episodes_in_progress_go_on_while_others_begin(tasks: list[Task], catalogue: Catalogue) -> None:
    diary: list[str] = []

    class Noting(Scripted):
        def __init__(self, index: int) -> None:
            super().__init__(DONE)
            self._index = index
            diary.append(f"{index} begins")

        async def respond(self, messages, tools) -> AssistantMessage:  # type: ignore[no-untyped-def]
            await asyncio.sleep(0)
            diary.append(f"{self._index} is answered")
            return DONE

    collect(tasks[:1], catalogue, lambda _, index: Noting(index), samples=20, concurrency=20)

    assert diary.index("0 is answered") < diary.index("19 begins")


def test_stopping_early_cancels_what_is_still_running(tasks: list[Task], catalogue: Catalogue) -> None:
    async def stop_after_one() -> int:
        rows = distill(tasks, catalogue, lambda task, _: Scripted(DONE) if task is tasks[0] else Silent())
        first = await anext(rows)
        await rows.aclose()  # type: ignore[attr-defined]
        assert first.rollout_idx == 0
        return len(asyncio.all_tasks())

    assert asyncio.run(stop_after_one()) == 1


def test_seconds_go_to_the_sidecar_only(tasks: list[Task], catalogue: Catalogue) -> None:
    notes = Notes()

    rows = collect(tasks, catalogue, oracles(catalogue), notes=notes)

    assert set(notes.seconds) == {f"{row.task_id}/0" for row in rows}
    assert "seconds" not in Trajectory.model_fields


def working(outcomes: str, catalogue: Catalogue) -> PolicyFactory:
    """Rollouts that succeed (`+`), fail (`-`), or end because nobody answers (`?`), by their index."""
    oracle = oracles(catalogue)
    other = {"-": DONE, "?": TransientError}
    return lambda task, index: oracle(task, index) if outcomes[index] == "+" else Scripted(other[outcomes[index]])


@pytest.mark.parametrize(
    ("outcomes", "stopping", "run", "skip"),
    [
        pytest.param("++++++", Stopping(settle_after=3), 3, Skip("always", 3), id="always"),
        pytest.param("------", Stopping(settle_after=3), 3, Skip("never", 3), id="never"),
        pytest.param("--+---", Stopping(settle_after=3), 6, None, id="sometimes"),
        pytest.param("---+++", Stopping(settle_after=6), 6, None, id="too few to settle"),
        pytest.param("-?--++", Stopping(settle_after=3), 4, Skip("never", 2), id="an outage tells nothing"),
        pytest.param("??????", Stopping(settle_after=2), 6, None, id="nothing but outages"),
        pytest.param("-+-+++", Stopping(enough=2), 4, Skip("enough", 2), id="enough"),
        pytest.param("++++++", Stopping(enough=1, settle_after=2), 1, Skip("enough", 5), id="one is enough"),
        pytest.param("+-++++", Stopping(enough=3, settle_after=2), 4, Skip("enough", 2), id="both"),
        pytest.param("------", Stopping(), 6, None, id="no rule"),
    ],
)
def test_task_is_left_when_further_rollouts_would_teach_nothing(
    outcomes: str, stopping: Stopping, run: int, skip: Skip | None, tasks: list[Task], catalogue: Catalogue
) -> None:
    notes = Notes()

    rows = collect(tasks[:2], catalogue, working(outcomes, catalogue), samples=6, stopping=stopping, notes=notes)

    assert [(row.task_id, row.rollout_idx) for row in rows] == [(task.id, i) for task in tasks[:2] for i in range(run)]
    assert [row.succeeded for row in rows] == [sign == "+" for sign in outcomes[:run]] * 2
    assert notes.skipped == ({task.id: skip for task in tasks[:2]} if skip else {})
    assert len(rows) + sum(item.rollouts for item in notes.skipped.values()) == 2 * 6, "every rollout is accounted for"


@pytest.mark.parametrize("fault", [BudgetExhausted, InputError, StorageError])
def test_what_stops_all_begins_no_episode_and_lets_those_in_progress_end(
    fault: type[Exception], tasks: list[Task], catalogue: Catalogue
) -> None:
    begun: list[int] = []
    ended: list[int] = []

    class Ends(Scripted):
        def __init__(self, index: int) -> None:
            super().__init__(fault if index == 0 else DONE)
            self._index = index
            begun.append(index)

        async def respond(self, messages, tools) -> AssistantMessage:  # type: ignore[no-untyped-def]
            for _ in range(9 + 20 * self._index):
                await asyncio.sleep(0)
            ended.append(self._index)
            return await super().respond(messages, tools)

    with pytest.raises(fault):
        collect(tasks[:1], catalogue, lambda _, index: Ends(index), samples=8, concurrency=3)

    assert begun == [0, 1, 2]
    assert ended == [0, 1, 2]


@pytest.mark.parametrize(("samples", "concurrency"), [(0, 1), (1, 0)])
def test_numbers_below_one_are_bad_input(
    samples: int, concurrency: int, tasks: list[Task], catalogue: Catalogue
) -> None:
    with pytest.raises(InputError, match="at least 1"):
        collect(tasks, catalogue, oracles(catalogue), samples=samples, concurrency=concurrency)


def test_trajectories_come_back_equal_from_a_dataset(tasks: list[Task], catalogue: Catalogue, tmp_path: Path) -> None:
    rows = [
        *collect(tasks, catalogue, oracles(catalogue)),
        *collect(tasks, catalogue, lambda *_: Scripted(calls(("list_tools", "not JSON")), ZeroDivisionError)),
    ]
    store, location = open_store(tmp_path), DatasetLocation(dataset="trajectories", key="k")

    write_shard(store, location, TRAJECTORIES, 0, rows, deterministic=True)
    commit = merge(store, location, TRAJECTORIES, 1)
    back = list(read_dataset(store, location, TRAJECTORIES))

    assert commit.rows == len(rows)
    assert back == rows
    assert [row.id for row in back] == [row.id for row in rows]
