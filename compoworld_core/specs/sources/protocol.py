"""Asks a server for its tools in raw JSON-RPC, over whatever carries messages.

    initialize ─► notifications/initialized ─► tools/list ─► tools/list (cursor) ─► …

Nothing is parsed into a model here: what a server sends reaches normalisation as it was sent, unknown keys and broken
tools included. A server of a revision without a handshake is asked in that revision's way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from compoworld_core import __version__
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.sources.failure import ServerFailure

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that begin with `initialize`, newest first."""
STATELESS_VERSION: Final = "2026-07-28"
"""The revision whose requests carry what the handshake told."""

CLIENT: Final = {"name": "compoworld", "version": __version__}
MAX_PAGES: Final = 200
MAX_TOOLS: Final = 5_000
MAX_LISTINGS: Final = 3
"""How often the list is read anew because the server says that it has changed meanwhile."""

_CAPABILITIES: Final[JsonObject] = {"roots": {}}
_METHOD_NOT_FOUND: Final = -32601


class Channel(Protocol):
    """Carries messages to one server.

    Attributes:
        version: The revision that was agreed on; empty before.
        has_changed: Whether the server has said that its list of tools changed; set by the channel.
    """

    version: str
    has_changed: bool

    def request(self, method: str, params: JsonObject) -> JsonObject:
        """The response, with `result` or `error`.

        Raises:
            ServerFailure: There is none.
        """
        ...

    def notify(self, method: str) -> None:
        """Tell the server something."""
        ...


def read_server(channel: Channel) -> JsonObject:
    """What a server tells about itself, with all its tools.

    Raises:
        ServerFailure: It does not answer, or not as the protocol wants.
    """
    about = _shake_hands(channel)
    for _ in range(MAX_LISTINGS):
        channel.has_changed = False
        tools = _list_tools(channel)
        if not channel.has_changed:
            break
    info = about.get("serverInfo")
    described = dict(info) if isinstance(info, dict) else {}
    description = described.get("description") or about.get("instructions")
    return {
        "server": described.get("name"),
        "title": described.get("title"),
        "description": description if isinstance(description, str) else "",
        "version": described.get("version"),
        "tools": tools,
    }


def answer(message: Mapping[str, Any], roots: tuple[str, ...] = ()) -> JsonObject | None:
    """The answer to a server's own request, or None if the message is none: a client may leave little unanswered."""
    if "id" not in message or not isinstance(message.get("method"), str):
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "ping":
            return {**head, "result": {}}
        case "roots/list":
            return {**head, "result": {"roots": [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in roots]}}
        case method:
            return {**head, "error": {"code": _METHOD_NOT_FOUND, "message": f"{method[:100]} is not offered"}}


def is_response(message: Mapping[str, Any], id: int) -> bool:
    """Whether a message answers a request; some servers turn the id into text, or lose it with an error."""
    if "method" in message or not ("result" in message or "error" in message):
        return False
    return str(message.get("id")) == str(id) or (message.get("id") is None and "error" in message)


def is_change(message: Mapping[str, Any]) -> bool:
    """Whether a message says that the list of tools has changed."""
    return message.get("method") == "notifications/tools/list_changed"


def _shake_hands(channel: Channel) -> JsonObject:
    offers = [HANDSHAKE_VERSIONS[0]]
    response: JsonObject = {}
    for turn in range(3):
        params = {"protocolVersion": offers[-1], "capabilities": _CAPABILITIES, "clientInfo": CLIENT}
        response = channel.request("initialize", params)
        if response.get("error") is None:
            return _agree(channel, response)
        supported = _supported(response["error"])
        if STATELESS_VERSION in supported or (turn == 0 and not supported and _knows_no_handshake(response["error"])):
            channel.version = STATELESS_VERSION
            return {}
        mutual = [version for version in HANDSHAKE_VERSIONS if version in supported]
        offer = mutual[0] if mutual else HANDSHAKE_VERSIONS[-1]
        if offer in offers:
            break
        offers.append(offer)
    raise ServerFailure("rpc_error", f"initialize: {_error_text(response['error'])}")


def _agree(channel: Channel, response: JsonObject) -> JsonObject:
    result = response.get("result")
    if not isinstance(result, dict):
        raise ServerFailure("not_mcp", f"initialize: expected an object as result, found {str(result)[:100]!r}")
    version = result.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        known = ", ".join(HANDSHAKE_VERSIONS)
        raise ServerFailure("unknown_version", f"initialize: the server speaks {str(version)[:40]!r}, not {known}")
    channel.version = version
    channel.notify("notifications/initialized")
    return result


def _list_tools(channel: Channel) -> list[object]:
    """The tools of all pages."""
    tools: list[object] = []
    seen: set[str] = set()
    cursor: object = None
    for number in range(1, MAX_PAGES + 1):
        params: JsonObject = {} if cursor is None else {"cursor": cursor}
        if channel.version == STATELESS_VERSION:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": channel.version,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": _CAPABILITIES,
            }
        response = channel.request("tools/list", params)
        if (error := response.get("error")) is not None:
            reason = "no_tools" if _code(error) == _METHOD_NOT_FOUND else "rpc_error"
            raise ServerFailure(reason, f"tools/list, page {number}: {_error_text(error)}")
        result = response.get("result")
        page = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(page, list):
            raise ServerFailure("no_tools", f"tools/list, page {number}: the result has no list of tools")
        tools += page
        if len(tools) > MAX_TOOLS:
            raise ServerFailure("too_many_tools", f"tools/list, page {number}: more than {MAX_TOOLS} tools")
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if not cursor:
            return tools
        if (shown := json.dumps(cursor, sort_keys=True)) in seen:
            raise ServerFailure("cursor_loop", f"tools/list, page {number}: cursor {shown[:60]} came before")
        seen.add(shown)
    raise ServerFailure("cursor_loop", f"tools/list: more than {MAX_PAGES} pages")


def _code(error: object) -> object:
    return error.get("code") if isinstance(error, dict) else None


def _supported(error: object) -> list[object]:
    """The revisions that a refusal names."""
    data = error.get("data") if isinstance(error, dict) else None
    supported = data.get("supported") if isinstance(data, dict) else None
    return supported if isinstance(supported, list) else []


def _knows_no_handshake(error: object) -> bool:
    return _code(error) == _METHOD_NOT_FOUND


def _error_text(error: object) -> str:
    if isinstance(error, dict):
        return f"the server answers error {error.get('code')}: {str(error.get('message'))[:500]}"
    return f"the server answers error {str(error)[:500]}"
