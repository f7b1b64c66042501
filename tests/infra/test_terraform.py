"""The Terraform module, read as data: what it makes is private, encrypted and meant for the chart's accounts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

from compoworld_core.pipeline.argo.settings import JOB_ACCOUNT, ClusterSettings

MODULE = Path(__file__).parents[2] / "infra" / "aws"
CHART = Path(__file__).parents[2] / "charts" / "compoworld"
TEXT = "\n".join(path.read_text() for path in sorted(MODULE.glob("*.tf")))


def _plain(value: Any) -> Any:
    """Without the quotes that the parser leaves around names and texts."""
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.strip('"') if isinstance(value, str) else value


def _blocks(kind: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(MODULE.glob("*.tf")):
        for block in _plain(hcl2.loads(path.read_text())).get(kind, []):
            for first, inner in block.items():
                if kind == "variable":
                    found[first] = inner
                else:
                    found |= {f"{first}.{name}": body for name, body in inner.items()}
    return found


RESOURCES = _blocks("resource")


@pytest.mark.parametrize("name", sorted(_blocks("variable")))
def test_a_variable_says_what_it_is_and_refuses_what_cannot_be(name: str) -> None:
    variable = _blocks("variable")[name]

    assert variable["description"].endswith(".")
    assert variable["validation"]
    for validation in variable["validation"]:
        assert validation["error_message"].startswith(name)
        assert f"var.{name}" in str(validation["condition"])


def test_the_bucket_is_private_encrypted_versioned_and_cleaned() -> None:
    block = RESOURCES["aws_s3_bucket_public_access_block.data"]
    (encryption,) = RESOURCES["aws_s3_bucket_server_side_encryption_configuration.data"]["rule"]
    rules = RESOURCES["aws_s3_bucket_lifecycle_configuration.data"]["rule"]

    assert [value for key, value in block.items() if key != "bucket"] == [True] * 4
    assert encryption["apply_server_side_encryption_by_default"][0]["sse_algorithm"] == "aws:kms"
    assert any("abort_incomplete_multipart_upload" in rule for rule in rules)
    assert any("noncurrent_version_expiration" in rule for rule in rules)
    assert 'variable = "aws:SecureTransport"' in TEXT


def test_keys_rotate_and_disks_are_encrypted() -> None:
    assert RESOURCES["aws_kms_key.data"]["enable_key_rotation"] is True
    for pool in ("spot", "gpu"):
        template = RESOURCES[f"aws_launch_template.{pool}"]
        assert template["block_device_mappings"][0]["ebs"][0]["encrypted"] is True
        assert template["metadata_options"][0]["http_tokens"] == "required"


def test_only_the_charts_account_can_write() -> None:
    assert "system:serviceaccount:${each.value}" in TEXT
    assert f'data.aws_iam_policy_document.trust["${{var.namespace}}:{JOB_ACCOUNT}"].json' in TEXT
    assert '"StringLike"' not in TEXT


def test_nodes_carry_the_labels_and_taints_that_workflows_look_for() -> None:
    spot, gpu = RESOURCES["aws_eks_node_group.spot"], RESOURCES["aws_eks_node_group.gpu"]
    label = ClusterSettings().spot_label

    assert label in spot["labels"]
    assert spot["taint"][0]["key"] == label
    assert gpu["taint"][0]["key"] == "nvidia.com/gpu"


def test_a_pod_that_trains_fits_on_the_disk_of_its_node() -> None:
    disk = RESOURCES["aws_launch_template.gpu"]["block_device_mappings"][0]["ebs"][0]["volume_size"]
    disk_gib, scratch_gib = (int(found[1]) for found in re.finditer(r"gpu_(?:disk|scratch)_gib *= (\d+)", TEXT))

    assert disk == "${local.gpu_disk_gib}"
    assert ClusterSettings().training.scratch == "1Ti"
    assert disk_gib * 0.9 - 50 >= scratch_gib > 1024, "the kubelet keeps a tenth, and images lie there, too"


def test_the_queue_admits_all_that_a_pool_has_of_what_pods_ask_for() -> None:
    values = str(_outputs()["values"]["value"])
    asked = yaml.safe_load((CHART / "values.yaml").read_text())["kueue"]["quota"]

    for resource in (*asked, "vpc.amazonaws.com/efa"):
        assert resource in values
    assert values.count("var.gpu.nodes *") == len(asked) + 1


def test_an_autoscaler_learns_what_a_node_would_have_before_there_is_one() -> None:
    for pool, resources in {
        "spot": ["ephemeral-storage"],
        "gpu": ["ephemeral-storage", "vpc.amazonaws.com/efa"],
    }.items():
        tags = str(RESOURCES[f"aws_eks_node_group.{pool}"]["tags"])
        for resource in resources:
            assert f"${{local.template}}/{resource}" in tags
    assert 'template        = "k8s.io/cluster-autoscaler/node-template/resources"' in TEXT


def _outputs() -> dict[str, dict[str, Any]]:
    blocks = _plain(hcl2.loads((MODULE / "outputs.tf").read_text()))["output"]
    return {name: inner for block in blocks for name, inner in block.items()}
