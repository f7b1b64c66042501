"""Where service descriptions come from.

A source yields raw servers, each with an origin for people, and rejects what it cannot even read; normalising is the
same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.specs.names import unique_service_names
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.sources import registry, stdio
from compoworld_core.specs.sources.bundled import BundledSource
from compoworld_core.specs.sources.jsonl import JsonlSource
from compoworld_core.specs.sources.registry import RegistrySource
from compoworld_core.specs.sources.remote import RemoteSource
from compoworld_core.specs.sources.source import RawServer, Source
from compoworld_core.specs.sources.stdio import StdioSource

_SCHEMES: Final[dict[str, Callable[[str], Source]]] = {
    "jsonl": lambda path: JsonlSource(Path(path)),
    "stdio": StdioSource,
    "registry": RegistrySource,
    "http": lambda rest: RemoteSource(f"http:{rest}"),
    "https": lambda rest: RemoteSource(f"https:{rest}"),
}

ACCEPTED_FORMS: Final = (
    f"`bundled`, `jsonl:<path>`, the path of a .jsonl or .jsonl.gz file, {stdio.FORMS}, {registry.FORM}, or the "
    "`http(s)://` address of a server"
)


def open_source(text: str) -> Source:
    """The source that a `--source` string names.

    Raises:
        InputError: The string names no source, or a file that cannot be read.
    """
    if text == "bundled":
        return BundledSource()
    scheme, separator, rest = text.partition(":")
    if separator and scheme in _SCHEMES:
        return _SCHEMES[scheme](rest)
    path = Path(text)
    if path.is_file() or "/" in scheme or ".jsonl" in scheme:  # `ftp://x` has a slash too, but no path begins like it
        return JsonlSource(path)
    raise InputError(f"source {text!r}: not known; use {ACCEPTED_FORMS}")


def read_servers(source: Source, limit: int | None = None) -> Iterator[tuple[ServiceSpec | None, list[Rejection]]]:
    """Normalises a source server by server; memory does not grow with the source.

    Args:
        source: Where to read.
        limit: Stop after this many servers; all of them if left out.
    """
    if limit is not None and limit <= 0:
        return
    count = 0
    for item in source.servers():
        if isinstance(item, Rejection):
            yield None, [item]
            continue
        yield normalise_server(item.raw, item.origin)
        count += 1
        if count == limit:
            return


def read_specs(source: Source, limit: int | None = None) -> tuple[list[ServiceSpec], list[Rejection]]:
    """All specs of a source under unique names, and everything that was rejected."""
    specs: list[ServiceSpec] = []
    rejections: list[Rejection] = []
    for spec, rejected in read_servers(source, limit):
        if spec is not None:
            specs.append(spec)
        rejections.extend(rejected)
    return unique_service_names(specs), rejections


__all__ = [
    "ACCEPTED_FORMS",
    "BundledSource",
    "JsonlSource",
    "RawServer",
    "RegistrySource",
    "RemoteSource",
    "Source",
    "StdioSource",
    "open_source",
    "read_servers",
    "read_specs",
]
