"""Where the results of trials and slices lie: each in a folder of its own, so that one run never hides another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

_TRIAL: Final = re.compile(r"trial-(\d+)")


def trial_folder(trial: int) -> str:
    """Name of the folder of one trial of all tasks, for harnesses that try each task once."""
    return f"trial-{trial}"


def trial_of(file: Path, folder: Path) -> int:
    """The trial that a file below a folder belongs to; the first where no folder says which."""
    for part in file.relative_to(folder).parts:
        if found := _TRIAL.fullmatch(part):
            return int(found[1])
    return 0


def slices(size: int, parts: int) -> Iterator[tuple[int, int]]:
    """Start and length of so many parts of nearly the same size; parts that would be empty are left out."""
    bounds = [size * part // parts for part in range(parts + 1)]
    return ((start, end - start) for start, end in pairwise(bounds) if end > start)
