"""Tools that a world model answers stand in a world like all others, where there is a world model."""

from __future__ import annotations

import asyncio
import threading

import pytest

from compoworld_core.errors import InputError
from compoworld_core.services.world_model.prediction import NO_PREDICTIONS, Check, Prediction, Predictor
from compoworld_core.services.world_model.question import Question
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.gateway import Gateway
from compoworld_core.worlds.recipe import ServicePin, WorldRecipe
from compoworld_core.worlds.world import World, open_world
from tests.services.world_model.shop import SHOP, Fixed
from tests.worlds.town import PACKAGES, SERVICES, everything, no_host, pin, recipe

PACKAGE = SHOP
ORDER = {"tool_name": "order_part", "arguments": {"part": "gasket"}}


def with_tools(*tools: str) -> WorldRecipe:
    own = ServicePin(name="workshop", package=PACKAGE.digest, tools=("add_job", *tools))
    return recipe(services=(own, pin("board")))


def opened(predictor: Predictor | None, *tools: str) -> World:
    packages = [PACKAGE, PACKAGES["board"]]
    return open_world(with_tools(*tools), Catalogue(packages, SERVICES, no_host, predictor))


def test_a_world_that_needs_a_world_model_is_refused_without_one() -> None:
    with pytest.raises(InputError, match=r"'workshop' .*\(forecast, order_part\).*section world_model"):
        opened(None, "forecast", "order_part")

    assert "add_job" in opened(None).tools


def test_agents_see_modelled_tools_like_others() -> None:
    gateway = Gateway(opened(NO_PREDICTIONS, "order_part"))

    listed = gateway.call("list_tools", {"service": "workshop"})["data"]
    described = gateway.call("describe_tool", {"tool": "order_part"})["data"]

    assert [item["name"] for item in listed] == ["add_job", "order_part"]
    assert listed[1].keys() == listed[0].keys()
    assert described["parameters"]["required"] == ["part"]


def test_a_tool_that_is_not_pinned_stays_out_of_reach() -> None:
    envelope = Gateway(opened(Fixed({"observation": 1}), "forecast")).call("call_tool", ORDER)

    assert envelope["error"]["code"] == "not_found"


def test_the_transcript_flags_calls_that_were_predicted() -> None:
    gateway = Gateway(opened(Fixed({"observation": "ordered"}), "order_part"))

    gateway.call("call_tool", ORDER)
    gateway.call("call_tool", {"tool_name": "add_job", "arguments": {"title": "Clock"}})

    assert [entry.world_model for entry in gateway.transcript] == [True, False]
    assert gateway.transcript[0].envelope == {"success": True, "data": "ordered"}


def test_without_predictions_such_a_call_is_unavailable() -> None:
    world = opened(NO_PREDICTIONS, "order_part")
    untouched = everything(world)

    assert world.call("order_part", {"part": "x"}).envelope["error"]["code"] == "unavailable"
    assert everything(world) == untouched


def test_predicted_rows_belong_to_one_fork() -> None:
    new = {"op": "insert", "table": "jobs", "values": {"title": "Gasket"}}
    world = opened(Fixed({"changes": [new], "observation": None}), "order_part")
    before = everything(world)
    twin = world.fork()

    assert twin.call("order_part", {"part": "x"}).succeeded
    assert everything(world) == before != everything(twin)


def test_an_event_loop_goes_on_while_a_call_is_predicted() -> None:
    """The answer comes only once the loop has done something else."""
    other_work_done = threading.Event()

    class Slow(Predictor):
        def predict(self, question: Question, check: Check) -> Prediction:
            assert other_work_done.wait(30)
            return Prediction(observation="ordered")

    async def play() -> object:
        gateway = Gateway(opened(Slow(), "order_part"))
        answer = asyncio.create_task(gateway.reply("call_tool", ORDER))
        await asyncio.sleep(0)
        other_work_done.set()
        return await answer

    assert asyncio.run(play()) == {"success": True, "data": "ordered"}
