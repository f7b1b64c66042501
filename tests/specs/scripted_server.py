"""A server over standard streams that behaves as its first argument says. Standard library only: it runs in a cell."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else "none"
TOOL = {"name": "get_a", "description": "A.", "inputSchema": {"type": "object", "properties": {}}, "x-odd": [1]}


def send(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def result(request: dict[str, Any], value: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": value})


def refuse(request: dict[str, Any], code: int, message: str, data: Any = None) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message, "data": data}})


def ask(method: str, id: Any) -> dict[str, Any]:
    send({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
    return receive()


def initialize(request: dict[str, Any]) -> None:
    wanted = request["params"]["protocolVersion"]
    if FAULT == "needs-env":
        sys.stderr.write("Error: API_KEY is not set\n")
        sys.exit(3)
    if FAULT == "never":
        time.sleep(1000)
    if FAULT == "refuses-offer" and wanted != "2024-11-05":
        refuse(request, -32602, "Unsupported protocol version", {"supported": ["2024-11-05"], "requested": wanted})
    elif FAULT == "stateless":
        refuse(request, -32022, "Unsupported", {"supported": ["2026-07-28"], "requested": wanted})
    elif FAULT == "no-handshake":
        refuse(request, -32601, "Method not found")
    elif FAULT == "broken":
        refuse(request, -32603, "out of order")
    elif FAULT == "batch":
        send(
            [
                {"jsonrpc": "2.0", "method": "notifications/message"},
                {"jsonrpc": "2.0", "id": "1", "result": about(wanted)},
            ]
        )
    else:
        result(request, about("1999-01-01" if FAULT == "ancient" else wanted))


def about(version: str) -> dict[str, Any]:
    info = {"name": "scripted", "version": "1", "title": "Scripted"}
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info, "instructions": "Be kind."}


def list_tools(request: dict[str, Any], asked: int) -> None:
    cursor = request["params"].get("cursor")
    match FAULT:
        case "crash":
            sys.stderr.write("x" * 100_000 + "\nTraceback: it broke \x1b[31mhere\x1b[0m\n")
            sys.stderr.flush()
            os._exit(7)
        case "signal":
            os.kill(os.getpid(), 11)
            os.abort()
        case "huge":
            say('{"jsonrpc": "2.0", "id": 2, "result": {"tools": ["' + "x" * 400_000 + '"]}}\n')
        case "huge-line":
            while True:
                say("x" * 65_536)
        case "flood":
            while True:
                say("noise\n" * 10_000)
        case "bad-json":
            say('{"jsonrpc": "2.0", "id": 2, "result": {"tools": [\n')
        case "same-cursor":
            result(request, {"tools": [TOOL], "nextCursor": "again"})
        case "new-cursors":
            result(request, {"tools": [], "nextCursor": f"c{asked}"})
        case "no-tools":
            refuse(request, -32601, "Method not found")
        case "no-list":
            result(request, {"tools": "none"})
        case "many-tools":
            result(request, {"tools": [{"name": f"t{n}"} for n in range(6_000)]})
        case "pages":
            names = ["get_a", "get_b", "get_c"]
            at = int(cursor or 0)
            page = {"tools": [{**TOOL, "name": names[at]}], "nextCursor": at + 1 if at == 0 else str(at + 1)}
            result(request, page if at < 2 else {"tools": [{**TOOL, "name": names[at]}], "nextCursor": ""})
        case "asks":
            roots = ask("roots/list", "r1")["result"]["roots"]
            pong = ask("ping", 2)["result"]
            refused = ask("sampling/createMessage", 3)["error"]["code"]
            told = json.dumps([[root["uri"] for root in roots], pong, refused])
            result(request, {"tools": [{**TOOL, "description": told}]})
        case "asks-forever":
            while True:
                send({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})
        case "changes":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) if asked == 1 else None
            result(request, {"tools": [{**TOOL, "name": f"get_{n}"} for n in range(asked)]})
        case "noise":
            say("Server ready\n{not json}\n42\n\n[1, 2]\n\xff\n")
            result(request, {"tools": [TOOL]})
        case "stateless" | "no-handshake":
            told = request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
            result(request, {"tools": [{**TOOL, "description": told}]})
        case "orphan":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", sys.argv[2]])
            time.sleep(1000)
        case "looks":
            result(request, {"tools": [{**TOOL, "description": json.dumps(look())}]})
        case _:
            result(request, {"tools": [TOOL]})


def look() -> dict[str, Any]:
    """What can be seen and done from here."""
    return {
        "environment": sorted(os.environ),
        "arguments": sys.argv[1:],
        "root": sorted(os.listdir("/")),
        "home": os.listdir(os.environ["HOME"]),
        "folders": [path for path in sys.argv[2:] if os.path.isdir(path) and can_write(path)],
        "is_connected": can(lambda: socket.create_connection(("1.1.1.1", 53), 1).close()),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "can_write_beside": can_write(os.path.dirname(__file__)),
        "can_write_system": can_write("/usr"),
        "uid": os.getuid(),
    }


def can_write(folder: str) -> bool:
    return can(lambda: open(f"{folder}/x", "w").close())


def can(attempt: Any) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def main() -> None:
    if FAULT == "ends":
        sys.exit(0)
    if FAULT == "closes":
        os.close(1)
        time.sleep(1000)
    asked = 0
    while True:
        message = receive()
        if message.get("method") == "initialize":
            initialize(message)
        elif message.get("method") == "tools/list":
            asked += 1
            list_tools(message, asked)


if __name__ == "__main__":
    main()
