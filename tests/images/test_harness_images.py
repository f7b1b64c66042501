"""Images with official harnesses, built and run: with nothing in them to write to, they work as they do outside.

Their sources are the folders that `HARNESS_TAU3` and `HARNESS_VITABENCH` name, served as a forge serves its archives.
"""

from __future__ import annotations

import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.evaluation.benchmarks import benchmark
from tests.evaluation.benchmarks.written import CANARY
from tests.evaluation.test_official_harnesses import Customer, Judge, config_of, harness, turns
from tests.images.image import Image, built, require_tools
from tests.llm_server.reply import Reply, Script
from tests.llm_server.server import LlmServer

pytestmark = [pytest.mark.components, pytest.mark.slow]

_SUITE = "trixie"
_PYTHON = "3.13"
"""That release's own, so none has to be fetched."""


@contextmanager
def forge(name: str, folder: Path, place: Path) -> Iterator[str]:
    """Where `get-harness` finds a benchmark's harness at its pinned commit."""
    pin = benchmark(name).pin
    archive = place / pin.repository / "archive" / f"{pin.commit}.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(folder, "source", filter=lambda item: None if "/." in item.name else item)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(place)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def image_of(name: str, folder: Path, place: Path) -> Iterator[Image]:
    require_tools()
    python = f"{name.upper().replace('-', '_')}_PYTHON"
    with (
        forge(name, folder, place) as source,
        built(f"eval-{name}", suite=_SUITE, HARNESS_SOURCE=source, **{python: _PYTHON}) as image,
    ):
        yield image


def evaluated(image: Image, work: Path, server: LlmServer, name: str, *arguments: str) -> dict[str, Any]:
    """Run a benchmark's pod, and what it told."""
    work.mkdir()
    work.chmod(0o777)
    (work / "config.yaml").write_text(config_of(agent=server, customer=server, judge=server))
    done = image.run(
        ["compoworld", "evaluate", name, "--model", "agent", "--user", "customer", *arguments,
         "--config", "/work/config.yaml", "--limit", "1", "--trials", "2", "--concurrency", "1",
         "--out", "/work/out", "--store", "/work/store", "--json"],
        environment={"SCRIPT_KEY": CANARY, "HOME": "/tmp"},
        mounts={"/work": work},
        seconds=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["trials"], told["errors"], told["drops"], told["missing"]) == (2, [], [], [])
    assert told["versions"]["harness"] == benchmark(name).pin.commit
    assert not any(CANARY in file.read_text() for file in (work / "out").rglob("*") if file.is_file())
    return told


def test_tau3_banking_runs_in_its_image(tmp_path: Path) -> None:
    folder = harness("HARNESS_TAU3")
    scripts: dict[str, Script] = {
        "agent": lambda _: Reply(content="The card that you name."),
        "customer": Customer(folder),
    }

    with image_of("tau3-banking", folder, tmp_path / "forge") as image, LlmServer(scripts, keys=[CANARY]) as server:
        told = evaluated(image, tmp_path / "work", server, "tau3-banking")

    assert told["headline"]["value"] == 0.5


def test_vitabench_runs_in_its_image(tmp_path: Path) -> None:
    folder = harness("HARNESS_VITABENCH")
    scripts: dict[str, Script] = {
        "agent": lambda _: Reply(content="Your order is placed."),
        "customer": lambda request: Reply(content="Thanks. ###STOP###" if turns(request) else "Please order."),
        "judge": Judge(),
    }

    with image_of("vitabench", folder, tmp_path / "forge") as image, LlmServer(scripts, keys=[CANARY]) as server:
        told = evaluated(
            image, tmp_path / "work", server, "vitabench", "--judge", "judge", "--option", "domains=delivery"
        )

    assert told["headline"]["value"] == 0.5
