"""The trainer of reinforcement learning in worlds: TRL's, with the curriculum's tasks and with stored successes.

TRL reads tasks ahead, in an order that begins anew when a run goes on from a checkpoint. Here a step's tasks are asked
for when its rollouts begin. Verdicts are gathered as soon as rollouts have ended, before anything is computed of their
tokens, so the policy scores a success that takes a rollout's place as it scores the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from trl.chat_template_utils import get_training_chat_template, is_chat_template_prefix_preserving

from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.curriculum import Curriculum
from compoworld_core.training.environment import verdict_of
from compoworld_core.training.group_reward import GroupReward
from compoworld_core.training.successes import Render, Successes
from compoworld_core.training.turns import TurnsTrainer
from compoworld_core.worlds.gateway import META_TOOLS


class WorldTrainer(TurnsTrainer):
    """A trainer over worlds.

    Args:
        curriculum: Says which tasks a step is about.
        rows: What a rollout of a task begins with, by task id.
        group_reward: Judges the rollouts.
        successes: Those that the group reward may replay.
        others: TRL's arguments.
    """

    def __init__(
        self,
        *,
        curriculum: Curriculum,
        rows: Mapping[str, JsonObject],
        group_reward: GroupReward,
        successes: Successes,
        **others: Any,
    ) -> None:
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(_is_not_about_failed_rollouts)
        super().__init__(reward_funcs=group_reward, **others)
        self._env_tools = {None: list(META_TOOLS)}  # TRL sorts them by name, which no other prompt does
        self._curriculum = curriculum
        self._rows = rows
        self._group_reward = group_reward
        self._successes = successes
        self._task_ids: list[str] = []

    def _generate_and_score_completions(self, inputs: list[JsonObject]) -> Any:
        tasks = self._curriculum.tasks(self.state.global_step // self.num_iterations)
        first = self.accelerator.process_index * len(inputs)
        self._task_ids = [tasks[(first + place) // self.num_generations] for place in range(len(inputs))]
        return super()._generate_and_score_completions([dict(self._rows[task]) for task in self._task_ids])

    def _generate(self, prompts: list[Any]) -> Any:
        prompt_ids, completion_ids, tool_mask, completions, logprobs, *others = super()._generate(prompts)
        judged = [verdict_of(*pair) for pair in zip(self.environments, completions, strict=True)]
        for place, success in self._group_reward.judge(self._task_ids, judged).items():
            completion_ids[place], tool_mask[place], completions[place] = self._successes.rollout(success)
            if logprobs is not None:
                logprobs[place] = [None] * len(completion_ids[place])  # was not sampled: nothing to correct for
        self._note_own(tool_mask)
        return prompt_ids, completion_ids, tool_mask, completions, logprobs, *others


def rendering(tokenizer: Any) -> Render:
    """How the trainer renders conversations: with the template that it takes for this tokenizer."""
    template = None if is_chat_template_prefix_preserving(tokenizer) else get_training_chat_template(tokenizer)

    def render(messages: Any, begins_next_turn: bool) -> list[int]:
        ids: list[int] = tokenizer.apply_chat_template(
            list(messages),
            tools=list(META_TOOLS),
            chat_template=template,
            add_generation_prompt=begins_next_turn,
            enable_thinking=False,
            tokenize=True,
            return_dict=False,
        )
        return ids

    return render


def _is_not_about_failed_rollouts(record: logging.LogRecord) -> bool:
    """TRL warns with all that it has when a rollout has no reward; why it has none is in the table of rollouts."""
    return not record.getMessage().startswith("All reward functions returned None")
