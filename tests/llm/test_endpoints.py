"""What goes wrong at an endpoint is tried again where that may help, and told where it does not; keys never are."""

from __future__ import annotations

import asyncio
import email.utils
import socket
import threading
from pathlib import Path

import pytest

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.llm.failures import wait_of
from compoworld_core.llm.messages import AssistantMessage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.pool import ModelPool
from compoworld_core.llm.servers import Patience
from compoworld_core.storage.digest import JsonObject
from tests.llm.endpoints import MODEL, NAME, QUICK, ask, echo, model, using
from tests.llm_server import Fault, Faults, LlmServer, Reply

HELLO = "You said: Hello"
CANARY = "sk-canary-5f2e9d7c"


def failing(fault: Fault, times: int = 1000) -> Faults:
    return Faults(at=dict.fromkeys(range(1, times + 1), fault), retry_after="0")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", ["rate_limit", "error", "cut", "half_json", "not_json", "no_choices", "empty"])
def test_what_may_pass_is_tried_again(tmp_path: Path, fault: Fault, stream: bool) -> None:
    with LlmServer({MODEL: echo}, failing(fault, 2)) as server:
        answer = using(model(server, stream=stream), tmp_path, ask)

    assert answer.content == HELLO
    assert server.counts == {fault: 2, "answered": 1}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("fault", "error", "attempts"),
    [
        ("error", TransientError, 4),
        ("cut", TransientError, 4),
        ("half_json", ModelFailure, 4),
        ("empty", ModelFailure, 3),
        ("context", ModelFailure, 1),
        ("unauthorized", InputError, 1),
    ],
)
def test_what_does_not_pass_ends_with_its_reason(
    tmp_path: Path, fault: Fault, error: type[CompoWorldError], attempts: int, stream: bool
) -> None:
    with LlmServer({MODEL: echo}, failing(fault)) as server, pytest.raises(error) as caught:
        using(model(server, stream=stream), tmp_path, ask, patience=Patience(attempts=4, pause_s=0.001))

    assert len(server.requests) == attempts
    kinds = {"half_json": "malformed", "empty": "empty", "context": "context"}
    if isinstance(caught.value, ModelFailure):
        assert caught.value.kind == kinds[fault]


def test_an_empty_answer_is_the_answer_when_the_model_insists(tmp_path: Path) -> None:
    with LlmServer({MODEL: lambda request: Reply()}) as server:
        for _ in range(2):
            with pytest.raises(ModelFailure, match="nothing in the answer"):
                using(model(server), tmp_path, ask)

    assert server.counts == {"answered": 3}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_an_endpoint_that_never_answers_is_not_waited_for(tmp_path: Path, stream: bool) -> None:
    with LlmServer({MODEL: echo}, failing("hang", 1)) as server:
        config = model(server, stream=stream, **({"e_first_byte_s": 0.2} if stream else {"e_total_s": 0.2}))
        answer = using(config, tmp_path, ask)

    assert answer.content == HELLO
    assert server.counts == {"left": 1, "answered": 1}


def test_the_wait_for_a_free_place_is_not_the_time_of_the_request(tmp_path: Path) -> None:
    async def slow(request: JsonObject) -> Reply:
        await asyncio.sleep(0.4)
        return echo(request)

    async def work(pool: ModelPool) -> list[AssistantMessage]:
        return await asyncio.gather(*(ask(pool, str(number)) for number in range(3)))

    with LlmServer({MODEL: slow}) as server:
        config = model(server, stream=False, e_concurrency=1, e_total_s=0.75)
        answers = using(config, tmp_path, work, patience=Patience(attempts=1))

    assert [answer.content for answer in answers] == [f"You said: {number}" for number in range(3)]


