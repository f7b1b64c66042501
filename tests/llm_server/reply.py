"""What a script says, and the forms in which an endpoint sends it: one completion, or a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from compoworld_core.storage.digest import JsonObject

_CREATED = 1_767_225_600
_TEXT_STEP = 48
_ARGUMENTS_STEP = 24
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Reply:
    """One answer of a model.

    Attributes:
        tool_calls: Names with arguments; arguments that are text are sent as they are, well formed or not.
        usage: As the endpoint tells it; estimated from the lengths of the texts if left out.
        finish_reason: Follows from the rest if left out.
    """

    content: str = ""
    tool_calls: Sequence[tuple[str, JsonObject | str]] = ()
    reasoning_content: str | None = None
    usage: JsonObject | None = None
    finish_reason: str | None = None


class Script(Protocol):
    """What a model says; everything follows from the request, usually from its messages."""

    def __call__(self, request: JsonObject) -> Reply | Awaitable[Reply]:
        """Answer the body of a chat-completion request."""
        ...


def completion(reply: Reply, request: JsonObject, number: int) -> JsonObject:
    """The answer in one piece."""
    message: JsonObject = {"role": "assistant", "content": reply.content or None}
    if reply.reasoning_content is not None:
        message["reasoning_content"] = reply.reasoning_content
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply, request)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {**_head(request, number, "chat.completion"), "choices": [choice], "usage": usage(reply, request)}


def chunks(reply: Reply, request: JsonObject, number: int) -> Iterator[JsonObject]:
    """The answer bit by bit: thoughts, text, then the calls side by side; usage comes last where it is asked for."""
    head = _head(request, number, "chat.completion.chunk")
    wants_usage = (request.get("stream_options") or {}).get("include_usage") is True
    nothing: JsonObject = {"usage": None} if wants_usage else {}

    def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **nothing}

    yield chunk({"role": "assistant", "content": ""})
    for part in _pieces(reply.reasoning_content or "", _TEXT_STEP):
        yield chunk({"reasoning_content": part})
    for part in _pieces(reply.content, _TEXT_STEP):
        yield chunk({"content": part})
    calls = _calls(reply, request)
    for index, call in enumerate(calls):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
    parts = [list(_pieces(call["function"]["arguments"], _ARGUMENTS_STEP)) for call in calls]
    for turn in range(max(map(len, parts), default=0)):
        for index, pieces in enumerate(parts):
            if turn < len(pieces):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": pieces[turn]}}]})
    yield chunk({}, _finish(reply))
    if wants_usage:
        yield {**head, "choices": [], "usage": usage(reply, request)}


def usage(reply: Reply, request: JsonObject) -> JsonObject:
    """Tokens that the answer took; up to the latest answer of the model the prompt counts as cached."""
    if reply.usage is not None:
        return reply.usage
    messages = [len(json.dumps(message)) for message in request["messages"]]
    roles = [message["role"] for message in request["messages"]]
    seen = max((place for place, role in enumerate(roles) if role == "assistant"), default=-1) + 1
    tools = len(json.dumps(request["tools"])) if request.get("tools") else 0
    prompt = _tokens(tools + sum(messages))
    said = len(reply.content) + len(reply.reasoning_content or "")
    completion = _tokens(said + sum(len(call["function"]["arguments"]) for call in _calls(reply, request)))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": _tokens(tools + sum(messages[:seen])) if seen else 0},
    }


def _head(request: JsonObject, number: int, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": _CREATED, "model": request["model"]}


def _calls(reply: Reply, request: JsonObject) -> list[JsonObject]:
    turn = sum(message["role"] == "assistant" for message in request["messages"]) + 1
    return [
        {
            "id": f"call_{turn}_{index + 1}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
            },
        }
        for index, (name, arguments) in enumerate(reply.tool_calls)
    ]


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _pieces(text: str, step: int) -> Iterator[str]:
    return (text[start : start + step] for start in range(0, len(text), step))


def _tokens(chars: int) -> int:
    return -(-chars // _CHARS_PER_TOKEN)
