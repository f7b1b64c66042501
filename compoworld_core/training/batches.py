"""Batches: the rows of a step in an order in which little is padded and processes take equally long.

Which rows make a step is drawn, and decides the weights. How a step is cut into micro-batches does not, so the rows of
each step are sorted by length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Sampler
from trl import SFTTrainer


class StepSampler(Sampler[int]):  # type: ignore[misc]  # torch is untyped here
    """Rows of one epoch, step by step.

    Args:
        lengths: Tokens of every row.
        step: Rows of a step, over all processes.
        seed: Every draw follows from it and the epoch.
    """

    def __init__(self, lengths: Sequence[int], step: int, seed: int) -> None:
        self._lengths = lengths
        self._step = step
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Draw anew."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        drawing = torch.Generator().manual_seed(self._seed + self._epoch)
        order = torch.randperm(len(self._lengths), generator=drawing).tolist()
        for start in range(0, len(order), self._step):
            # the longest first: what does not fit in memory shows at once
            yield from sorted(order[start : start + self._step], key=lambda row: (-self._lengths[row], row))

    def padding(self, micro_batch: int) -> float:
        """Share of padding in an epoch's micro-batches."""
        order = [self._lengths[row] for row in self]
        batches = [order[start : start + micro_batch] for start in range(0, len(order), micro_batch)]
        return 1 - sum(order) / sum(max(batch) * len(batch) for batch in batches)


class StepwiseTrainer(SFTTrainer):  # type: ignore[misc]  # TRL is untyped
    """A trainer whose steps are sorted by length.

    Args:
        step: Rows of a step, over all processes.
        others: TRL's arguments.
    """

    def __init__(self, *, step: int, **others: Any) -> None:
        self._step = step
        super().__init__(**others)

    def _get_train_sampler(self, train_dataset: Any = None) -> StepSampler:
        rows = self.train_dataset if train_dataset is None else train_dataset
        return StepSampler([len(ids) for ids in rows["input_ids"]], self._step, self.args.seed)

    def padding(self) -> float:
        """Share of padding in what this trainer computes."""
        return self._get_train_sampler().padding(self.args.per_device_train_batch_size)
