"""Running a harness: what it needs is checked first, and it is told no more secrets than it needs.

A harness is a program of others in an environment of its own. It gets a small environment, keys as variables, and
where it can read a key from a config file only, a file that exists in memory alone. What it wrote is stripped of
secrets when it ends, however it ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.process import stop_group, tail
from compoworld_core.evaluation.secrets import Secrets

LOG: Final = "harness.log"
"""What a harness printed, in its job's folder."""

FINISHED: Final = "finished"
"""File that stands in the folder of a job that is finished."""

_KEPT: Final = frozenset(
    "PATH HOME LANG LC_ALL TZ TMPDIR http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE "
    "SSL_CERT_DIR REQUESTS_CA_BUNDLE DOCKER_HOST DOCKER_CERT_PATH DOCKER_TLS_VERIFY DOCKER_CONTEXT "
    "TIKTOKEN_CACHE_DIR".split()
)
_NO_KEY: Final = "unused"
"""What clients that insist on a key are given for servers that need none."""

_ASK_S: Final = 120.0
_ASK: Final = """
import importlib.metadata, importlib.util, json, sys
package, *modules = sys.argv[1:]
try:
    version = importlib.metadata.version(package) if package else None
except importlib.metadata.PackageNotFoundError:
    version = None
lacking = {}
for module in modules:
    try:
        if importlib.util.find_spec(module) is None:
            lacking[module] = ""
    except Exception as error:  # of the packages that it lies in, which are imported
        lacking[module] = ": %s" % error
print(json.dumps({"python": "%d.%d.%d" % sys.version_info[:3], "version": version, "lacking": lacking}))
"""


def require(name: str, pin: Pin, needs: Needs, options: Mapping[str, str], order: Order) -> None:
    """Check that all is there that a harness needs.

    Raises:
        InputError: Names all that is not.
    """
    problems = [*_wrong_orders(needs, options, order), *_wrong_harness(pin, needs, order), *_missing(needs)]
    if problems:
        raise InputError(f"{name} cannot be run:" + "".join(f"\n  {problem}" for problem in problems))


def harness_version(pin: Pin, order: Order) -> str:
    """What is known of the harness's revision: its commit where its folder is a checkout, else its version."""
    return _commit(order.harness) or order.revision or pin.version or "unknown"


def _wrong_orders(needs: Needs, options: Mapping[str, str], order: Order) -> Iterator[str]:
    for name in sorted(order.options.keys() - options.keys()):
        yield f"it has no option {name!r}; there are {', '.join(options) or 'none'}"
    yield from needs.unmet(
        has_user=order.user is not None, has_judge=order.judge is not None, has_limit=order.limit is not None
    )
    for served in (order.agent, order.user, order.judge):
        if served is not None:
            try:
                served.endpoint.key()
            except InputError as error:
                yield str(error)
    if needs.contained and _is_loopback(order.agent.base_url):
        yield (
            f"{order.agent.base_url}: the agent asks from within a container or another machine, where this address is "
            "that one's own; serve the model where it can be reached from there, which --checkpoint does not"
        )


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _wrong_harness(pin: Pin, needs: Needs, order: Order) -> Iterator[str]:
    if not order.harness.is_dir():
        yield f"{order.harness}: there is no such folder; it needs a copy of https://github.com/{pin.repository}"
        return
    for file in needs.files:
        if not (order.harness / file).exists():
            yield f"{order.harness / file}: is missing; the harness or its data is not whole"
    if not order.interpreter.exists():
        yield f"{order.interpreter}: there is no such interpreter; make the harness's environment, or name it"
        return
    try:
        found = _ask_interpreter(order.interpreter, needs.modules, pin.package or "")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield f"{order.interpreter}: does not run: {error}"
        return
    if not _fits(str(found["python"]), needs.python):
        yield f"{order.interpreter}: is Python {found['python']}; it needs {needs.python}"
    for module, reason in found["lacking"].items():
        yield f"{order.interpreter}: has no module {module}{reason}; install the harness there"
    yield from _wrong_revision(pin, order, found["version"])


def _wrong_revision(pin: Pin, order: Order, version: object) -> Iterator[str]:
    known = _commit(order.harness) or order.revision
    if pin.commit is not None and known is not None and known != pin.commit:
        yield f"{order.harness}: is at {known[:12]}; the benchmark is pinned to commit {pin.commit[:12]}"
    if pin.version is not None and version is not None and version != pin.version:
        yield f"{order.interpreter}: has {pin.package} {version}; the benchmark is pinned to {pin.version}"
    if known is None and (pin.version is None or version is None):
        yield f"{order.harness}: is no checkout, so its revision is not known; say with --revision which one it is"


