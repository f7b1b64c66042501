"""A model that says what a script has for it, and everything else as it is: TRL's loop, tokens, worlds, rewards, loss.

A script has turns for every rollout of a task. The first turn names its rollout, so that later ones are found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from compoworld_core.llm.messages import AssistantMessage, to_chat
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.storage.digest import JsonObject

Script = dict[str, list[list[JsonObject]]]
"""By task id, for each rollout, the assistant's messages."""

BEGIN = "<|im_start|>assistant\n"


def said(trajectory: Trajectory, calls: int | None = None, answer: str | None = None) -> list[JsonObject]:
    """The assistant's messages of a trajectory, without those that only look around.

    Args:
        calls: How many tools of services it calls before it answers; all if left out.
        answer: What it answers instead.
    """
    turns = [message for message in trajectory.messages if isinstance(message, AssistantMessage)]
    made = [turn for turn in turns if any(call.name == "call_tool" for call in turn.tool_calls)][:calls]
    final = turns[-1].content if answer is None else answer
    return [*(to_chat(turn, "object") for turn in made), {"role": "assistant", "content": final}]


def numbered(rollouts: Sequence[Sequence[JsonObject]]) -> list[list[JsonObject]]:
    """The rollouts, each naming itself in its first message."""
    return [
        [{**turns[0], "content": f"Rollout {number}. {turns[0]['content']}".strip()}, *turns[1:]]
        for number, turns in enumerate(rollouts)
    ]


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
            task: [[self._ids(turn) for turn in turns] for turns in numbered(rollouts)]
            for task, rollouts in script.items()
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
