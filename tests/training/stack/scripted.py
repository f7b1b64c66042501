"""A model that says what a script has for it, and everything else as it is: TRL's loop, tokens, worlds, rewards, loss.

A script has turns for every rollout of a task. The first turn names its rollout, so that later ones are found again.
The tasks can be done in two calls: a complaint is to be opened in the CRM, and its mail to be answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from compoworld_core.llm.messages import AssistantMessage, to_chat
from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.conditions import Rows, Test, Unchanged
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.rubric import Criterion, Rubric
from compoworld_core.tasks.task import Task
from tests.rollouts.complaint import complaint_task, open_catalogue
from tests.rollouts.policies import DONE, Scripted, calls

Turns = tuple[AssistantMessage, ...]
Script = dict[str, list[list[JsonObject]]]
"""By task id, for each rollout, the assistant's messages."""

BEGIN = "<|im_start|>assistant\n"


OPENED = Criterion(
    id="opened",
    description="a complaint with high priority is open",
    condition=Rows(service="crm", table="cases", where=(Test(field="priority", value="high"),), change="created"),
    holds_initially=False,
)
ANSWERED = Criterion(
    id="answered",
    description="a mail was sent",
    condition=Rows(service="mail", table="messages", change="created"),
    holds_initially=False,
)
DEALS = Criterion(
    id="deals",
    description="deals are as they were",
    condition=Unchanged(service="crm", table="deals"),
    holds_initially=True,
)


def short_task(seed: int) -> Task:
    """The hand-made task, with a rubric that two calls satisfy."""
    rubric = Rubric(criteria=(OPENED, ANSWERED, DEALS))
    return Task.model_validate({**dict(complaint_task(seed=seed, split="rl")), "rubric": rubric})


def call(tool: str, **arguments: object) -> AssistantMessage:
    """A message that calls a tool of a service."""
    return calls(("call_tool", {"tool_name": tool, "arguments": arguments}))


LOOK = calls(("list_services", {}))
OPEN = call("create_case", account_id="acc_1001", kind="complaint", summary="Wet crates", priority="high")
SEND = call("send_message", to=["customer@example.com"], subject="Your delivery", body="We look into it.")
SOLVED: Turns = (OPEN, SEND, DONE)
HALF: Turns = (SEND, DONE)
SLOW: Turns = (LOOK, LOOK, LOOK, SEND, DONE)
IDLE: Turns = (DONE,)


def scripted(tasks: Mapping[str, Sequence[Turns]]) -> Script:
    """The script in which rollouts of tasks take these turns, each naming itself in its first message."""
    return {task: [_named(number, turns) for number, turns in enumerate(said)] for task, said in tasks.items()}


def _named(number: int, turns: Turns) -> list[JsonObject]:
    first, *rest = (to_chat(turn, "object") for turn in turns)
    return [{**first, "content": f"Rollout {number}. {first['content']}".strip()}, *rest]


def success(task: Task) -> Trajectory:
    """The trajectory of a policy that solves a task with the words of a first rollout."""
    first, *rest = SOLVED
    named = AssistantMessage(content="Rollout 0.", tool_calls=first.tool_calls)
    trajectory = asyncio.run(run_episode(task, open_catalogue(), Scripted(named, *rest)))
    assert trajectory.succeeded, trajectory.verdict
    return trajectory


class ScriptedModel:
    """Stands for a model's `generate`.

    Args:
        script: What to say.
        prompts: The tokens that rollouts of a task begin with, by task id.
        rank: This process's place; its first rollout has the number `rank * rollouts of a process`.
    """

    def __init__(self, script: Script, prompts: Mapping[str, list[int]], tokenizer: Any, rank: int) -> None:
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._rank = rank
        self._turns = {
            task: [[self._ids(turn) for turn in turns] for turns in rollouts] for task, rollouts in script.items()
        }
        self.asked: list[tuple[int, int]] = []

    def _ids(self, turn: JsonObject) -> list[int]:
        def render(messages: list[JsonObject], begins: bool) -> list[int]:
            ids: list[int] = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=begins, enable_thinking=False, tokenize=True, return_dict=False
            )
            return ids

        user = {"role": "user", "content": "x"}
        begin, whole = render([user], True), render([user, turn], False)
        assert whole[: len(begin)] == begin
        return whole[len(begin) : len(whole) - whole[::-1].index(self._tokenizer.eos_token_id)]

    def generate(self, model: Any, input_ids: Any, attention_mask: Any, generation_config: Any, **others: Any) -> Any:
        """What `model.generate` would return."""
        assert all(weight.numel() for weight in model.parameters()), "the weights are not here"
        rows = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
        self.asked.append((len(rows), generation_config.max_new_tokens))
        said = [self._next(ids, place, len(rows)) for place, ids in enumerate(rows)]
        said = [ids[: generation_config.max_new_tokens] for ids in said]
        longest = max(map(len, said))
        padding = self._tokenizer.pad_token_id
        tokens = torch.tensor([ids + [padding] * (longest - len(ids)) for ids in said])
        return torch.cat([input_ids, tokens], dim=1)

    def _next(self, ids: list[int], place: int, rows: int) -> list[int]:
        task = next((task for task, prompt in self._prompts.items() if ids[: len(prompt)] == prompt), None)
        if task is None:
            return [self._tokenizer.eos_token_id]
        rollouts = self._turns[task]
        text = self._tokenizer.decode(ids[len(self._prompts[task]) :])
        if not text:
            return rollouts[(self._rank * rows + place) % len(rollouts)][0]
        number = int(text.removeprefix("Rollout ").partition(".")[0])
        return rollouts[number][text.count(BEGIN)]
