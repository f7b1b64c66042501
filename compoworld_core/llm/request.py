"""Requests: the bytes that an endpoint is sent, and the digest by which an answer is known.

An endpoint that caches prompts recognises a conversation by its beginning. So what stays the same comes first: the
parameters, then the tools, then the messages, to which a conversation only ever adds; all are written the same way
each time. The body of a conversation's next request, up to the last message of this one, is this one's, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.llm.config import ModelConfig
from compoworld_core.llm.messages import Message, json_text, to_chat
from compoworld_core.storage.digest import JsonObject, digest_bytes

_STREAM: Final = b'{"stream":true,"stream_options":{"include_usage":true},'
_IGNORED: Final = frozenset({
    "stream", "stream_options", "n", "user", "metadata", "store", "prompt_cache_key", "prompt_cache_retention",
    "safety_identifier",
})  # fmt: skip
"""What a client says about itself and about transport: none of it is for the model to know."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one completion.

    Attributes:
        content: Its body, less what concerns transport.
        key: Digest of the content.
    """

    content: bytes
    key: str

    @classmethod
    def of(cls, config: ModelConfig, body: JsonObject) -> Request:
        """A request from the body of another: what the configuration says goes before what the body says.

        Raises:
            InputError: The body cannot be said in JSON.
        """
        rest = {name: value for name, value in body.items() if name not in _IGNORED | {"messages", "tools"}}
        if config.max_tokens is not None:
            rest.pop("max_completion_tokens", None)
        content = dict(sorted((rest | config.parameters()).items()))
        if body.get("tools"):
            content["tools"] = body["tools"]
        content["messages"] = [_shown(message, config.send_reasoning) for message in body.get("messages") or ()]
        try:
            data = json_text(content).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"the request to {config.model} has no JSON form: {error}") from None
        return cls(data, digest_bytes(data))

    @property
    def streamed(self) -> bytes:
        """The body that asks for the answer in pieces."""
        return _STREAM + self.content[1:]


def chat_body(messages: Iterable[Message], tools: Iterable[JsonObject]) -> JsonObject:
    """The body of a request that continues a conversation."""
    return {"tools": list(tools), "messages": [to_chat(message) for message in messages]}


def _shown(message: JsonObject, send_reasoning: bool) -> JsonObject:
    return {name: value for name, value in message.items() if send_reasoning or name != "reasoning_content"}
