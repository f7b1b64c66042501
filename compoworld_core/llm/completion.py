"""Completions: what an endpoint answered, brought to one form, whether it came at once or in a stream of pieces.

Only what decides the conversation is kept: text, reasoning, tool calls, why it ended, what it took. Ids and times that
the endpoint made up for itself go, so that the same answer has the same bytes. The arguments of a tool call stay the
text that the model wrote; a call without an id, or with one that another has, gets its position for one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from compoworld_core.llm.messages import AssistantMessage, ToolCall, Usage, json_text
from compoworld_core.storage.digest import JsonObject

_MOST_CHARS: Final = 16 * 1024 * 1024
_MOST_TOKENS: Final = 10**12
"""A count from here on is none."""

BYTES_PER_TOKEN: Final = 4
"""Where an endpoint does not tell what an answer took, so that a budget holds there, too."""


class MalformedCompletion(Exception):
    """What came back is no chat completion."""


class CutShort(Exception):
    """The answer ended before its end."""


def normal_completion(raw: object) -> JsonObject:
    """An answer that came at once.

    Raises:
        MalformedCompletion: It is none.
    """
    choice = _first(raw)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedCompletion("it has no message")
    assembly = Assembly()
    for position, call in enumerate(_calls_of(message)):
        assembly.add_call({**call, "index": position})
    assembly.add_text(message)
    assembly.add_end(raw, choice)
    return assembly.completion()


class Assembly:
    """Puts the pieces of a streamed answer together."""

    def __init__(self) -> None:
        self._model: str | None = None
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._at: dict[object, _Call] = {}
        self._finish_reason: str | None = None
        self._usage: JsonObject | None = None
        self._chars = 0

    def add(self, chunk: object) -> None:
        """The next piece.

        Raises:
            MalformedCompletion: It is none.
        """
        if not isinstance(chunk, dict):
            raise MalformedCompletion("a piece of it is no object")
        if not chunk.get("choices"):
            self._take_usage(chunk)
            return
        choice = _first(chunk)
        if choice.get("index"):
            return
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self.add_text(delta)
            for call in _calls_of(delta):
                self.add_call(call)
        self.add_end(chunk, choice)

    def add_text(self, delta: JsonObject) -> None:
        """Text and reasoning of a message or a piece of it."""
        self._grow(self._content, delta.get("content") or delta.get("refusal"))
        self._grow(self._reasoning, delta.get("reasoning_content") or delta.get("reasoning"))

    def add_call(self, delta: JsonObject) -> None:
        """A tool call, or a piece of one; pieces belong together by index, or by id where there is none."""
        index, id = delta.get("index"), delta.get("id")
        if not isinstance(index, int | str):
            index = None
        call = self._at.get(index) if index is not None else (self._calls[-1] if self._calls and not id else None)
        if call is None or (id and call.id and id != call.id):
            call = _Call()
            self._calls.append(call)
            self._at[index] = call
        call.id = call.id or (id if isinstance(id, str) else "")
        function = delta.get("function")
        if isinstance(function, dict):
            name = function.get("name")
            call.name = call.name or (name if isinstance(name, str) else "")
            arguments = function.get("arguments")
            # What JSON cannot say stays for the model to be told of.
            text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments
            self._grow(call.arguments, text)

    def add_end(self, raw: object, choice: JsonObject) -> None:
        """Why it ended and what it took, where this piece tells."""
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = reason
        if isinstance(raw, dict):
            self._take_usage(raw)

    def completion(self) -> JsonObject:
        """The whole answer.

        Raises:
            CutShort: The end is missing.
        """
        if self._finish_reason is None or self._finish_reason == "error":
            raise CutShort("the answer was cut short")
        message: JsonObject = {"role": "assistant", "content": _storable("".join(self._content))}
        if self._reasoning:
            message["reasoning_content"] = _storable("".join(self._reasoning))
        if self._calls:
            message["tool_calls"] = [call.plain(id) for call, id in zip(self._calls, self._ids(), strict=True)]
        completion: JsonObject = {"object": "chat.completion"}
        if self._model is not None:
            completion["model"] = _storable(self._model)
        completion["choices"] = [{"index": 0, "message": message, "finish_reason": self._finish_reason}]
        if self._usage is not None:
            completion["usage"] = self._usage
        return completion

    def _ids(self) -> list[str]:
        given = [_storable(call.id) for call in self._calls]
        ids: list[str] = []
        for position, id in enumerate(given):
            if not id or id in ids:
                id = f"call_{position}"
                while id in given or id in ids:
                    id += "_"
            ids.append(id)
        return ids

    def _take_usage(self, raw: JsonObject) -> None:
        usage, model = raw.get("usage"), raw.get("model")
        if isinstance(usage, dict):
            self._usage = _plain_usage(usage) or self._usage
        if self._model is None and isinstance(model, str):
            self._model = model

    def _grow(self, parts: list[str], text: Any) -> None:
        if isinstance(text, list):
            text = "".join(
                part["text"] for part in text if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
        if not text or not isinstance(text, str):
            return
        parts.append(text)
        self._chars += len(text)
        if self._chars > _MOST_CHARS:
            raise MalformedCompletion(f"it is longer than {_MOST_CHARS} characters")


class _Call:
    """A tool call that is being put together."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def plain(self, id: str) -> JsonObject:
        """In the form of chat completions."""
        function = {"name": _storable(self.name), "arguments": _storable("".join(self.arguments))}
        return {"id": id, "type": "function", "function": function}


