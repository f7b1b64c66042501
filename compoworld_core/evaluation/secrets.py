"""Secrets leave nothing that is stored: neither where a name says that there is one, nor where its value turns up."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

HIDDEN: Final = "[secret]"

_SECRET_FIELD: Final = re.compile(
    r"(^|[_-]|(?<=[a-z0-9])(?=[A-Z]))"
    r"(?i:api[_-]?key|authorization|cookie|password|passwd|secret|credentials?"
    r"|(secret|private|subscription)[_-]?(access[_-]?)?key|(access|auth|bearer|api|refresh|session)[_-]?token)$"
)
_SECRET_VARIABLE: Final = re.compile(r"(KEYS?|TOKEN|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?|(^|_)(PASS|PAT))(_?\d+)?$")
_IN_DOCUMENT: Final = re.compile(
    rb'"[\w-]*(?:api[_-]?key|authorization)"\s*:\s*"(?:(?:bearer|basic) )?([^"\\]{6,})"', re.IGNORECASE
)
_IN_TEXT: Final = re.compile(
    r"(?P<before>\bauthorization\W{1,12}(?:bearer|basic|token)\s+"
    r"|\bbearer\s+"
    r"|api[ _-]?key[^\w$\[]{1,12}"
    r"|(?:authorization|password|passwd|secret|token|(?:secret|private|access)[ _-]?key)[\"'\\]*\s*[:=][\s\"'\\]*"
    r"|[?&](?:key|sig|x-amz-(?:signature|credential|security-token))="
    r"|://(?=[^\s/@:]*:[^\s/@]+@))"
    r"(?P<secret>(?!\$\{|\[secret\])(?:(?<=://)[^\s/@]+(?=@)|(?<!://)[^\s\"',;{}\[\]\\&<]{6,}))",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"\b(?:sk-(?=[\w-]*\d)[\w-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
"""Keys that show by themselves what they are."""

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
        forms = {form for value in self._values for form in _forms(value)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def strip_text(self, text: str) -> str:
        """The text without them, encoded or not; what stands after `Authorization:` or `api_key=` is taken for one."""
        known_gone = self._without_values(text)
        return _KEY.sub(HIDDEN, _IN_TEXT.sub(lambda found: f"{found['before']}{HIDDEN}", known_gone))

    def _without_values(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

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

    def strip_file(self, file: Path, *, is_source: bool = False) -> None:
        """Rewrite a file without them; one that has none stays as it is.

        A log may have bytes that are no text, and is one nevertheless. In what is no text, known values give way to as
        many stars; what is packed is not looked into. Source loses known values and nothing else: code that reads a key
        looks like one that has it.
        """
        try:
            data = file.read_bytes()
        except OSError:
            return
        if b"\0" in data:
            stripped = data
            for value in self._values:
                stripped = stripped.replace(value.encode(), b"*" * len(value.encode()))
        else:
            text = data.decode("utf-8", "surrogateescape")
            without = self._without_values(text) if is_source else self._stripped_document(file, text)
            stripped = without.encode("utf-8", "surrogateescape")
        if stripped != data:
            beside = file.with_name(f"{file.name}.stripped")
            beside.touch(mode=0o600)
            beside.write_bytes(stripped)
            os.replace(beside, file)

    def strip_folder(self, folder: Path, is_source: Callable[[Path], bool] = lambda _: False) -> None:
        """Rewrite all files below a folder without them."""
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                self.strip_file(file, is_source=is_source(file))

    def _stripped_document(self, file: Path, text: str) -> str:
        if file.suffix == ".jsonl":
            return "\n".join(self._stripped_json(line, indent=None) for line in text.split("\n"))
        return self._stripped_json(text, indent=2) if file.suffix == ".json" else self.strip_text(text)

    def _stripped_json(self, text: str, indent: int | None) -> str:
        try:
            document = json.loads(text)
            stripped = self.strip(document)
        except (ValueError, RecursionError):
            return self.strip_text(text)
        return text if stripped == document else json.dumps(stripped, indent=indent)


def _forms(value: str) -> Iterator[str]:
    """A value as it is, in a URL, in JSON, and in base64 wherever in there it begins."""
    yield from (value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    data = value.encode("utf-8", "surrogateescape")
    for before in range(3):
        own = slice((8 * before + 5) // 6, 8 * (before + len(data)) // 6)  # what does not depend on what is around it
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + data).decode()[own]


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
