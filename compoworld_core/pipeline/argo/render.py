"""Workflows as files, and files of workflows in Python as documents."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hera.workflows import Workflow

from compoworld_core.errors import InputError
from compoworld_core.pipeline.argo import pipeline
from compoworld_core.pipeline.argo.settings import ClusterSettings

Document = dict[str, Any]


def rendered(settings: ClusterSettings) -> dict[str, Document]:
    """The project's own workflows, by the names of their files."""
    return {
        "workflow-template.yaml": pipeline.build_template(settings).to_dict(),
        "workflow.yaml": pipeline.build_workflow(settings).to_dict(),
        "nightly.yaml": pipeline.build_nightly(settings).to_dict(),
        "janitor.yaml": pipeline.build_janitor(settings).to_dict(),
    }


def write(documents: dict[str, Document], folder: Path) -> list[Path]:
    """Write each to its file.

    Raises:
        InputError: The folder cannot be written.
    """
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, document in documents.items():
            (folder / name).write_text(as_yaml(document), encoding="utf-8")
            paths.append(folder / name)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    return paths


def as_yaml(document: Document) -> str:
    """The same text for the same document, whatever wrote it."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000_000)


def workflows_of(path: Path) -> list[Workflow]:
    """The workflows that a Python file makes, in the order of its lines: all that are module-level names.

    Raises:
        InputError: The file cannot be run, or makes none.
    """
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except Exception as error:
        raise InputError(f"{path}: cannot be run: {type(error).__name__}: {error}") from error
    found: list[Workflow] = []
    for value in names.values():
        if isinstance(value, Workflow) and not any(value is other for other in found):
            found.append(value)
    if not found:
        raise InputError(f"{path}: makes no workflow; give one a name at the level of the module")
    return found


def documents_of(path: Path) -> Iterator[Document]:
    """The documents of a file, YAML or Python.

    Raises:
        InputError: The file is neither.
    """
    if path.suffix == ".py":
        yield from (workflow.to_dict() for workflow in workflows_of(path))
        return
    try:
        text = path.read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not YAML: {error}") from error
    for number, document in enumerate(documents):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise InputError(f"{path}: document {number + 1} is no object")
        yield document
