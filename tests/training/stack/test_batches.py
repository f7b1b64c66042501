"""Steps keep their rows, whatever order these come in."""

from __future__ import annotations

import random

import pytest

LENGTHS = random.Random(7).choices(range(10, 400), k=50)


def test_steps_are_drawn_anew_each_epoch_and_have_every_row_once() -> None:
    from compoworld_core.training.batches import StepSampler

    sampler = StepSampler(LENGTHS, 8, seed=3)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)

    assert sorted(first) == sorted(second) == list(range(50)) != first
    assert {*first[:8]} != {*second[:8]}
    sampler.set_epoch(0)
    assert list(sampler) == first


@pytest.mark.parametrize("micro_batch", [1, 2, 4])
def test_rows_that_are_padded_to_each_other_are_alike(micro_batch: int) -> None:
    from compoworld_core.training.batches import StepSampler

    sorted_steps = StepSampler(LENGTHS, 16, seed=3).padding(micro_batch)
    as_drawn = StepSampler(LENGTHS, 1, seed=3).padding(micro_batch)

    if micro_batch == 1:
        assert sorted_steps == as_drawn == 0
    else:
        assert sorted_steps < 0.5 * as_drawn


def test_the_number_of_processes_decides_no_step() -> None:
    from accelerate.data_loader import BatchSamplerShard
    from torch.utils.data import BatchSampler

    from compoworld_core.training.batches import StepSampler

    def steps(processes: int, micro_batch: int) -> list[set[int]]:
        whole = BatchSampler(StepSampler(LENGTHS[:48], 8, seed=3), micro_batch, drop_last=False)
        parts = [list(BatchSamplerShard(whole, processes, rank)) for rank in range(processes)]
        in_step = 8 // (processes * micro_batch)
        return [
            {row for part in parts for batch in part[start : start + in_step] for row in batch}
            for start in range(0, len(parts[0]), in_step)
        ]

    assert steps(1, 1) == steps(2, 1) == steps(2, 2) == steps(4, 2)
