"""The first program of a session's confinement: makes sure that there is no way out, opens the one there is, runs pi.

Run as a script, with a description of the session as its argument; needs nothing but the standard library. What it
prints are JSON lines: that it has begun, pi's own, and as the last one the files that pi leaves. Whatever comes after
the first may be pi's making.

The way out is a Unix socket. pi speaks to a local port, and all that comes there is passed on to the socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

REACHED = 3
"""Exit status if the network could be reached; nothing was started."""

_CHUNK = 64 * 1024
_PROBE_S = 3.0
_DNS_QUERY = b"\x13\x37\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01"


def main() -> None:
    """Run the session that the first argument describes."""
    session = json.loads(sys.argv[1])
    if reached := egress(session["probes"]):
        say({"type": "egress", "reached": reached})
        sys.exit(REACHED)
    say({"type": "begun"})
    shutil.copytree(session["inputs"], session["workspace"], dirs_exist_ok=True)
    for name in session["programs"]:
        os.chmod(os.path.join(session["workspace"], name), 0o755)
    os.makedirs(session["agent"], exist_ok=True)
    listener = socket.create_server(("127.0.0.1", session["port"]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    threading.Thread(target=forward, args=(listener, session["socket"]), daemon=True).start()
    for provider in session["models"]["providers"].values():
        provider["baseUrl"] = f"{address}/v1"
    for name in ("models", "settings"):
        with open(os.path.join(session["agent"], f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(session[name], file)
    status = run(session, {"PI_CODING_AGENT_DIR": session["agent"], "CHECK_AT": address})
    files = {name: text for name in session["wanted"] if (text := read(session, name)) is not None}
    say({"type": "left", "status": status, "files": files})


def run(session: dict[str, Any], environment: dict[str, str]) -> int | str:
    """Run pi; its exit status, or `timeout` where it had to be killed."""
    process = subprocess.Popen(
        session["command"],
        cwd=session["workspace"],
        env={**os.environ, **session["environment"], **environment},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(session["seconds"])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "timeout"


def egress(probes: dict[str, Any]) -> list[str]:
    """Which of the places can be reached: TCP addresses, and name servers that answer a query."""
    reached: list[str] = []

    def connect(host: str, port: int) -> None:
        with contextlib.suppress(OSError), socket.create_connection((host, port), _PROBE_S):
            reached.append(f"{host}:{port} by TCP")

    def ask(host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as query:
            query.settimeout(_PROBE_S)
            query.connect((host, port))
            query.send(_DNS_QUERY)
            answer = query.recv(512)
            if len(answer) > 8 and int.from_bytes(answer[6:8], "big"):  # it knows the name
                reached.append(f"{host}:{port} by DNS")

    threads = [threading.Thread(target=connect, args=place, daemon=True) for place in probes["tcp"]]
    threads += [threading.Thread(target=ask, args=place, daemon=True) for place in probes["dns"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(reached)


def forward(listener: socket.socket, path: str) -> None:
    """Connect everyone who comes to the socket at the path."""
    while True:
        near, _ = listener.accept()
        try:
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
        except OSError:
            near.close()
            continue
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=pump, args=(source, target), daemon=True).start()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what one side says until it has nothing more to say."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    for end, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
        with contextlib.suppress(OSError):
            end.shutdown(how)


def read(session: dict[str, Any], name: str) -> str | None:
    """The text of a file that pi leaves; None where there is none that can be taken."""
    path = os.path.join(session["workspace"], name)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= session["most_bytes"]:
            with open(path, encoding="utf-8") as file:
                return file.read()
    return None


def say(line: dict[str, Any]) -> None:
    """Print a line of its own, whatever was printed before."""
    sys.stdout.write(f"\n{json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
