"""Supervised fine-tuning: the loss of the assistant's tokens, and of nothing else.

This module runs in every process of a training job (`python -m compoworld_core.training.sft JOB.json`); `launch.py`
starts them. All processes read the same rows and write to one folder; the first one saves the model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from compoworld_core.data import Data
from compoworld_core.training import distributed
from compoworld_core.training.config import Layout, SftSettings
from compoworld_core.training.shape import shape_of


class SftJob(Data):
    """What a process of the job is told.

    Attributes:
        model: Folder or hub id of the model and tokenizer to start from.
        rows: JSONL of fitted conversations, see `conversations.fit`.
        held_out: JSONL of conversations whose loss is measured; none if left out.
        out: Folder for the trained model with its history, and local checkpoints.
        store: URI of the store that keeps checkpoints.
        run: The training run's name there.
    """

    model: str
    rows: str
    held_out: str | None = None
    out: str
    store: str
    run: str
    settings: SftSettings
    layout: Layout


def train(job: SftJob) -> None:
    """Train, from the newest checkpoint if there is one, and save the model to `<out>/model`."""
    distributed.prepare(job.layout, job.model, f"sft-{job.run}")

    from transformers import AutoTokenizer

    from compoworld_core.training.tracking import Tracking

    out = Path(job.out)
    tracking = Tracking(job.store, job.run, "sft")
    trainer = trainer_of(job, tracking)
    begun = tracking.resume(out / "checkpoints")
    trainer.args.eval_on_start = bool(job.held_out) and begun is None
    trainer.train(resume_from_checkpoint=begun)
    distributed.finish(trainer, AutoTokenizer.from_pretrained(job.model), out / "model")
    tracking.leave(trainer.state, out, trainer.padding())


def trainer_of(job: SftJob, *callbacks: Any) -> Any:
    """The trainer of a job, in a process that `distributed.prepare` has set up."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig

    from compoworld_core.training.batches import StepwiseTrainer
    from compoworld_core.training.conversations import dataset_of, read_rows
    from compoworld_core.training.heads import score_labelled_only

    score_labelled_only()
    settings, layout = job.settings, job.layout
    arguments = SFTConfig(
        **distributed.arguments(layout, Path(job.out) / "checkpoints"),
        assistant_only_loss=True,
        packing=False,
        max_length=None,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=layout.micro_batch,
        per_device_eval_batch_size=layout.micro_batch,
        gradient_accumulation_steps=layout.accumulation(settings.global_batch),
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=settings.warmup,
        save_steps=layout.save_every,
        eval_strategy="epoch" if job.held_out else "no",
        seed=settings.seed,
        **_router(job.model),
    )
    model = AutoModelForCausalLM.from_pretrained(job.model, dtype=distributed.precision(layout))
    distributed.declare_experts(model)
    return StepwiseTrainer(
        step=settings.global_batch,
        model=model,
        args=arguments,
        train_dataset=dataset_of(read_rows(Path(job.rows))),
        eval_dataset=dataset_of(read_rows(Path(job.held_out))) if job.held_out else None,
        processing_class=AutoTokenizer.from_pretrained(job.model),
        callbacks=list(callbacks),
    )


def _router(model: str) -> dict[str, Any]:
    """Models with experts get no extra loss for balancing them: the objective is that of the assistant's tokens."""
    from transformers import AutoConfig

    has_experts = shape_of(AutoConfig.from_pretrained(model).to_dict(), model).experts > 0
    return {"router_aux_loss_coef": 0.0} if has_experts else {}


if __name__ == "__main__":
    distributed.run(lambda: train(SftJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))))
