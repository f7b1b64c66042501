"""What is wrong with workflows although they have the right form: a schema knows no other object, and no intention.

Every rule is a function that takes a `Subject` and tells of findings; `RULES` has them all. Some are rules of Argo,
whose breach is refused or, worse, passed over; the others are of this project, such as limits on all that runs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml

from compoworld_core.errors import InputError
from compoworld_core.pipeline.argo.lint import form, pods, references
from compoworld_core.pipeline.argo.lint.subject import Document, Finding, Subject, subjects
from compoworld_core.specs.validation import validator

RULES: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    form.removed_fields,
    form.sizes,
    form.duplicates,
    form.ends,
    references.unknown_templates,
    references.cycles,
    references.arguments,
    references.variables,
    references.use_without_depends,
    pods.limits,
    pods.deadlines,
    pods.retries,
    pods.secrets,
    pods.rights,
    pods.executors,
    pods.images,
    pods.resources,
)


def lint(documents: Iterable[tuple[str, Document]], schemas: Path | None = None) -> list[Finding]:
    """Everything that is wrong with some documents, which may refer to each other.

    Args:
        documents: Each with the name of its file.
        schemas: A folder of JSON Schemas of the kinds, such as `workflow-v1alpha1.json` or the same as `.json.gz`.
    """
    found: list[Finding] = []
    for subject in subjects(documents):
        for rule in RULES:
            found += rule(subject)
        if schemas is not None:
            found += _against_schema(subject, schemas)
    return found


def _against_schema(subject: Subject, schemas: Path) -> Iterator[Finding]:
    documents = [subject.document]
    for template in subject.own_templates:
        if manifest := template.get("resource", {}).get("manifest"):
            documents.append(yaml.safe_load(manifest))
    for document in documents:
        kind = str(document.get("kind", ""))
        paths = sorted(schemas.glob(f"{kind.lower()}-*.json*"))
        if not paths:
            yield Finding(subject.file, kind, "schema", f"{schemas} has no schema of the kind {kind}")
            continue
        data = paths[0].read_bytes()
        try:
            schema = json.loads(gzip.decompress(data) if paths[0].suffix == ".gz" else data)
            compiled = validator(schema)
        except (OSError, ValueError) as error:
            raise InputError(f"{paths[0]}: is no JSON Schema: {error}") from error
        for fault in compiled.iter_errors(json.loads(json.dumps(document))):
            place = ".".join(map(str, fault.instance_path)) or kind
            yield Finding(subject.file, place, "schema", fault.message[:300])


__all__ = ["RULES", "Finding", "lint"]
