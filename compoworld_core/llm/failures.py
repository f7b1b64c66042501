"""What goes wrong at an endpoint, sorted by what can be done about it: ask again, ask differently, or ask a person.

What an endpoint or the client library says may echo a key, so it is quoted in short and with the key struck out, and
none of their exceptions, which carry whole requests, is ever passed on or chained.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final

from aiohttp import ClientError
from httpx2 import HTTPError
from openai import APIConnectionError, APIError, APIStatusError

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.llm.config import Endpoint
from compoworld_core.llm.model import FailureKind, ModelFailure

_QUOTED_CHARS: Final = 300
_AGAIN: Final = {408, 409, 425, 429}
_OVERFLOW: Final = re.compile(
    r"context.?(length|window|size)|maximum (context|input|prompt)"
    r"|(prompt|input|request|conversation) (is )?too (long|large)"
    r"|too many (input )?tokens|reduce the length|exceeds? .{0,40}(token|context) limit",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(r"insufficient_quota|billing|insufficient (balance|credit)|out of credit", re.IGNORECASE)
_FILTERED: Final = re.compile(r"content.?(filter|policy)|data_inspection|moderation", re.IGNORECASE)
_DURATION: Final = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")


class Unanswered(TransientError):
    """No answer from one endpoint now, but there may be one later, or from another.

    Attributes:
        wait_s: How long the endpoint wants to be left alone, where it says so.
        is_busy: It is well and has too much to do.
        is_malformed: It answered with something that is no chat completion.
    """

    def __init__(
        self, message: str, *, wait_s: float | None = None, is_busy: bool = False, is_malformed: bool = False
    ) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        self.is_busy = is_busy
        self.is_malformed = is_malformed


def sorted_failure(error: Exception, endpoint: Endpoint, model: str, key: str | None) -> CompoWorldError:
    """The failure that an exception of the client library stands for; to be raised outside its handler."""
    place = f"{endpoint.base_url}: {model}"
    if isinstance(error, APIStatusError):
        return _of_status(error, endpoint, place, key)
    if isinstance(error, TimeoutError):
        return Unanswered(f"{place}: no answer in time")
    if isinstance(error, APIConnectionError | HTTPError | ClientError):
        return Unanswered(f"{place}: the connection failed ({type(_root(error)).__name__})")
    if isinstance(error, APIError):
        said = _quoted(error, key)
        if _OVERFLOW.search(said):
            return ModelFailure("context", f"{place}: the conversation is too long: {said}")
        return Unanswered(f"{place}: it broke off: {said}")
    return Unanswered(f"{place}: what came back is not JSON", is_malformed=True)


def _of_status(error: APIStatusError, endpoint: Endpoint, place: str, key: str | None) -> CompoWorldError:
    status, said = error.status_code, _quoted(error, key)
    if status == 402 or (status == 429 and _NO_CREDIT.search(f"{error.code} {error.type} {said}")):
        return InputError(f"{place}: the account has no credit left ({status}); add some, or name another endpoint")
    if status in (401, 403):
        source = f"the variable {endpoint.key_env}" if endpoint.key_env else f"the file {endpoint.key_file}"
        known = f"correct {source}" if endpoint.key_env or endpoint.key_file else "give its key in key_env or key_file"
        return InputError(f"{place}: the endpoint refuses access ({status}); {known}")
    if status == 404:
        return InputError(f"{place}: there is no such model or path (404); correct model or base_url: {said}")
    if status in _AGAIN or status >= 500:
        return Unanswered(f"{place}: {status}: {said}", wait_s=wait_of(error.response.headers), is_busy=status == 429)
    if status < 400:
        return InputError(f"{place}: the endpoint redirects ({status}); correct base_url")
    if status == 413 or _OVERFLOW.search(f"{error.code} {said}"):
        return ModelFailure("context", f"{place}: the conversation is too long: {said}")
    kind: FailureKind = "filtered" if _FILTERED.search(f"{error.code} {said}") else "refused"
    return ModelFailure(kind, f"{place}: the endpoint refuses the request ({status}): {said}")


def _root(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _root(error.__cause__)


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer's headers ask to wait, in any of the usual forms."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            wait = float(headers.get(name, "")) * unit_s
            if math.isfinite(wait):
                return max(0.0, wait)
    if "retry-after" in headers:
        with suppress(ValueError, OverflowError):
            now = parsedate_to_datetime(headers["date"]).timestamp() if "date" in headers else time.time()
            return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now)
    waits = [
        _seconds(headers[name])
        for name in ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
        if name in headers and headers.get(name.replace("reset", "remaining"), "0") == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str) -> float | None:
    """The length of a duration such as `6m0s` or `20ms`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    try:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _quoted(error: APIError, key: str | None) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else body
    text = " ".join(str(said if isinstance(said, str) and said.strip() else error.message).split())
    return text.replace(key, "…")[:_QUOTED_CHARS] if key else text[:_QUOTED_CHARS]
