"""What a release may do, and what its pods may do and reach: no more than the chart says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.charts.conftest import Chart, Document

pytestmark = pytest.mark.components

RIGHTS = {
    "compoworld-executor": {("argoproj.io", "workflowtaskresults"): {"create", "patch"}},
    "compoworld-training": {
        ("argoproj.io", "workflowtaskresults"): {"create", "patch"},
        ("jobset.x-k8s.io", "jobsets"): {"get", "list", "create", "patch", "delete"},
        ("argoproj.io", "workflows"): {"list"},
    },
    "compoworld-submitter": {
        ("argoproj.io", "workflows"): {"create", "get", "list", "watch", "patch"},
        ("argoproj.io", "workflowtemplates"): {"get"},
        ("", "pods"): {"get", "list", "watch"},
        ("", "pods/log"): {"get"},
    },
}
SECRET = re.compile(r"(?i)(secret|passw|token|credential|api_?key|access_key)")
WITH_TOKEN = {"clear", "sft-range", "grpo-range", "janitor"}
"""Templates whose pods talk to the cluster."""


def test_accounts_may_do_exactly_what_is_listed(chart: Chart) -> None:
    documents = chart.render("--set", "serviceAccounts.submitter.enabled=true,training.enabled=true")

    roles = {item["metadata"]["name"]: item["rules"] for item in documents if item["kind"] == "Role"}
    assert {name: _rights(rules) for name, rules in roles.items()} == RIGHTS
    bound = {
        item["metadata"]["name"]: (item["roleRef"]["name"], [subject["name"] for subject in item["subjects"]])
        for item in documents
        if item["kind"] == "RoleBinding"
    }
    assert bound == {name: (name, [name]) for name in RIGHTS}
    assert not [item for item in documents if item["kind"].startswith("ClusterRole")]


def test_every_rule_says_why() -> None:
    from charts import sync

    lines = (sync.CHART / "templates" / "rbac.yaml").read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.strip().startswith("- apiGroups")]

    assert len(rules) == 8
    undocumented = [n for n in rules if not lines[n - 1].strip().startswith("#")]
    assert [lines[n + 1].strip() for n in undocumented] == ["resources: [pods/log]"]  # said one rule above


def test_pods_have_no_token_and_are_restricted(example: tuple[Document, ...]) -> None:
    pods = list(_pods(example))

    assert pods
    for name, pod in pods:
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            _assert_restricted(name, container["securityContext"])
            assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys(), name


def test_every_image_is_pulled_with_the_secrets_that_are_given(chart: Chart) -> None:
    on = "training.enabled=true,seaweedfs.enabled=true,metrics.pushgateway.enabled=true,image.pullSecrets={registry}"
    documents = chart.render("--set", on)
    accounts = {
        item["metadata"]["name"]: item.get("imagePullSecrets") for item in documents if item["kind"] == "ServiceAccount"
    }

    for name, pod in _pods(documents):
        found = pod.get("imagePullSecrets") or accounts[pod["serviceAccountName"]]
        assert found == [{"name": "registry"}], name
    assert accounts["compoworld-job"] == accounts["compoworld-training"] == [{"name": "registry"}]


def test_accounts_whose_own_containers_talk_to_the_cluster_hand_out_their_token(chart: Chart) -> None:
    """Argo only ever takes the mount away: where a template wants it, the account decides."""
    documents = chart.render("--set", "training.enabled=true")
    mounts = {
        item["metadata"]["name"]: item["automountServiceAccountToken"]
        for item in documents
        if item["kind"] == "ServiceAccount"
    }
    wanted = {
        template["serviceAccountName"]
        for workflow in documents
        if workflow["kind"] in ("WorkflowTemplate", "CronWorkflow")
        for template in workflow["spec"].get("workflowSpec", workflow["spec"])["templates"]
        if template.get("automountServiceAccountToken") and "container" in template
    }

    assert wanted == {"compoworld-training"}
    assert {name for name, does in mounts.items() if does} == wanted


def test_only_jobs_have_the_identity_that_opens_the_store(chart: Chart) -> None:
    documents = chart.render("--set", "seaweedfs.enabled=true,metrics.pushgateway.enabled=true")

    accounts = {re.sub("-[0-9a-f]{8}$", "", name): pod.get("serviceAccountName") for name, pod in _pods(documents)}

    assert accounts == {
        "StatefulSet compoworld-seaweedfs": None,
        "Deployment compoworld-pushgateway": None,
        "Job compoworld-bucket": "compoworld-job",
        "Pod compoworld-doctor": "compoworld-job",
    }


def test_jobs_of_workflows_have_no_token_and_are_restricted(example: tuple[Document, ...]) -> None:
    for workflow in (item for item in example if item["kind"] in ("WorkflowTemplate", "CronWorkflow")):
        spec = workflow["spec"].get("workflowSpec", workflow["spec"])
        if "templates" not in spec:
            continue
        assert spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] == "compoworld-job"
        # A user that is said, not the image's: Argo's executor has an image of root's.
        context = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001}
        assert spec["securityContext"] == {**context, "seccompProfile": {"type": "RuntimeDefault"}}
        for template in spec["templates"]:
            if "container" in template:
                _assert_restricted(template["name"], template["container"]["securityContext"])
            if "dag" not in template:
                _assert_executor_restricted(template)
            has_token = template.get("automountServiceAccountToken", False)
            assert has_token == (template["name"] in WITH_TOKEN), template["name"]


def test_what_is_not_listed_is_denied(example: tuple[Document, ...]) -> None:
    policies = {item["metadata"]["name"]: item["spec"] for item in example if item["kind"] == "NetworkPolicy"}

    assert policies["compoworld-default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, policy in policies.items():
        for rule in policy.get("egress", []):
            assert rule["to"], f"{name}: a rule without peers is about everything"
            reaches_out = any("ipBlock" in peer or "namespaceSelector" in peer for peer in rule["to"])
            assert rule.get("ports") or not reaches_out, name
        for rule in policy.get("ingress", []):
            assert rule["from"], f"{name}: a rule without peers is about everything"


def test_a_coding_agent_reaches_the_named_hosts_and_no_name_server(chart: Chart) -> None:
    addresses = "author.addresses.models\\.example=192\\.0\\.2\\.10,author.addresses.store\\.example=2001:db8::1"
    documents = chart.render("--set", addresses)
    author = {"app.kubernetes.io/part-of": "compoworld", "app.kubernetes.io/component": "synthesize-shard"}
    author |= {"workflows.argoproj.io/workflow": "w"}

    reached = [
        (item["metadata"]["name"], peer)
        for item in documents
        if item["kind"] == "NetworkPolicy" and _selects(item["spec"]["podSelector"], author)
        for rule in item["spec"].get("egress", [])
        for peer in rule["to"]
    ]

    assert {name for name, _ in reached} == {"compoworld-author", "compoworld-api-server"}
    blocks = [peer["ipBlock"]["cidr"] for name, peer in reached if name == "compoworld-author"]
    assert blocks == ["192.0.2.10/32", "2001:db8::1/128"]
    (template,) = [item for item in documents if item["kind"] == "WorkflowTemplate"]
    assert {alias["ip"]: alias["hostnames"] for alias in template["spec"]["hostAliases"]} == {
        "192.0.2.10": ["models.example"],
        "2001:db8::1": ["store.example"],
    }
    (shard,) = [item for item in template["spec"]["templates"] if item["name"] == "synthesize-shard"]
    assert shard["metadata"]["labels"]["app.kubernetes.io/component"] == "synthesize-shard"


def test_policies_are_about_templates_that_there_are(chart: Chart) -> None:
    documents = chart.render("--set", "training.enabled=true,author.addresses.models=192\\.0\\.2\\.1")
    (template,) = [item for item in documents if item["kind"] == "WorkflowTemplate"]
    labelled = {
        item["metadata"]["labels"]["app.kubernetes.io/component"]
        for item in template["spec"]["templates"]
        if "container" in item
    }

    named = set(re.findall(r"app.kubernetes.io/component['\"]?: ['\"]?([\w-]+)", str(_policies(documents))))

    assert named >= {"synthesize-shard", "serve", "benchmark"}
    assert named <= labelled


def test_no_secret_stands_in_what_is_rendered(example: tuple[Document, ...]) -> None:
    for document in example:
        if document["kind"] == "Secret":
            assert document["type"] == "kubernetes.io/service-account-token"
            assert not {"data", "stringData"} & document.keys()
    named = [(name, value) for name, value in _variables(example) if SECRET.search(name)]
    assert [(name, value) for name, value in named if value is not None] == []


def _rights(rules: list[dict[str, Any]]) -> dict[tuple[str, str], set[str]]:
    return {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def _policies(documents: tuple[Document, ...]) -> list[Any]:
    return [item["spec"] for item in documents if item["kind"] == "NetworkPolicy"]


def _pods(documents: tuple[Document, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in documents:
        name = f"{item['kind']} {item['metadata']['name']}"
        if item["kind"] == "Pod":
            yield name, item["spec"]
        elif item["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield name, item["spec"]["template"]["spec"]


def _assert_restricted(name: str, context: dict[str, Any]) -> None:
    assert context["allowPrivilegeEscalation"] is False, name
    assert context["readOnlyRootFilesystem"] is True, name
    assert context["capabilities"] == {"drop": ["ALL"]}, name


def _assert_executor_restricted(template: dict[str, Any]) -> None:
    """Containers that Argo adds, as the patch has them: a quota counts them, too."""
    patch = yaml.safe_load(template["podSpecPatch"])
    (init,), (other,) = patch["initContainers"], patch["containers"]
    assert (init["name"], other["name"]) == ("init", "main" if "resource" in template else "wait")
    for container in (init, other):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory", "ephemeral-storage"} <= container["resources"]["limits"].keys()
        assert container["resources"]["requests"].keys() == container["resources"]["limits"].keys()


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for rule in selector.get("matchExpressions", []):
        has, isin = rule["key"] in labels, labels.get(rule["key"]) in rule.get("values", [])
        if not {"Exists": has, "DoesNotExist": not has, "In": isin, "NotIn": not isin}[rule["operator"]]:
            return False
    return True


def _variables(value: Any) -> Iterator[tuple[str, Any]]:
    """Variables of containers, and what config maps hold, by name; the value is None where it is a reference."""
    if isinstance(value, dict):
        if value.get("kind") == "ConfigMap":
            yield from value["data"].items()
        for variable in value.get("env") or []:
            yield variable["name"], variable.get("value")
        for inner in value.values():
            yield from _variables(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _variables(inner)
