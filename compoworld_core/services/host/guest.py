"""The guest: a confined process that answers requests about untrusted code, one after the other.

What it can do is decided before it is confined: a module, loaded in the zygote, offers `handlers` by operation name.
Nothing can be imported later that is not in memory already, so the modules that Python loads behind one's back are
loaded here too. The guest only ever reads and writes its transport; everything that it says is unproven to its parent.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from compoworld_core.services.host.confinement import TRANSPORT_FD, Limits, confine, die_with
from compoworld_core.services.host.frames import HEADER, decode, encode
from compoworld_core.services.host.vocabulary import MODULES

Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""Answers a request's payload. An exception becomes an `error` reply; the guest goes on."""

READY: Final = 0
"""Sequence number of the first frame, by which a guest says that it is confined, or why it isn't."""

_LOADED_LAZILY: Final = (
    "_strptime",
    "bisect",
    "calendar",
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_16",
    "heapq",
    "linecache",
    "locale",
    "pydantic.dataclasses",
    "pydantic.networks",
    "pydantic.root_model",
    "pydantic.type_adapter",
    "stringprep",
    "unicodedata",
)
"""Modules that allowed modules and the SDK import only when one of their functions is called."""

_MESSAGE_CHARS: Final = 2000
_TRACEBACK_CHARS: Final = 4000
_CHUNK: Final = 1024 * 1024


def load_handlers(module: str) -> Mapping[str, Handler]:
    """Import the module that answers requests, and all that untrusted code may import in turn."""
    for name in (*MODULES, *_LOADED_LAZILY):
        importlib.import_module(name)
    handlers: Mapping[str, Handler] = importlib.import_module(module).handlers
    return handlers


def run(handlers: Mapping[str, Handler], limits: Limits, transport: int, output: int, parent: int) -> NoReturn:
    """Become a guest: take over the descriptors, confine this process and answer requests until the parent hangs up."""
    place_descriptors(transport, output)
    die_with(parent)
    faulthandler.enable(file=2, all_threads=False)
    try:
        confine(limits)
    except Exception as error:
        _send(READY, encode({"isolation": str(error)}))
        os._exit(1)
    _send(READY, encode({}))
    while True:
        sequence, length = HEADER.unpack(_receive(HEADER.size))
        _send(sequence, _answer(handlers, _receive(length)))


def place_descriptors(transport: int, output: int) -> None:
    """Put the transport and the two output streams where a confined process has them."""
    spare = os.dup(output)  # The targets may be occupied by one of the sources.
    os.dup2(transport, TRANSPORT_FD)
    os.dup2(spare, 1)
    os.dup2(spare, 2)


def _answer(handlers: Mapping[str, Handler], body: bytes) -> bytes:
    try:
        request = decode(body)
        return encode(handlers[request["op"]](request))
    except BaseException as error:  # SystemExit and KeyboardInterrupt are the guest code's doing, too.
        return encode({"error": _describe(error)})


def _describe(error: BaseException) -> dict[str, str]:
    try:
        message = str(error)
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # Raised by the exception's own methods.
        message, trace = "", ""
    return {
        "kind": _text(type(error).__name__, _MESSAGE_CHARS),
        "message": _text(message, _MESSAGE_CHARS),
        "traceback": _text(trace[-_TRACEBACK_CHARS:], _TRACEBACK_CHARS),
    }


def _text(value: str, chars: int) -> str:
    return value[:chars].encode(errors="replace").decode()


def _receive(size: int) -> bytes:
    chunks = []
    while size:
        chunk = os.read(TRANSPORT_FD, min(size, _CHUNK))
        if not chunk:
            os._exit(0)
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _send(sequence: int, body: bytes) -> None:
    rest = memoryview(HEADER.pack(sequence, len(body)) + body)
    while rest:
        rest = rest[os.write(TRANSPORT_FD, rest) :]
