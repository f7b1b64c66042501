"""What machines keep of a checkpoint that is in the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from compoworld_core.storage import open_store
from compoworld_core.training.checkpoints import newest
from compoworld_core.training.tracking import Tracking


@pytest.mark.parametrize(("is_first_machine", "kept"), [(True, ["checkpoint-5", "checkpoint-9"]), (False, [])])
def test_machines_whose_trainer_clears_nothing_away_keep_no_checkpoints(
    is_first_machine: bool, kept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    monkeypatch.delenv("LOCAL_RANK", raising=False)
    out = tmp_path / "checkpoints"
    for step in (5, 9):
        (out / f"checkpoint-{step}").mkdir(parents=True)
        (out / f"checkpoint-{step}" / "weights").write_text("w")
    arguments = TrainingArguments(output_dir=str(out), use_cpu=True)
    state = TrainerState(global_step=9, is_world_process_zero=is_first_machine)

    Tracking(str(tmp_path / "store"), "run", "sft").on_save(arguments, state, TrainerControl())

    assert sorted(folder.name for folder in out.iterdir()) == kept
    found = newest(open_store(tmp_path / "store"), "run")
    assert (found is not None) == is_first_machine, "the first machine commits for all"
    assert any(name.endswith("weights") for name in open_store(tmp_path / "store").names("training/run"))
