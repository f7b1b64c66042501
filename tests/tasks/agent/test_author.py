"""Authors at work: a model over real HTTP, sessions side by side, and every attempt accounted for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compoworld_core.errors import BudgetExhausted, TransientError
from compoworld_core.llm.config import Budget, Endpoint, ModelConfig
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.messages import AssistantMessage, Message
from compoworld_core.llm.pool import ModelPool
from compoworld_core.llm.sessions import find
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage import Store, open_store
from compoworld_core.tasks.agent.author import Writer, author_tasks
from compoworld_core.tasks.agent.session import SessionLimits, prompts
from compoworld_core.tasks.bindings import _OPERATORS
from compoworld_core.tasks.rubric import verify
from compoworld_core.tasks.sampler import ACCEPTED, PROFILES, Attempt, ServiceTools, TaskSettings
from compoworld_core.tasks.task import Difficulty
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world
from tests.llm_server import Faults, LlmServer, Reply
from tests.llm_server.scripts import task_author
from tests.llm_server.scripts.task_author import Manner
from tests.tasks.crafted import catalogue_of

Services = tuple[Catalogue, list[ServiceTools]]


def settings_of(count: int, profile: Difficulty = "easy", tries: int = 24) -> TaskSettings:
    return TaskSettings(count=count, seed=5, profile=profile, held_out_services=0, attempts_per_task=tries)


@pytest.fixture(scope="module")
def studio() -> Services:
    """The author's own services, for it works in the server's thread."""
    return catalogue_of(4)


class Office:
    """Runs an author over real HTTP."""

    def __init__(self, services: Services, studio: Services, store: Store) -> None:
        self.services = services
        self.studio = studio
        self.store = store
        self.asked = 0
        self.spend: list[JsonObject] = []

    def attempts(
        self,
        settings: TaskSettings,
        manner: Manner = "diligent",
        *,
        concurrency: int = 8,
        limits: SessionLimits | None = None,
        budget: Budget | None = None,
        faults: Faults | None = None,
        shard: int = 0,
        shards: int = 1,
    ) -> list[Attempt]:
        script = task_author.of_services(self.studio[1], self.studio[0], settings, manner)
        found: list[Attempt] = []

        async def work(server: LlmServer) -> None:
            config = ModelConfig(model="writer-large", endpoints=(Endpoint(base_url=server.base_url),))
            async with ModelPool({"writer": config}, Journal(self.store), budget) as pool:
                writer = Writer(
                    "writer",
                    config.parameters(),
                    lambda item: pool.model("writer", item=item),
                    lambda item, kept: pool.repeat("writer", item=item, requests=kept.requests, usage=kept.usage),
                )
                catalogue, tools = self.services
                async for attempt in author_tasks(
                    settings,
                    tools,
                    catalogue,
                    writer,
                    self.store,
                    shard,
                    shards,
                    limits=limits,
                    concurrency=concurrency,
                ):
                    found.append(attempt)
                self.spend = pool.spend()

        with LlmServer({"writer-large": script}, faults) as server:
            try:
                asyncio.run(work(server))
            finally:
                self.asked = len(server.requests)
        return found


@pytest.fixture
def office(services: Services, studio: Services, tmp_path: Path) -> Office:
    return Office(services, studio, open_store(tmp_path))


def test_an_author_makes_standard_tasks_after_repairing_what_gates_refuse(office: Office) -> None:
    made = office.attempts(settings_of(1, "standard"))

    tasks = [item.task for item in made if item.task]
    assert len(tasks) == 1
    for item in made:
        assert item.authoring is not None
        assert item.authoring.prompts == tuple(prompt.label for prompt in prompts())
        assert item.task is None or item.authoring.refused
    profile = PROFILES["standard"]
    for task in tasks:
        assert task.author == "agent"
        assert set(task.walk) == set(task.core)
        assert profile.visits[0] <= len(task.walk) <= profile.visits[1]
        assert len(task.edges) >= profile.edges
        idle = verify(task.rubric, open_world(task.recipe, office.services[0]), "")
        assert tuple(item.holds_initially for item in task.rubric.criteria) == idle.passed


def test_attempts_do_not_depend_on_how_many_sessions_run_side_by_side(
    office: Office, services: Services, studio: Services, tmp_path: Path
) -> None:
    alone = Office(services, studio, open_store(tmp_path / "other"))

    assert office.attempts(settings_of(4), concurrency=8) == alone.attempts(settings_of(4), concurrency=1)


def test_sessions_that_have_ended_are_never_held_again(office: Office) -> None:
    first = office.attempts(settings_of(3))
    paid = office.spend

    again = office.attempts(settings_of(3))

    assert again == first
    assert office.asked == 0
    assert office.spend == [{**row, "journaled": row["requests"]} for row in paid], "they cost what they cost"


def test_a_kept_session_counts_with_the_answer_that_ended_it(office: Office) -> None:
    faults = Faults(at=dict.fromkeys((2, 3, 4), "empty"))
    made = office.attempts(settings_of(1, tries=1), concurrency=1, faults=faults)
    paid = office.spend

    assert office.attempts(settings_of(1, tries=1)) == made
    assert [item.outcome for item in made] == ["model_failure"]
    assert office.spend == [{**row, "journaled": row["requests"]} for row in paid]


def test_transcripts_are_kept_with_what_led_to_them(office: Office) -> None:
    attempt = office.attempts(settings_of(1))[-1]
    assert attempt.authoring is not None

    session = find(office.store, attempt.authoring.session)

    assert session is not None
    assert (session.kind, session.outcome, session.model) == ("task_author", ACCEPTED, "writer")
    assert [message["role"] for message in session.transcript[:3]] == ["system", "user", "assistant"]
    assert sum(message["role"] == "assistant" for message in session.transcript) == attempt.authoring.turns
    assert json.loads(session.transcript[-1]["content"])["data"]["accepted"] is True


def test_a_task_counts_by_the_gates_that_there_are_now(office: Office) -> None:
    attempt = office.attempts(settings_of(1))[-1]
    assert attempt.authoring is not None
    name = f"sessions/{attempt.authoring.session}.json"
    stored = json.loads(office.store.read(name) or b"")
    stored["result"]["submission"]["criteria"] = stored["result"]["submission"]["criteria"][:1]
    stored["result"]["submission"]["criteria"][0]["condition"] = {"kind": "all", "parts": []}
    office.store.delete(name)
    office.store.create(name, json.dumps(stored).encode())

    again = office.attempts(settings_of(1))[-1]

    assert again.task == attempt.task
    assert office.asked == 0, "the journal has every answer of the session that is held again"


@pytest.mark.parametrize(
    ("manner", "outcome", "detail"),
    [
        ("vacuous", "no_op", "doing nothing passes"),
        ("prose", "author_gave_up", "no tool call"),
        ("malformed", "author_gave_up", "without a call that can be read"),
    ],
)
def test_authors_who_do_not_do_the_work_get_no_task(manner: Manner, outcome: str, detail: str, office: Office) -> None:
    made = office.attempts(settings_of(1, tries=2), manner, limits=SessionLimits(submissions=2))

    assert [item.outcome for item in made] == [outcome, outcome]
    assert all(detail in item.detail for item in made)
    assert all(item.task is None for item in made)


@pytest.mark.parametrize("limits", [SessionLimits(turns=3), SessionLimits(characters=30_000)])
def test_sessions_end_at_their_limits(limits: SessionLimits, office: Office) -> None:
    made = office.attempts(settings_of(1, tries=1), limits=limits)

    assert [item.outcome for item in made] == ["budget"]
    assert "nothing submitted" in made[0].detail


def test_a_model_that_cannot_go_on_costs_that_attempt_only(office: Office) -> None:
    made = office.attempts(settings_of(2), concurrency=1, faults=Faults(at={2: "context"}))

    assert made[0].outcome == "model_failure"
    assert sum(item.task is not None for item in made) == 2


def test_a_spent_budget_stops_the_stage_and_loses_nothing(
    office: Office, services: Services, studio: Services, tmp_path: Path
) -> None:
    whole = Office(services, studio, open_store(tmp_path / "other"))
    expected = whole.attempts(settings_of(3), concurrency=1)

    with pytest.raises(BudgetExhausted):
        office.attempts(settings_of(3), concurrency=1, budget=Budget(tokens=60_000))
    before = office.asked
    finished = office.attempts(settings_of(3), concurrency=1)

    assert finished == expected
    assert before + office.asked == whole.asked


class Silent:
    """A model that nobody can reach."""

    name = "writer"

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        raise TransientError("nobody answers")


def test_an_outage_does_not_use_up_the_tries(office: Office) -> None:
    found: list[Attempt] = []
    model: Callable[[str], Silent] = lambda item: Silent()  # noqa: E731

    async def work() -> None:
        catalogue, tools = office.services
        writer = Writer("writer", {}, model, lambda item, kept: None)
        async for attempt in author_tasks(settings_of(5), tools, catalogue, writer, office.store, 0, 1):
            found.append(attempt)

    with pytest.raises(TransientError, match="3 sessions in a row got no answer: nobody answers"):
        asyncio.run(work())

    assert [item.outcome for item in found] == ["model_failure"] * 3


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_together_make_the_wanted_number(shards: int, office: Office) -> None:
    made = [item for shard in range(shards) for item in office.attempts(settings_of(4), shard=shard, shards=shards)]

    assert sum(item.task is not None for item in made) == 4
    assert len({item.number for item in made}) == len(made)


def test_authors_are_told_of_every_binding_that_there_is() -> None:
    rules, _ = prompts()

    assert all(f'"{operator}"' in rules.text for operator in _OPERATORS)


def test_the_scripted_author_is_as_stateless_as_a_real_one(studio: Services) -> None:
    settings = settings_of(1)
    one = task_author.of_services(studio[1], studio[0], settings)
    body = {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "Make something up."}]}

    with pytest.raises(LookupError):
        one(body)
    assert isinstance(task_author.of_services(studio[1], studio[0], settings, "prose")(body), Reply)
