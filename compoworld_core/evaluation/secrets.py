"""Secrets leave nothing that is stored: neither where a name says that there is one, nor where its value turns up."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

HIDDEN: Final = "[secret]"

_SECRET_FIELD: Final = re.compile(
    r"(^|[_-])(api[_-]?key|authorization|cookie|password|passwd|secret|(access|auth|bearer|api)[_-]?token|credentials?)$",
    re.IGNORECASE,
)
_SECRET_VARIABLE: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$")
_IN_DOCUMENT: Final = re.compile(
    rb'"[\w-]*(?:api[_-]?key|authorization)"\s*:\s*"(?:(?:bearer|basic) )?([^"\\]{6,})"', re.IGNORECASE
)
_IN_TEXT: Final = re.compile(
    r"(?P<before>\b(?:authorization\W{1,4}(?:bearer|basic)|bearer|api[_-]?key\W{1,4})\s*)"
    r"(?P<secret>(?!\$\{)[^\s\"',;}\]\\]{6,})",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(r"\$\{\w+\}")
_SHORTEST: Final = 6
"""Shorter values are no keys, and taking them out would spoil text."""

_PLACEHOLDERS: Final = frozenset({"EMPTY", "none", "None", "not-needed", "unused", "dummy", HIDDEN})


class Secrets:
    """The secrets that are known.

    Args:
        values: Keys themselves.
        environment: Variables; those whose names say so hold secrets. The process's own if left out.
    """

    def __init__(self, values: Iterable[str | None] = (), environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        named = (value.strip() for name, value in variables.items() if is_secret_variable(name))
        known = {value for value in (*values, *named) if value and len(value) >= _SHORTEST}
        self._values = sorted(known - _PLACEHOLDERS, key=lambda value: (-len(value), value))

    def strip_text(self, text: str) -> str:
        """The text without them; what stands after `Authorization:` or `api_key=` is taken for one."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return _IN_TEXT.sub(lambda found: f"{found['before']}{HIDDEN}", text)

    def strip(self, value: Any) -> Any:
        """The JSON value without them, and without the content of fields whose names say that it is one."""
        if isinstance(value, str):
            return self.strip_text(value)
        if isinstance(value, Mapping):
            return {
                self.strip_text(name): HIDDEN if _SECRET_FIELD.search(name) and _may_be(item) else self.strip(item)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.strip(item) for item in value]
        return value

    def strip_file(self, file: Path) -> None:
        """Rewrite a text file without them; one that has none, or is no text, stays as it is."""
        try:
            text = file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return
        stripped = self._stripped_document(file, text)
        if stripped != text:
            beside = file.with_name(f"{file.name}.stripped")
            beside.touch(mode=0o600)
            beside.write_text(stripped, encoding="utf-8")
            os.replace(beside, file)

    def strip_folder(self, folder: Path) -> None:
        """Rewrite all text files below a folder without them."""
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                self.strip_file(file)

    def _stripped_document(self, file: Path, text: str) -> str:
        if file.suffix == ".json":
            try:
                document = json.loads(text)
                stripped = self.strip(document)
            except (ValueError, RecursionError):
                return self.strip_text(text)
            if stripped != document:
                return json.dumps(stripped, ensure_ascii=False, indent=2)
            return text
        return self.strip_text(text)


def secrets_in(folder: Path) -> set[str]:
    """Values that stand in the JSON files below a folder where a field's name says that they are keys."""
    found = set()
    for file in sorted(folder.rglob("*.json")):
        if file.is_file():
            found |= {value.decode("utf-8", "replace") for value in _IN_DOCUMENT.findall(file.read_bytes())}
    return found


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable's name says that it holds a secret."""
    return _SECRET_VARIABLE.search(name.upper()) is not None


def _may_be(value: Any) -> bool:
    """Whether a field so named has a secret: not where it is empty, a number, or the variable that has it."""
    if isinstance(value, str):
        return bool(value) and not _VARIABLE.fullmatch(value)
    return isinstance(value, list | dict)
