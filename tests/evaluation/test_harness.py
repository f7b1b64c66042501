"""Running a harness: what is missing is told before anything is spent, and it learns no secrets but its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.harness import FINISHED, LOG, harness_version, require, run_job
from compoworld_core.evaluation.order import Job, Needs, Order, Pin, Served
from compoworld_core.llm.config import Endpoint
from tests.evaluation.benchmarks.written import CANARY, order

HERE = ">=3.11,<4.0"
PIN = Pin(repository="someone/harness", package="pydantic", version=__import__("pydantic").VERSION)


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Order:
    """An order for a harness that is this interpreter."""
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("JUDGE_KEY", f"{CANARY}-judge")
    (tmp_path / "harness").mkdir(exist_ok=True)
    return order(tmp_path, python=Path(sys.executable), **fields)


def test_an_order_with_all_that_is_needed_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = Needs(python=HERE, modules=("pydantic",), judge=True)

    require("b", PIN, needs, {"mode": "x"}, asked(tmp_path, monkeypatch, options={"mode": "y"}))


@pytest.mark.parametrize(
    ("pin", "needs", "fields", "told"),
    [
        pytest.param(PIN, Needs(python=">=3.99"), {}, r"is Python 3\.\d+\.\d+; it needs >=3.99", id="python"),
        pytest.param(PIN, Needs(modules=("pydantic", "no_such")), {}, "has no module no_such;", id="module"),
        pytest.param(PIN, Needs(modules=("no_such.part",)), {}, r"has no module no_such\.part", id="part of a module"),
        pytest.param(PIN, Needs(files=("data/x.json",)), {}, "data/x.json: is missing", id="data"),
        pytest.param(PIN, Needs(user=True), {}, "a model has to play the user", id="user"),
        pytest.param(PIN, Needs(judge=True), {"judge": None}, "a model has to judge", id="judge"),
        pytest.param(PIN, Needs(parts="say which"), {"limit": 2}, "its scripts know no --limit; say which", id="limit"),
        pytest.param(PIN, Needs(secrets=("NO_SUCH_SECRET",)), {}, "NO_SUCH_SECRET is not set", id="secret"),
        pytest.param(
            PIN, Needs(secrets=("AGENT_KEY",), key_files=("AGENT_KEY",)), {}, "AGENT_KEY has to name the file",
            id="key file",
        ),
        pytest.param(PIN, Needs(programs=("no-such-program",)), {}, "no no-such-program on the path", id="program"),
        pytest.param(PIN, Needs(), {"options": {"colour": "red"}}, "no option 'colour'; there are mode", id="option"),
        pytest.param(
            Pin(repository="a/b", package="pydantic", version="0.1"), Needs(), {}, "is pinned to 0.1", id="version"
        ),
        pytest.param(
            Pin(repository="a/b", commit="a" * 40), Needs(), {}, "say with --revision which one it is", id="unknown"
        ),
        pytest.param(
            Pin(repository="a/b", commit="a" * 40), Needs(), {"revision": "b" * 40},
            "is at bbbbbbbbbbbb; the benchmark is pinned to commit aaaaaaaaaaaa", id="commit",
        ),
        pytest.param(Pin(repository="a/b"), Needs(), {}, "say with --revision which one it is", id="unpinned"),
        pytest.param(PIN, Needs(), {"python": "/no/python"}, "there is no such interpreter", id="interpreter"),
        pytest.param(PIN, Needs(), {"harness": "/no/harness"}, "github.com/someone/harness", id="harness"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin: Pin, needs: Needs, fields: dict[str, Any], told: str
) -> None:
    given = asked(tmp_path, monkeypatch)
    changed = Order.model_validate({**dict(given), **fields})

    with pytest.raises(InputError, match=told):
        require("b", pin, needs, {"mode": "x"}, changed)


def test_all_that_is_missing_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    monkeypatch.delenv("AGENT_KEY")

    with pytest.raises(InputError) as caught:
        require("b", PIN, Needs(user=True, files=("x",), secrets=("NO_SUCH_SECRET",)), {}, given)

    told = str(caught.value)
    assert all(part in told for part in ("play the user", "/x: is missing", "NO_SUCH_SECRET", "AGENT_KEY is not set"))


def test_a_part_of_a_package_that_cannot_be_imported_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("print('loading'); import no_such_dependency")
    (tmp_path / "package/part.py").touch()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError, match=r"has no module package\.part: No module named 'no_such_dependency'"):
        require("b", PIN, Needs(modules=("pydantic", "package.part")), {}, asked(tmp_path, monkeypatch))


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:80", "model.localhost"])
def test_an_agent_in_a_container_cannot_ask_this_machines_loopback(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Served(model="m", endpoint=Endpoint(base_url=f"http://{host}/v1"))
    given = asked(tmp_path, monkeypatch, agent=agent)

    require("b", PIN, Needs(), {}, given)
    with pytest.raises(InputError, match="serve the model where it can be reached from there"):
        require("b", PIN, Needs(contained=True), {}, given)


def test_an_agent_in_a_container_may_ask_any_other_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Served(model="m", endpoint=Endpoint(base_url="http://10.0.0.7:8000/v1"))

    require("b", PIN, Needs(contained=True), {}, asked(tmp_path, monkeypatch, agent=agent))


@pytest.mark.parametrize("host", ["tcp://docker:2375", "ssh://someone@docker"])
def test_containers_that_are_reached_by_local_ports_have_to_be_here(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Served(model="m", endpoint=Endpoint(base_url="http://10.0.0.7:8000/v1"))
    given = asked(tmp_path, monkeypatch, agent=agent)
    docker(tmp_path, "0", monkeypatch)
    monkeypatch.setenv("DOCKER_HOST", host)

    require("b", PIN, Needs(docker=True), {}, given)
    with pytest.raises(InputError, match=f"DOCKER_HOST is {host}, and its containers have to be this machine's own"):
        require("b", PIN, Needs(docker=True, contained=True), {}, given)


def test_containers_need_a_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InputError, match="there is no docker; set DOCKER_HOST"):
        require("b", PIN, Needs(docker=True), {}, given)


def test_a_docker_that_answers_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    docker(tmp_path, "0", monkeypatch)

    require("b", PIN, Needs(docker=True), {}, given)


def docker(folder: Path, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only program there is: a docker that ends with a code, or with words."""
    program = folder / "docker"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit({says})\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("says", "told"), [("'a warning\\ncannot connect'", "cannot connect"), ("1", "it does not say why")]
)
def test_the_docker_has_to_answer(says: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    docker(tmp_path, says, monkeypatch)

    with pytest.raises(InputError, match=f"docker has no server: {told}$"):
        require("b", PIN, Needs(docker=True), {}, given)


def test_a_checkout_tells_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__).parents[2]
    if not (here / ".git").exists():
        pytest.skip("the tests are not run in a checkout")

    version = harness_version(PIN, asked(tmp_path, monkeypatch, harness=here))

    assert len(version) == 40
    assert harness_version(PIN, asked(tmp_path, monkeypatch)) == PIN.version


