"""Web servers on this machine that behave as a test says: a server over streamable HTTP, and a registry."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOOL = {"name": "get_a", "description": "A.", "inputSchema": {"type": "object", "properties": {}}, "x-odd": [1]}


@dataclass
class Request:
    """What came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Response:
    """What goes out; a body that is a list is sent piece by piece, and `cut` leaves out its proper end."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    pause_s: float = 0.0


Answer = Callable[[Request], Response]


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, list[Request]]]:
    """A web server: its address, and the requests that it got."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            parts = urlsplit(self.path)
            headers: Any = self.headers  # looks names up whatever their case
            request = Request(
                self.command, parts.path, dict(parse_qsl(parts.query)), headers, json.loads(text) if text else None
            )
            requests.append(request)
            with suppress(OSError):
                self._send(answer(request))

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

        def _send(self, response: Response) -> None:
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if isinstance(response.body, list):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in response.body:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()
                    time.sleep(response.pause_s)
                if not response.cut:
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = True
                return
            body = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
            self.send_header("Content-Length", str(len(body) + (1000 if response.cut else 0)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = response.cut

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}


def about(request: Request) -> dict[str, Any]:
    """The result of a handshake."""
    version = request.body["params"]["protocolVersion"]
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}}


def result(request: Request, value: Any) -> dict[str, Any]:
    """A JSON-RPC response."""
    return {"jsonrpc": "2.0", "id": request.body["id"], "result": value}


def event(message: Any, newline: str = "\n") -> bytes:
    """One event of a stream."""
    return f"event: message{newline}id: 7{newline}data: {json.dumps(message)}{newline}{newline}".encode()


def mcp(tools: Answer | None = None) -> Answer:
    """A well-behaved server, but for how it lists its tools."""

    def serve(request: Request) -> Response:
        if request.method == "DELETE":
            return Response(405)
        method = request.body.get("method")
        if method == "initialize":
            return Response(200, result(request, about(request)), {**JSON, "Mcp-Session-Id": "s1"})
        if method == "tools/list":
            return tools(request) if tools else Response(200, result(request, {"tools": [TOOL]}), JSON)
        return Response(202)

    return serve