def test_the_wait_for_a_free_place_does_not_use_up_patience(tmp_path: Path) -> None:
    """The first request fails, waits for the second longer than there is patience, fails again, and is answered."""

    async def slow(request: JsonObject) -> Reply:
        await asyncio.sleep(0.4)
        return echo(request)

    async def work(pool: ModelPool) -> list[AssistantMessage]:
        return list(await asyncio.gather(ask(pool, "A"), ask(pool, "B")))

    patience = Patience(pause_s=0.001, longest_pause_s=0.001, total_s=0.2)
    with LlmServer({MODEL: slow}, Faults(at={1: "error", 3: "error"})) as server:
        answers = using(model(server, e_concurrency=1), tmp_path, work, patience=patience)

    assert [answer.content for answer in answers] == ["You said: A", "You said: B"]
    assert server.counts == {"error": 2, "answered": 2}


def test_a_server_that_is_too_busy_is_tried_more_often_than_a_broken_one(tmp_path: Path) -> None:
    with LlmServer({MODEL: echo}, failing("rate_limit", 12)) as server:
        answer = using(model(server), tmp_path, ask, patience=Patience(attempts=2, pause_s=0))

    assert answer.content == HELLO


def test_a_server_that_wants_to_be_left_alone_for_longer_than_patience_lasts_is_given_up(tmp_path: Path) -> None:
    faults = Faults(rates={"rate_limit": 1.0}, retry_after="3600")
    with LlmServer({MODEL: echo}, faults) as server, pytest.raises(TransientError, match="429: Too many requests"):
        using(model(server), tmp_path, ask)

    assert len(server.requests) == 1


def test_another_server_answers_at_once_where_one_does_not(tmp_path: Path) -> None:
    busy = Faults(rates={"rate_limit": 1.0}, retry_after="3600")

    async def work(pool: ModelPool) -> list[AssistantMessage]:
        return await asyncio.gather(*(ask(pool, item=str(item), sample=item) for item in range(40)))

    with LlmServer({MODEL: echo}, busy) as first, LlmServer({MODEL: echo}) as second:
        answers = using(model(first, second, unused_port_url()), tmp_path, work)

    assert {answer.content for answer in answers} == {HELLO}
    assert first.counts["rate_limit"] > 0
    assert second.counts["answered"] == 40


def unused_port_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def test_a_dead_server_is_given_up_and_named(tmp_path: Path) -> None:
    url = unused_port_url()

    with pytest.raises(TransientError, match=f"{url}: {MODEL}: the connection failed .* \\(3 attempts\\)"):
        using(model(url), tmp_path, ask, patience=Patience(attempts=3, pause_s=0.001))


def test_shares_follow_weights_and_a_conversation_stays_with_its_server(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> None:
        for turn in range(2):
            await asyncio.gather(*(ask(pool, f"turn {turn} of {item}", item=str(item)) for item in range(100)))

    with LlmServer({MODEL: echo}) as heavy, LlmServer({MODEL: echo}) as light:
        config = model(heavy, light, e_concurrency=200)
        endpoints = (
            config.endpoints[0].model_validate({**config.endpoints[0].model_dump(), "weight": 3}),
            config.endpoints[1],
        )
        using(
            config.model_validate({**config.model_dump(), "price": config.price, "endpoints": endpoints}),
            tmp_path,
            work,
        )

    def conversations(server: LlmServer, turn: int) -> set[str]:
        said = [request.body["messages"][-1]["content"].split() for request in server.requests if request.body]
        return {item for _, number, _, item in said if number == str(turn)}

    assert 60 <= len(conversations(heavy, 0)) <= 90
    assert conversations(heavy, 0) == conversations(heavy, 1)
    assert conversations(light, 0) == conversations(light, 1)


def test_no_more_requests_are_open_than_a_server_allows(tmp_path: Path) -> None:
    gate = threading.Barrier(5, timeout=60)

    async def script(request: JsonObject) -> Reply:
        await asyncio.to_thread(gate.wait)
        return echo(request)

    async def work(pool: ModelPool) -> list[AssistantMessage]:
        return await asyncio.gather(*(ask(pool, sample=number) for number in range(40)))

    with LlmServer({MODEL: script}) as server:
        using(model(server, e_concurrency=5), tmp_path, work)

    assert server.most_open == 5


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "150", "retry-after": "9"}, 0.15),
        ({"retry-after": "Fri, 02 Jan 2026 10:00:30 GMT", "date": "Fri, 02 Jan 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 09:00:00 GMT", "date": "Fri, 02 Jan 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-reset-requests": "6m1.5s", "x-ratelimit-reset-tokens": "20ms"}, 361.5),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "7"}, None),
        ({"x-ratelimit-reset-tokens": "tomorrow"}, None),
        ({}, None),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_endpoint_may_say_in_any_usual_way_how_long_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert wait_of(headers) == expected


