"""Kernels that DeepSpeed compiles on first use, built by one process before those that train begin.

torch guards a build by a file that says nothing but that it is there: where the builder was killed, all that come later
wait for it without a word. So builders take turns by a lock that the system gives back when its holder dies, and a file
that no process holds open is what a dead one left.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Final

from compoworld_core.training.config import Layout

_RELEASE_S: Final = 0.2
"""Longer than torch takes from closing its file to removing it."""


def build_kernels(layout: Layout) -> None:
    """Build what a layout's processes would compile on first use."""
    if layout.zero_stage and layout.device == "cpu":
        os.environ["DS_ACCELERATOR"] = "cpu"
        from deepspeed.ops.op_builder.cpu import comm
        from torch.utils.cpp_extension import _get_build_directory

        builder = comm.ShareMemCommBuilder()
        with only_builder(Path(_get_build_directory(builder.name, False))):
            builder.load()


@contextmanager
def only_builder(folder: Path) -> Iterator[None]:
    """Wait until nobody else builds in a folder, and clear away what keeps torch from doing so.

    Args:
        folder: torch's, for one extension.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".building").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        _clear(folder / "lock")
        yield


def _clear(lock: Path) -> None:
    """Remove torch's file if no process has it open, neither now nor a moment later."""
    before = _inode(lock)
    if before is None or _is_open(lock):
        return
    sleep(_RELEASE_S)
    if _inode(lock) == before and not _is_open(lock):
        lock.unlink(missing_ok=True)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _is_open(path: Path) -> bool:
    """Whether a process that this one may look into has a file open."""
    wanted = path.resolve()
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if entry.readlink() == wanted:
                return True
        except OSError:  # has been closed, or belongs to another user
            continue
    return False
