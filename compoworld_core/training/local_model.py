"""A model in this process, as a policy: for trying a checkpoint without a server.

It renders conversations and reads answers exactly as training and serving do, so a difference between its scores and a
server's is a bug. Turns are taken one after the other in one thread, also after one that nobody waits for any more: all
draw from torch's one generator. Each computes only what its conversation has got since the last: re-reading the whole
of it every time costs most of the work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any, Literal

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
from trl.chat_template_utils import parse_response

from compoworld_core.errors import InputError
from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, Usage, to_chat
from compoworld_core.llm.model import ModelFailure
from compoworld_core.storage.digest import JsonObject


class LocalModel:
    """A checkpoint that answers.

    Args:
        source: Folder or hub id of model and tokenizer.
        name: What records call it.
        answer_tokens: Longest answer.
        temperature: 0 takes the likeliest token.
        device: `cpu` computes in single precision and one thread, for the number of threads decides how sums are
            rounded; other processes use the other cores. `cuda` computes in bfloat16.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        name: str,
        answer_tokens: int = 512,
        temperature: float = 0.0,
        device: Literal["cpu", "cuda"] = "cpu",
    ) -> None:
        self.name = name
        if device == "cpu":
            torch.set_num_threads(1)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(source)
        precision = torch.float32 if device == "cpu" else torch.bfloat16
        self._model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=precision, device_map=device).eval()
        self._answer_tokens = answer_tokens
        self._temperature = temperature
        self.thread = ThreadPoolExecutor(1)

    def close(self) -> None:
        """Give its memory back; it answers no more."""
        self.thread.shutdown()
        del self._model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def conversation(self, seed: str) -> Conversation:
        """The model, ready for one conversation.

        Args:
            seed: Its draws follow from it, where the temperature is above 0.
        """
        return Conversation(self, seed)

    def room(self, prompt: Sequence[int]) -> int:
        """Tokens that an answer to a prompt may have.

        Raises:
            ModelFailure: The prompt is longer than the model takes.
        """
        room: int = self._model.config.max_position_embeddings - len(prompt)
        if room < 1:
            raise ModelFailure("context", f"{self.name}: the conversation has {len(prompt)} tokens, too many for it")
        return min(room, self._answer_tokens)

    def cache(self) -> DynamicCache:
        """What is computed for a conversation, empty."""
        return DynamicCache(config=self._model.config)

    def generate(self, prompt: list[int], cache: DynamicCache, seed: int) -> list[int]:
        """The tokens of an answer.

        Args:
            prompt: All of it.
            cache: What was computed for its beginning; extended by the rest and by the answer, less its last token.
            seed: Of the draws.
        """
        drawing: dict[str, Any] = {"do_sample": False}
        if self._temperature:
            # Where a checkpoint sets no top_k, transformers would draw from the likeliest 50, and vLLM draws from all.
            top_k = self._model.generation_config.top_k or 0
            drawing = {"do_sample": True, "temperature": self._temperature, "top_k": top_k}
        torch.manual_seed(seed)
        with torch.inference_mode():
            tokens = self._model.generate(
                torch.tensor([prompt], device=self._model.device),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long, device=self._model.device),
                max_new_tokens=self.room(prompt),
                cache=cache,
                **drawing,
            )
        ids: list[int] = tokens[0, len(prompt) :].tolist()
        return ids

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> list[int]:
        """The tokens that the model is shown before it answers.

        Raises:
            ModelFailure: It called a tool with arguments that are no object, which no template can write.
        """
        try:
            chat = [to_chat(message, "object") for message in messages]
        except InputError as error:
            raise ModelFailure("malformed", f"{self.name}: {error}") from None
        ids: list[int] = self._tokenizer.apply_chat_template(
            chat,
            tools=list(tools) or None,
            add_generation_prompt=True,
            enable_thinking=False,
            tokenize=True,
            return_dict=False,
        )
        return ids

    def read(self, ids: list[int], prompt: list[int], tools: Sequence[JsonObject], place: int) -> AssistantMessage:
        """The message that an answer's tokens are.

        Args:
            place: Of the message in its conversation; ids of calls follow from it.
        """
        parsed = parse_response(self._tokenizer, ids, prefix=prompt, tools=list(tools))
        calls = tuple(
            ToolCall(
                id=f"call_{place}_{number}",
                name=call["function"]["name"],
                arguments=_text(call["function"].get("arguments")),
            )
            for number, call in enumerate(parsed.get("tool_calls") or ())
        )
        return AssistantMessage(
            content=parsed.get("content") or "",
            tool_calls=calls,
            reasoning_content=parsed.get("reasoning_content") or None,
            usage=Usage(prompt_tokens=len(prompt), completion_tokens=len(ids)),
        )


class Conversation:
    """A policy for one conversation: what was computed for its beginning is kept from turn to turn."""

    def __init__(self, model: LocalModel, seed: str) -> None:
        self.name = model.name
        self._model = model
        self._seed = seed
        self._cache = model.cache()
        self._known: list[int] = []

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """See `ChatModel.respond`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._model.thread, self._respond, messages, tools)

    def _respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        prompt = self._model.prompt_ids(messages, tools)
        self._keep_common(prompt)
        ids = self._model.generate(prompt, self._cache, Random(f"{self._seed}/{len(messages)}").getrandbits(63))
        self._known = [*prompt, *ids[:-1]]
        return self._model.read(ids, prompt, tools, len(messages))

    def _keep_common(self, prompt: Sequence[int]) -> None:
        """Forget what was computed for tokens that the prompt does not begin with; its last token is always computed.

        Templates write an answer that has become history differently from one that has just been given.
        """
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._known, prompt[:-1], strict=False)))
        if common == len(self._known):
            return
        if common and self._cache.is_croppable:
            self._cache.crop(common - len(self._known))
        else:
            self._cache = self._model.cache()


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