def test_a_date_to_wait_for_needs_no_other_date() -> None:
    assert wait_of({"retry-after": email.utils.formatdate(4102444800, usegmt=True)}) > 10**6  # type: ignore[operator]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", ["unauthorized", "error", "cut", "half_json", "context", "rate_limit"])
def test_no_failure_comes_with_an_exception_of_the_client_library(tmp_path: Path, fault: Fault, stream: bool) -> None:
    """They carry the whole request with its key."""
    patience = Patience(attempts=2, pause_s=0.001, total_s=0.02)
    with LlmServer({MODEL: echo}, failing(fault)) as server, pytest.raises(CompoWorldError) as caught:
        using(model(server, stream=stream), tmp_path, ask, patience=patience)

    error: BaseException | None = caught.value
    while error is not None:
        assert isinstance(error, CompoWorldError)
        error = error.__cause__ or error.__context__


def test_a_key_that_the_endpoint_quotes_is_struck_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def indiscreet(request: JsonObject) -> Reply:
        raise ValueError(f"the key {CANARY} may not ask this")

    monkeypatch.setenv("TEACHER_KEY", CANARY)
    with LlmServer({MODEL: indiscreet}) as server, pytest.raises(ModelFailure, match="the key … may not ask this"):
        using(model(server, e_key_env="TEACHER_KEY"), tmp_path, ask)


def test_a_refused_key_is_named_by_its_variable_and_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEACHER_KEY", CANARY)
    with LlmServer({MODEL: echo}, keys=["another"]) as server:
        expected = (
            f"{server.base_url}: {MODEL}: the endpoint refuses access \\(401\\); correct the variable TEACHER_KEY"
        )
        with pytest.raises(InputError, match=expected):
            using(model(server, e_key_env="TEACHER_KEY"), tmp_path, ask)


def test_a_key_from_a_mounted_file_is_used_and_the_file_named(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{CANARY}\n")
    with LlmServer({MODEL: echo}, keys=[CANARY]) as server:
        answer = using(model(server, e_key_file=str(file)), tmp_path / "store", ask)
        file.write_text("wrong")
        with pytest.raises(InputError, match=f"correct the file {file}"):
            using(model(server, e_key_file=str(file)), tmp_path / "store2", ask)

    assert answer.content == HELLO


def test_a_model_that_the_endpoint_does_not_have_is_named(tmp_path: Path) -> None:
    with LlmServer({"other": echo}) as server, pytest.raises(InputError, match=f"{MODEL}: there is no such model"):
        using(model(server), tmp_path, ask)


def test_a_request_that_the_endpoint_refuses_is_not_sent_again(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> JsonObject:
        return (await pool.complete(NAME, {"messages": []}, item="i"))[0]

    with LlmServer({MODEL: echo}) as server, pytest.raises(ModelFailure, match="at least one message") as caught:
        using(model(server), tmp_path, work, patience=QUICK)

    assert caught.value.kind == "refused"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_an_answer_that_does_not_pass_a_filter_is_no_refusal_of_the_endpoint(tmp_path: Path, stream: bool) -> None:
    filtered = Reply(finish_reason="content_filter")
    with LlmServer({MODEL: lambda request: filtered}) as server, pytest.raises(ModelFailure) as caught:
        using(model(server, stream=stream), tmp_path, ask)

    assert caught.value.kind == "filtered"
