"""A checkpoint behind an OpenAI-compatible endpoint while something asks it: started, awaited, stopped.

Tool calls are text that the server has to take apart again, so it has to know how the checkpoint's chat template writes
them; with another parser a model scores 0 % and nobody is told. A server counts as ready when it has answered a request
with tools: vLLM's `/health` is fine even where the first request is going to fail.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.process import stop_group, tail
from compoworld_core.evaluation.results import read_json
from compoworld_core.evaluation.secrets import is_secret_variable

Engine = Literal["vllm", "transformers"]

AT_ONCE: Final = {"enable_thinking": False}
"""For chat templates that know thoughts: models answer at once, as in training, unless a request says otherwise."""

_START_S: Final = 1800.0
_POLL_S: Final = 0.5
_ANSWER_S: Final = 300.0
_PROBE_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


class Parsers(Data):
    """How vLLM takes a model's answers apart, in its own words.

    Attributes:
        tool_call: Of calls.
        reasoning: Of thoughts; None for a model that does not write any.
    """

    tool_call: str
    reasoning: str | None = None


def parsers_for(folder: Path) -> Parsers:
    """The parsers that fit a checkpoint's chat template: Qwen3.5 and 3.6 write calls as XML, Qwen3 as JSON.

    Raises:
        InputError: The folder has no chat template, or one whose calls are written in neither way.
    """
    template = _template(folder)
    if "<tool_call>" not in template:
        raise InputError(
            f"{folder}: its chat template writes no <tool_call>, so no parser is known that reads its calls"
        )
    return Parsers(
        tool_call="qwen3_coder" if "<function=" in template else "hermes",
        reasoning="qwen3" if "<think>" in template else None,
    )


class Serving(Data):
    """How a checkpoint is served.

    Attributes:
        folder: Of model and tokenizer; its name is what the server calls the model.
        engine: `vllm` is for GPUs, `transformers` for small models.
        python: Interpreter that has the engine installed; our own if left out.
        gpus: That the model is split over; for vLLM.
        context_tokens: Longest conversation; for vLLM, the model's own if left out.
        memory_share: That vLLM takes of each GPU's memory, or of the machine's where it computes on a CPU; what it
            takes by itself (nearly all) if left out.
    """

    folder: Path
    engine: Engine = "vllm"
    python: Path | None = None
    gpus: int = 1
    context_tokens: int | None = Field(default=None, ge=1)
    memory_share: float | None = Field(default=None, gt=0, lt=1)

    @property
    def name(self) -> str:
        """What the server calls the model."""
        return self.folder.absolute().name

    def command(self, port: int, host: str = "127.0.0.1") -> tuple[str, ...]:
        """The server's command line, to be run beside the checkpoint's folder: `transformers` knows no other name."""
        python = str((self.python or Path(sys.executable)).absolute())
        listening = ("--host", host, "--port", str(port))
        if self.engine == "transformers":
            program = "from transformers.cli.transformers import main; main()"
            return (python, "-c", program, "serve", self.name, *listening)
        parsers = parsers_for(self.folder)
        return (
            python, "-m", "vllm.entrypoints.openai.api_server", *listening,
            "--model", str(self.folder.absolute()), "--served-model-name", self.name,
            "--enable-auto-tool-choice", "--tool-call-parser", parsers.tool_call,
            *(("--reasoning-parser", parsers.reasoning) if parsers.reasoning else ()),
            "--default-chat-template-kwargs", json.dumps(AT_ONCE),
            "--tensor-parallel-size", str(self.gpus),
            *(("--max-model-len", str(self.context_tokens)) if self.context_tokens else ()),
            *(("--gpu-memory-utilization", str(self.memory_share)) if self.memory_share else ()),
        )  # fmt: skip


@contextmanager
def served(serving: Serving, log: Path) -> Iterator[str]:
    """Serve a checkpoint while the context is open; gives the base URL, up to and including `/v1`.

    Args:
        log: File for what the server prints.

    Raises:
        InputError: The folder is no checkpoint, or the interpreter can't be started.
        CompoWorldError: The server ended, or did not answer its first request; shows the end of its log.
    """
    if not (serving.folder / "config.json").is_file():
        raise InputError(f"{serving.folder}: has no config.json, so it is no checkpoint that can be served")
    port = _free_port()
    base_url = f"http://127.0.0.1:{port}/v1"
    process = _start(serving.command(port), serving.folder.absolute().parent, log)
    try:
        _await(process, serving, base_url, log)
        yield base_url
    finally:
        stop_group(process)


def _start(command: tuple[str, ...], place: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not is_secret_variable(name)}
    environment |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        try:
            return subprocess.Popen(
                command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error


def _await(process: subprocess.Popen[bytes], serving: Serving, base_url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        if process.poll() is not None:
            raise CompoWorldError(f"{serving.engine} ended with {process.returncode}; the end of {log}:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise CompoWorldError(
                f"{serving.engine} did not answer within {_START_S:.0f} s; the end of {log}:\n{tail(log)}"
            )
        try:
            _ask(serving.name, base_url)
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode("utf-8", "replace")
            raise CompoWorldError(
                f"{serving.engine} answers its first request with {error.code}: {said}; the end of {log}:\n{tail(log)}"
            ) from None
        except (OSError, HTTPException):  # does not listen yet, or was busy loading
            time.sleep(_POLL_S)
        else:
            return


def _ask(model: str, base_url: str) -> None:
    """One short request with a tool, as all that come after it have."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Look up Ada."}],
        "tools": [_PROBE_TOOL],
        "max_tokens": 8,
    }
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=_ANSWER_S) as response:
        text = response.read()
    try:
        answer = json.loads(text)
    except ValueError:
        answer = text.decode("utf-8", "replace")
    if not isinstance(answer, dict) or not answer.get("choices"):
        raise CompoWorldError(f"{base_url} answers with no choices: {str(answer)[:500]}")


def _template(folder: Path) -> str:
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    config = folder / "tokenizer_config.json"
    if config.is_file() and (template := read_json(config).maybe("chat_template")):
        return template.text()
    raise InputError(f"{folder}: has no chat template, neither chat_template.jinja nor in tokenizer_config.json")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
