"""Reinforcement learning in groups of rollouts, in worlds that every process opens for itself.

Group-relative policy optimisation (arXiv 2402.03300) without KL and entropy terms, with the wider upper clip of DAPO
(arXiv 2503.14476), on the completion-focused reward. Rollouts are used for more than one optimiser step: with one, old
and new policy are the same and no clip ever acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compoworld_core.data import Data
from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.task import Task
from compoworld_core.training import distributed
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.curriculum import Curriculum, Outcome
from compoworld_core.training.group_reward import GroupReward, OnOutcomes, Reward
from compoworld_core.training.reward import REWARDS, completion_focused_reward
from compoworld_core.training.successes import Successes, read_successes
from compoworld_core.worlds.catalogue import Catalogue

if TYPE_CHECKING:
    from compoworld_core.training.world_trainer import WorldTrainer


class GrpoJob(Data):
    """What a process of the job is told.

    Attributes:
        model: Folder of the model and tokenizer to start from.
        tasks: JSONL of tasks.
        successes: JSONL of stored successes of these tasks, which may be replayed; none if left out.
        out: Folder for the trained model with its history, and local checkpoints.
        store: URI of the store that keeps checkpoints.
        run: The training run's name there.
    """

    model: str
    tasks: str
    successes: str | None = None
    out: str
    store: str
    run: str
    settings: GrpoSettings
    layout: Layout


def reward_of(settings: GrpoSettings) -> Reward:
    """The reward function of a group."""
    if settings.reward == "completion_focused":
        return partial(completion_focused_reward, floor=settings.floor)
    return REWARDS[settings.reward]


def trainer_arguments(job: GrpoJob) -> JsonObject:
    """The arguments of TRL's trainer for a job."""
    settings, layout = job.settings, job.layout
    sequences = settings.tasks_per_step * settings.rollouts
    return {
        **distributed.arguments(layout, Path(job.out) / "checkpoints"),
        "max_steps": settings.steps,
        "num_generations": settings.rollouts,
        "num_iterations": settings.updates,
        "per_device_train_batch_size": layout.micro_batch,
        "gradient_accumulation_steps": layout.accumulation(sequences),
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant",
        "epsilon": settings.clip_low,
        "epsilon_high": settings.clip_high,
        "beta": 0.0,
        "entropy_coef": 0.0,
        "loss_type": "grpo",
        "scale_rewards": "group",
        "temperature": settings.temperature,
        "max_completion_length": settings.completion_tokens,
        "chat_template_kwargs": {"enable_thinking": False},
        "save_steps": -(-layout.save_every // settings.updates) * settings.updates,  # rollouts are not kept in between
        "router_aux_loss_coef": 0.0,
        "seed": settings.seed,
        "data_seed": settings.seed,
        **_generation(settings, layout),
    }


def _generation(settings: GrpoSettings, layout: Layout) -> JsonObject:
    """Who writes rollouts. A server was told the model's length and its GPUs when it was started."""
    name = "max_new_tokens" if layout.generation == "transformers" else "max_tokens"
    limit = {"generation_kwargs": {name: settings.turn_tokens}} if settings.turn_tokens else {}
    if layout.generation == "transformers":
        return limit
    # Token by token: the ratio of whole rollouts, TRL's choice, drifts from 1 with their length by rounding alone.
    vllm = {"use_vllm": True, "vllm_importance_sampling_mode": "token_truncate", **limit}
    if layout.generation == "server":
        return {**vllm, "vllm_mode": "server", "vllm_server_base_url": layout.vllm_url}
    return {
        **vllm,
        "vllm_mode": "colocate",
        "vllm_tensor_parallel_size": layout.tensor_parallel,
        "vllm_max_model_length": settings.context_tokens,
        "vllm_gpu_memory_utilization": layout.vllm_memory,
    }


def train(job: GrpoJob, tasks: Iterable[Task], catalogue: Catalogue) -> None:
    """Train, from the newest checkpoint if there is one, and save the model to `<out>/model`.

    Args:
        tasks: What to learn from.
        catalogue: What this process opens their worlds with.
    """
    distributed.prepare(job.layout, job.model, f"grpo-{job.run}")

    from transformers import AutoTokenizer

    from compoworld_core.training.tracking import Tracking

    tasks, out, settings = tuple(tasks), Path(job.out), job.settings
    curriculum = Curriculum(
        tasks, settings.sampling, count=settings.tasks_per_step, rollouts=settings.rollouts, seed=settings.seed
    )
    tracking = Tracking(job.store, job.run, "grpo")

    def note(outcomes: Sequence[Outcome], errors: Sequence[EpisodeError]) -> None:
        curriculum.note(outcomes)
        tracking.note_rollouts(outcomes, errors)

    trainer = trainer_of(job, tasks, catalogue, curriculum, note)
    trainer.add_callback(tracking)
    checkpoint = tracking.resume(out / "checkpoints")
    curriculum.note(tracking.outcomes)
    trainer.train(resume_from_checkpoint=checkpoint)
    distributed.finish(trainer, AutoTokenizer.from_pretrained(job.model), out / "model")
    tracking.leave(trainer.state, out)


def trainer_of(
    job: GrpoJob, tasks: Sequence[Task], catalogue: Catalogue, curriculum: Curriculum, on_outcomes: OnOutcomes
) -> WorldTrainer:
    """The trainer of a job in this process, which has been prepared.

    Args:
        curriculum: Over the same tasks.
        on_outcomes: Told what became of each step's rollouts.
    """
    from datasets import Dataset, Features, Json, List, Value
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig

    from compoworld_core.training import world_trainer
    from compoworld_core.training.environment import environments, prompt_rows
    from compoworld_core.training.heads import score_labelled_only

    score_labelled_only()
    settings = job.settings
    arguments = GRPOConfig(**trainer_arguments(job))  # first: it decides how weights are loaded
    tokenizer = AutoTokenizer.from_pretrained(job.model)
    rows = {row["task_id"]: row for row in prompt_rows(tasks, catalogue)}
    successes = Successes(
        read_successes(Path(job.successes)) if job.successes else (),
        {task: row["prompt"] for task, row in rows.items()},
        world_trainer.rendering(tokenizer),
        end_of_turn=tokenizer.eos_token_id,
        longest=settings.completion_tokens,
    )
    model = AutoModelForCausalLM.from_pretrained(job.model, dtype=distributed.precision(job.layout))
    distributed.declare_experts(model)
    return world_trainer.WorldTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(
            list(rows.values()), features=Features({"prompt": List(Json()), "task_id": Value("string")})
        ),
        processing_class=tokenizer,
        environment_factory=environments(tasks, catalogue),
        curriculum=curriculum,
        rows=rows,
        group_reward=GroupReward(settings.rollouts, reward_of(settings), stored=successes.of, on_outcomes=on_outcomes),
        successes=successes,
    )
