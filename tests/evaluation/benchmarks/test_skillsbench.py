"""SkillsBench: two ways of working, and errors that the mean reward leaves out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.evaluation.results import read_json
from compoworld_core.storage import canonical_json
from tests.evaluation.benchmarks.written import CANARY, order, put

BENCH = benchmark("skillsbench")


def rollout(folder: Path, task: str, reward: float | None, name: str = "a1b2c3", **more: Any) -> Path:
    return put(
        folder / "jobs/2026-08-01__10-00-00" / f"{task}__{name}" / "result.json",
        {
            "task_name": task, "rollout_name": f"{task}__{name}",
            "rewards": None if reward is None else {"reward": reward},
            "agent": "openhands", "agent_name": "openhands", "model": "vllm/org/Model-1.5", "skill_mode": "with-skill",
            "skill_source": "task_bundled", "n_tool_calls": 12,
            "agent_result": {"n_input_tokens": 900, "n_output_tokens": 90, "cost_usd": 0.5, "usage_source": "litellm"},
            "error": None, "error_category": None, "verifier_error": None, "verifier_error_category": None,
            "finished_at": "2026-08-01 10:05:00", "timing": {"total": 300.0},
            "dataset_name": "skillsbench", "dataset_version": "1.1", "task_digest": "sha256:00", **more,
        },
    )  # fmt: skip


def summary(folder: Path, total: int, mean_reward: float) -> None:
    document = {"job_name": "2026-08-01__10-00-00", "total": total, "passed": 1, "score": "31.0%", "score_ratio": 0.31,
                "mean_reward": mean_reward}  # fmt: skip
    put(folder / "jobs/2026-08-01__10-00-00/summary.json", document)
    put(folder / "jobs/summary.json", document)


def test_mean_reward_leaves_out_what_an_error_ended_and_the_pass_rate_does_not(tmp_path: Path) -> None:
    rollout(tmp_path, "one", 1.0)
    rollout(tmp_path, "two", 0.4)
    rollout(tmp_path, "three", None, error="Agent install failed")
    rollout(tmp_path, "four", None, verifier_error="verifier timed out")
    summary(tmp_path, 4, 0.7)

    collection = BENCH.collect(tmp_path)

    assert collection.headline.name == "mean reward"
    assert collection.headline.value == pytest.approx(0.7)
    assert {metric.name: metric.value for metric in collection.metrics} == {
        "pass rate": pytest.approx(1 / 4),
        "pass rate without errors": pytest.approx(1 / 2),
    }
    assert {gap.task: gap.reason for gap in collection.drops} == {
        "three": "Agent install failed",
        "four": "verifier timed out",
    }
    assert not collection.warnings
    assert not collection.missing


def test_the_two_ways_of_working_are_never_one_score(tmp_path: Path) -> None:
    rollout(tmp_path / "with", "one", 1.0)
    rollout(tmp_path / "without", "two", 0.0, skill_mode="no-skill")

    with pytest.raises(InputError, match=r"no-skill in .*without.*with-skill in .*with"):
        BENCH.collect(tmp_path)

    assert BENCH.collect(tmp_path / "with").setting["skills"] == "with-skill"
    assert BENCH.collect(tmp_path / "without").setting["skills"] == "no-skill"


def test_of_a_task_that_was_tried_again_the_settled_rollout_counts(tmp_path: Path) -> None:
    rollout(tmp_path, "one", None, "late", error="connection lost", finished_at="2026-08-01 11:00:00")
    rollout(tmp_path, "one", 1.0, "early", finished_at="2026-08-01 10:00:00")

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 1.0
    assert [gap.reason for gap in collection.drops] == ["one__late was tried again"]


def test_repeated_runs_are_trials_when_their_folders_say_so(tmp_path: Path) -> None:
    rollout(tmp_path / "trial-0", "one", 1.0)
    rollout(tmp_path / "trial-1", "one", 0.0)

    collection = BENCH.collect(tmp_path)

    assert [row.trial for row in collection.rows] == [0, 1]
    assert collection.headline.value == 0.5


def test_two_runs_beside_each_other_are_refused(tmp_path: Path) -> None:
    rollout(tmp_path / "a", "one", 1.0)
    rollout(tmp_path / "b", "one", 0.0)

    with pytest.raises(InputError, match="both have one as trial 0"):
        BENCH.collect(tmp_path)


def test_rollouts_that_only_the_summary_counts_are_missing(tmp_path: Path) -> None:
    rollout(tmp_path, "one", 1.0)
    summary(tmp_path, 3, 1.0)

    (gap,) = BENCH.collect(tmp_path).missing

    assert gap.reason.startswith("2 rollouts")


def test_what_lies_below_a_rollout_or_reviews_it_or_comes_with_the_dataset_is_no_rollout(tmp_path: Path) -> None:
    own = rollout(tmp_path, "one", 1.0)
    put(own.parent / "artifacts/result.json", {"anything": 1})
    put(own.parent / "artifacts/summary.json", {"anything": 1})
    put(tmp_path / ".cache/datasets/a/task/result.json", {"anything": 1})
    put(tmp_path / ".cache/datasets/a/task/summary.json", {"anything": 1})
    rollout(tmp_path, "one", 0.0, "d4e5f6", purpose="reviewer", finished_at="2026-08-01 11:00:00")

    collection = BENCH.collect(tmp_path)

    assert [row.score for row in collection.rows] == [1.0]
    assert not collection.drops


def test_a_folder_without_a_rollout_is_refused(tmp_path: Path) -> None:
    put(tmp_path / ".cache/datasets/a/result.json", {"anything": 1})

    with pytest.raises(InputError, match=r"has no result\.json of a rollout"):
        BENCH.collect(tmp_path)


def test_a_summary_that_contradicts_its_rollouts_is_told(tmp_path: Path) -> None:
    rollout(tmp_path, "one", 1.0)
    summary(tmp_path, 1, 0.25)

    (warning,) = BENCH.collect(tmp_path).warnings

    assert "says mean_reward 0.25, the rollouts say 1.0" in warning


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"rewards": {"reward": 7.0}}, r"rewards\.reward: expected a number from 0 to 1", id="reward"),
        pytest.param({"rewards": [1.0]}, "expected an object", id="rewards"),
        pytest.param({"task_name": None}, r"task_name: expected text, found null", id="no task"),
    ],
)
def test_malformed_rollouts_are_refused_with_their_field(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    rollout(tmp_path, "one", 1.0, **fields)

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


def test_no_secret_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    rollout(tmp_path, "one", None, error=f"ACP error: invalid api key {CANARY}", agent_env={"OPENAI_API_KEY": CANARY})

    collection = BENCH.collect(tmp_path)

    assert "ACP error" in (collection.rows[0].error or "")
    assert CANARY not in canonical_json(collection)


def test_the_command_is_that_of_the_harness(tmp_path: Path) -> None:
    jobs = BENCH.render(order(tmp_path, trials=2, options={"skills": "no-skill", "include": "edit-pdf,fix-csv"}))

    assert [job.name for job in jobs] == ["trial-0", "trial-1"]
    assert jobs[0].command == (
        "bash", "run.sh", str(tmp_path / "harness/.venv/bin/bench"),
        "eval", "run", "-d", "skillsbench@1.1", "--agent", "openhands", "--model", "vllm/org/Model-1.5",
        "--agent-env", "BENCHFLOW_PROVIDER_BASE_URL=http://127.0.0.1:9/v1", "--sandbox", "docker",
        "--skill-mode", "no-skill", "--concurrency", "8", "--jobs-dir", "jobs",
        "--include", "edit-pdf", "--include", "fix-csv",
    )  # fmt: skip


@pytest.mark.parametrize("leaves", [True, False])
def test_a_rollout_that_an_error_ended_does_not_fail_the_others_as_long_as_there_is_a_new_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    program = tmp_path / "harness/.venv/bin/bench"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{'mkdir -p jobs && echo new > jobs/summary.json' if leaves else ''}\nexit 1\n")
    program.chmod(0o755)
    asked = order(tmp_path, trials=2)
    for trial in range(2):
        put(tmp_path / f"out/trial-{trial}/jobs/summary.json", "old")

    if leaves:
        BENCH.run(asked, BENCH.render(asked))
        assert [file.read_text() for file in tmp_path.glob("out/trial-*/jobs/summary.json")] == ["new\n", "new\n"]
    else:
        with pytest.raises(CompoWorldError, match=r"left no jobs/summary\.json; .*\n.*ended with 1"):
            BENCH.run(asked, BENCH.render(asked))


def test_code_of_the_dataset_stays_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    program = tmp_path / "harness/.venv/bin/bench"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\nmkdir -p .cache/datasets jobs\n"
        "echo 'api_key = read_the_key()' > .cache/datasets/solve.py\n"
        'echo \'{"api_key": "of-another-one"}\' > jobs/summary.json\n'
    )
    program.chmod(0o755)
    asked = order(tmp_path)

    BENCH.run(asked, BENCH.render(asked))

    job = tmp_path / "out/trial-0"
    assert (job / ".cache/datasets/solve.py").read_text() == "api_key = read_the_key()\n"
    assert "of-another-one" not in (job / "jobs/summary.json").read_text()


def test_a_sandbox_elsewhere_needs_its_key_and_no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    monkeypatch.delenv("DAYTONA_API_KEY", raising=False)
    (tmp_path / "harness").mkdir()

    with pytest.raises(InputError) as refused:
        BENCH.prepare(order(tmp_path, python=Path(sys.executable), options={"sandbox": "daytona"}))

    assert "DAYTONA_API_KEY is not set" in str(refused.value)
    assert "docker" not in str(refused.value)


def test_an_empty_error_is_none(tmp_path: Path) -> None:
    file = put(tmp_path / "e.json", {"error": "", "other": None, "told": {"message": "no machine"}})
    document = read_json(file)

    assert [document.problem(name) for name in ("error", "other", "absent", "told")] == [None, None, None, "no machine"]
