"""What Helm renders is valid, with every example of values, and wrong values are refused with the reason."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import kubernetes_validate
import pytest
import yaml

from charts import sync
from charts.tools import tool
from compoworld_core.pipeline.config import load_config
from tests.charts.conftest import Chart, Document

pytestmark = pytest.mark.components

KUBERNETES = "1.35"
SCHEMAS = sync.ROOT.parent / "shared" / "schemas"
NOT_CORE = ("argoproj.io/", "jobset.x-k8s.io/", "kueue.x-k8s.io/", "monitoring.coreos.com/")


@pytest.mark.parametrize("values", sync.values_files(), ids=lambda path: path.stem)
def test_helm_lint_finds_nothing(chart: Chart, values: Path) -> None:
    command = [str(tool("helm")), "lint", "--strict", str(sync.CHART), "--values", str(values)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_core_object_is_valid(example: tuple[Document, ...]) -> None:
    core = [document for document in example if not document["apiVersion"].startswith(NOT_CORE)]

    assert {"ConfigMap", "NetworkPolicy", "Role", "ServiceAccount"} <= {document["kind"] for document in core}
    for document in core:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_every_custom_object_is_valid(example: tuple[Document, ...]) -> None:
    schemas = {path.name.partition("-")[0]: path for path in SCHEMAS.glob("*.json.gz")}
    if not schemas:
        pytest.skip(f"no schemas of custom resources in {SCHEMAS}")
    custom = [document for document in example if document["kind"].lower() in schemas]

    assert "WorkflowTemplate" in {document["kind"] for document in custom}
    for document in custom:
        schema = json.loads(gzip.decompress(schemas[document["kind"].lower()].read_bytes()))
        jsonschema_rs.validator_for(schema).validate(document)


def test_every_object_says_its_namespace(example: tuple[Document, ...]) -> None:
    of_the_cluster = {"ClusterQueue", "ResourceFlavor"}

    for document in example:
        expected = None if document["kind"] in of_the_cluster else sync.NAMESPACE
        assert document["metadata"].get("namespace") == expected, document["kind"]


def test_the_configuration_of_examples_is_one_that_jobs_take(example: tuple[Document, ...], tmp_path: Path) -> None:
    (text,) = [item["data"]["config.yaml"] for item in example if item["metadata"]["name"] == "compoworld-config"]
    (tmp_path / "config.yaml").write_text(text)

    load_config(tmp_path / "config.yaml", environment={})


def test_workflows_are_those_of_the_stage_graph_with_other_defaults(chart: Chart) -> None:
    made = yaml.safe_load((sync.CHART / "files" / "workflow-template.yaml").read_text())
    rendered = _only(chart.render("--set", "store=s3://other/place,image.tag=1.2.3"), "WorkflowTemplate")

    assert _parameters(rendered["spec"]) == _parameters(made["spec"]) | {"store": "s3://other/place", "tag": "1.2.3"}
    assert rendered["spec"]["templates"] == made["spec"]["templates"]
    assert rendered["spec"].keys() == made["spec"].keys()


def test_gpus_are_a_switch(chart: Chart) -> None:
    off, on = chart.render(), chart.render("--set", "training.enabled=true")

    assert _parameters(_only(off, "WorkflowTemplate")["spec"])["gpus"] == "false"
    assert _parameters(_only(on, "WorkflowTemplate")["spec"])["gpus"] == "true"
    assert _names(on) - _names(off) == {
        ("CronWorkflow", "compoworld-janitor"),
        ("NetworkPolicy", "compoworld-harnesses"),
        ("NetworkPolicy", "compoworld-served"),
        ("NetworkPolicy", "compoworld-training"),
        ("PodDisruptionBudget", "compoworld-training"),
        ("Role", "compoworld-training"),
        ("RoleBinding", "compoworld-training"),
        ("Secret", "compoworld-training.service-account-token"),
        ("ServiceAccount", "compoworld-training"),
    }


def test_an_installation_waits_for_no_hook(example: tuple[Document, ...]) -> None:
    """A hook that needs a secret would keep Helm from telling of the secret."""
    hooks = {item["metadata"]["name"]: item["metadata"].get("annotations", {}).get("helm.sh/hook") for item in example}

    assert {name: hook for name, hook in hooks.items() if hook} == {"compoworld-doctor": "test"}


def test_a_test_that_succeeded_stays_for_its_logs(chart: Chart) -> None:
    (doctor,) = [item for item in chart.render() if item["kind"] == "Pod"]

    assert doctor["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation"


def test_the_bucket_is_made_by_another_job_when_its_pod_is_another(chart: Chart) -> None:
    def job(tag: str) -> Document:
        return _only(chart.render("--set", f"seaweedfs.enabled=true,image.tag={tag}"), "Job")

    one, same, other = job("1.0.0"), job("1.0.0"), job("1.0.1")

    assert one == same
    assert one["metadata"]["name"] != other["metadata"]["name"]  # a job's pods cannot be changed


def test_a_small_disk_holds_several_volumes_of_seaweedfs(chart: Chart) -> None:
    store = _only(chart.render("--set", "seaweedfs.enabled=true,seaweedfs.size=5Gi"), "StatefulSet")

    (container,) = store["spec"]["template"]["spec"]["containers"]
    assert "-master.volumeSizeLimitMB=512" in container["args"]


def test_certificates_reach_every_pod_and_what_reads_them_there(chart: Chart, tmp_path: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(pem)
    documents = chart.render("--set-file", f"certificates={tmp_path / 'ca.pem'}", "--set", "training.enabled=true")
    maps = {item["metadata"]["name"]: item["data"] for item in documents if item["kind"] == "ConfigMap"}

    assert maps["compoworld-certificates"] == {"ca.pem": pem}
    place = "/etc/compoworld-certificates"
    wanted = dict.fromkeys(("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), f"{place}/ca.pem")
    assert maps["compoworld-environment"] == wanted
    (doctor,) = [item["spec"] for item in documents if item["kind"] == "Pod"]
    pods = [(doctor, doctor["containers"][0])]
    for workflow in (item for item in documents if item["kind"] in ("WorkflowTemplate", "CronWorkflow")):
        for template in workflow["spec"].get("workflowSpec", workflow["spec"])["templates"]:
            if "container" in template:
                pods.append((template, template["container"]))
            if "resource" in template:
                jobs = yaml.safe_load(template["resource"]["manifest"])["spec"]["replicatedJobs"]
                specs = [job["template"]["spec"]["template"]["spec"] for job in jobs]
                pods += [(spec, spec["containers"][0]) for spec in specs]
    assert len(pods) > 15
    for pod, container in pods:
        (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "certificates"]
        assert volume["configMap"] == {"name": "compoworld-certificates", "optional": True}
        assert place in [mount["mountPath"] for mount in container["volumeMounts"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("imge.tag=1", ("imge", "not allowed")),
        ("image.tag=latest", ("/image/tag",)),
        ("image.repository=registry.example/compoworld:1.0", ("/image/repository", "pattern")),
        ("store=/data", ("/store", "s3://")),
        ("nightly.schedule=daily", ("/nightly/schedule", "pattern")),
        ("nightly.enabled=perhaps", ("/nightly/enabled", "boolean")),
        ("endpoints.pods=0", ("/endpoints/pods", "minimum")),
        ("environment.MODELS_KEY=sk-1", ("environment.MODELS_KEY", "put it into the secret")),
        ("environment.AWS_SECRET_ACCESS_KEY=x", ("environment.AWS_SECRET_ACCESS_KEY", "put it into the secret")),
        ("author.addresses.models=models.internal", ("/author/addresses/models", "pattern")),
        ("networkPolicy.store.to[0].cidr=10.0.0.0/8", ("/networkPolicy/store/to/0", "not allowed")),
        ("kueue.quota.cpu=lots", ("/kueue/quota/cpu", "pattern")),
        ("config.store=s3://else/where", ("config.store: is set by the chart",)),
        ("seaweedfs.enabled=true,seaweedfs.bucket=other", ("set store to s3://other/main",)),
        ("training.enabled=true,evaluation.benchmarks={mmlu}", ("/evaluation/benchmarks/0", "tau3-banking")),
        ("evaluation.benchmarks={ale}", ("set training.enabled",)),
        ("evaluation.judge=nobody", ("evaluation.judge: config.llm.models has no nobody",)),
        ("metrics.serviceMonitor.enabled=true", ("enable metrics.pushgateway",)),
        ("certificates=ca.pem", ("/certificates", "pattern")),
        ("certificates=-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----", ("/certificates", "not")),
        (
            "environment.AWS_ENDPOINT_URL=https://objects.example:9000/x",
            ("environment.AWS_ENDPOINT_URL", "add port 9000 to networkPolicy.store.ports"),
        ),
        (
            "environment.AWS_ENDPOINT_URL_S3=http://objects.example",
            ("environment.AWS_ENDPOINT_URL_S3", "add port 80 to networkPolicy.store.ports"),
        ),
        (
            "config.llm.models.teacher.endpoints[0].base_url=http://[2001:db8::1]:8000/v1",
            ("config.llm.models.teacher", "add port 8000 to networkPolicy.endpoints.ports"),
        ),
        (
            "networkPolicy.enabled=false,author.addresses.models=192\\.0\\.2\\.1",
            ("author.addresses", "enable networkPolicy"),
        ),
    ],
)
def test_wrong_values_are_refused_with_the_reason(chart: Chart, given: str, said: tuple[str, ...]) -> None:
    refusal = chart.refusal("--set", given)

    assert [part for part in said if part not in refusal] == [], refusal


def _only(documents: tuple[Document, ...], kind: str) -> Document:
    (document,) = [document for document in documents if document["kind"] == kind]
    return document


def _names(documents: tuple[Document, ...]) -> set[tuple[str, str]]:
    return {(document["kind"], document["metadata"]["name"]) for document in documents}


def _parameters(spec: dict[str, Any]) -> dict[str, str]:
    return {parameter["name"]: parameter["value"] for parameter in spec["arguments"]["parameters"]}
