"""A GRPO job whose model follows a script; what it is trained on is written down, process by process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.tasks.task import Task
from compoworld_core.training import distributed
from compoworld_core.training.environment import WorldEnvironment, prompt_rows
from compoworld_core.training.group_reward import own_rank
from compoworld_core.training.grpo import GrpoJob, train
from compoworld_core.worlds.gateway import Gateway
from tests.rollouts.complaint import open_catalogue


def run(file: Path) -> None:
    """Do this process's part of the job in a file; beside it lie the script and, if a world is to fail, its task."""
    job = GrpoJob.model_validate_json(file.read_text(encoding="utf-8"))
    tasks = [Task.model_validate_json(line) for line in Path(job.tasks).read_text(encoding="utf-8").splitlines()]
    distributed.prepare(job.layout, job.model, job.run)

    from transformers import AutoTokenizer, Qwen3ForCausalLM

    from compoworld_core.training import world_trainer
    from tests.training.stack.scripted import ScriptedModel

    tokenizer = AutoTokenizer.from_pretrained(job.model)
    render = world_trainer.rendering(tokenizer)
    prompts = {row["task_id"]: render(row["prompt"], True) for row in prompt_rows(tasks, open_catalogue())}
    script = json.loads(file.with_name("script.json").read_text(encoding="utf-8"))
    model = ScriptedModel(script, prompts, tokenizer, own_rank())
    steps = file.with_name(f"steps-{own_rank()}.jsonl")

    class Observed(world_trainer.WorldTrainer):
        """Writes down each batch of rollouts."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            model.asked.clear()
            batch = super()._generate_and_score_completions(inputs)
            with steps.open("a", encoding="utf-8") as written:
                written.write(json.dumps(_seen(batch, self._task_ids, self._group_reward._rewards, model.asked)) + "\n")
            return batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Qwen3ForCausalLM, "generate", lambda self, *args, **named: model.generate(self, *args, **named))
        patch.setattr(world_trainer, "WorldTrainer", Observed)
        if file.with_name("broken").exists():
            _break(file.with_name("broken").read_text(encoding="utf-8"), patch)
        train(job, tasks, open_catalogue())


def _seen(batch: Mapping[str, Any], tasks: list[str], rewards: list[Any], asked: list[Any]) -> dict[str, list[Any]]:
    rows = list(zip(batch["completion_ids"], batch["completion_mask"], batch["tool_mask"], strict=True))
    return {
        "tasks": tasks,
        "rewards": rewards,
        "advantages": batch["advantages"].tolist(),
        "completions": [ids[mask.bool()].tolist() for ids, mask, _ in rows],
        "trained": [ids[(mask * tool).bool()].tolist() for ids, mask, tool in rows],
        "asked": list(asked),
    }


def _break(task: str, patch: pytest.MonkeyPatch) -> None:
    """Let the world of a task fail when a case is opened in it."""
    reset, ask = WorldEnvironment.reset, Gateway.call
    broken: list[Gateway | None] = []

    def begin(self: WorldEnvironment, task_id: str, **row: Any) -> None:
        reset(self, task_id, **row)
        if task_id == task:
            broken.append(self._gateway)

    def call(self: Gateway, name: str, arguments: Mapping[str, Any]) -> Any:
        if self in broken and arguments.get("tool_name") == "create_case":
            raise InputError("the package of crm is gone")
        return ask(self, name, arguments)

    patch.setattr(WorldEnvironment, "reset", begin)
    patch.setattr(Gateway, "call", call)


if __name__ == "__main__":
    distributed.run(lambda: run(Path(sys.argv[1])))
