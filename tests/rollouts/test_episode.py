"""Every way for an episode to fail is a row with a typed error, and the world is judged all the same."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from compoworld_core.errors import TransientError
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage
from compoworld_core.rollouts.episode import EpisodeLimits, run_episode
from compoworld_core.rollouts.policy import Policy, PolicyFailure
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.backend import InProcessBackend, Outcome
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin
from tests.rollouts.complaint import SERVICES, complaint_task, pin
from tests.rollouts.policies import DONE, Scripted, Silent, calls, looping


def play(task: Task, catalogue: Catalogue, policy: Policy, **limits: float) -> Trajectory:
    return asyncio.run(run_episode(task, catalogue, policy, limits=EpisodeLimits(**limits)))


def answers(trajectory: Trajectory) -> list[JsonObject]:
    return [json.loads(message.content) for message in trajectory.messages if isinstance(message, ToolMessage)]


def test_doing_nothing_is_judged_and_fails(task: Task, catalogue: Catalogue) -> None:
    trajectory = play(task, catalogue, Scripted(DONE))

    assert (trajectory.error, trajectory.finish_reason, trajectory.answer) == (None, "stop", "Done.")
    assert trajectory.verdict is not None
    assert not trajectory.succeeded
    held = dict(zip(trajectory.verdict.criteria, trajectory.verdict.passed, strict=True))
    assert held == {item.id: item.holds_initially for item in task.rubric.criteria}


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (PolicyFailure, "policy", "by design"),
        (ZeroDivisionError, "policy", "ZeroDivisionError: by design"),
        (TimeoutError, "policy", "TimeoutError: by design"),
        (asyncio.CancelledError, "policy", "the policy cancelled its own answer"),
        (TransientError, "transient", "TransientError: by design"),
        (None, "policy", "answered with a NoneType"),
        ({"role": "assistant", "content": "Done."}, "policy", "answered with a dict"),
        (AssistantMessage(content="\ud800"), "policy", "not to be stored as JSON"),
        (lambda: ToolCall(id="", name="x", arguments="{}"), "policy", "ValidationError"),
    ],
    ids="gives_up bug timeout cancelled transient nothing plain_dict surrogate bad_call".split(),
)
def test_policy_that_fails_or_talks_garbage_ends_in_a_typed_error(
    said: Any, kind: str, message: str, task: Task, catalogue: Catalogue
) -> None:
    trajectory = play(task, catalogue, Scripted(calls(("list_services", {})), said))

    assert trajectory.error is not None
    assert trajectory.error.kind == kind
    assert message in trajectory.error.message
    assert trajectory.finish_reason == "error"
    assert trajectory.n_steps == 1
    assert trajectory.verdict is not None


@pytest.mark.parametrize(
    ("policy", "limits", "message", "kind"),
    [
        (Scripted(looping()), {"max_steps": 7}, "no answer after 7 messages", "limit"),
        (Scripted(looping()), {"max_tool_calls": 5}, "more than 5 tool calls", "limit"),
        (Scripted(looping()), {"max_chars": 3000}, "longer than 3000 characters", "limit"),
        (Scripted(AssistantMessage(content="x" * 5000)), {"max_chars": 3000}, "longer than 3000", "limit"),
        (Silent(), {"turn_timeout_s": 0.01}, "no message within 0.01 s", "policy"),
    ],
    ids=["steps", "calls", "size", "one_message", "silence"],
)
def test_episode_ends_at_its_limits(
    policy: Policy, limits: dict[str, float], message: str, kind: str, task: Task, catalogue: Catalogue
) -> None:
    trajectory = play(task, catalogue, policy, **limits)

    assert trajectory.error is not None
    assert (trajectory.error.kind, message in trajectory.error.message) == (kind, True)
    assert trajectory.finish_reason == ("limit" if kind == "limit" else "error")
    assert trajectory.n_steps <= limits.get("max_steps", 100)
    assert trajectory.n_tool_calls <= limits.get("max_tool_calls", 200)


def test_parallel_calls_are_answered_one_by_one_in_their_order(task: Task, catalogue: Catalogue) -> None:
    message = calls(("list_services", {}), ("list_tools", {"service": "crm"}), ("list_services", {}))

    trajectory = play(task, catalogue, Scripted(message, DONE))

    assert [item.tool_call_id for item in trajectory.messages if isinstance(item, ToolMessage)] == ["c0", "c1", "c2"]
    assert [call.name for call in trajectory.calls] == ["list_services", "list_tools", "list_services"]
    assert [call.index for call in trajectory.calls] == [0, 1, 2]
    assert [call.envelope for call in trajectory.calls] == answers(trajectory)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("send_message", {}, "not_found"),
        ("_check", {"name": "x"}, "not_found"),
        ("list_services", {"all": True}, "invalid_arguments"),
        ("list_tools", "crm", "invalid_arguments"),
        ("list_tools", '["crm"]', "invalid_arguments"),
        ("list_tools", "", "invalid_arguments"),
        ("call_tool", {"tool_name": "get_account"}, "invalid_arguments"),
        ("call_tool", {"tool_name": "get_account", "arguments": '{"account_id": "acc_1001"}'}, "invalid_arguments"),
        ("call_tool", {"tool_name": "erase_all", "arguments": {}}, "not_found"),
    ],
)
def test_malformed_call_is_answered_as_an_error_and_never_guessed(
    name: str, arguments: JsonObject | str, code: str, task: Task, catalogue: Catalogue
) -> None:
    trajectory = play(task, catalogue, Scripted(calls((name, arguments)), DONE))

    (answer,) = answers(trajectory)
    assert answer["error"]["code"] == code
    assert trajectory.error is None
    assert trajectory.is_well_formed is isinstance(arguments, dict)
    assert trajectory.calls[0].changes == ()


def test_package_that_is_not_installed_is_a_row(catalogue: Catalogue) -> None:
    missing = ServicePin(name="mail", package="0" * 64, tools=pin("mail").tools)
    task = complaint_task(services=(*(pin(name) for name in SERVICES if name != "mail"), missing))

    trajectory = play(task, catalogue, Scripted(DONE))

    assert trajectory.error is not None
    assert (trajectory.error.kind, trajectory.verdict, trajectory.messages) == ("world", None, ())
    assert "'mail' is pinned to package 000000000000" in trajectory.error.message


def test_rubric_that_names_an_unknown_table_is_a_row(task: Task, catalogue: Catalogue) -> None:
    data = task.model_dump()
    data["rubric"]["criteria"][0]["condition"]["table"] = "nowhere"

    trajectory = play(Task.model_validate(data), catalogue, Scripted(DONE))

    assert trajectory.error is not None
    assert (trajectory.error.kind, "nowhere" in trajectory.error.message) == ("world", True)


class _Host:
    """Stands for a hosted CRM: answers with what `crash` makes, and notes the threads that it ran in."""

    def __init__(self, crash: BaseException | None = None) -> None:
        self.threads: set[int] = set()
        self._crash = crash

    def __call__(self, package: ServicePackage) -> Any:
        backend = InProcessBackend(library_services()["crm"])
        execute = backend.execute

        class Backend:
            new_state = staticmethod(backend.new_state)
            populate = staticmethod(backend.populate)

            @staticmethod
            def execute(*arguments: Any) -> Outcome:
                self.threads.add(threading.get_ident())
                if self._crash:
                    raise self._crash
                return execute(*arguments)

        return Backend()


def hosted_world(host: _Host) -> tuple[Task, Catalogue]:
    hosted = ServicePackage.model_validate({**library_package("crm").model_dump(), "origin": "synthesised"})
    others = [library_package(name) for name in SERVICES if name != "crm"]
    return complaint_task(), Catalogue([*others, hosted], library_services(), host)


READ = ("call_tool", {"tool_name": "get_account", "arguments": {"account_id": "acc_1001"}})


def test_only_calls_to_a_host_leave_the_event_loops_thread() -> None:
    host = _Host()
    task, catalogue = hosted_world(host)

    trajectory = play(task, catalogue, Scripted(calls(READ), DONE))

    assert trajectory.calls[0].envelope["success"], trajectory.calls[0]
    assert host.threads
    assert threading.get_ident() not in host.threads


@pytest.mark.parametrize(
    ("crash", "kind"),
    [(TransientError("no process now"), "transient"), (RuntimeError("oops"), "bug")],
    ids=["transient", "bug"],
)
def test_failure_below_the_services_is_a_row(crash: Exception, kind: str) -> None:
    task, catalogue = hosted_world(_Host(crash))

    trajectory = play(task, catalogue, Scripted(calls(READ), DONE))

    assert trajectory.error is not None
    assert (trajectory.error.kind, trajectory.finish_reason) == (kind, "error")


def test_cancelling_an_episode_cancels_it(task: Task, catalogue: Catalogue) -> None:
    async def cancelled() -> bool:
        running = asyncio.create_task(run_episode(task, catalogue, Silent()))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled()

    assert asyncio.run(cancelled())


def test_policy_sees_messages_and_tools_and_cannot_change_them(task: Task, catalogue: Catalogue) -> None:
    seen: list[tuple[Sequence[Message], Sequence[JsonObject]]] = []

    class Nosy(Scripted):
        async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
            seen.append((messages, tools))
            return await super().respond(messages, tools)

    play(task, catalogue, Nosy(DONE))

    ((messages, tools),) = seen
    assert isinstance(messages, tuple)
    assert [message.role for message in messages] == ["system", "user"]
    assert [tool["function"]["name"] for tool in tools] == ["list_services", "list_tools", "describe_tool", "call_tool"]


def test_usage_of_all_answers_adds_up_and_is_no_part_of_the_content(task: Task, catalogue: Catalogue) -> None:
    def answered(tokens: int) -> Trajectory:
        usage = Usage(prompt_tokens=tokens, completion_tokens=2)
        call = ToolCall.of("c1", "list_services", {})
        return play(
            task,
            catalogue,
            Scripted(AssistantMessage(tool_calls=(call,), usage=usage), AssistantMessage(content="Done.", usage=usage)),
        )

    short, long = answered(10), answered(99)

    assert short.usage == Usage(prompt_tokens=20, completion_tokens=4)
    assert short.id == long.id
    assert short != long