def job(code: str, **fields: Any) -> Job:
    """A harness that is a line of Python."""
    return Job(**{"name": "part", "command": (sys.executable, "-c", code), "done": "out.txt", **fields})


SAY = "open('out.txt', 'w').write('done')"


def test_a_finished_job_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    count = job("open('out.txt', 'a').write('x')")

    run_job(given, count)
    run_job(given, count)

    assert (tmp_path / "out/part/out.txt").read_text() == "x"


def test_a_job_that_fails_is_not_finished_and_shows_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = asked(tmp_path, monkeypatch)

    with pytest.raises(CompoWorldError, match=r"part: the harness ended with 3; the end of .*\n  it broke"):
        run_job(given, job(f"{SAY}; print('it broke'); raise SystemExit(3)"))

    assert not (tmp_path / "out/part" / FINISHED).exists()
    run_job(given, job(SAY))
    assert (tmp_path / "out/part" / FINISHED).exists()


def test_a_job_that_leaves_no_results_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompoWorldError, match=r"the harness left no out.txt"):
        run_job(asked(tmp_path, monkeypatch), job("pass"))


def test_a_harness_is_told_its_own_keys_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    monkeypatch.setenv("SEARCH_KEY", "search-0123456789")
    monkeypatch.setenv("OTHER_SECRET", "other-0123456789")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/somewhere")
    code = (
        "import hashlib, json, os\n"
        "found = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in os.environ.items()}\n"
        "open('out.txt', 'w').write(json.dumps(found))"
    )

    run_job(
        given,
        job(code, keys={"KEY": given.agent.endpoint, "FREE": Endpoint(base_url="http://h/v1")}, passed=("SEARCH_KEY",)),
    )

    told = json.loads((tmp_path / "out/part/out.txt").read_text())
    assert {"KEY", "FREE", "SEARCH_KEY", "PATH", "TIKTOKEN_CACHE_DIR"} <= told.keys()
    assert not {"AGENT_KEY", "JUDGE_KEY", "OTHER_SECRET"} & told.keys()


