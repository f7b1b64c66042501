"""The language model's head: on a CPU, too, only positions whose token is learnt are scored.

TRL scores all positions where it has no Triton kernel, for compilers that dislike changing shapes. On a CPU nothing is
compiled, and most tokens of a conversation are tools' answers, of which no loss is taken.
"""

from __future__ import annotations


def score_labelled_only() -> None:
    """Have the trainers of this process skip positions without a label."""
    from trl.trainer import utils

    utils._use_triton = lambda device: True  # asked there for the choice of positions, and for nothing else
