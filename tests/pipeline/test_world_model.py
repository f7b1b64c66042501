"""Many episodes put calls to one world model, over real HTTP, and a second run repeats every one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import BudgetExhausted, CompoWorldError
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.llm.config import Budget, Endpoint, ModelConfig
from compoworld_core.llm.messages import UserMessage
from compoworld_core.pipeline.stage import Shard
from compoworld_core.pipeline.work.models import open_pool
from compoworld_core.pipeline.work.sample_tasks import admitted
from compoworld_core.pipeline.work.world_model import LoopAsk, open_world_model
from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.trajectory import Trajectory, touches_world_model
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.world_model.settings import WorldModelConfig, WorldModelUser
from compoworld_core.specs.model import ToolSpec
from compoworld_core.storage import canonical_json
from compoworld_core.storage.files import FileStore
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.datasets import VERIFICATIONS
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin
from tests.llm_server import LlmServer
from tests.llm_server.scripts.world_model import Simulator, breaks_types
from tests.rollouts.complaint import SERVICES, complaint_task, pin
from tests.rollouts.policies import DONE, Scripted, calls

EPISODES = 100

LOG_VISIT = ToolSpec(
    name="log_visit",
    description="Note a visit that somebody outside has made.",
    parameters={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
FORECAST = ToolSpec(
    name="forecast_deals",
    description="Ask the market what deals will bring.",
    effect="read",
    parameters={"type": "object", "properties": {"quarter": {"type": "string"}}, "required": ["quarter"]},
    returns={"type": "object", "properties": {"quarter": {"type": "string"}, "amount": {"type": "number"}}},
)


def crm() -> ServicePackage:
    package = library_package("crm")
    fields = {name: getattr(package, name) for name in ServicePackage.model_fields}
    return ServicePackage.model_validate({**fields, "modelled": (LOG_VISIT, FORECAST)})


def pins() -> tuple[ServicePin, ...]:
    names = tuple(tool.name for tool in (*crm().spec.tools, *crm().modelled))
    own = ServicePin(name="crm", package=crm().digest, tools=names)
    return (own, *(pin(name) for name in SERVICES if name != "crm"))


TASK = complaint_task(services=pins())


def user(base_url: str, budget: Budget | None = None, **world_model: Any) -> WorldModelUser:
    simulator = ModelConfig(model="simulator", endpoints=(Endpoint(base_url=base_url, concurrency=256),))
    config = WorldModelConfig(model="simulator", **world_model)
    return WorldModelUser(world_model=config, models={"simulator": simulator}, budget=budget or Budget())


def visit(number: int) -> Scripted:
    """Works as a policy that makes a call of its own and one that everybody makes."""
    own = {"tool_name": "log_visit", "arguments": {"name": f"Visitor {number}"}}
    shared = {"tool_name": "forecast_deals", "arguments": {"quarter": "Q2"}}
    return Scripted(calls(("call_tool", shared), ("call_tool", own)), DONE)


def play(
    config: WorldModelUser, store: Path, policies: Iterable[Scripted], notes: dict[str, Any] | None = None
) -> list[Trajectory]:
    async def together() -> list[Trajectory]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))  # none to spare
        shard = Shard(0, 1, "key", FileStore(store))
        async with open_pool(config, shard) as pool:
            others = [library_package(name) for name in SERVICES if name != "crm"]
            predictor = open_world_model(config, pool, shard)
            catalogue = Catalogue([crm(), *others], library_services(), _no_host, predictor)
            episodes = [run_episode(TASK, catalogue, policy) for policy in policies]
            trajectories = await asyncio.gather(*episodes)
            if notes is not None:
                notes["spend"] = pool.spend()
            return trajectories

    return asyncio.run(together())


def taken(entry: dict[str, Any]) -> dict[str, Any]:
    """What an item took; how many asked for the same answer at once is a matter of chance."""
    return {name: value for name, value in entry.items() if name not in ("requests", "journaled")}


def _no_host(package: ServicePackage) -> Any:
    raise AssertionError("nothing here needs a host")


def test_many_episodes_share_a_world_model_and_repeat_bit_for_bit(tmp_path: Path) -> None:
    policies = [visit(number) for number in range(EPISODES)]
    with LlmServer({"simulator": Simulator()}) as server:
        notes: dict[str, Any] = {}
        config = user(server.base_url)
        first = play(config, tmp_path, policies, notes)
        asked = len(server.requests)

    repeated: dict[str, Any] = {}
    again = play(config, tmp_path, policies, repeated)  # the server is gone

    assert [item.error for item in first] == [None] * EPISODES
    assert all(touches_world_model(item) for item in first)
    assert all([call.world_model for call in item.calls] == [True, True] for item in first)
    assert all(call.envelope["success"] and call.changes for item in first for call in item.calls[1:])
    assert asked == EPISODES + 1
    assert [canonical_json(item) for item in again] == [canonical_json(item) for item in first]
    assert {entry["item"] for entry in notes["spend"]} == {"crm.log_visit", "crm.forecast_deals"}
    assert [taken(entry) for entry in repeated["spend"]] == [taken(entry) for entry in notes["spend"]]


def test_calls_of_other_tools_are_not_flagged(tmp_path: Path) -> None:
    read = ("call_tool", {"tool_name": "get_account", "arguments": {"account_id": "acc_1001"}})
    refused = ("call_tool", {"tool_name": "log_visit", "arguments": {}})

    with LlmServer({"simulator": Simulator()}) as server:
        (trajectory,) = play(user(server.base_url), tmp_path, [Scripted(calls(read, refused), DONE)])

    assert [call.world_model for call in trajectory.calls] == [False, False]
    assert not touches_world_model(trajectory)
    assert not server.requests


def test_a_model_that_is_not_up_to_it_costs_the_call_only(tmp_path: Path) -> None:
    with LlmServer({"simulator": Simulator(breaks_types)}) as server:
        (trajectory,) = play(user(server.base_url, attempts=2), tmp_path, [visit(1)])

    assert [call.envelope.get("error", {}).get("code") for call in trajectory.calls] == ["unavailable"] * 2
    assert all(call.world_model and not call.changes for call in trajectory.calls)
    assert trajectory.error is None


def test_samples_are_separate_answers_to_the_same_question(tmp_path: Path) -> None:
    with LlmServer({"simulator": Simulator()}) as server:
        (trajectory,) = play(user(server.base_url, samples=3), tmp_path, [visit(1)])

    assert trajectory.calls[1].envelope["success"]
    assert len(server.requests) == 6
    assert len(list(FileStore(tmp_path).names("predictions"))) == 6


def test_a_spent_budget_ends_the_episode_and_keeps_what_was_paid(tmp_path: Path) -> None:
    with LlmServer({"simulator": Simulator()}) as server:
        with pytest.raises(BudgetExhausted):
            play(user(server.base_url, Budget(tokens=1)), tmp_path, [visit(1)])
        before = len(server.requests)
        (trajectory,) = play(user(server.base_url), tmp_path, [visit(1)])

    assert trajectory.error is None
    assert len(server.requests) == 2
    assert len(list(FileStore(tmp_path).names("journal"))) == 2
    assert before <= 1


def test_asking_in_the_loops_own_thread_is_refused_not_waited_for(tmp_path: Path) -> None:
    async def ask() -> None:
        config = user("http://127.0.0.1:9/v1")
        async with open_pool(config, Shard(0, 1, "key", FileStore(tmp_path))) as pool:
            asking = LoopAsk(pool, "simulator", asyncio.get_running_loop())
            asking([UserMessage(content="?")], item="x", sample=0)

    with pytest.raises(CompoWorldError, match=r"await Gateway\.reply"):
        asyncio.run(ask())


def test_a_stage_without_the_section_has_no_world_model(tmp_path: Path) -> None:
    async def opened() -> Any:
        shard = Shard(0, 1, "key", FileStore(tmp_path))
        async with open_pool(WorldModelUser(), shard) as pool:
            return open_world_model(WorldModelUser(), pool, shard)

    assert asyncio.run(opened()) is None


def admission(tool: str, outcome: str) -> Admission:
    about = {"service": "crm", "package": crm().digest, "tool": tool, "reason": "as it is"}
    return Admission.model_validate({**about, "outcome": outcome})


@pytest.mark.parametrize("has_world_model", [True, False])
def test_tasks_have_modelled_tools_beside_the_verified_where_there_is_a_world_model(has_world_model: bool) -> None:
    judged = [
        admission("get_account", "verified"),
        admission("log_visit", "world_model"),
        admission("without_a_spec", "world_model"),
        admission("update_contact", "quarantined"),
    ]
    inputs: Any = {VERIFICATIONS: judged}

    (found,) = admitted(inputs, [crm()], has_world_model=has_world_model)

    assert found.tools == ("get_account",)
    assert found.modelled == (("log_visit",) if has_world_model else ())
