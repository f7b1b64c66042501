"""A message says exactly what the policy wrote, and a call is an object or is nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from compoworld_core.errors import InputError
from compoworld_core.llm.messages import MAX_DEPTH, AssistantMessage, ToolCall, to_chat
from compoworld_core.specs.model import JsonObject

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_arguments_read_as_the_object_that_was_written_in_its_key_order(arguments: JsonObject) -> None:
    call = ToolCall.of("c1", "call_tool", arguments)

    assert call.parsed == arguments
    assert list(call.parsed) == list(arguments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"text"',
        "{",
        "{} {}",
        "{'a': 1}",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        r'{"a": "\ud800"}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=lambda text: text[:16],
)
def test_text_that_is_not_one_plain_object_is_no_arguments(text: str) -> None:
    call = ToolCall(id="c1", name="call_tool", arguments=text)

    assert call.parsed is None
    with pytest.raises(InputError, match="c1"):
        to_chat(AssistantMessage(tool_calls=(call,)), arguments="object")


def test_endpoints_get_arguments_as_text_and_training_data_as_an_object() -> None:
    message = AssistantMessage(
        tool_calls=(ToolCall(id="c1", name="list_tools", arguments='{ "service":"crm" }'),), reasoning_content="Hm."
    )

    text, object_ = to_chat(message), to_chat(message, arguments="object")

    assert text["tool_calls"][0]["function"] == {"name": "list_tools", "arguments": '{ "service":"crm" }'}
    assert object_["tool_calls"][0]["function"] == {"name": "list_tools", "arguments": {"service": "crm"}}
    assert text["reasoning_content"] == "Hm."


def test_calls_of_one_message_need_ids_that_differ() -> None:
    call = ToolCall.of("same", "list_services", {})

    with pytest.raises(ValidationError, match="ids that differ"):
        AssistantMessage(tool_calls=(call, call))
