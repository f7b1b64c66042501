"""Runs a rendered workflow without a cluster: walks its DAG and runs each container's command line as a process.

It tests our YAML and our entry points. It knows the features of Argo that we render and refuses every other: a field
that it does not know fails the test rather than being passed over.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pipeline.argo.expressions import evaluate

Json = dict[str, Any]
Values = dict[str, str]

WORKFLOW = {"apiVersion", "kind", "metadata", "spec"}
SPEC = {
    "activeDeadlineSeconds",
    "arguments",
    "automountServiceAccountToken",
    "entrypoint",
    "executor",
    "onExit",
    "parallelism",
    "podGC",
    "podMetadata",
    "securityContext",
    "serviceAccountName",
    "synchronization",
    "templates",
    "ttlStrategy",
    "workflowTemplateRef",
}
TEMPLATE = {
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "container",
    "dag",
    "executor",
    "inputs",
    "metadata",
    "name",
    "outputs",
    "podSpecPatch",
    "resource",
    "retryStrategy",
    "serviceAccountName",
    "synchronization",
    "tolerations",
    "volumes",
}
TASK = {"arguments", "depends", "name", "template", "when", "withParam", "withSequence"}
CONTAINER = {"args", "command", "env", "envFrom", "image", "resources", "securityContext", "volumeMounts"}
PATIENCE_S = 600
PROJECT = Path(__file__).parents[3]
"""The sources that pods run: those beside the test."""

_REFERENCE = re.compile(r"\{\{(.*?)\}\}")


class Refused(Exception):
    """The workflow uses what we do not render, or what nothing gives a value."""


class Failed(Exception):
    """A pod or what depends on it did not succeed."""


@dataclass(frozen=True)
class Cluster:
    """What a namespace holds, and where pods have their folders."""

    folder: Path
    config_maps: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    side_by_side: int = 2


@dataclass(frozen=True)
class Pod:
    """One attempt at a container."""

    template: str
    attempt: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    exit_code: int
    message: str
    log: str


Meddle = Callable[[str, int, "subprocess.Popen[str]"], tuple[str, str] | None]
"""May end an attempt at a template; then tells status and message, as the controller would."""


class Engine:
    """One run of a workflow."""

    def __init__(
        self, cluster: Cluster, template: Json, workflow: Json, *, name: str = "w-1", meddle: Meddle | None = None
    ) -> None:
        """Join a thin workflow with the template that it names."""
        for document in (template, workflow):
            _only(document, WORKFLOW, document["kind"])
            _only(document["spec"], SPEC, "spec")
        if workflow["spec"].get("workflowTemplateRef", {}).get("name") != template["metadata"]["name"]:
            raise Refused("the workflow names another template")
        self.pods: list[Pod] = []
        self.passed_over: list[str] = []
        self._cluster = cluster
        self._meddle = meddle
        self._lock = threading.Lock()
        self._spec = {**template["spec"], **{k: v for k, v in workflow["spec"].items() if k != "arguments"}}
        self._templates = {item["name"]: item for item in template["spec"]["templates"]}
        parameters = {**_given(template["spec"]), **_given(workflow["spec"])}
        self._globals: Values = {
            "workflow.name": name,
            "workflow.uid": "00000000-0000-4000-8000-000000000001",
            "workflow.namespace": "tests",
            **{f"workflow.parameters.{key}": value for key, value in parameters.items()},
        }
        self._limits(self._spec.get("synchronization", {}))

    def run(self, scheduled: str | None = None) -> str:
        """Run it to its end, and what follows the end; the phase."""
        if scheduled is not None:
            self._globals["workflow.scheduledTime"] = scheduled
        try:
            self._template(self._spec["entrypoint"], {}, self._spec["entrypoint"])
            phase = "Succeeded"
        except Failed:
            phase = "Failed"
        self._globals |= {"workflow.status": phase, "workflow.duration": "1.5"}
        self._template(self._spec["onExit"], {}, "onExit")
        return phase

    def _template(self, name: str, arguments: Values, node: str) -> Values:
        template = self._templates.get(name)
        if template is None:
            raise Refused(f"{node}: there is no template {name}")
        _only(template, TEMPLATE, f"template {name}")
        scope = {**self._globals, **_inputs(template, arguments)}
        self._limits(template.get("synchronization", {}))
        if "dag" in template:
            self._dag(template, scope, node)
            return {}
        if "container" in template:
            return self._container(template, scope, node)
        raise Refused(f"{node}: a template that is neither DAG nor container is not run here")

    def _dag(self, template: Json, scope: Values, node: str) -> None:
        _only(template["dag"], {"tasks"}, f"dag of {template['name']}")
        tasks = {task["name"]: task for task in template["dag"]["tasks"]}
        outputs: Values = {}
        done: dict[str, bool] = {}
        while len(done) < len(tasks):
            ready = [name for name, task in tasks.items() if name not in done and set(_depends(task)) <= done.keys()]
            if not ready:
                raise Refused(f"{node}: tasks wait for each other")
            for name in ready:
                if not all(done[before] for before in _depends(tasks[name])):
                    done[name] = False
                    continue
                visible = {**scope, **_visible(outputs, tasks, name)}
                try:
                    outputs |= self._task(tasks[name], visible, f"{node}.{name}")
                    done[name] = True
                except Failed:
                    done[name] = False
        if not all(done.values()):
            raise Failed(node)

    def _task(self, task: Json, scope: Values, node: str) -> Values:
        _only(task, TASK, f"task {node}")
        if "when" in task and not _holds(_filled(task["when"], scope)):
            self.passed_over.append(node)
            return {}
        if "withParam" not in task and "withSequence" not in task:
            made = self._template(task["template"], _arguments(task, scope), node)
            return {f"tasks.{task['name']}.outputs.parameters.{key}": value for key, value in made.items()}
        children = list(_items(task, scope))
        if len(children) > 500:
            raise Refused(f"{node}: {len(children)} children are more than a workflow's status can hold")
        with ThreadPoolExecutor(self._cluster.side_by_side) as threads:
            futures = [
                threads.submit(self._template, task["template"], _arguments(task, {**scope, **item}), f"{node}({item})")
                for item in children
            ]
            failures = [error for future in futures if (error := future.exception()) is not None]
        if failures:
            raise failures[0]
        return {}

    def _container(self, template: Json, scope: Values, node: str) -> Values:
        container = template["container"]
        _only(container, CONTAINER, f"container of {template['name']}")
        _only(template["retryStrategy"], {"backoff", "expression", "limit", "retryPolicy"}, "retryStrategy")
        if template["retryStrategy"]["retryPolicy"] != "Always":
            raise Refused(f"{node}: policy {template['retryStrategy']['retryPolicy']}")
        for attempt in range(int(template["retryStrategy"]["limit"]) + 1):
            folder = self._cluster.folder / f"pod-{len(list(self._cluster.folder.iterdir()))}-{os.urandom(4).hex()}"
            mounts = self._mounts(template, scope, folder)
            status, pod = self._attempt(template, scope, mounts, attempt, folder)
            with self._lock:
                self.pods.append(pod)
            if status == "Succeeded":
                return _outputs(template, mounts)
            last = {
                "lastRetry.exitCode": str(pod.exit_code),
                "lastRetry.status": status,
                "lastRetry.message": pod.message,
            }
            if not evaluate(template["retryStrategy"]["expression"], last):
                break
        raise Failed(f"{node}: {pod.message}\n{pod.log}")

    def _attempt(
        self, template: Json, scope: Values, mounts: Mapping[str, Path], attempt: int, folder: Path
    ) -> tuple[str, Pod]:
        container = template["container"]
        _filled(container["image"], scope)
        _patched(template)
        environment = self._environment(container, scope, mounts)
        words = [*container["command"], *container.get("args", ())]
        command = [_placed(_filled(word, scope), mounts) for word in words]
        if command[0] != "python":
            raise Refused(f"{template['name']}: runs {command[0]}")
        with subprocess.Popen(
            [sys.executable, *command[1:]],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            meddled = self._meddle(template["name"], attempt, process) if self._meddle else None
            log, _ = process.communicate(timeout=PATIENCE_S)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        status, message = meddled or (("Succeeded", "") if code == 0 else ("Failed", f"Error (exit code {code})"))
        return status, Pod(template["name"], attempt, tuple(command), environment, code, message, log)

    def _environment(self, container: Json, scope: Values, mounts: Mapping[str, Path]) -> Values:
        found: Values = {}
        for source in container.get("envFrom", ()):
            (kind, about), *others = source.items()
            if others or kind not in ("configMapRef", "secretRef"):
                raise Refused(f"envFrom {source}")
            known = self._cluster.config_maps if kind == "configMapRef" else self._cluster.secrets
            if about["name"] in known:
                found |= known[about["name"]]
            elif not about.get("optional"):
                raise Refused(f"{kind} {about['name']} is not there")
        for item in container.get("env", ()):
            _only(item, {"name", "value"}, "env")
            found[item["name"]] = _placed(_filled(item["value"], scope), mounts)
        return found

    def _mounts(self, template: Json, scope: Values, folder: Path) -> dict[str, Path]:
        """A folder for every mount of the container: its volume's content, or empty."""
        folder.mkdir()
        volumes: dict[str, Path] = {}
        for volume in template.get("volumes", ()):
            place = folder / volume["name"]
            place.mkdir()
            if "configMap" in volume:
                name = _filled(volume["configMap"]["name"], scope)
                if name not in self._cluster.config_maps and not volume["configMap"].get("optional"):
                    raise Refused(f"config map {name} is not there")
                for file, text in self._cluster.config_maps.get(name, {}).items():
                    (place / file).write_text(text)
            elif "emptyDir" not in volume:
                raise Refused(f"volume {volume}")
            volumes[volume["name"]] = place
        return {mount["mountPath"]: volumes[mount["name"]] for mount in template["container"].get("volumeMounts", ())}

    def _limits(self, synchronization: Json) -> None:
        """Everything runs for itself here, so it suffices that the limits that are named exist."""
        _only(synchronization, {"mutexes", "semaphores"}, "synchronization")
        for mutex in synchronization.get("mutexes", ()):
            _filled(mutex["name"], self._globals)
        for semaphore in synchronization.get("semaphores", ()):
            reference = semaphore["configMapKeyRef"]
            if int(self._cluster.config_maps[reference["name"]][reference["key"]]) < 1:
                raise Refused(f"semaphore {reference}")


