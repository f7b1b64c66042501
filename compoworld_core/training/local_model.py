"""A model in this process, as a `ChatModel`: for trying a checkpoint without a server.

It renders conversations and reads answers exactly as training and serving do, so a difference between its scores and a
server's is a bug. Conversations are answered one after the other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.chat_template_utils import parse_response

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, Usage, to_chat
from compoworld_core.llm.model import ModelFailure
from compoworld_core.storage.digest import JsonObject


class LocalModel:
    """A checkpoint that answers.

    Args:
        folder: Model and tokenizer.
        name: What records call it.
        answer_tokens: Longest answer.
        temperature: 0 takes the likeliest token.
        seed: Seed of the draws, where the temperature is above 0.
    """

    def __init__(
        self, folder: Path, *, name: str, answer_tokens: int = 512, temperature: float = 0.0, seed: int = 0
    ) -> None:
        self.name = name
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._answer_tokens = answer_tokens
        self._temperature = temperature
        self._seed = seed
        self._turn = asyncio.Lock()

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """See `ChatModel.respond`."""
        async with self._turn:
            return await asyncio.to_thread(self._respond, messages, tools)

    def _respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        prompt = self.prompt_ids(messages, tools)
        room = self._model.config.max_position_embeddings - len(prompt)
        if room < 1:
            raise ModelFailure("context", f"{self.name}: the conversation has {len(prompt)} tokens, too many for it")
        torch.manual_seed(self._seed)
        drawing = {"do_sample": True, "temperature": self._temperature} if self._temperature else {"do_sample": False}
        with torch.inference_mode():
            ids = self._model.generate(
                torch.tensor([prompt]), max_new_tokens=min(room, self._answer_tokens), **drawing
            )[0, len(prompt) :].tolist()
        return self._read(ids, prompt, tools, len(messages))

    def prompt_ids(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> list[int]:
        """The tokens that the model is shown before it answers."""
        ids: list[int] = self._tokenizer.apply_chat_template(
            [to_chat(message, "object") for message in messages],
            tools=list(tools) or None,
            add_generation_prompt=True,
            enable_thinking=False,
            tokenize=True,
            return_dict=False,
        )
        return ids

    def _read(self, ids: list[int], prompt: list[int], tools: Sequence[JsonObject], place: int) -> AssistantMessage:
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


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
