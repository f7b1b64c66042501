"""Asks other people's web servers, patiently, and never longer or for more than was agreed.

Every exchange has a deadline that holds even if a server sends one byte a second, a bound on its size, and a short list
of redirects it may follow. Addresses taken from a public list lead to public machines only: a published URL must not
become a way into the network of whoever crawls.
"""

from __future__ import annotations

import email.utils
import http.client
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from compoworld_core import __version__
from compoworld_core.specs.sources.failure import ServerFailure

USER_AGENT: Final = f"compoworld/{__version__} (crawler of service descriptions)"
MAX_REDIRECTS: Final = 4
MAX_WAIT_S: Final = 120.0
"""Longest that a server's wish to be left alone is followed within a crawl."""

_CHUNK: Final = 64 * 1024
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one exchange may take: seconds in all, seconds of silence, bytes."""

    total_s: float = 60.0
    silence_s: float = 30.0
    bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """A response whose body is yet to be read.

    Attributes:
        url: Where it came from, after redirects.
        is_late: Tells whether the deadline has ended the exchange.
    """

    status: int
    headers: Mapping[str, str]
    url: str
    is_late: Callable[[], bool]
    limit: int
    _raw: Any = field(repr=False)

    @property
    def kind(self) -> str:
        """The media type without its parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives.

        Raises:
            ServerFailure: It is cut off, late or too large.
        """
        size = 0
        while True:
            try:
                chunk = self._raw.read1(_CHUNK, decode_content=False)
            except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
                raise _failure(error, self.url, self.is_late()) from None
            if not chunk:
                if self.is_late():
                    raise _failure(TimeoutError(), self.url, True)
                return
            size += len(chunk)
            if size > self.limit:
                raise ServerFailure("too_large", f"{self.url}: the answer is larger than {self.limit} bytes")
            yield chunk

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self.chunks())

    def busy(self) -> ServerFailure | None:
        """The failure that may pass, if the server says that it can't answer now."""
        if self.status not in _BUSY:
            return None
        reason = "throttled" if self.status == 429 else "server_error"
        wait_s = retry_after(self.headers.get("Retry-After", ""), time.time())
        return ServerFailure(reason, f"{self.url}: status {self.status}", may_pass=True, wait_s=wait_s)


class Web:
    """A client.

    Attributes:
        is_public_only: Whether it keeps away from machines that are not on the public internet.
    """

    def __init__(self, limits: Limits | None = None, *, is_public_only: bool = False) -> None:
        self.is_public_only = is_public_only
        self._limits = limits or Limits()

    @contextmanager
    def send(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Iterator[Reply]:
        """Send a request and follow redirects; the connection ends with the block.

        Raises:
            ServerFailure: There is no answer.
        """
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})}
        sockets: list[socket.socket] = []
        late = threading.Event()

        def cut() -> None:
            late.set()
            for held in sockets:
                with suppress(OSError):
                    # The plain method, as that of TLS sockets also ends the session under the reader's feet.
                    socket.socket.shutdown(held, socket.SHUT_RDWR)

        timer = threading.Timer(self._limits.total_s, cut)
        timer.daemon = True
        timer.start()
        pool: urllib3.HTTPConnectionPool | None = None
        raw: urllib3.BaseHTTPResponse | None = None
        try:
            for _ in range(MAX_REDIRECTS + 1):
                try:
                    pool, target, named = self._connect(url, sockets)
                    timeout = urllib3.Timeout(connect=self._limits.silence_s, read=self._limits.silence_s)
                    raw = pool.urlopen(
                        method,
                        target,
                        body=body,
                        headers={**sent, **named},
                        retries=False,
                        redirect=False,
                        timeout=timeout,
                        preload_content=False,
                        decode_content=False,
                    )
                except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
                    raise _failure(error, url, late.is_set()) from None
                if raw.status not in _REDIRECTS or not raw.headers.get("Location"):
                    yield Reply(raw.status, raw.headers, url, late.is_set, self._limits.bytes, raw)
                    return
                following = urljoin(url, raw.headers["Location"])
                if urlsplit(following)[:2] != urlsplit(url)[:2]:
                    sent = {name: value for name, value in sent.items() if name.lower() != "mcp-session-id"}
                if urlsplit(url).scheme == "https" and urlsplit(following).scheme != "https":
                    raise ServerFailure("redirected", f"{url}: redirects to {following[:200]}, which is not https")
                raw.close()
                pool.close()
                url = following
            raise ServerFailure("redirected", f"{url}: more than {MAX_REDIRECTS} redirects")
        finally:
            timer.cancel()
            if raw is not None:
                raw.close()
            if pool is not None:
                pool.close()

    def _connect(
        self, url: str, sockets: list[socket.socket]
    ) -> tuple[urllib3.HTTPConnectionPool, str, dict[str, str]]:
        """A pool of one connection, what to ask it for, and the headers that name the server."""
        parts = urlsplit(url)
        host = parts.hostname
        if parts.scheme not in ("http", "https") or not host:
            raise ServerFailure("bad_url", f"{url[:200]!r} is no http or https address")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        proxy = None if proxy_bypass(host) else getproxies().get(parts.scheme)
        shown = f"[{host}]" if ":" in host else host
        named = {"Host": shown if parts.port is None else f"{shown}:{port}"}
        if proxy:
            self._keep_public(host, [host])
            manager = urllib3.ProxyManager(proxy)
            pool = manager.connection_from_host(host, port, parts.scheme)
            # A plain proxy is asked for the whole address, a tunnel for the path.
            return _watched(pool, sockets), url if parts.scheme == "http" else target, {}
        address = host
        if self.is_public_only:
            # The address that was checked is the one that is called: a name could lead elsewhere the second time.
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._keep_public(host, [str(entry[4][0]) for entry in found])
            address = str(found[0][4][0])
        if parts.scheme == "http":
            return _watched(urllib3.HTTPConnectionPool(address, port), sockets), target, named
        secure = urllib3.HTTPSConnectionPool(address, port, server_hostname=host, assert_hostname=host)
        return _watched(secure, sockets), target, named

    def _keep_public(self, host: str, addresses: list[str]) -> None:
        if not self.is_public_only:
            return
        for address in addresses:
            if host == "localhost" or not _is_public(address):
                raise ServerFailure("not_public", f"{host} is {address}, which is not on the public internet")


