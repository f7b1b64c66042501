"""What a registry says about a server, and the ways to reach its tools that follow from it.

A way is a package that can be started here, or an address. What would need a secret, a container or an installer that
runs code is named as such, never guessed around.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from compoworld_core.errors import InputError
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.sources.failure import ServerFailure, cleaned
from compoworld_core.specs.sources.packages import Kind, Package

MAX_WAYS: Final = 4
"""Most ways that are tried for one server."""

_KINDS: Final[Mapping[str, Kind]] = {"npm": "npx", "pypi": "pypi"}
_HOMES: Final = {
    "npm": ("https://registry.npmjs.org", "https://registry.npmjs.com", "https://npmjs.com", "https://www.npmjs.com"),
    "pypi": ("https://pypi.org", "https://pypi.python.org"),
}
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class PackageWay:
    """A package to start, with all that it needs told."""

    package: Package
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoteWay:
    """An address to call."""

    url: str


Way = PackageWay | RemoteWay


@dataclass(frozen=True, slots=True)
class Listing:
    """One server of a registry, in one version."""

    name: str
    version: str
    status: str
    is_latest: bool
    server: JsonObject

    @classmethod
    def parse(cls, entry: object) -> Listing | None:
        """Read an entry; None if it names no server."""
        if not isinstance(entry, dict):
            return None
        inner = entry.get("server")
        server: JsonObject = inner if isinstance(inner, dict) else entry
        name = server.get("name")
        if not isinstance(name, str) or not name.strip():
            return None
        meta = entry.get("_meta")
        official = meta.get("io.modelcontextprotocol.registry/official") if isinstance(meta, dict) else None
        told = official if isinstance(official, dict) else {}
        status = told.get("status") or server.get("status") or "active"
        version = server.get("version")
        return cls(
            cleaned(name.strip(), 200),
            cleaned(version, 100) if isinstance(version, str) else "",
            str(status)[:40],
            told.get("isLatest") is not False,
            server,
        )

    def ways(self) -> tuple[list[Way], list[ServerFailure]]:
        """The ways to its tools, best first, and why the others are none."""
        ways: list[Way] = []
        closed: list[ServerFailure] = []
        for kind, read in (("packages", _package_way), ("remotes", _remote_way)):
            listed = self.server.get(kind)
            for item in listed[:20] if isinstance(listed, list) else ():
                try:
                    ways.append(read(item if isinstance(item, dict) else {}))
                except ServerFailure as failure:
                    closed.append(failure)
        if not ways and not closed:
            closed.append(ServerFailure("no_way", "it lists neither packages nor remotes"))
        return ways[:MAX_WAYS], closed


def _package_way(package: JsonObject) -> Way:
    registry = _word(package, "registryType", "registry_type")
    identifier = _word(package, "identifier", "name")
    label = f"{registry}:{identifier}"
    transport = package.get("transport")
    carried = transport.get("type") if isinstance(transport, dict) else None
    if registry not in _KINDS:
        raise ServerFailure("unsupported_package", f"{label}: only npm and pypi packages are started")
    home = _word(package, "registryBaseUrl", "registry_base_url").rstrip("/")
    if home and home not in _HOMES[registry]:
        raise ServerFailure("unsupported_package", f"{label}: lies at {home}")
    if carried not in (None, "stdio"):
        raise ServerFailure("unsupported_transport", f"{label}: speaks {carried}, which needs the network")
    version = _word(package, "version")
    separator = "@" if registry == "npm" else "=="
    try:
        found = Package.parse(_KINDS[registry], f"{identifier}{separator + version if version else ''}")
    except InputError as error:
        raise ServerFailure("unsupported_package", str(error)) from None
    environment: dict[str, str] = {}
    for variable in _objects(package, "environmentVariables", "environment_variables"):
        name = _word(variable, "name")
        value = _value(variable, f"{label}: the variable {name}")
        if value is not None and name:
            environment[name] = value
    arguments = tuple(_arguments(package, label))
    return PackageWay(found, arguments, environment)


def _arguments(package: JsonObject, label: str) -> Iterator[str]:
    for argument in _objects(package, "packageArguments", "package_arguments"):
        name = _word(argument, "name")
        value = _value(argument, f"{label}: the argument {name or _word(argument, 'valueHint')}")
        if name and (value is not None or argument.get("isRequired")):
            yield name
        if value is not None:
            yield value


def _remote_way(remote: JsonObject) -> Way:
    url = _word(remote, "url")
    kind = _word(remote, "type", "transport_type")
    if kind not in ("streamable-http", "streamable_http", "streamable"):
        raise ServerFailure("unsupported_transport", f"{url}: speaks {kind or 'nothing known'}, not streamable-http")
    for header in _objects(remote, "headers"):
        if header.get("isRequired") or header.get("isSecret"):
            raise ServerFailure("needs_secret", f"{url}: wants the header {_word(header, 'name')}")
    if _VARIABLE.search(url):
        raise ServerFailure("needs_configuration", f"{url}: has a place to fill in")
    return RemoteWay(url)


def _value(item: JsonObject, label: str) -> str | None:
    """The value that is used for an input: the given one, or its default; None if it can be left out.

    Raises:
        ServerFailure: It can't be left out, and only its owner knows it.
    """
    given = item.get("value") if item.get("value") not in (None, "") else item.get("default")
    text = str(given) if isinstance(given, (str, int, float, bool)) else ""
    if text and not item.get("isSecret"):
        variables = item.get("variables")
        return _VARIABLE.sub(lambda found: _filled(found[1], variables, label), text)
    if item.get("isRequired"):
        reason = "needs_secret" if item.get("isSecret") else "needs_configuration"
        raise ServerFailure(reason, f"{label} has to be told")
    return None


def _filled(name: str, variables: object, label: str) -> str:
    variable = variables.get(name) if isinstance(variables, dict) else None
    value = _value({**variable, "variables": None}, label) if isinstance(variable, dict) else None
    if value is None:
        raise ServerFailure("needs_configuration", f"{label} has a place to fill in: {name}")
    return value


def _word(item: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        if isinstance(item.get(key), str):
            return cleaned(item[key].strip(), 500)
    return ""


def _objects(item: JsonObject, *keys: str) -> list[JsonObject]:
    for key in keys:
        if isinstance(item.get(key), list):
            return [entry for entry in item[key][:100] if isinstance(entry, dict)]
    return []
