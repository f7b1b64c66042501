"""A question is known by all that its answer may depend on, in every process alike."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from compoworld_core.services.context import Context, User
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.world_model.question import Question, state_digest
from tests.services.workshop import Workshop, start
from tests.services.world_model.shop import FORECAST, ORDER_PART, SHOP, Fixed, modelled, shop

CALL = {"part": "gasket"}


def asked(
    running: RunningService, arguments: Any = None, *, package: ServicePackage = SHOP, context: Context | None = None
) -> str:
    return Question(package, "order_part", arguments or CALL, running.state, context or running.context).digest


def test_forks_ask_the_same_question_until_they_differ() -> None:
    running = shop(Fixed({}))
    first, second = running.fork(), running.fork()

    assert asked(first) == asked(second) == asked(running)
    second.call("set_key", {"job_id": "job_1001", "key": "1"})
    assert asked(first) == asked(running) != asked(second)


def test_the_same_calls_lead_to_the_same_question() -> None:
    code = f"from {__name__} import after_two_calls; print(after_two_calls())"
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert after_two_calls() == after_two_calls() == elsewhere


def after_two_calls() -> str:
    running = start()
    running.call("set_key", {"job_id": "job_1001", "key": "1"})
    running.call("drop_job", {"job_id": "job_1002"})
    return state_digest(running.state)


def test_everything_that_the_answer_may_depend_on_counts() -> None:
    running = shop(Fixed({}))
    context = running.context
    other_package = modelled(Workshop, ORDER_PART.model_copy(), FORECAST)
    digests = {
        asked(running),
        asked(running, {"part": "valve"}),
        asked(running, package=other_package),
        asked(running, context=replace(context, start=context.start + timedelta(days=1))),
        asked(running, context=replace(context, user=User("Bo Lind", "bo@shop.example"))),
        asked(shop(Fixed({}), seed=8)),
    }

    assert len(digests) == 6


@pytest.mark.parametrize("rows", [0, 2_000])
def test_the_document_is_bounded_whatever_the_state_and_the_call(rows: int) -> None:
    running = shop(Fixed({}))
    for number in range(rows):
        running.state.tables["jobs"].insert(title=f"{number} " + "t" * 150, key="k" * 5_000)

    document = Question(SHOP, "order_part", {"part": "p" * 500_000}, running.state, running.context).document()

    assert len(json.dumps(document)) < 60_000
    assert document["rows_not_shown"]["jobs"] == max(0, rows)
    assert document["next_ids"]["jobs"] == f"job_{1004 + rows}"
    assert document["call"]["time"] == running.context.start.isoformat()