def test_a_config_file_with_a_key_exists_in_memory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, monkeypatch)
    code = (
        "import json, os\n"
        "path = os.environ['CONFIG']\n"
        "assert os.path.exists(path)\n"
        "read = [json.load(open(path)) for _ in range(2)]\n"
        "assert read[0] == read[1] and read[0]['key'].startswith('Bearer sk-canary'), read\n"
        "open('out.txt', 'w').write(str(len(read[0]['key'])))"
    )

    run_job(given, job(code, keys={"KEY": given.agent.endpoint}, sealed={"CONFIG": '{"key": "Bearer ${KEY}"}'}))

    assert (tmp_path / "out/part/out.txt").read_text() == str(len(f"Bearer {CANARY}"))


def test_a_question_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_job(asked(tmp_path, monkeypatch), job("open('out.txt', 'w').write(input())", answers="y\n"))

    assert (tmp_path / "out/part/out.txt").read_text() == "y"


@pytest.mark.parametrize("code", [0, 1])
def test_no_key_stays_in_what_a_harness_wrote_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    given = asked(tmp_path, monkeypatch)
    leaking = (
        "import json, os, sys\n"
        "key = os.environ['KEY']\n"
        "said = {'info': {'llm_args': {'api_key': key}}, 'error': 'with ' + key}\n"
        "json.dump(said, open('out.txt', 'w'))\n"
        "open('models.yaml', 'w').write('headers: {Authorization: Bearer ' + key + '}')\n"
        "print('asked with', key)\n"
        f"sys.exit({code})"
    )

    with pytest.raises(CompoWorldError, match=r"asked with \[secret\]") if code else nullcontext() as caught:
        run_job(given, job(leaking, keys={"KEY": given.agent.endpoint}))

    assert CANARY not in str(caught)
    texts = {file.name: file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file()}
    assert {"out.txt", "models.yaml", LOG} <= texts.keys()
    assert not any(CANARY in text for text in texts.values())


def test_sources_that_a_harness_copies_lose_known_keys_and_stay_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = asked(tmp_path, monkeypatch)
    read = 'api_key = os.environ["KEY"]\nheaders = {"Authorization": f"Bearer {api_key}"}\n'
    original = tmp_path / "original"
    (original / "tools").mkdir(parents=True)
    (original / "tools/ask.py").write_text(read)
    (original / "schema.json").write_text('{"password":  "the user\'s password"}')
    copying = (
        "import os, pathlib, shutil\n"
        f"shutil.copytree({str(original)!r}, 'harness')\n"
        "with open('harness/tools/ask.py', 'a') as file: file.write('# ' + os.environ['KEY'])\n"
        "pathlib.Path('harness/tools/said.py').write_text('api_key = \"of-another-one\" # ' + os.environ['KEY'])\n"
        "pathlib.Path('out.txt').touch()"
    )

    run_job(given, job(copying, keys={"KEY": given.agent.endpoint}, sources={"harness": original}))

    copy = tmp_path / "out/part/harness"
    assert (copy / "tools/ask.py").read_text() == f"{read}# [secret]"
    assert (copy / "schema.json").read_bytes() == (original / "schema.json").read_bytes()
    assert (copy / "tools/said.py").read_text() == 'api_key = "[secret]" # [secret]'


def test_what_a_harness_leaves_running_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('out.txt', 'w').write(str(child.pid))"
    )

    run_job(asked(tmp_path, monkeypatch), job(code))

    assert _ends(int((tmp_path / "out/part/out.txt").read_text()))


def _ends(process: int) -> bool:
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    return bool(select.select([handle], [], [], 10)[0])


STOPPED = """
import sys
from pathlib import Path
from compoworld_core.evaluation.harness import run_job
from compoworld_core.evaluation.order import Job, Order
from compoworld_core.evaluation.process import stopped_in_order
with stopped_in_order():
    run_job(Order.model_validate_json(sys.argv[1]), Job.model_validate_json(sys.argv[2]))
"""


def test_a_harness_is_stopped_when_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "begun")
    given = asked(tmp_path, monkeypatch)
    endless = job(f"import os, time; open({str(tmp_path / 'begun')!r}, 'w').write(str(os.getpid())); time.sleep(600)")

    ours = subprocess.Popen([sys.executable, "-c", STOPPED, given.model_dump_json(), endless.model_dump_json()])
    harness = int((tmp_path / "begun").read_text())
    ours.terminate()

    assert ours.wait(60) == 128 + signal.SIGTERM
    assert _ends(harness)


def test_a_harness_that_cannot_be_started_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no-such-program: cannot be started"):
        run_job(asked(tmp_path, monkeypatch), job("", command=("no-such-program",)))


def test_a_program_is_looked_for_beside_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    given = asked(tmp_path, monkeypatch)

    run_job(given, job("", command=(Path(sys.executable).name, "-c", SAY)))

    assert (tmp_path / "out/part/out.txt").exists()
