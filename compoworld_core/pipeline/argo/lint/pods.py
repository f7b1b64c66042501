"""What pods need: limits, an end, few rights, and no secret in sight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from compoworld_core.pipeline.argo.lint.subject import Finding, Subject

MOST_NAME: Final = 63
_LONGEST_TAIL: Final = len("-trainer-0-98-abcde")
_RULE_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_UID: Final = "0" * 36

_SECRET_NAME: Final = re.compile(r"(?i)(^|[_.-])(key|token|secret|password|passwd|credentials?)$")
_SECRET_VALUE: Final = re.compile(
    r"\b(AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|eyJ[\w-]{10,}\.eyJ)"
)


def limits(subject: Subject) -> Iterator[Finding]:
    """Containers that may take all of a node."""
    for template, container in subject.pods:
        has = (container.get("resources") or {}).get("limits") or {}
        if missing := [name for name in ("cpu", "memory") if name not in has]:
            yield subject.finding(template["name"], "no-limits", f"has no limit of {' and '.join(missing)}")


def deadlines(subject: Subject) -> Iterator[Finding]:
    """Pods that may hang for ever."""
    for template in subject.own_templates:
        if {"container", "script", "resource"} & template.keys() and not template.get("activeDeadlineSeconds"):
            yield subject.finding(template["name"], "no-deadline", "needs activeDeadlineSeconds")


def retries(subject: Subject) -> Iterator[Finding]:
    """Retries that are without end, or that say half of when: policy and expression have to hold both."""
    for template in subject.own_templates:
        strategy = template.get("retryStrategy")
        if strategy is None:
            continue
        missing = [name for name in ("limit", "retryPolicy", "expression") if strategy.get(name) in (None, "")]
        if missing:
            problem = f"retryStrategy has no {', '.join(missing)}"
            yield subject.finding(template["name"], "half-a-retry", problem)


def secrets(subject: Subject) -> Iterator[Finding]:
    """Secrets that stand in the document, which everybody may read who may read workflows."""
    for template, container in subject.pods:
        for item in container.get("env") or ():
            value = str(item.get("value") or "")
            if _is_secret(item["name"], value):
                problem = f"{item['name']} has its value here; take it from a Secret, with valueFrom or envFrom"
                yield subject.finding(template["name"], "secret-in-sight", problem)
        for word in [*(container.get("command") or ()), *(container.get("args") or ())]:
            if _SECRET_VALUE.search(str(word)):
                yield subject.finding(template["name"], "secret-in-sight", "an argument looks like a key")
    for item in (subject.spec.get("arguments") or {}).get("parameters") or ():
        if _is_secret(item["name"], str(item.get("value") or "")):
            problem = "parameters are shown to everybody; hand over the name of a Secret"
            yield subject.finding(f"arguments.{item['name']}", "secret-in-sight", problem)


def rights(subject: Subject) -> Iterator[Finding]:
    """Containers with more rights than a job needs."""
    for template, container in subject.pods:
        context = container.get("securityContext") or {}
        if context.get("privileged") or context.get("allowPrivilegeEscalation") is not False:
            problem = "needs securityContext.allowPrivilegeEscalation: false, and no privileged: true"
            yield subject.finding(template["name"], "too-many-rights", problem)
        mounts = template.get("automountServiceAccountToken", subject.spec.get("automountServiceAccountToken"))
        account = template.get("serviceAccountName")
        if mounts is not False and account is None:
            problem = "gets the token of the workflow's account; set automountServiceAccountToken: false"
            yield subject.finding(template["name"], "too-many-rights", problem)


def executors(subject: Subject) -> Iterator[Finding]:
    """Containers that Argo adds to pods, and that namespaces under the standard `restricted` would not take."""
    context = subject.spec.get("securityContext") or {}
    if context.get("runAsNonRoot") and "runAsUser" not in context:
        problem = "needs securityContext.runAsUser: the image of Argo's executor is root's, and runAsNonRoot refuses it"
        yield subject.finding("spec", "free-executor", problem)
    for template in subject.own_templates:
        if not {"container", "script", "resource"} & template.keys():
            continue
        patch = yaml.safe_load(template.get("podSpecPatch") or subject.spec.get("podSpecPatch") or "{}")
        wanted = {"init", "main" if "resource" in template else "wait"}
        contained = [*(patch.get("initContainers") or ()), *(patch.get("containers") or ())]
        if free := sorted(wanted - {item["name"] for item in contained if _is_restricted(item)}):
            problem = f"needs a podSpecPatch with the securityContext of {' and '.join(free)}, which Argo adds"
            yield subject.finding(template["name"], "free-executor", problem)


def images(subject: Subject) -> Iterator[Finding]:
    """Images that are another one tomorrow."""
    for template, container in subject.pods:
        image = str(container.get("image") or "")
        tag = image.rsplit("/", 1)[-1].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield subject.finding(template["name"], "moving-image", f"{image!r} needs a tag of its own, or a digest")


def resources(subject: Subject) -> Iterator[Finding]:
    """Manifests whose end nobody notices, whose names JobSet does not take, or that Kueue cannot hold back."""
    for template in subject.own_templates:
        resource: dict[str, Any] = template.get("resource") or {}
        if "manifest" not in resource:
            continue
        place = template["name"]
        if "successCondition" not in resource or "failureCondition" not in resource:
            yield subject.finding(place, "no-end", "needs successCondition and failureCondition")
        try:
            manifest = yaml.safe_load(resource["manifest"])
        except yaml.YAMLError as error:
            yield subject.finding(place, "no-end", f"its manifest is not YAML: {error}")
            continue
        if manifest.get("kind") != "JobSet":
            continue
        spec = manifest.get("spec") or {}
        if "suspend" in spec:
            problem = "sets suspend, which Kueue owns: to apply it again would hold back what runs"
            yield subject.finding(place, "suspend", problem)
        name = str(manifest["metadata"].get("name", ""))
        length = len(re.sub(r"\{\{workflow\.uid\}\}", _UID, re.sub(r"\{\{workflow\.parameters\.\w+\}\}", "0", name)))
        if length + _LONGEST_TAIL > MOST_NAME:
            problem = f"{name!r} has {length} characters; pods add {_LONGEST_TAIL}, and {MOST_NAME} is the most"
            yield subject.finding(place, "name-too-long", problem)
        for rule in (spec.get("failurePolicy") or {}).get("rules") or ():
            if not _RULE_NAME.fullmatch(str(rule.get("name", ""))):
                problem = f"{rule.get('name')!r} is no name of a failure rule: letters, digits and _ after a letter"
                yield subject.finding(place, "rule-name", problem)


def _is_restricted(container: dict[str, Any]) -> bool:
    context = container.get("securityContext") or {}
    return context.get("allowPrivilegeEscalation") is False and context.get("capabilities") == {"drop": ["ALL"]}


def _is_secret(name: str, value: str) -> bool:
    is_reference = value.startswith("{{") and value.endswith("}}")
    return bool(_SECRET_VALUE.search(value) or (_SECRET_NAME.search(name) and value and not is_reference))
