"""Answers come to one form, whatever the endpoint made of them, and say exactly what the model wrote."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compoworld_core.llm.completion import (
    Assembly,
    CutShort,
    MalformedCompletion,
    is_completion,
    normal_completion,
    read_answer,
    usage_of,
)
from compoworld_core.llm.config import Price
from compoworld_core.llm.messages import ToolCall
from compoworld_core.storage.digest import JsonObject


def whole(message: JsonObject, finish_reason: str | None = "stop", **fields: Any) -> JsonObject:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **fields}


def piece(finish_reason: str | None = None, **delta: Any) -> JsonObject:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def call(index: int | None, arguments: str, id: str | None = None, name: str | None = None) -> JsonObject:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id, "function": function}


def assembled(*pieces: JsonObject) -> JsonObject:
    assembly = Assembly()
    for item in pieces:
        assembly.add(item)
    return assembly.completion()


def calls_of(completion: JsonObject) -> tuple[ToolCall, ...]:
    return read_answer(completion, usage_of(completion, 0)).tool_calls


def test_an_answer_in_pieces_is_the_answer_in_one() -> None:
    function = {"name": "b", "arguments": '{"y": 2'}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    streamed = assembled(
        piece(role="assistant", content=""),
        piece(reasoning_content="Let me "),
        piece(reasoning_content="see."),
        piece(content="I "),
        piece(content="look."),
        piece(tool_calls=[call(0, "", "c1", "a")]),
        piece(tool_calls=[call(1, "", "c2", "b")]),
        piece(tool_calls=[call(1, '{"y"'), call(0, '{"x": 1}')]),
        piece(tool_calls=[call(1, ": 2")]),
        piece("tool_calls"),
        {"id": "chatcmpl-1", "created": 5, "model": "m", "choices": [], "usage": usage},
    )
    at_once = normal_completion(
        whole(
            {
                "role": "assistant",
                "content": "I look.",
                "reasoning": "Let me see.",
                "annotations": [],
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}},
                    {"id": "c2", "type": "function", "function": function},
                ],
            },
            "tool_calls",
            id="chatcmpl-2",
            created=6,
            system_fingerprint="fp",
            model="m",
            usage=usage,
        )
    )

    assert streamed == at_once
    assert is_completion(streamed)
    assert calls_of(streamed)[1] == ToolCall(id="c2", name="b", arguments='{"y": 2')


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(["c1", "c1", "c2"], ["c1", "call_1", "c2"], id="twice"),
        pytest.param([None, "", None], ["call_0", "call_1", "call_2"], id="none"),
        pytest.param(["call_1", None, None], ["call_1", "call_1_", "call_2"], id="taken"),
    ],
)
def test_calls_without_an_id_of_their_own_get_one_from_their_place(given: list[Any], expected: list[str]) -> None:
    calls = [{"id": id, "function": {"name": "a", "arguments": "{}"}} for id in given]

    answer = normal_completion(whole({"content": None, "tool_calls": calls}))

    assert [item.id for item in calls_of(answer)] == expected


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([call(0, "{}", "c1", "a"), call(0, "[]", "c2", "b")], id="one index for all"),
        pytest.param([call(None, "{", "c1", "a"), call(None, "}"), call(None, "[]", "c2", "b")], id="no index"),
        pytest.param([call(0, "{", "c1", "a"), call(0, "}", "c1", "a"), call(1, "[]", "c2", "b")], id="id repeated"),
    ],
)
def test_calls_are_told_apart_however_the_stream_marks_them(pieces: list[JsonObject]) -> None:
    answer = assembled(*(piece(tool_calls=[item]) for item in pieces), piece("tool_calls"))

    assert calls_of(answer) == (
        ToolCall(id="c1", name="a", arguments="{}"),
        ToolCall(id="c2", name="b", arguments="[]"),
    )


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "{'a': 1}", "null", '{"a": 1} {}'])
def test_arguments_stay_the_text_that_the_model_wrote(arguments: str) -> None:
    calls = [{"id": "c", "function": {"name": "a", "arguments": arguments}}]

    assert calls_of(normal_completion(whole({"content": "", "tool_calls": calls})))[0].arguments == arguments


def test_halves_of_a_character_are_joined_and_stray_ones_can_be_stored() -> None:
    answer = assembled(piece(content="\ud83d"), piece(content="\ude00 \ud83d"), piece("stop"))

    assert answer["choices"][0]["message"]["content"] == "\N{GRINNING FACE} \ufffd"


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="nothing"),
        pytest.param([piece(content="Half an ans")], id="no end"),
        pytest.param([piece(content="Half an ans"), piece("error")], id="an error for an end"),
    ],
)
def test_half_an_answer_is_none(pieces: list[JsonObject]) -> None:
    with pytest.raises(CutShort):
        assembled(*pieces)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"finish_reason": "stop"}]},
        whole({"content": "", "tool_calls": "a"}),
        whole({"content": "", "tool_calls": ["a"]}),
    ],
    ids=str,
)
def test_what_is_no_completion_is_refused(raw: object) -> None:
    with pytest.raises(MalformedCompletion):
        normal_completion(raw)
    assert not is_completion(raw)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}},
            Decimal("0.00286"),
            id="cached",
        ),
        pytest.param({"prompt_tokens": 1000, "completion_tokens": 100}, Decimal("0.004"), id="plain"),
        pytest.param({"prompt_tokens": "many", "completion_tokens": -1}, Decimal("0.00276"), id="nonsense"),
        pytest.param(None, Decimal("0.00276"), id="not told"),
    ],
)
def test_an_answer_costs_what_it_took_even_where_the_endpoint_does_not_tell(
    usage: JsonObject | None, expected: Decimal
) -> None:
    price = Price(prompt=Decimal(3), cached=Decimal("1.1"), completion=Decimal(10))
    answer = normal_completion(whole({"role": "assistant", "content": "x" * 24}, usage=usage))

    assert price.of(usage_of(answer, 4 * 870)) == expected


@pytest.mark.parametrize("calls", [5, "a", {"0": "a"}, ["a"]], ids=str)
def test_a_piece_whose_calls_are_none_is_refused(calls: object) -> None:
    with pytest.raises(MalformedCompletion):
        assembled(piece(tool_calls=calls), piece("stop"))


@pytest.mark.parametrize("index", [[1], {}, None, 1.5], ids=str)
def test_a_call_needs_no_index_that_makes_sense(index: Any) -> None:
    (call_,) = calls_of(assembled(piece(tool_calls=[{"index": index, "function": {"name": "look"}}]), piece("stop")))

    assert call_.name == "look"


@pytest.mark.parametrize("tokens", [10**400, -(10**400)], ids=["huge", "negative"])
def test_a_count_that_no_answer_takes_is_none(tokens: int) -> None:
    counted = {"prompt_tokens": tokens, "completion_tokens": tokens}

    assert "usage" not in normal_completion(whole({"content": "a"}, usage=counted))
