"""A process of a GRPO job whose model follows a script; what it is trained on is written down, process by process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from compoworld_core.tasks.task import Task
from compoworld_core.training import distributed, world_trainer
from compoworld_core.training.environment import prompt_rows
from compoworld_core.training.group_reward import own_rank
from compoworld_core.training.grpo import GrpoJob, train
from tests.rollouts.complaint import open_catalogue
from tests.training.stack.scripted import ScriptedModel


def main() -> None:
    job = GrpoJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    tasks = [Task.model_validate_json(line) for line in Path(job.tasks).read_text(encoding="utf-8").splitlines()]
    distributed.prepare(job.layout, job.model, job.run)

    from transformers import AutoTokenizer, Qwen3ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(job.model)
    render = world_trainer.rendering(tokenizer)
    prompts = {row["task_id"]: render(row["prompt"], True) for row in prompt_rows(tasks, open_catalogue())}
    script = json.loads(Path(sys.argv[1]).with_name("script.json").read_text(encoding="utf-8"))
    model = ScriptedModel(script, prompts, tokenizer, own_rank())
    Qwen3ForCausalLM.generate = lambda self, *args, **named: model.generate(self, *args, **named)
    steps = Path(sys.argv[1]).with_name(f"steps-{own_rank()}.jsonl")

    class Observed(world_trainer.WorldTrainer):
        """Writes down each batch of rollouts."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            model.asked.clear()
            batch = super()._generate_and_score_completions(inputs)
            seen = {
                "tasks": self._task_ids,
                "rewards": self._group_reward._rewards,
                "advantages": batch["advantages"].tolist(),
                "completions": [
                    ids[mask.bool()].tolist()
                    for ids, mask in zip(batch["completion_ids"], batch["completion_mask"], strict=True)
                ],
                "trained": [
                    ids[(mask * tool).bool()].tolist()
                    for ids, mask, tool in zip(
                        batch["completion_ids"], batch["completion_mask"], batch["tool_mask"], strict=True
                    )
                ],
                "asked": list(model.asked),
            }
            with steps.open("a", encoding="utf-8") as file:
                file.write(json.dumps(seen) + "\n")
            return batch

    world_trainer.WorldTrainer = Observed  # type: ignore[misc]
    train(job, tasks, open_catalogue())


if __name__ == "__main__":
    distributed.run(main)
