"""Turns: rollouts of several processes that share a model take their turns together.

TRL asks the model again for as long as one of a process's rollouts calls tools. Where the processes hold parts of one
model (ZeRO-3, vLLM over several GPUs, one vLLM server), asking is a collective operation, and a process whose rollouts
have all ended would leave the others waiting for it, or answer them with something else. So it goes on asking until
all have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compoworld_core.training.continuation import continued_turns
from compoworld_core.training.distributed import gathered
from compoworld_core.training.scoring import ScoringTrainer

Prompts = list[list[int]]


class TurnsTrainer(ScoringTrainer):
    """A trainer whose processes ask the model equally often, with equally many prompts where that matters."""

    _longest_prompt = 0
    _together = False

    def _generate(self, prompts: list[Any]) -> Any:
        self._longest_prompt = 0
        with continued_turns(self.model):
            return super()._generate(prompts)

    def _tool_call_loop(self, *conversations: Any) -> Any:
        self._together = self._model_is_shared()
        try:
            done = super()._tool_call_loop(*conversations)
            while self._together and self._turn([], None, {}, 1, False) is not None:
                pass
        finally:
            self._together = False
        return done

    def _generate_single_turn(
        self,
        prompt_ids: Prompts,
        images: Any,
        multimodal_fields: Any,
        num_generations: int,
        has_tool_images: bool = False,
    ) -> Any:
        if not self._longest_prompt:
            self._longest_prompt = max(map(len, prompt_ids))
        return self._turn(prompt_ids, images, multimodal_fields, num_generations, has_tool_images)

    def _turn(
        self, prompt_ids: Prompts, images: Any, multimodal_fields: Any, num_generations: int, has_tool_images: bool
    ) -> Any:
        """A turn of this process's rollouts; None where no process has any to take."""
        more: Prompts = []
        if self._together:
            sizes = gathered((len(prompt_ids), prompt_ids[:1]))
            most = max(size for size, _ in sizes)
            if not most:
                return None
            example = next(prompts for size, prompts in sizes if size)
            more = example * (most - len(prompt_ids) if self.use_vllm else not prompt_ids)
        with self._no_longer_than_is_left(prompt_ids):
            ids, logprobs = super()._generate_single_turn(
                prompt_ids + more, images, multimodal_fields, num_generations, has_tool_images
            )
        mine = len(prompt_ids)
        return ids[:mine], logprobs[:mine] if logprobs is not None else None

    def _model_is_shared(self) -> bool:
        if self.accelerator.num_processes == 1:
            return False
        plugin = self.accelerator.state.deepspeed_plugin
        return bool(self.use_vllm or (plugin is not None and plugin.zero_stage == 3))

    @contextmanager
    def _no_longer_than_is_left(self, prompt_ids: Prompts) -> Iterator[None]:
        """What goes beyond the longest rollout is cut off anyway; here it is not even generated."""
        if self.use_vllm:
            yield
            return
        used = min(map(len, prompt_ids)) - self._longest_prompt if prompt_ids else self.max_completion_length
        left = max(1, self.max_completion_length - max(0, used))
        limit = self.generation_config.max_new_tokens
        self.generation_config.max_new_tokens = min(limit, left)
        try:
            yield
        finally:
            self.generation_config.max_new_tokens = limit
