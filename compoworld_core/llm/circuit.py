"""A circuit breaker: an endpoint that keeps failing is left alone, then tried with one request before it gets more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.failures import Unanswered

_FAILURES: Final = 8
"""In a row. A storm in which every eighth request fails stays below it; a dead endpoint is at it at once."""

_REST_S: Final = 2.0
_LONGEST_REST_S: Final = 60.0
_PROBING_S: Final = 1.0


class Circuit:
    """Whether an endpoint may be asked; times are those of the event loop."""

    def __init__(self) -> None:
        self._failures = 0
        self._opens_at = 0.0
        self._rest_s = _REST_S
        self._probing = False

    def ready_at(self, now: float) -> float:
        """When it may be asked; while a probe is out, a moment from now."""
        if self._failures < _FAILURES:
            return now
        return now + _PROBING_S if self._probing else max(now, self._opens_at)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch one request; while the endpoint is failing, it is the probe."""
        is_probe = self._probing = self._failures >= _FAILURES
        try:
            yield
        except Unanswered as error:
            if error.is_busy:
                self.succeeded()
            else:
                self.failed(asyncio.get_running_loop().time(), is_probe=is_probe)
            raise
        except CompoWorldError:  # it refuses, so it works
            self.succeeded()
            raise
        else:
            self.succeeded()
        finally:
            if is_probe:
                self._probing = False

    def succeeded(self) -> None:
        """It answered, if only to refuse."""
        self._failures = 0
        self._rest_s = _REST_S

    def failed(self, now: float, *, is_probe: bool) -> None:
        """It did not answer, or not with what it should."""
        self._failures += 1
        if self._failures == _FAILURES or is_probe:
            self._opens_at = now + self._rest_s
            self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