def _missing(needs: Needs) -> Iterator[str]:
    for variable in needs.secrets:
        if not os.environ.get(variable, "").strip():
            yield f"the environment variable {variable} is not set"
        elif variable in needs.key_files and not Path(os.environ[variable]).is_file():
            yield f"the environment variable {variable} has to name the file with the key, and names none"
    for program in needs.programs:
        if shutil.which(program) is None:
            yield f"there is no {program} on the path"
    host = os.environ.get("DOCKER_HOST", "")
    if needs.docker and needs.contained and host.startswith(("tcp:", "ssh:")):
        yield (
            f"DOCKER_HOST is {host}, and its containers have to be this machine's own: the harness reaches them by "
            "local ports and folders"
        )
    elif needs.docker:
        try:
            ran = subprocess.run(
                ["docker", "version", "--format", "{{.Server.Version}}"],
                capture_output=True, text=True, timeout=_ASK_S, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            yield "its tasks are containers, and there is no docker; set DOCKER_HOST, or collect results from elsewhere"
        except subprocess.TimeoutExpired:
            yield "its tasks are containers, and docker does not answer"
        else:
            if ran.returncode != 0:
                *_, reason = ["it does not say why", *ran.stderr.strip().splitlines()]
                yield f"its tasks are containers, and docker has no server: {reason}"


def _ask_interpreter(interpreter: Path, modules: tuple[str, ...], package: str) -> dict[str, Any]:
    ran = subprocess.run(
        [str(interpreter), "-c", _ASK, package, *modules],
        capture_output=True, text=True, timeout=_ASK_S, check=True, env=_small_environment(),
    )  # fmt: skip
    found: dict[str, Any] = json.loads(ran.stdout.strip().rpartition("\n")[2])  # what is imported may print
    return found


def _fits(version: str, specifier: str) -> bool:
    have = tuple(int(part) for part in version.split("."))[:2]
    for rule in specifier.split(","):
        sign, wanted = re.fullmatch(r"(>=|<)(\d+\.\d+)", rule.strip()).groups()  # type: ignore[union-attr]
        bound = tuple(int(part) for part in wanted.split("."))
        if (sign == ">=" and have < bound) or (sign == "<" and have >= bound):
            return False
    return True


def _commit(folder: Path) -> str | None:
    if not (folder / ".git").exists():
        return None
    ran = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=_ASK_S, check=False
    )
    return ran.stdout.strip() or None


def run_job(order: Order, job: Job) -> None:
    """Run one job in its folder, unless it is finished.

    Raises:
        CompoWorldError: It failed; shows the end of its log.
    """
    folder = order.folder(job.name)
    if (folder / FINISHED).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in job.files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    secret = {name: endpoint.key() or _NO_KEY for name, endpoint in job.keys.items()}
    secret |= {name: os.environ[name] for name in job.passed if name in os.environ}
    secrets = Secrets(secret.values())
    try:
        with _sealed_files(job.sealed, secret) as (paths, descriptors):
            environment = {**_small_environment(), **job.environment, **paths, **secret}
            command, place = _resolved(job.command, order), job.folder or folder
            code = _call(command, place, environment, job.answers, folder / LOG, descriptors)
    finally:
        secrets.strip_folder(folder, lambda file: _is_source(file.relative_to(folder), job))
    problem = f"ended with {code}" if code != 0 else "" if (folder / job.done).exists() else f"left no {job.done}"
    if problem:
        log = folder / LOG
        raise CompoWorldError(f"{job.name}: the harness {problem}; the end of {log}:\n{tail(log)}")
    (folder / FINISHED).touch()


def _is_source(file: Path, job: Job) -> bool:
    """Whether a file in a job's folder is code or data of the harness.

    Its place decides: a harness that works in a copy of itself writes results beside its sources, of all kinds.
    """
    return any(
        file.is_relative_to(place) and (original / file.relative_to(place)).is_file()
        for place, original in job.sources.items()
    )


def _small_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in _KEPT}


def _resolved(command: tuple[str, ...], order: Order) -> list[str]:
    program, *arguments = command
    beside = order.interpreter.absolute().parent / program
    return [str(beside) if "/" not in program and beside.exists() else program, *arguments]


@contextmanager
def _sealed_files(sealed: Mapping[str, str], secret: Mapping[str, str]) -> Iterator[tuple[dict[str, str], list[int]]]:
    """Files in memory, as variables that hold their paths for a child that inherits them."""
    paths, descriptors = {}, []
    try:
        for variable, text in sealed.items():
            descriptor = os.memfd_create(variable)
            descriptors.append(descriptor)
            os.write(descriptor, _filled(text, secret).encode())
            paths[variable] = f"/proc/self/fd/{descriptor}"
        yield paths, descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _filled(text: str, secret: Mapping[str, str]) -> str:
    for name, value in secret.items():
        text = text.replace(f"${{{name}}}", json.dumps(value)[1:-1])
    return text


def _call(
    command: list[str], folder: Path, environment: dict[str, str], answers: str, log: Path, descriptors: list[int]
) -> int:
    """Run a command to its end; whatever it started is stopped when we are."""
    with log.open("ab") as sink:
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=sink, stderr=subprocess.STDOUT,
                start_new_session=True, pass_fds=descriptors,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error
        try:
            process.communicate(answers.encode())
            return process.returncode
        finally:
            stop_group(process)
