"""Serving a checkpoint: the parser follows from the chat template, and a server that does not start tells why."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.serving import Parsers, Serving, parsers_for, served

XML = "{% if m.tool_calls %}<tool_call>\n<function={{ call.name }}>{% endif %}"
JSON = '{% if m.tool_calls %}<tool_call>\n{"name": "{{ call.name }}"}{% endif %}'
THINKS = "<think>{{ m.reasoning_content }}</think>"


def checkpoint(folder: Path, template: str | None, *, in_config: bool = False) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    if template is not None and in_config:
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    elif template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return folder


@pytest.mark.parametrize(
    ("template", "parsers"),
    [
        pytest.param(XML + THINKS, Parsers(tool_call="qwen3_coder", reasoning="qwen3"), id="qwen3.6"),
        pytest.param(JSON + THINKS, Parsers(tool_call="hermes", reasoning="qwen3"), id="qwen3"),
        pytest.param(JSON, Parsers(tool_call="hermes"), id="without thoughts"),
    ],
)
@pytest.mark.parametrize("in_config", [False, True])
def test_the_parsers_follow_from_the_chat_template(
    tmp_path: Path, template: str, parsers: Parsers, in_config: bool
) -> None:
    assert parsers_for(checkpoint(tmp_path / "m", template, in_config=in_config)) == parsers


@pytest.mark.parametrize(
    ("template", "told"),
    [(None, "has no chat template"), ("{{ messages }}", "its chat template writes no <tool_call>")],
)
def test_a_checkpoint_whose_calls_nobody_can_read_is_refused(tmp_path: Path, template: str | None, told: str) -> None:
    with pytest.raises(InputError, match=told), served(Serving(folder=checkpoint(tmp_path / "m", template)), tmp_path):
        pass


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"has no config.json"),
        served(Serving(folder=tmp_path), tmp_path / "server.log"),
    ):
        pass


def test_vllm_is_told_parsers_name_and_layout(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model-7", XML + THINKS)
    serving = Serving(folder=folder, gpus=4, context_tokens=32768, memory_share=0.5)

    command = serving.command(8123, host="0.0.0.0")

    given = dict(pairwise(command))
    assert command[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert (given["--tool-call-parser"], given["--reasoning-parser"]) == ("qwen3_coder", "qwen3")
    assert (given["--served-model-name"], given["--port"], given["--tensor-parallel-size"]) == ("model-7", "8123", "4")
    assert (given["--host"], dict(pairwise(serving.command(8123)))["--host"]) == ("0.0.0.0", "127.0.0.1")
    assert (given["--max-model-len"], given["--gpu-memory-utilization"]) == ("32768", "0.5")
    assert "--enable-auto-tool-choice" in command
    assert json.loads(given["--default-chat-template-kwargs"]) == {"enable_thinking": False}, "as in training"


def test_a_server_that_does_not_start_shows_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")
    serving = Serving(folder=checkpoint(tmp_path / "m", XML), python=Path(sys.executable))

    with (
        pytest.raises(CompoWorldError, match=r"vllm ended with 1; the end of .*\n.*No module named '?vllm"),
        served(serving, tmp_path / "server.log"),
    ):
        pass


def test_the_first_error_of_a_server_is_shown_though_much_follows(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        "echo '(Worker pid=7) WARNING [limits.py:1] This can cause errors like `OSError: too many files`'\n"
        "echo '(Worker pid=7) ERROR 11-30 [executor.py:953] ValueError: no memory is left'\n"
        "seq 100\n"
        "echo 'RuntimeError: see root cause above'\n"
        "exit 1\n"
    )
    python.chmod(0o755)
    serving = Serving(folder=checkpoint(tmp_path / "m", XML), python=python)

    with (
        pytest.raises(CompoWorldError, match=r"ended with 1.*\n.*ValueError: no memory is left\n  …\n(.*\n)+.*root"),
        served(serving, tmp_path / "server.log"),
    ):
        pass