def pod_of(document: Json, template: str, inputs: Values, parameters: Values) -> tuple[str, list[str], Values]:
    """Image, command and own variables of a template's container, with all that they refer to filled in."""
    (found,) = [item for item in document["spec"]["templates"] if item["name"] == template]
    scope = {"workflow.name": "w-1", **{f"workflow.parameters.{name}": value for name, value in parameters.items()}}
    scope |= _inputs(found, inputs)
    container = found["container"]
    command = [_filled(word, scope) for word in (*container["command"], *container.get("args", ()))]
    return (
        _filled(container["image"], scope),
        command,
        {e["name"]: _filled(e["value"], scope) for e in container["env"]},
    )


def _patched(template: Json) -> None:
    """The patch is about containers that Argo adds, which do not run here; another would change what does."""
    patch = json.loads(template.get("podSpecPatch", "{}"))
    _only(patch, {"containers", "initContainers"}, "podSpecPatch")
    named = [item["name"] for kind in ("initContainers", "containers") for item in patch.get(kind, ())]
    if named != ["init", "wait"]:
        raise Refused(f"template {template['name']}: patches {named}")


def _given(spec: Json) -> Values:
    return {item["name"]: str(item["value"]) for item in spec.get("arguments", {}).get("parameters", ())}


def _inputs(template: Json, arguments: Values) -> Values:
    declared = {item["name"]: item for item in template.get("inputs", {}).get("parameters", ())}
    if unknown := arguments.keys() - declared.keys():
        raise Refused(f"template {template['name']} declares no {', '.join(sorted(unknown))}")
    found = {}
    for name, item in declared.items():
        value = arguments.get(name, item.get("value", item.get("default")))
        if value is None:
            raise Refused(f"template {template['name']}: {name} is not given")
        found[f"inputs.parameters.{name}"] = value
    return found


