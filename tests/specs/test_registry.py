"""Registries: pages read politely and once, and every entry a server or a rejection with its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError, TransientError
from compoworld_core.specs.model import JsonObject, Rejection
from compoworld_core.specs.sources import RawServer, RegistrySource, open_source, read_specs
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.listing import Listing, PackageWay, RemoteWay, Way
from compoworld_core.specs.sources.notebook import MAX_AGE_S, Notebook
from compoworld_core.specs.sources.packages import Package
from compoworld_core.specs.sources.pipe import Bounds
from tests.specs.web_double import JSON, TOOL, Answer, Request, Response, mcp, serving
from tests.specs.wheels import wheel

OFFICIAL = "io.modelcontextprotocol.registry/official"
NPM = {"registryType": "npm", "identifier": "some-server", "version": "1.0.0", "transport": {"type": "stdio"}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def entry(name: str, *, latest: bool = True, status: str = "active", **server: Any) -> JsonObject:
    told = {"name": name, "version": "1.0.0", "packages": [NPM], **server}
    return {"server": told, "_meta": {OFFICIAL: {"status": status, "isLatest": latest}}}


def registry(entries: list[Any], per_page: int = 2) -> Answer:
    """A registry that hands out a few entries per page."""

    def answer(request: Request) -> Response:
        assert request.path == "/v0.1/servers"
        at = int(request.query.get("cursor", 0))
        page = entries[at : at + per_page]
        following = {"nextCursor": str(at + per_page)} if at + per_page < len(entries) else {}
        return Response(200, {"servers": page, "metadata": {"count": len(page), **following}}, JSON)

    return answer


def found(listing: Listing, way: Way) -> JsonObject:
    """Stands for reading the tools of any server."""
    return {"server": "its own name", "title": None, "description": "its own", "tools": [TOOL]}


def read(
    url: str, crawl_way: Callable[[Listing, Way], JsonObject] = found, waits: list[float] | None = None
) -> list[RawServer | Rejection]:
    sleep = (waits if waits is not None else []).append
    return list(RegistrySource(url, sleep=sleep, crawl_way=crawl_way).servers())


def test_every_latest_entry_is_read_in_order() -> None:
    entries = [entry("a/one"), entry("a/one", latest=False), entry("a/two", title="Two"), entry("a/one"), entry("b")]
    waits: list[float] = []

    with serving(registry(entries)) as (url, requests):
        items = read(url, waits=waits)

    assert [item.origin for item in items] == [f"127.0.0.1/{name}@1.0.0" for name in ("a/one", "a/two", "b")]
    assert [item.raw["server"] for item in items if isinstance(item, RawServer)] == ["a/one", "a/two", "b"]  # type: ignore[index]
    assert [(request.query["version"], request.query["limit"]) for request in requests] == [("latest", "100")] * 3
    assert all(request.headers["User-Agent"].startswith("compoworld/") for request in requests)
    assert waits == [0.25, 0.25]


def test_filters_reach_the_registry() -> None:
    with serving(registry([])) as (url, requests):
        read(f"{url}/v0.1/servers/?updated_since=2026-01-01T00:00:00Z")

    assert requests[0].query["updated_since"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("server", "reason", "detail"),
    [
        pytest.param(
            {"packages": [{**NPM, "registryType": "oci"}]}, "unsupported_package", "oci:some-server", id="oci"
        ),
        pytest.param({"packages": []}, "no_way", "neither packages nor remotes", id="nothing"),
        pytest.param(
            {"packages": [{**NPM, "environmentVariables": [{"name": "KEY", "isRequired": True, "isSecret": True}]}]},
            "needs_secret",
            "the variable KEY has to be told",
            id="secret",
        ),
        pytest.param(
            {
                "packages": [
                    {**NPM, "packageArguments": [{"type": "positional", "valueHint": "dir", "isRequired": True}]}
                ]
            },
            "needs_configuration",
            "the argument dir has to be told",
            id="argument",
        ),
        pytest.param(
            {"packages": [{**NPM, "transport": {"type": "streamable-http"}}]}, "unsupported_transport", "", id="http"
        ),
        pytest.param(
            {"packages": [{**NPM, "registryBaseUrl": "https://npm.example"}]},
            "unsupported_package",
            "lies at",
            id="home",
        ),
        pytest.param(
            {"packages": [{**NPM, "identifier": "git+ssh://x"}]}, "unsupported_package", "names no package", id="git"
        ),
        pytest.param(
            {"packages": [], "remotes": [{"type": "sse", "url": "https://x"}]}, "unsupported_transport", "sse", id="sse"
        ),
        pytest.param(
            {
                "packages": [],
                "remotes": [
                    {"type": "streamable-http", "url": "https://x", "headers": [{"name": "Auth", "isSecret": True}]}
                ],
            },
            "needs_secret",
            "wants the header Auth",
            id="header",
        ),
        pytest.param(
            {"packages": [], "remotes": [{"type": "streamable-http", "url": "https://{tenant}.x"}]},
            "needs_configuration",
            "a place to fill in",
            id="template",
        ),
        pytest.param({"packages": "none", "remotes": [1]}, "unsupported_transport", "", id="nonsense"),
    ],
)
def test_server_that_cannot_be_asked_is_rejected(server: JsonObject, reason: str, detail: str) -> None:
    with serving(registry([entry("a/one", **server), entry("b")])) as (url, _):
        rejection, other = read(url)

    assert isinstance(rejection, Rejection)
    assert (rejection.subject, rejection.server, rejection.reason) == ("server", "a/one", reason)
    assert detail in rejection.detail
    assert isinstance(other, RawServer)


@pytest.mark.parametrize("broken", [None, 7, {}, {"server": {"name": " "}}, {"server": {"name": 1}}, []])
def test_entry_without_a_name_is_rejected(broken: Any) -> None:
    with serving(registry([broken, entry("b")])) as (url, _):
        rejection, other = read(url)

    assert isinstance(rejection, Rejection)
    assert (rejection.reason, rejection.origin) == ("no_name", "127.0.0.1#1.0")
    assert isinstance(other, RawServer)


def test_withdrawn_server_is_left_alone() -> None:
    with serving(registry([entry("a", status="deleted")])) as (url, _):
        (rejection,) = read(url, lambda listing, way: pytest.fail("asked"))

    assert isinstance(rejection, Rejection)
    assert rejection.reason == "withdrawn"


def test_values_of_a_package_are_filled_in() -> None:
    package = {
        **NPM,
        "environmentVariables": [
            {"name": "MODE", "value": "{mode}", "variables": {"mode": {"default": "fast"}}},
            {"name": "KEY", "isSecret": True, "default": "x"},
            {"name": "LEVEL", "default": 3},
        ],
        "packageArguments": [
            {"type": "named", "name": "--port", "default": "80"},
            {"type": "named", "name": "--unset"},
            {"type": "positional", "value": "/srv/docs"},
        ],
    }
    listing = Listing.parse(
        entry("a", packages=[package], remotes=[{"type": "streamable-http", "url": "https://x/mcp"}])
    )
    assert listing is not None

    ways, closed = listing.ways()

    assert ways == [
        PackageWay(
            Package("npx", "some-server", "1.0.0"), ("--port", "80", "/srv/docs"), {"MODE": "fast", "LEVEL": "3"}
        ),
        RemoteWay("https://x/mcp"),
    ]
    assert closed == []


def test_next_way_is_tried_and_all_failures_are_told() -> None:
    remotes = [{"type": "streamable-http", "url": "https://x/mcp"}]

    def crawl_way(listing: Listing, way: Way) -> JsonObject:
        if isinstance(way, PackageWay):
            raise ServerFailure("crashed", "initialize: it ended")
        if listing.name == "bad":
            raise ServerFailure("refused", "status 418")
        return found(listing, way)

    with serving(registry([entry("good", remotes=remotes), entry("bad", remotes=remotes)])) as (url, _):
        good, bad = read(url, crawl_way)

    assert isinstance(good, RawServer)
    assert isinstance(bad, Rejection)
    assert bad.detail == "status 418 (refused); initialize: it ended (crashed)"


def flaky(inner: Answer, *first: Response) -> Answer:
    left = list(first)
    return lambda request: left.pop(0) if left else inner(request)


@pytest.mark.parametrize(
    ("first", "least_wait"),
    [
        pytest.param(Response(429, headers={"Retry-After": "30"}), 30.0, id="throttled"),
        pytest.param(Response(500), 0.5, id="broken"),
        pytest.param(Response(200, b'{"servers": [', JSON), 0.5, id="half-a-page"),
        pytest.param(Response(200, b'{"servers": [', JSON, cut=True), 0.5, id="cut"),
    ],
)
def test_page_is_asked_for_again_after_a_while(first: Response, least_wait: float) -> None:
    waits: list[float] = []
    with serving(flaky(registry([entry("a")]), first)) as (url, _):
        items = read(url, waits=waits)

    assert len(items) == 1
    assert len(waits) == 1
    assert waits[0] >= least_wait


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        pytest.param(lambda request: Response(503), TransientError, "page 1: .* status 503", id="always-busy"),
        pytest.param(lambda request: Response(404), InputError, "not_a_registry", id="nothing-there"),
        pytest.param(lambda request: Response(200, {"tools": []}, JSON), InputError, "no list of servers", id="other"),
        pytest.param(
            lambda request: Response(200, {"servers": [], "metadata": {"nextCursor": "x"}}, JSON),
            InputError,
            "page 2: cursor 'x' came before",
            id="cursor-loop",
        ),
    ],
)
def test_registry_that_fails_is_an_error(answer: Answer, kind: type[Exception], message: str) -> None:
    with serving(answer) as (url, _), pytest.raises(kind, match=message):
        read(url)


def test_crawl_goes_on_where_it_was_stopped() -> None:
    entries = [entry(f"s{number}") for number in range(6)]
    asked: list[str] = []

    def crawl_way(listing: Listing, way: Way) -> JsonObject:
        asked.append(listing.name)
        if listing.name == "s1":
            raise ServerFailure("crashed", "it ended")
        if listing.name == "s2":
            raise ServerFailure("timeout", "no answer", may_pass=True)
        return found(listing, way)

    with serving(registry(entries)) as (url, requests):
        begun = RegistrySource(url, sleep=lambda seconds: None, crawl_way=crawl_way).servers()
        first = [next(begun) for _ in range(4)]
        begun.close()  # type: ignore[attr-defined]  # it is a generator
        second = read(url, crawl_way)
        pages = [request.query.get("cursor") for request in requests]
        read(url, crawl_way)

    assert pages == [None, "2", "4"]
    assert asked[:7] == ["s0", "s1", "s2", "s3", "s2", "s4", "s5"]
    assert second[:4] == first
    assert len(requests) == 6, "a crawl that is finished is begun anew"


def test_notebook_is_thrown_away_after_a_day(tmp_path: Path) -> None:
    now = [0.0]
    notebook = Notebook(tmp_path / "notes")
    notebook.put("a", {"b": 1})
    now[0] = (tmp_path / "notes" / "begun").stat().st_mtime

    kept = Notebook(tmp_path / "notes", now=lambda: now[0] + MAX_AGE_S - 1).get("a")
    lost = Notebook(tmp_path / "notes", now=lambda: now[0] + MAX_AGE_S + 1).get("a")

    assert (kept, lost) == ({"b": 1}, None)


def test_listed_package_and_remote_are_really_asked(index: Path) -> None:
    wheel(index, "scripted-server")
    package = {"registryType": "pypi", "identifier": "scripted-server", "version": "1.0"}
    broken = {**package, "packageArguments": [{"type": "positional", "value": "crash"}]}
    with serving(mcp()) as (remote, _):
        remotes = [{"type": "streamable-http", "url": f"{remote}/mcp"}]
        entries = [
            entry("io.example/started", packages=[package], description="From the registry."),
            entry("io.example/broken", packages=[broken]),
            entry("io.example/called", packages=[], remotes=remotes),
        ]
        with serving(registry(entries)) as (url, _):
            specs, rejections = read_specs(RegistrySource(url, bounds=Bounds(request_s=20)))

    assert [(spec.name, spec.original_name) for spec in specs] == [
        ("started", "io.example/started"),
        ("called", "io.example/called"),
    ]
    assert specs[0].description == "From the registry."
    assert [(rejection.server, rejection.reason) for rejection in rejections] == [("io.example/broken", "crashed")]
    assert "Traceback: it broke here" in rejections[0].detail


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("registry:", "use registry:https://<host>"),
        ("registry:ftp://x", "use registry:https://<host>"),
        ("registry:https://x?since=1", "does not know since; there are limit, search, updated_since, version"),
    ],
)
def test_unusable_form_says_what_to_do(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source(text)


@pytest.mark.components
def test_real_package_of_a_registry() -> None:
    package = {"registryType": "npm", "identifier": "@modelcontextprotocol/server-memory", "version": "2026.8.31"}
    with serving(registry([entry("io.example/memory", packages=[package])])) as (url, _):
        specs, rejections = read_specs(open_source(f"registry:{url}"))

    assert not rejections
    assert len(specs[0].tools) == 9
