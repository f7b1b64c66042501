"""Worker processes: each does one thing at a time, and one that dies costs only the thing in its hands.

Workers are spawned, not forked, so that what the parent has open never decides what they do. They end with their
parent, whatever ends it. With one worker, the work is done in this process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.pipeline.collector import collect_rarely
from compoworld_core.services.host.confinement import die_with

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS: Final = 2
"""How often a thing is tried whose worker died or that failed for a passing reason."""

_GRACE_S: Final = 5.0
_BY_EXIT_CODE: Final[dict[int, type[CompoWorldError]]] = {
    kind.exit_code: kind for kind in (CompoWorldError, InputError, TransientError)
}


@dataclass(frozen=True)
class Failure:
    """Why a thing could not be done; can be sent between processes.

    Attributes:
        may_pass: Whether trying again may help.
        trace: The traceback, for whoever debugs it.
    """

    message: str
    exit_code: int
    may_pass: bool
    trace: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The failure that an exception is."""
        trace = traceback.format_exc()
        if isinstance(error, CompoWorldError):
            return cls(str(error), error.exit_code, isinstance(error, TransientError), trace)
        return cls(f"a bug: {type(error).__name__}: {error}", CompoWorldError.exit_code, False, trace)

    def error(self) -> CompoWorldError:
        """The exception to raise for it, with the worker's traceback as a note."""
        error = _BY_EXIT_CODE[self.exit_code](self.message)
        error.add_note(self.trace)
        return error


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    thing: Any = None


class Workers:
    """A number of workers, started when there is work for them and kept until `close`."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def map(self, work: Callable[[T], R], things: Iterable[T]) -> Generator[tuple[T, R | Failure], None, None]:
        """Do the work on all things, and hand each out when it is done.

        After a failure that trying again does not mend no further thing is begun; what is in work is finished.
        """
        done = self._map_here(work, things) if self._count == 1 else self._map(work, things)
        with closing(done):
            yield from done

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.pipe.close()  # an idle worker ends by itself
            if worker.thing is not None:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_GRACE_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()
        self._workers.clear()

    def _map_here(self, work: Callable[[T], R], things: Iterable[T]) -> Generator[tuple[T, R | Failure], None, None]:
        for thing in things:
            result = _attempt(work, thing)
            for _ in range(ATTEMPTS - 1):
                if isinstance(result, Failure) and result.may_pass:
                    result = _attempt(work, thing)
            yield thing, result
            if isinstance(result, Failure):
                return

    def _map(self, work: Callable[[T], R], things: Iterable[T]) -> Generator[tuple[T, R | Failure], None, None]:
        waiting = deque((thing, ATTEMPTS) for thing in things)
        left: dict[int, int] = {}  # attempts that remain for what a worker has in hands, by the worker's identity
        is_stopped = False
        while True:
            while waiting and not is_stopped and (worker := self._idle(len(waiting))) is not None:
                thing, attempts = waiting.popleft()
                worker.thing = thing
                left[id(worker)] = attempts - 1
                with suppress(OSError):  # it died while idle, which shows below
                    worker.pipe.send((work, thing))
            busy = {worker.pipe: worker for worker in self._workers if worker.thing is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                thing, attempts = worker.thing, left.pop(id(worker))
                result = self._receive(worker)
                if attempts and isinstance(result, Failure) and result.may_pass:
                    waiting.appendleft((thing, attempts))
                    continue
                if isinstance(result, Failure):
                    is_stopped = True
                yield thing, result

    def _idle(self, wanted: int) -> _Worker | None:
        idle = next((worker for worker in self._workers if worker.thing is None), None)
        if idle is None and len(self._workers) < self._count:
            idle = _start()
            self._workers.append(idle)
        return idle

    def _receive(self, worker: _Worker) -> Any:
        """What a worker answers; where it died instead, it is let go."""
        try:
            result = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            self._workers.remove(worker)
            worker.pipe.close()
            ending = _ending(worker.process.exitcode)
            result = Failure(f"its worker process died: {ending}", CompoWorldError.exit_code, may_pass=True)
            worker.process.close()
        worker.thing = None
        return result


def _start() -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, os.getpid()), name="compoworld-worker")
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(pipe: Connection, parent: int) -> None:
    """A worker's life."""
    die_with(parent)
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers itself
    with suppress(EOFError, OSError):
        while True:
            work, thing = pipe.recv()
            pipe.send(_attempt(work, thing))


def _attempt(work: Callable[[T], R], thing: T) -> R | Failure:
    try:
        with _output_as_errors():
            return work(thing)
    except Exception as error:
        return Failure.of(error)


@contextmanager
def _output_as_errors() -> Generator[None]:
    """What libraries print goes to standard error: standard output is for the answer of a command alone."""
    if sys.stdout is None:  # it was closed, and its number may be another file's
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"killed by {name}, perhaps for want of memory" if name == "SIGKILL" else f"ended by {name}"
    return f"exit code {code}"
