"""Servers that run elsewhere: what they tell over streamable HTTP, and what a broken or hostile one can't do."""

from __future__ import annotations

import time

import pytest

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.sources import RemoteSource, open_source
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.pipe import Bounds
from compoworld_core.specs.sources.remote import crawl_remote, events
from compoworld_core.specs.sources.web import Limits, Web, retry_after
from tests.specs.web_double import EVENTS, JSON, TOOL, Answer, Request, Response, event, mcp, result, serving

BOUNDS = Bounds(request_s=10, total_s=600)


def crawled(answer: Answer, limits: Limits | None = None, waits: list[float] | None = None) -> JsonObject:
    """What a server tells; waiting takes no time."""
    with serving(answer) as (url, _):
        return crawl_remote(f"{url}/mcp", Web(limits), BOUNDS, (waits if waits is not None else []).append)


def test_conversation_keeps_session_and_revision_and_says_goodbye() -> None:
    with serving(mcp()) as (url, requests):
        raw = crawl_remote(f"{url}/mcp", Web(), BOUNDS)

    assert raw["server"] == "far"
    assert raw["tools"] == [TOOL]
    assert [(request.method, (request.body or {}).get("method")) for request in requests] == [
        ("POST", "initialize"),
        ("POST", "notifications/initialized"),
        ("POST", "tools/list"),
        ("DELETE", None),
    ]
    for request in requests[1:]:
        assert request.headers["Mcp-Session-Id"] == "s1"
        assert request.headers["MCP-Protocol-Version"] == "2025-11-25"
    for request in requests[:3]:
        assert {"application/json", "text/event-stream"} <= set(request.headers["Accept"].split(", "))
        assert request.headers["User-Agent"].startswith("compoworld/")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_answer_comes_in_a_stream_beside_other_messages(newline: str) -> None:
    def tools(request: Request) -> Response:
        whole = b"".join(
            [
                b": hello" + newline.encode() * 2,
                event({"jsonrpc": "2.0", "method": "notifications/message"}, newline),
                event({"jsonrpc": "2.0", "id": 99, "method": "roots/list"}, newline),
                event(result(request, {"tools": [TOOL]}), newline),
            ]
        )
        return Response(200, [whole[at : at + 7] for at in range(0, len(whole), 7)], EVENTS)

    with serving(mcp(tools)) as (url, requests):
        raw = crawl_remote(f"{url}/mcp", Web(), BOUNDS)

    assert raw["tools"] == [TOOL]
    answers = [request.body for request in requests if request.body and request.body.get("id") == 99]
    assert answers == [{"jsonrpc": "2.0", "id": 99, "result": {"roots": []}}]


def test_event_may_have_several_data_lines_and_no_end() -> None:
    assert list(events([b"data: {\ndata:  1}\n\nda", b"ta: x\nid: 1"])) == [b"{\n 1}", b"x"]


def test_stream_that_never_ends_is_left_when_the_answer_is_there() -> None:
    def tools(request: Request) -> Response:
        forever = [event(result(request, {"tools": [TOOL]})), *[b": still here\n\n"] * 1_000]
        return Response(200, forever, EVENTS, pause_s=0.05)

    begun = time.monotonic()
    assert crawled(mcp(tools))["tools"] == [TOOL]
    assert time.monotonic() - begun < 20


def test_pages_are_followed() -> None:
    def tools(request: Request) -> Response:
        at = int(request.body["params"].get("cursor", 0))
        following = {"nextCursor": str(at + 1)} if at < 3 else {}
        return Response(200, result(request, {"tools": [{**TOOL, "name": f"get_{at}"}], **following}), JSON)

    assert [tool["name"] for tool in crawled(mcp(tools))["tools"]] == ["get_0", "get_1", "get_2", "get_3"]


def once(first: Response) -> Answer:
    """Lists tools, but not at the first time."""
    asked: list[Request] = []

    def tools(request: Request) -> Response:
        asked.append(request)
        return first if len(asked) == 1 else Response(200, result(request, {"tools": [TOOL]}), JSON)

    return mcp(tools)


@pytest.mark.parametrize(
    ("first", "least_wait"),
    [
        pytest.param(Response(429, headers={"Retry-After": "7"}), 7.0, id="throttled"),
        pytest.param(Response(503), 0.5, id="busy"),
        pytest.param(Response(200, [event({"jsonrpc": "2.0", "method": "x"})], EVENTS), 0.5, id="stream-ends-early"),
        pytest.param(Response(200, [b"data: {"], EVENTS, cut=True), 0.5, id="stream-cut"),
        pytest.param(Response(200, b'{"jsonrpc"', JSON, cut=True), 0.5, id="body-cut"),
    ],
)
def test_what_may_pass_is_tried_again(first: Response, least_wait: float) -> None:
    waits: list[float] = []

    assert crawled(once(first), waits=waits)["tools"] == [TOOL]
    assert len(waits) == 1
    assert waits[0] >= least_wait


def always(response: Response) -> Answer:
    return mcp(lambda request: response)