def _arguments(task: Json, scope: Values) -> Values:
    parameters = task.get("arguments", {}).get("parameters", ())
    return {item["name"]: _filled(item["value"], scope) for item in parameters}


def _outputs(template: Json, mounts: Mapping[str, Path]) -> Values:
    found = {}
    for item in template.get("outputs", {}).get("parameters", ()):
        path = Path(_placed(item["valueFrom"]["path"], mounts))
        if not path.is_file():
            raise Failed(f"template {template['name']}: wrote no {item['name']}")
        found[item["name"]] = path.read_text()
    return found


def _items(task: Json, scope: Values) -> Iterator[Values]:
    if "withSequence" in task:
        _only(task["withSequence"], {"count", "start"}, "withSequence")
        start, count = (int(_filled(str(task["withSequence"][key]), scope)) for key in ("start", "count"))
        yield from ({"item": str(number)} for number in range(start, start + count))
        return
    for item in json.loads(_filled(task["withParam"], scope)):
        if not isinstance(item, dict):
            raise Refused(f"{task['name']}: an item that is no object")
        yield {f"item.{key}": str(value) for key, value in item.items()}


def _depends(task: Json) -> list[str]:
    names = [name.strip() for name in task.get("depends", "").split("&&")] if task.get("depends") else []
    if odd := [name for name in names if not re.fullmatch(r"[a-z][a-z0-9-]*", name)]:
        raise Refused(f"{task['name']} depends on {odd}")
    return names


def _visible(outputs: Values, tasks: Mapping[str, Json], name: str) -> Values:
    """What a task may refer to: outputs of those that come before it by dependence, not by luck."""
    before: set[str] = set()
    ahead = _depends(tasks[name])
    while ahead:
        found = ahead.pop()
        if found not in before:
            before.add(found)
            ahead += _depends(tasks[found])
    return {key: value for key, value in outputs.items() if key.split(".")[1] in before}


def _holds(condition: str) -> bool:
    match = re.fullmatch(r"([\w-]+) (==|!=) ([\w-]+)", condition)
    if match is None:
        raise Refused(f"when {condition!r}")
    return (match[1] == match[3]) == (match[2] == "==")


def _filled(text: str, scope: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in scope:
            raise Refused(f"{match[0]} has no value in {text!r}")
        return scope[match[1]]

    return _REFERENCE.sub(value, text)


def _placed(text: str, mounts: Mapping[str, Path]) -> str:
    """The same with paths in mounts led to where they lie."""
    for path, folder in mounts.items():
        if text == path or text.startswith(f"{path}/"):
            return str(folder) + text.removeprefix(path)
    return text


def _only(document: Mapping[str, Any], known: set[str], what: str) -> None:
    if unknown := document.keys() - known:
        raise Refused(f"{what}: {', '.join(sorted(unknown))} is nothing that we render")
