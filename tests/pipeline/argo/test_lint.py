"""Each class of fault is found where it is planted in workflows that we render, and nothing in those as they are."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from compoworld_core.cli import run_cli
from compoworld_core.errors import InputError
from compoworld_core.pipeline.argo.lint import lint
from compoworld_core.pipeline.argo.render import as_yaml, rendered
from compoworld_core.pipeline.argo.settings import ClusterSettings, TrainingSettings

SCHEMAS = Path(__file__).parents[3].parent / "shared" / "schemas"
needs_schemas = pytest.mark.skipif(not SCHEMAS.exists(), reason="the schemas are not here")

LARGE = ClusterSettings(
    has_gpus=True, training=TrainingSettings(nodes=4, vllm_gpus=2, rdma={"vpc.amazonaws.com/efa": 4}, topology="rack")
)

Json = dict[str, Any]


@cache
def _text(is_large: bool) -> str:
    return json.dumps(rendered(LARGE if is_large else ClusterSettings()))


def documents(*, is_large: bool = False) -> Json:
    found: Json = json.loads(_text(is_large))
    return found


def template(found: Json, name: str) -> Json:
    templates = found["workflow-template.yaml"]["spec"]["templates"]
    return next(item for item in templates if item["name"] == name)


def task(found: Json, name: str, task_name: str) -> Json:
    return next(item for item in template(found, name)["dag"]["tasks"] if item["name"] == task_name)


FAULTS: dict[str, tuple[str, Callable[[Json], object]]] = {}


def fault(rule: str, name: str = "") -> Callable[[Callable[[Json], object]], None]:
    def add(plant: Callable[[Json], object]) -> None:
        FAULTS[name or plant.__name__] = (rule, plant)

    return add


@fault("cycle")
def tasks_wait_for_each_other(found: Json) -> None:
    task(found, "crawl", "plan")["depends"] = "merge"


@fault("cycle")
def a_template_contains_itself(found: Json) -> None:
    task(found, "crawl-range", "shards")["template"] = "crawl"


@fault("unknown-template")
def a_task_uses_a_template_that_is_not_there(found: Json) -> None:
    task(found, "crawl", "merge")["template"] = "murge"


@fault("unknown-template")
def the_exit_handler_is_not_there(found: Json) -> None:
    found["workflow-template.yaml"]["spec"]["onExit"] = "finnish"


@fault("undeclared-input")
def an_input_is_not_declared(found: Json) -> None:
    template(found, "crawl-shard")["inputs"]["parameters"].pop(0)


@fault("undeclared-input")
def an_input_is_not_given(found: Json) -> None:
    task(found, "crawl", "merge")["arguments"]["parameters"].pop()


@fault("unknown-variable")
def a_parameter_of_the_workflow_is_misspelt(found: Json) -> None:
    template(found, "plan")["container"]["args"].append("{{workflow.parameters.stroe}}")


@fault("unknown-variable")
def a_variable_of_exit_handlers_is_used_before(found: Json) -> None:
    template(found, "plan")["container"]["args"].append("{{workflow.status}}")


@fault("unknown-variable")
def a_variable_is_unknown_to_argo(found: Json) -> None:
    template(found, "plan")["container"]["args"].append("{{workflow.seed}}")


@fault("use-without-depends")
def an_output_is_used_too_early(found: Json) -> None:
    del task(found, "crawl", "ranges")["depends"]


@fault("undeclared-output")
def an_output_is_used_that_nobody_makes(found: Json) -> None:
    task(found, "crawl", "ranges")["withParam"] = "{{tasks.plan.outputs.parameters.chards}}"


@fault("too-large", "a parameter is too large")
def _(found: Json) -> None:
    task(found, "crawl", "merge")["arguments"]["parameters"][0]["value"] = "x" * (128 * 1024 + 1)


@fault("too-large", "there are too many children")
def _(found: Json) -> None:
    task(found, "crawl-range", "shards")["withItems"] = list(range(501))


@fault("no-limits")
def a_pod_has_no_limit_of_memory(found: Json) -> None:
    del template(found, "plan")["container"]["resources"]["limits"]["memory"]


@fault("no-deadline")
def a_pod_has_no_deadline(found: Json) -> None:
    del template(found, "plan")["activeDeadlineSeconds"]


@fault("no-deadline")
def the_workflow_has_no_deadline(found: Json) -> None:
    del found["workflow-template.yaml"]["spec"]["activeDeadlineSeconds"]


@fault("never-cleared")
def workflows_stay_for_ever(found: Json) -> None:
    del found["workflow-template.yaml"]["spec"]["ttlStrategy"]


@fault("removed-field", "a schedule in the singular")
def _(found: Json) -> None:
    found["nightly.yaml"]["spec"]["schedule"] = found["nightly.yaml"]["spec"].pop("schedules")[0]


@fault("removed-field", "a mutex in the singular")
def _(found: Json) -> None:
    found["workflow-template.yaml"]["spec"]["synchronization"] = {"mutex": {"name": "m"}}


@fault("half-a-retry")
def a_retry_has_no_policy(found: Json) -> None:
    del template(found, "plan")["retryStrategy"]["retryPolicy"]


@fault("half-a-retry")
def a_retry_has_no_end(found: Json) -> None:
    del template(found, "plan")["retryStrategy"]["limit"]


@fault("secret-in-sight", "a key in a variable")
def _(found: Json) -> None:
    template(found, "plan")["container"]["env"].append({"name": "MODELS_KEY", "value": "hunter2"})


@fault("secret-in-sight", "a key in an argument")
def _(found: Json) -> None:
    template(found, "plan")["container"]["args"].append("--key=sk-" + "a" * 24)


@fault("secret-in-sight", "a token in a parameter")
def _(found: Json) -> None:
    found["workflow-template.yaml"]["spec"]["arguments"]["parameters"].append({"name": "api-token", "value": "abc"})


@fault("too-many-rights")
def a_job_may_gain_rights(found: Json) -> None:
    template(found, "plan")["container"]["securityContext"]["allowPrivilegeEscalation"] = True


@fault("too-many-rights")
def jobs_get_a_token(found: Json) -> None:
    del found["workflow-template.yaml"]["spec"]["automountServiceAccountToken"]


@fault("free-executor")
def argos_own_containers_may_gain_rights(found: Json) -> None:
    del template(found, "plan")["podSpecPatch"]


@fault("free-executor")
def argos_own_containers_may_gain_rights_where_they_are_all_there_is(found: Json) -> None:
    resource = template(found, "sft-range")
    resource["podSpecPatch"] = resource["podSpecPatch"].replace('"ALL"', '"CHOWN"')


@fault("free-executor")
def argos_own_containers_would_run_as_root(found: Json) -> None:
    del found["workflow-template.yaml"]["spec"]["securityContext"]["runAsUser"]


@fault("moving-image")
def an_image_is_another_one_tomorrow(found: Json) -> None:
    template(found, "plan")["container"]["image"] = "localhost:5000/compoworld-job:latest"


@fault("duplicate")
def two_templates_have_one_name(found: Json) -> None:
    templates = found["workflow-template.yaml"]["spec"]["templates"]
    templates.append(copy.deepcopy(templates[-1]))


@fault("no-end")
def nobody_notices_that_a_training_failed(found: Json) -> None:
    del template(found, "sft-range")["resource"]["failureCondition"]


def _edit_manifest(found: Json, edit: Callable[[Json], object]) -> None:
    resource = template(found, "sft-range")["resource"]
    manifest = yaml.safe_load(resource["manifest"])
    edit(manifest)
    resource["manifest"] = yaml.safe_dump(manifest)


@fault("suspend")
def a_jobset_sets_what_kueue_owns(found: Json) -> None:
    _edit_manifest(found, lambda manifest: manifest["spec"].update(suspend=True))


@fault("name-too-long")
def a_jobset_has_too_long_a_name(found: Json) -> None:
    _edit_manifest(found, lambda manifest: manifest["metadata"].update(name="cw-grpo-{{workflow.uid}}-0"))


@fault("rule-name")
def a_failure_rule_has_a_name_that_jobset_refuses(found: Json) -> None:
    _edit_manifest(found, lambda manifest: manifest["spec"]["failurePolicy"]["rules"][0].update(name="bad-input"))


@pytest.mark.parametrize("is_large", [False, True], ids=["default", "large"])
def test_nothing_is_wrong_with_what_we_render(is_large: bool) -> None:
    assert lint(documents(is_large=is_large).items()) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_named(name: str) -> None:
    rule, plant = FAULTS[name]
    found = documents()
    plant(found)

    assert rule in {finding.rule for finding in lint(found.items())}


def test_faults_of_every_class_are_planted() -> None:
    assert len({rule for rule, _ in FAULTS.values()}) >= 16


def _schema_faults() -> Iterator[tuple[str, Callable[[Json], object]]]:
    yield "an unknown field", lambda found: template(found, "plan").update(retries=3)
    yield "a wrong type", lambda found: found["nightly.yaml"]["spec"].update(schedules="0 2 * * *")
    yield "a JobSet's unknown field", lambda found: _edit_manifest(found, lambda item: item["spec"].update(replicas=1))


@needs_schemas
@pytest.mark.parametrize("is_large", [False, True], ids=["default", "large"])
def test_what_we_render_has_the_form_of_its_kind(is_large: bool) -> None:
    assert lint(documents(is_large=is_large).items(), SCHEMAS) == []


@needs_schemas
@pytest.mark.parametrize("name", dict(_schema_faults()))
def test_schemas_see_what_rules_do_not(name: str) -> None:
    found = documents()
    dict(_schema_faults())[name](found)

    assert {finding.rule for finding in lint(found.items(), SCHEMAS)} == {"schema"}


def test_what_has_no_workflow_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to check"):
        lint([("a.yaml", {"kind": "ConfigMap"})])


def test_findings_are_told_by_file_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = documents()
    task(found, "crawl", "merge")["template"] = "murge"
    for name, document in found.items():
        (tmp_path / name).write_text(as_yaml(document))

    code = run_cli(["workflow", "lint", *(str(tmp_path / name) for name in found)])

    assert code == 1
    expected = f"{tmp_path}/workflow-template.yaml: crawl.merge: unknown-template: there is no template 'murge'\n"
    assert capsys.readouterr().out == expected


def test_what_is_rendered_is_the_same_every_time_and_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a", "b"):
        assert run_cli(["workflow", "render", "--out", str(tmp_path / folder)]) == 0
    capsys.readouterr()

    files = sorted((tmp_path / "a").iterdir())
    assert [path.read_text() for path in files] == [(tmp_path / "b" / path.name).read_text() for path in files]
    assert run_cli(["workflow", "lint", *map(str, files)]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"
