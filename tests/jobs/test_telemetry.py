"""What a job tells about tokens and money, and that metrics that cannot be delivered decide nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from compoworld_core.errors import GateFailed, InputError, TransientError
from jobs.process import run_process
from jobs.telemetry import Telemetry, exposition

SPEND = [
    {"model": "m", "item": "a", "prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 1, "usd": "0.25"},
    {"model": "m", "item": "b", "prompt_tokens": 5, "cached_tokens": 0, "completion_tokens": 2, "usd": "0.5"},
]


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    got: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join()


def test_tokens_and_money_are_summed_by_model(gateway: tuple[str, list[tuple[str, str]]]) -> None:
    url, got = gateway
    telemetry = Telemetry("distill", {"CW_RUN": "run/1", "CW_PUSHGATEWAY": url})
    telemetry.about(shard=3)

    telemetry.spent(SPEND)
    telemetry.end(0)

    ((path, text),) = got
    assert path == "/metrics/job/compoworld/run/run%2F1/shard/3/stage/distill"
    labels = 'model="m",run="run/1",shard="3",stage="distill"'
    assert f'compoworld_tokens{{kind="prompt",{labels}}} 15\n' in text
    assert f'compoworld_tokens{{kind="cached",{labels}}} 4\n' in text
    assert f"compoworld_usd{{{labels}}} 0.75\n" in text


def test_a_gateway_that_is_not_there_is_said_and_decides_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "job.prom"

    Telemetry("crawl", {"CW_PUSHGATEWAY": "http://127.0.0.1:1", "CW_METRICS": str(file)}).end(0)

    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (last["level"], "not delivered" in last["message"]) == ("warning", True)
    assert "compoworld_job_exit_code" in file.read_text()


def test_labels_are_escaped() -> None:
    assert exposition([("compoworld_usd", {"model": 'a"b\\c\nd'}, 1.5)]).splitlines()[2] == (
        'compoworld_usd{model="a\\"b\\\\c\\nd"} 1.5'
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("wrong"), 2),
        (TransientError("later"), 75),
        (GateFailed("not good enough"), 1),
        (ZeroDivisionError("a bug"), 1),
        (None, 0),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, Exception) else "",
)
def test_the_exit_code_says_whether_trying_again_helps(
    error: Exception | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(telemetry: Telemetry) -> None:
        if error:
            raise error

    with pytest.raises(SystemExit) as exit:
        run_process("crawl", work)

    assert exit.value.code == code
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[-1]["exit_code"] == code
    assert [str(error) in line["message"] for line in lines[:-1]] == ([True] if error else [])