def is_public_host(url: str) -> bool:
    """Whether an address belongs to the public internet; one that can't be told does."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return True
    return all(_is_public(str(entry[4][0])) for entry in found)


def _is_public(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True  # a name, which a proxy resolves
    mapped = getattr(parsed, "ipv4_mapped", None) or parsed
    return bool(mapped.is_global and not mapped.is_multicast)


def retry_after(text: str, now: float) -> float:
    """The seconds that a `Retry-After` header asks to wait: a number, or a date."""
    text = text.strip()
    if text.isdecimal():
        return min(float(text[:9]), 10 * MAX_WAIT_S)
    with suppress(ValueError, TypeError, OverflowError):
        return min(max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now), 10 * MAX_WAIT_S)
    return 0.0


def _watched(pool: urllib3.HTTPConnectionPool, sockets: list[socket.socket]) -> urllib3.HTTPConnectionPool:
    """The pool with its sockets on a list, so that a deadline can end them whatever they are waiting for."""
    base: type[Any] = HTTPSConnection if isinstance(pool, urllib3.HTTPSConnectionPool) else HTTPConnection

    class Watched(base):  # type: ignore[misc]  # the class is chosen when it runs
        def connect(self) -> None:
            super().connect()
            if self.sock is not None:
                sockets.append(self.sock)

    pool.ConnectionCls = Watched
    return pool


def _failure(error: Exception, url: str, is_late: bool) -> ServerFailure:
    if isinstance(error, ServerFailure):
        return error
    # A refused connection is, to urllib3, a kind of time-out.
    is_refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    if is_late or (isinstance(error, (TimeoutError, urllib3.exceptions.TimeoutError)) and not is_refused):
        return ServerFailure("timeout", f"{url}: no answer in time", may_pass=True)
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return ServerFailure("bad_certificate", f"{url}: {text[-300:]}")
    cause = error.__cause__ if isinstance(error, urllib3.exceptions.NameResolutionError) else error
    if isinstance(cause, socket.gaierror):
        return ServerFailure("unreachable", f"{url}: {cause.strerror}", may_pass=cause.errno != socket.EAI_NONAME)
    if isinstance(error, (ValueError, urllib3.exceptions.LocationValueError)):
        return ServerFailure("bad_url", f"{url[:200]!r}: {text[:300]}")
    return ServerFailure("unreachable", f"{url}: {(text.partition('): ')[2] or text)[:300]}", may_pass=True)