def is_empty(completion: JsonObject) -> bool:
    """Whether an answer has neither text nor a tool call."""
    message = completion["choices"][0]["message"]
    return not message["content"].strip() and not message.get("tool_calls")


def is_completion(stored: object) -> bool:
    """Whether a value has the form that answers are brought to."""
    try:
        return isinstance(stored, dict) and normal_completion(stored) == stored
    except (MalformedCompletion, CutShort):
        return False


def usage_of(completion: JsonObject, prompt_bytes: int) -> Usage:
    """What an answer took; estimated from sizes where the endpoint did not tell."""
    told = completion.get("usage")
    if told is None:
        answer = len(json_text(completion["choices"][0]["message"]).encode())
        told = {"prompt_tokens": prompt_bytes // BYTES_PER_TOKEN, "completion_tokens": answer // BYTES_PER_TOKEN}
    prompt, completed = told["prompt_tokens"], told["completion_tokens"]
    cached = min(prompt, told.get("prompt_tokens_details", {}).get("cached_tokens", 0))
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completed)


def with_usage(completion: JsonObject, usage: Usage) -> JsonObject:
    """The same answer, said to have taken so much."""
    told = usage.model_dump(include={"prompt_tokens", "completion_tokens"})
    told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return {**completion, "usage": _plain_usage(told)}


def read_answer(completion: JsonObject, usage: Usage) -> AssistantMessage:
    """The message of an answer."""
    message = completion["choices"][0]["message"]
    return AssistantMessage(
        content=message["content"],
        tool_calls=tuple(
            ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        ),
        reasoning_content=message.get("reasoning_content"),
        usage=usage,
    )


def _first(raw: object) -> JsonObject:
    choices = raw.get("choices") if isinstance(raw, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedCompletion("it has no choices")
    return choices[0]


def _calls_of(message: JsonObject) -> list[JsonObject]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise MalformedCompletion("its tool calls are no list of objects")
    return calls


def _plain_usage(usage: JsonObject) -> JsonObject | None:
    """The numbers that matter, under the names that the form has for them; None where they tell nothing."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    prompt, completed = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    if not prompt + completed:
        return None
    plain: JsonObject = {"prompt_tokens": prompt, "completion_tokens": completed, "total_tokens": prompt + completed}
    if _number(cached):
        plain["prompt_tokens_details"] = {"cached_tokens": _number(cached)}
    return plain


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_TOKENS else 0


def _storable(text: str) -> str:
    """Text that UTF-8 can say: halves of a character that came in two pieces are joined, stray ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
