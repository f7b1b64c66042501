"""A scripted server that speaks the part of an Argo server's REST API that we use, over real HTTP, faults included."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-the-tests"
_KINDS = {"workflows": "workflow", "workflow-templates": "template", "cron-workflows": "cronWorkflow"}


@dataclass
class Script:
    """What the server holds, what it was asked, and which fault comes next.

    Attributes:
        objects: By (kind's plural, namespace, name).
        asked: Method and path of each request.
        faults: Statuses that are answered instead; 0 closes the connection.
    """

    url: str = ""
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def argo_server() -> Iterator[Script]:
    """A running server."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self, method: str) -> None:
            parts = urlsplit(self.path)
            script.asked.append((method, parts.path))
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if script.faults:
                fault = script.faults.pop(0)
                if fault:
                    self._send(fault, {"code": 13, "message": "scripted"})
                else:
                    self.close_connection = True
                return
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._send(401, {"code": 16, "message": "token not valid"})
                return
            self._send(*respond(script, method, parts.path, parse_qs(parts.query), json.loads(body or b"{}")))

        def _send(self, status: int, document: Any) -> None:
            lines = document if isinstance(document, list) else [document]
            data = b"\n".join(json.dumps(line).encode() for line in lines)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def respond(
    script: Script, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any]
) -> tuple[int, Any]:
    """Status and document, as Argo answers."""
    steps = path.removeprefix("/api/v1/").split("/")
    kind, namespace, *rest = steps
    if method == "POST":
        return _create(script, kind, namespace, body[_KINDS[kind]])
    if not rest:
        return 200, {"items": [item for (k, n, _), item in script.objects.items() if (k, n) == (kind, namespace)]}
    found = script.objects.get((kind, namespace, rest[0]))
    if found is None:
        return 404, {"code": 5, "message": f'{kind} "{rest[0]}" not found'}
    if rest[1:] == ["log"]:
        return 200, script.logs
    if method == "PUT" and rest[1:] in (["stop"], ["terminate"]):
        found["spec"]["shutdown"] = rest[1].capitalize()
        return 200, found
    if method == "PUT":
        return _replace(script, (kind, namespace, rest[0]), found, body[_KINDS[kind]])
    return 200, found


def _create(script: Script, kind: str, namespace: str, item: dict[str, Any]) -> tuple[int, Any]:
    metadata = item["metadata"]
    metadata.setdefault("name", f"{metadata.get('generateName', '')}x7k2q")
    place = (kind, namespace, metadata["name"])
    if place in script.objects:
        return 409, {"code": 6, "message": f"{kind} already exists"}
    metadata["resourceVersion"] = "1"
    script.objects[place] = item
    return 200, item


def _replace(
    script: Script, place: tuple[str, str, str], found: dict[str, Any], item: dict[str, Any]
) -> tuple[int, Any]:
    version = found["metadata"]["resourceVersion"]
    if item["metadata"].get("resourceVersion") != version:
        return 409, {"code": 10, "message": "the object has been modified"}
    item["metadata"]["resourceVersion"] = str(int(version) + 1)
    script.objects[place] = item
    return 200, item
