"""Stored successes: verified trajectories as the rollouts that they would have been, token for token.

A rollout is a prompt and what follows it: turns of the model, which are trained on, and between them what tools answer
and the beginning of the next turn, which are not. A trajectory is rendered in the same pieces. Its reasoning is left
out: rollouts are made without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.llm.messages import to_chat
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.replay import Success

Render = Callable[[Sequence[JsonObject], bool], list[int]]
"""Renders messages, with or without the beginning of the next turn."""


class StoredSuccess(Data):
    """A verified trajectory as it is handed to the processes of a job.

    Attributes:
        messages: System prompt and task first, then what the policy and the tools said.
    """

    task_id: str
    success: Success
    messages: tuple[JsonObject, ...]


class Rollout(NamedTuple):
    """A conversation after its prompt.

    Attributes:
        ids: Tokens.
        mask: 1 for those that the policy writes.
        messages: What they say.
    """

    ids: list[int]
    mask: list[int]
    messages: list[JsonObject]


def stored_successes(trajectories: Iterable[Trajectory], task_ids: Iterable[str]) -> list[StoredSuccess]:
    """The verified ones among the trajectories of these tasks, in their order."""
    wanted = set(task_ids)
    return [
        StoredSuccess(
            task_id=trajectory.task_id,
            success=Success(trajectory=trajectory.id, passed=trajectory.verdict.passed),
            messages=tuple(_without_reasoning(to_chat(message, "object")) for message in trajectory.messages),
        )
        for trajectory in trajectories
        if trajectory.task_id in wanted and trajectory.succeeded and trajectory.verdict and trajectory.is_well_formed
    ]


def _without_reasoning(message: JsonObject) -> JsonObject:
    return {key: value for key, value in message.items() if key != "reasoning_content"}


def write_successes(successes: Iterable[StoredSuccess], path: Path) -> None:
    """Write successes where every process of a job can read them."""
    path.write_text("".join(f"{item.model_dump_json()}\n" for item in successes), encoding="utf-8")


def read_successes(path: Path) -> list[StoredSuccess]:
    """The successes that `write_successes` wrote."""
    with path.open(encoding="utf-8") as file:
        return [StoredSuccess.model_validate_json(line) for line in file]


class Successes:
    """Stored successes by task, rendered when they are first needed.

    Args:
        stored: Of any tasks.
        prompts: The messages that a task's rollouts begin with, by task id.
        render: As the trainer renders rollouts.
        end_of_turn: The token that ends a turn.
        longest: Most tokens of a rollout; longer successes are of no use.

    Raises:
        InputError: A success begins with another prompt than rollouts of its task.
    """

    def __init__(
        self,
        stored: Iterable[StoredSuccess],
        prompts: Mapping[str, Sequence[JsonObject]],
        render: Render,
        *,
        end_of_turn: int,
        longest: int,
    ) -> None:
        self._by_task: dict[str, list[StoredSuccess]] = {}
        self._render = render
        self._end = end_of_turn
        self._longest = longest
        self._rollouts: dict[str, Rollout] = {}
        for item in stored:
            prompt = list(prompts[item.task_id])
            if [_said(message) for message in item.messages[: len(prompt)]] != [_said(message) for message in prompt]:
                raise InputError(
                    f"trajectory {item.success.trajectory}: begins otherwise than rollouts of {item.task_id} do; "
                    "distil it again with these services and tasks"
                )
            self._by_task.setdefault(item.task_id, []).append(item)

    def of(self, task_id: str) -> list[Success]:
        """Those of a task that are short enough."""
        found = []
        for item in self._by_task.get(task_id, ()):
            name = item.success.trajectory
            if name not in self._rollouts:
                self._rollouts[name] = self._rendered(item)
            if len(self._rollouts[name].ids) <= self._longest:
                found.append(item.success)
        return found

    def rollout(self, success: Success) -> Rollout:
        """One of those that `of` found, as a rollout."""
        return self._rollouts[success.trajectory]

    def _rendered(self, item: StoredSuccess) -> Rollout:
        begin = next(place for place, message in enumerate(item.messages) if message["role"] == "assistant")
        ids = self._render(item.messages[:begin], True)
        prompt = len(ids)
        mask: list[int] = []
        for place in range(begin, len(item.messages)):
            if item.messages[place]["role"] == "assistant":
                whole = self._render(item.messages[: place + 1], False)
                whole = whole[: len(whole) - whole[::-1].index(self._end)]
                self._go_on(ids, whole, item)
                mask += [1] * (len(whole) - prompt - len(mask))
            elif item.messages[place + 1]["role"] == "assistant":
                whole = self._render(item.messages[: place + 1], True)
                self._go_on(ids, whole, item)
                mask += [0] * (len(whole) - prompt - len(mask))
        return Rollout(ids[prompt:], mask, list(item.messages[begin:]))

    def _go_on(self, ids: list[int], whole: list[int], item: StoredSuccess) -> None:
        if whole[: len(ids)] != ids:
            raise InputError(
                f"trajectory {item.success.trajectory}: the chat template renders earlier messages otherwise once "
                "there are later ones, so it cannot stand for a rollout; set training.grpo.replay to false"
            )
        ids[:] = whole


def _said(message: JsonObject) -> tuple[object, object]:
    return message["role"], message["content"]
