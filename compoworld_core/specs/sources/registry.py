"""Registries of the official shape: who publishes which server, not which tools it has.

    GET /v0.1/servers?version=latest&limit=100&cursor=… ─► one entry per server ─► its package or remote ─► its tools

Pages and outcomes are noted as they come, so a crawl that was stopped repeats neither a page nor the start of a server.
One request at a time, with a pause in between.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from compoworld_core.errors import InputError
from compoworld_core.specs.model import JsonObject, Rejection
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.listing import Listing, PackageWay, Way
from compoworld_core.specs.sources.notebook import Notebook
from compoworld_core.specs.sources.packages import cache_folder, installed
from compoworld_core.specs.sources.pipe import Bounds
from compoworld_core.specs.sources.remote import crawl_remote, patiently
from compoworld_core.specs.sources.sandbox import cell_builder
from compoworld_core.specs.sources.source import RawServer
from compoworld_core.specs.sources.stdio import crawl, named_folders
from compoworld_core.specs.sources.web import Limits, Web, is_public_host

FORM: Final = "`registry:<address>[?updated_since=<time>]`"
PAGE: Final = 100
MAX_PAGES: Final = 10_000
PAUSE_S: Final = 0.25
PATIENCE_S: Final = 600.0
_PATH: Final = "/v0.1/servers"
_FILTERS: Final = frozenset({"updated_since", "search", "version", "limit"})

Crawl = Callable[[Listing, Way], JsonObject]


class RegistrySource:
    """All servers of a registry, in its order."""

    def __init__(
        self,
        text: str,
        *,
        bounds: Bounds | None = None,
        sleep: Callable[[float], None] = time.sleep,
        crawl_way: Crawl | None = None,
    ) -> None:
        """Take a registry's address.

        Args:
            text: Where it lies, with filters as a query.
            bounds: What one server may take.
            sleep: How to wait between requests.
            crawl_way: How to read the tools of a server; by starting or calling it if left out.

        Raises:
            InputError: It is no address of a registry.
        """
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"source registry:{text}: is no address; use registry:https://<host>")
        filters = dict(parse_qsl(parts.query))
        if unknown := sorted(set(filters) - _FILTERS):
            known = ", ".join(sorted(_FILTERS))
            raise InputError(f"source registry:{text}: does not know {', '.join(unknown)}; there are {known}")
        path = parts.path.rstrip("/").removesuffix(_PATH) + _PATH
        self._base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self._filters = {"version": "latest", "limit": str(PAGE), **filters}
        self._text = text
        self._host = parts.hostname
        self._bounds = bounds or Bounds()
        self._sleep = sleep
        self._web = Web(Limits())
        self._crawl = crawl_way or self._crawl_way
        self._remotes: Web | None = None

    def servers(self) -> Iterator[RawServer | Rejection]:
        """A server or a rejection for each entry.

        Raises:
            InputError: It is no registry.
            TransientError: It can't be reached now; the same command goes on from there.
            IsolationError: Servers can't be confined on this machine.
        """
        cell_builder()
        begun = hashlib.sha256(json.dumps([self._base, self._filters], sort_keys=True).encode()).hexdigest()[:16]
        notebook = Notebook(cache_folder("registry") / begun)
        seen: set[tuple[str, str]] = set()
        for page in self._pages(notebook):
            for number, entry in enumerate(page["servers"]):
                listing = Listing.parse(entry)
                if listing is None:
                    detail = f"entry {number} of page {page['number']} names no server"
                    yield ServerFailure("no_name", detail).rejection(f"{self._host}#{page['number']}.{number}")
                elif listing.is_latest and (listing.name, listing.version) not in seen:
                    seen.add((listing.name, listing.version))
                    yield self._outcome(listing, notebook)
        notebook.discard()

    def fingerprint(self) -> str:
        """Nothing: what a registry lists is known only by reading it."""
        return ""

    def _pages(self, notebook: Notebook) -> Iterator[JsonObject]:
        cursor = ""
        seen: set[str] = set()
        for number in range(1, MAX_PAGES + 1):
            query = {**self._filters, **({"cursor": cursor} if cursor else {})}
            url = f"{self._base}?{urlencode(query)}"
            page = notebook.get(url)
            if page is None:
                if number > 1:
                    self._sleep(PAUSE_S)
                page = self._fetch(url, number)
                notebook.put(url, page)
            yield page
            cursor = page["next"]
            if not cursor:
                return
            if cursor in seen:
                raise InputError(f"source registry:{self._text}: page {number}: cursor {cursor[:60]!r} came before")
            seen.add(cursor)
        raise InputError(f"source registry:{self._text}: has more than {MAX_PAGES} pages")

    def _fetch(self, url: str, number: int) -> JsonObject:
        try:
            page = patiently(lambda: self._get(url), time.monotonic() + PATIENCE_S, self._sleep, attempts=6)
        except ServerFailure as failure:
            raise failure.error(f"source registry:{self._text}: page {number}") from failure
        return {**page, "number": number}

    def _get(self, url: str) -> JsonObject:
        with self._web.send("GET", url, {"Accept": "application/json"}) as reply:
            if failure := reply.busy():
                raise failure
            if reply.status != 200:
                raise ServerFailure("not_a_registry", f"{url}: status {reply.status}")
            text = reply.read()
        try:
            page: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            # A page that was cut short looks like this too.
            raise ServerFailure("not_json", f"{url}: {str(error)[:200]}", may_pass=True) from None
        if not isinstance(page, dict) or not isinstance(page.get("servers"), list):
            raise ServerFailure("not_a_registry", f"{url}: the answer has no list of servers")
        metadata = page.get("metadata")
        told = metadata if isinstance(metadata, dict) else {}
        following = told.get("nextCursor") or told.get("next_cursor")
        return {"servers": page["servers"], "next": following if isinstance(following, str) else ""}

    def _outcome(self, listing: Listing, notebook: Notebook) -> RawServer | Rejection:
        """What became of one server, noted unless trying again later may help."""
        origin = f"{self._host}/{listing.name}@{listing.version}"
        name = f"server {listing.name}@{listing.version} {json.dumps(listing.server, sort_keys=True)}"
        noted = notebook.get(name)
        if noted is not None:
            return RawServer(origin, noted["raw"]) if "raw" in noted else Rejection.model_validate(noted["rejection"])
        try:
            raw = self._read(listing)
        except ServerFailure as failure:
            rejection = failure.rejection(origin, listing.name)
            if not failure.may_pass:
                notebook.put(name, {"rejection": rejection.model_dump()})
            return rejection
        notebook.put(name, {"raw": raw})
        return RawServer(origin, raw)

    def _read(self, listing: Listing) -> JsonObject:
        """The server's record, by the first way that works."""
        if listing.status == "deleted":
            raise ServerFailure("withdrawn", "its publisher has deleted it")
        ways, failures = listing.ways()
        for way in ways:
            try:
                found = self._crawl(listing, way)
            except ServerFailure as failure:
                failures.insert(0, failure)
                continue
            told = {key: listing.server.get(key) for key in ("title", "description") if listing.server.get(key)}
            return {**found, **told, "server": listing.name}
        may_pass = any(failure.may_pass for failure in failures)
        detail = "; ".join(f"{failure.detail} ({failure.reason})" for failure in failures)
        raise ServerFailure(failures[0].reason, detail, may_pass=may_pass)

    def _crawl_way(self, listing: Listing, way: Way) -> JsonObject:
        if isinstance(way, PackageWay):
            folders = named_folders([*way.arguments, *way.environment.values()])
            with installed(way.package, way.arguments, way.environment, folders, keep=False) as launch:
                return crawl(launch, self._bounds)
        if self._remotes is None:
            # A registry inside a network may list servers inside it; a public one may not point there.
            limits = Limits(self._bounds.request_s, min(30.0, self._bounds.request_s), self._bounds.message_bytes)
            self._remotes = Web(limits, is_public_only=is_public_host(self._base))
        return crawl_remote(way.url, self._remotes, self._bounds, self._sleep)
