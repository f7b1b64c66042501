"""Configuration comes from four places, and what is wrong with it is said where it was written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compoworld_core.errors import InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.work.report import ReportConfig
from compoworld_core.pipeline.work.training import SftConfig
from compoworld_core.rollouts.selection import SelectionRules
from compoworld_core.services.world_model.settings import WorldModelUser


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def test_defaults_need_nothing() -> None:
    config = load_config(environment={})

    assert config.crawl.source == "bundled"
    assert config.workers >= 1
    assert set(config.stages) == set(GRAPH.order)


def test_flags_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    file.write_text("store: from-file\nworkers: 3\ncrawl:\n  source: from-file\n  limit: 5\n")
    environment = {"COMPOWORLD_STORE": "from-environment", "COMPOWORLD_CRAWL__SOURCE": "from-environment"}

    config = load_config(file, flags={"crawl.source": "from-flag", "workers": None}, environment=environment)

    assert (config.store, config.workers) == ("from-environment", 3)
    assert (config.crawl.source, config.crawl.limit) == ("from-flag", 5)


def test_variables_that_kubernetes_sets_are_no_configuration() -> None:
    environment = {
        "COMPOWORLD_SERVICE_HOST": "10.0.0.7",
        "COMPOWORLD_PORT_80_TCP_ADDR": "10.0.0.7",
        "COMPOWORLD_PORT": "tcp://10.0.0.7:80",
    }

    assert load_config(environment=environment) == load_config(environment={})


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("worker: 2", 1, "worker: no such key; did you mean workers?", id="unknown key"),
        pytest.param(
            "store: x\ncrawl:\n  limits: 3",
            3,
            "crawl.limits: no such key; did you mean limit?",
            id="in a section",
        ),
        pytest.param(
            "gates:\n  zzz: 3", 2, "gates.zzz: no such key; there are min_tasks, min_trajectories", id="nothing close"
        ),
        pytest.param("workers: two", 1, "workers: 'two' is not a whole number", id="not a number"),
        pytest.param("workers: 0", 1, "workers: 0 is too small; use at least 1", id="too small"),
        pytest.param("\n\nworkers: 999", 3, "workers: 999 is too large; use at most 256", id="too large"),
        pytest.param("store: 7", 1, "store: 7 is not text; put it in quotes", id="not text"),
        pytest.param("validate:\n  seed: [1]", 2, "validate.seed: [1] is not a whole number", id="list"),
        pytest.param("distill: 3", 1, "distill: 3 is not a section; put `key: value` lines below it", id="no section"),
        pytest.param(
            "tasks:\n  profile: huge",
            2,
            "tasks.profile: 'huge' is not known; use 'easy', 'pair', 'standard' or 'single'",
            id="not a choice",
        ),
        pytest.param("store: a\nworkers: 1\nstore: b", 3, "store: is there twice; remove one", id="twice"),
        pytest.param("store: [a", 1, "is not YAML", id="not YAML"),
        pytest.param("store: a\n\tworkers: 1", 2, "is not YAML", id="tab"),
        pytest.param("tasks: &again\n  self: *again", 1, "tasks: is nested too deeply", id="endless"),
        pytest.param("workers: 0x" + "f" * 6000, 1, "workers: such a value is too large", id="huge"),
        pytest.param("workers: " + "9" * 6000, 1, "workers: is not a value", id="more digits than are read"),
        pytest.param("just words", 1, "needs `key: value` lines", id="no mapping"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(file: Path, text: str, line: int, message: str) -> None:
    file.write_text(text)

    with pytest.raises(InputError) as raised:
        load_config(file, environment={})

    assert str(raised.value).startswith(f"{file}:{line}: {message}")


def test_everything_that_is_wrong_is_said_at_once(file: Path) -> None:
    file.write_text("workers: 0\nworker: 1\n")

    with pytest.raises(InputError) as raised:
        load_config(file, environment={"COMPOWORLD_CRAWL__LIMIT": "none"}, flags={"distill.samples": 0})

    assert str(raised.value).splitlines() == [
        f"{file}:1: workers: 0 is too small; use at least 1",
        "COMPOWORLD_CRAWL__LIMIT: crawl.limit: 'none' is not a whole number",
        "--samples: distill.samples: 0 is too small; use at least 1",
        f"{file}:2: worker: no such key; did you mean workers?",
    ]


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(InputError, match=r"COMPOWORLD_STOER: stoer: no such key; did you mean store\?"):
        load_config(environment={"COMPOWORLD_STOER": "s3://bucket"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a: " + b"[" * 20_000 + b"]" * 20_000, "is nested too deeply"),
        (b"#" * 2_000_000, "is larger than"),
    ],
    ids=["missing", "not text", "nested", "large"],
)
def test_a_file_that_cannot_be_read_is_named(file: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(InputError, match=message) as raised:
        load_config(file, environment={})

    assert str(raised.value).startswith(str(file))


@pytest.mark.parametrize("text", ["", "# nothing but a remark\n", "crawl:\n"], ids=["empty", "remark", "empty section"])
def test_an_empty_file_or_section_means_defaults(file: Path, text: str) -> None:
    file.write_text(text)

    assert load_config(file, environment={}) == load_config(environment={})


def test_an_empty_variable_says_nothing(file: Path) -> None:
    file.write_text("tasks: {seed: 7}")

    assert load_config(file, environment={"COMPOWORLD_TASKS__SEED": ""}).tasks.seed == 7


@pytest.mark.parametrize("path", sorted(Path("configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_configurations_are_valid(path: Path) -> None:
    load_config(path, environment={})


def test_the_papers_setting_trains_on_so_many_trajectories_as_the_paper() -> None:
    config = load_config(Path("configs/paper.yaml"), environment={})

    sft = config.stages["sft"]
    assert isinstance(sft, SftConfig)
    assert sft.selection == config.export
    assert (config.export.count, config.gates.min_trajectories) == (3000, 3000)


WORLD_MODEL = "llm:\n  models:\n    simulator: {model: m}\nworld_model:\n  model: simulator\n  samples: 3\n"


def test_there_is_no_world_model_unless_a_model_is_named() -> None:
    assert load_config(environment={}).world_model.model is None


def test_a_stage_with_a_world_model_gets_it_and_its_model(file: Path) -> None:
    file.write_text(WORLD_MODEL)
    config = load_config(file, environment={})

    stage = config._filled(WorldModelUser())

    assert isinstance(stage, WorldModelUser)
    assert stage.world_model == config.world_model
    assert stage.models == {"simulator": config.llm.models["simulator"]}
    assert load_config(environment={})._filled(WorldModelUser()) == WorldModelUser()


def test_a_world_model_that_no_model_is_named_for_is_said_with_its_line(file: Path) -> None:
    file.write_text("world_model:\n  samples: 2\n  model: nobody\n")

    with pytest.raises(InputError, match=rf"{file}:3: world_model.model: llm.models has no 'nobody'; there is none"):
        load_config(file, environment={})


def test_the_report_shows_the_selection_that_export_makes(file: Path) -> None:
    file.write_text("report:\n  quality_tasks: 3\nexport:\n  per_task: 2\n")
    config = load_config(file, environment={})

    assert config.stages["report"] == ReportConfig(quality_tasks=3, selection=SelectionRules(per_task=2))

    file.write_text("report:\n  selection: {per_task: 2}\n")
    with pytest.raises(InputError, match=rf"{file}:2: report.selection: is taken from export; write it there"):
        load_config(file, environment={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("distill: {policy: llm}", ":1: distill.teachers: policy llm needs some"),
        ("distill: {teachers: {a: 1}}", ":1: distill.policy: is oracle, which has no teachers"),
        ("distill: {policy: llm, samples: 2, teachers: {a: 1}}", ":1: distill.samples: is the oracle's"),
        ("distill: {policy: llm, teachers: {a: 0}}", ":1: distill.teachers.a: 0 is too small; use at least 1"),
        ("distill: {policy: llm, teachers: {a: 1}}", ":1: distill.teachers.a: llm.models has no 'a'"),
        ("export: {split: eval_combo}", ":1: export.split: 'eval_combo' is for evaluation and never exported"),
        ("export: {split: sfd}", ":1: export.split: 'sfd' is not known; use 'sft'"),
        ("export: {similarity: 0}", ":1: export.similarity: 0 is too small; use more than 0"),
    ],
)
def test_what_is_wrong_with_teachers_and_selection_is_said_with_its_line(file: Path, text: str, message: str) -> None:
    file.write_text(text + "\n")

    with pytest.raises(InputError, match=re.escape(f"{file}{message}")):
        load_config(file, environment={})