@pytest.mark.parametrize(
    ("answer", "reason", "may_pass"),
    [
        pytest.param(always(Response(500)), "server_error", True, id="always-500"),
        pytest.param(always(Response(429, headers={"Retry-After": "9999"})), "throttled", True, id="asks-for-hours"),
        pytest.param(always(Response(200, [event({})], EVENTS)), "cut_off", True, id="no-answer-in-stream"),
        pytest.param(always(Response(200, b"<html>", {"Content-Type": "text/html"})), "not_mcp", False, id="page"),
        pytest.param(always(Response(200, b"[" * 100_000, JSON)), "not_mcp", False, id="deep"),
        pytest.param(always(Response(404)), "session_lost", False, id="session-lost"),
        pytest.param(lambda request: Response(404), "not_mcp", False, id="nothing-there"),
        pytest.param(lambda request: Response(401), "needs_credentials", False, id="unauthorised"),
        pytest.param(lambda request: Response(418), "refused", False, id="refused"),
        pytest.param(lambda request: Response(307, headers={"Location": "/mcp"}), "redirected", False, id="circle"),
        pytest.param(lambda request: Response(302, headers={"Location": "ftp://x/"}), "bad_url", False, id="ftp"),
        pytest.param(always(Response(200, b"x" * 3_000_000, JSON)), "too_large", False, id="large"),
        pytest.param(always(Response(200, [b"data: " + b"x" * 60_000] * 50, EVENTS)), "too_large", False, id="flood"),
        pytest.param(
            mcp(lambda request: Response(200, result(request, {"tools": [], "nextCursor": "a"}), JSON)),
            "cursor_loop",
            False,
            id="cursor-loop",
        ),
        pytest.param(
            always(Response(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}, JSON)),
            "rpc_error",
            False,
            id="error-with-status",
        ),
    ],
)
def test_failing_server_has_a_reason(answer: Answer, reason: str, may_pass: bool) -> None:
    with pytest.raises(ServerFailure) as failure:
        crawled(answer, Limits(bytes=2_000_000))

    assert (failure.value.reason, failure.value.may_pass) == (reason, may_pass)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(Response(200, [b": x\n"] * 400, EVENTS, pause_s=0.05), id="dribbling-body"),
        pytest.param(Response(200, [b": x\n\n"] * 2, EVENTS, pause_s=30), id="silent"),
    ],
)
def test_deadline_holds_against_a_slow_server(response: Response) -> None:
    begun = time.monotonic()
    with serving(mcp(lambda request: response)) as (url, _), pytest.raises(ServerFailure) as failure:
        crawl_remote(f"{url}/mcp", Web(Limits(total_s=1.0)), Bounds(total_s=0.0))

    assert failure.value.reason == "timeout"
    assert time.monotonic() - begun < 10


def test_redirect_is_followed_with_the_message() -> None:
    serve = mcp()

    def answer(request: Request) -> Response:
        return Response(307, headers={"Location": "/mcp/"}) if request.path == "/mcp" else serve(request)

    assert crawled(answer)["tools"] == [TOOL]


def test_session_does_not_follow_to_another_server() -> None:
    with serving(mcp()) as (other, seen):
        serve = mcp(lambda request: Response(307, headers={"Location": f"{other}/mcp"}))
        with serving(serve) as (url, _):
            crawl_remote(f"{url}/mcp", Web(), BOUNDS)

    assert seen[0].body["method"] == "tools/list"
    assert "Mcp-Session-Id" not in seen[0].headers


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/mcp", "http://localhost:9/", "http://[::1]:9/", "http://169.254.169.254/", "http://0x7f.1/"],
)
def test_listed_address_does_not_lead_into_the_own_network(url: str) -> None:
    with pytest.raises(ServerFailure) as failure:
        crawl_remote(url, Web(is_public_only=True), Bounds(total_s=0))

    assert failure.value.reason == "not_public"


def test_stateless_server_is_asked_without_handshake() -> None:
    def answer(request: Request) -> Response:
        if request.body.get("method") == "initialize":
            data = {"supported": ["2026-07-28"]}
            error = {"code": -32022, "message": "unsupported", "data": data}
            return Response(400, {"jsonrpc": "2.0", "id": request.body["id"], "error": error}, JSON)
        assert request.headers["MCP-Protocol-Version"] == "2026-07-28"
        assert request.headers["Mcp-Method"] == "tools/list"
        return Response(200, result(request, {"tools": [TOOL], "resultType": "complete"}), JSON)

    raw = crawled(answer)

    assert raw["tools"] == [TOOL]
    assert raw["server"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        pytest.param(lambda request: Response(401), InputError, 2, id="for-good"),
        pytest.param(lambda request: Response(429, headers={"Retry-After": "9999"}), TransientError, 75, id="for-now"),
    ],
)
def test_named_server_that_fails_is_an_error(answer: Answer, kind: type[CompoWorldError], code: int) -> None:
    with serving(answer) as (url, _), pytest.raises(kind, match=f"source {url}/mcp: initialize: ") as error:
        list(open_source(f"{url}/mcp").servers())

    assert error.value.exit_code == code


def test_unreachable_server_may_be_reached_later() -> None:
    with serving(mcp()) as (url, _):
        pass
    with pytest.raises(TransientError, match="unreachable"):
        list(RemoteSource(url, bounds=Bounds(total_s=0)).servers())


@pytest.mark.parametrize("text", ["https://", "http://:80/", "https://host:99999/"])
def test_unusable_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        open_source(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("Thu, 01 Jan 1970 00:01:00 GMT", 60.0), ("-1", 0.0), ("soon", 0.0), ("9" * 50, 1200.0), ("", 0.0)],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert retry_after(text, 0.0) == seconds


def test_name_that_does_not_exist_is_bad_input() -> None:
    with pytest.raises(ServerFailure) as failure:
        crawl_remote("https://no-such-host.invalid/mcp", Web(), Bounds(total_s=0))

    assert failure.value.reason == "unreachable"
