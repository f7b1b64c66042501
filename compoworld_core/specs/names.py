"""Legal, unique, repeatable names, whatever the source calls its tools and servers.

A rename that only turns separators into `_` keeps the words and needs no suffix. One that loses letters or length, or
that lands on a name already taken, gets a suffix hashed from the original, so that the same source always yields the
same name, whatever stands before it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from compoworld_core.specs.model import ServiceSpec

MAX_TOOL_NAME: Final = 64
MAX_SERVICE_NAME: Final = 48
_LEGAL_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GENERIC = frozenset({"mcp", "server", "mcp_server", "main", "index", "src", "app", "tools"})


def digest(value: object, length: int = 6) -> str:
    """First hexadecimal digits of the sha256 of a JSON value's canonical text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:length]


def legal_tool_name(original: str) -> tuple[str, bool]:
    """The nearest legal function name, and whether letters or length were lost on the way."""
    if _LEGAL_TOOL.fullmatch(original):
        return original, False
    name = re.sub(r"_{2,}", "_", re.sub(r"[^a-zA-Z0-9_-]", "_", original)).strip("_")
    has_lost_letters = not original.isascii() or len(name) > MAX_TOOL_NAME or not name
    return name[:MAX_TOOL_NAME] or "tool", has_lost_letters


def tool_names(originals: Sequence[str]) -> list[str]:
    """One legal name per original, in order, no two alike.

    Legal originals keep their name (of several equal ones, the first); the others move out of their way.
    """
    kept = {name for name in originals if _LEGAL_TOOL.fullmatch(name)}
    wanted = [legal_tool_name(original) for original in originals]
    crowded = {name for name, count in Counter(name for name, _ in wanted).items() if count > 1}
    avoid = set(kept)
    seen: Counter[str] = Counter()
    result: list[str] = []
    for original, (name, is_lossy) in zip(originals, wanted, strict=True):
        is_first_original = original in kept and not seen[original]
        if not is_first_original and (is_lossy or name in crowded or name in avoid):
            name = _suffixed(name, original, seen[original], avoid)
        seen[original] += 1
        avoid.add(name)
        result.append(name)
    return result


def _suffixed(name: str, original: str, salt: int, avoid: set[str]) -> str:
    """The name with the original's hash behind it, salted further until nobody else has it."""
    while True:
        suffix = digest([original, salt] if salt else original)
        candidate = f"{name[: MAX_TOOL_NAME - len(suffix) - 1]}_{suffix}"
        if candidate not in avoid:
            return candidate
        salt += 1


def service_name(original: str) -> str:
    """An identifier for a server: its last path segment, or owner and segment where that says nothing (`x/mcp`)."""
    segments = [slug for part in original.split("/") if (slug := _slug(part))]
    if not segments:
        return f"service_{digest(original)}"
    name = segments[-1]
    if name in _GENERIC and len(segments) > 1:
        name = f"{segments[-2]}_{name}"
    if not name[0].isalpha():
        name = f"s_{name}"
    return name[:MAX_SERVICE_NAME].rstrip("_")


def _slug(text: str) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text[:200])
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def unique_service_names(specs: Iterable[ServiceSpec]) -> list[ServiceSpec]:
    """The specs with no two names alike.

    Every member of a clash gets a suffix hashed from its content, so the result does not depend on the order. Services
    equal in content are told apart by a count.
    """
    listed = list(specs)
    counts = Counter(spec.name for spec in listed)
    taken = {name for name, count in counts.items() if count == 1}
    renamed: dict[int, str] = {}
    clashing = [at for at, spec in enumerate(listed) if counts[spec.name] > 1]
    contents = {at: listed[at].model_dump(mode="json", exclude={"source"}) for at in clashing}
    for at in sorted(clashing, key=lambda at: (listed[at].name, digest(contents[at], 64))):
        salt = 0
        while (name := _service_suffixed(listed[at].name, contents[at], salt)) in taken:
            salt += 1
        taken.add(name)
        renamed[at] = name
    return [
        ServiceSpec.model_validate({**dict(spec), "name": renamed[at]}) if at in renamed else spec
        for at, spec in enumerate(listed)
    ]


def _service_suffixed(name: str, content: object, salt: int) -> str:
    suffix = digest([content, salt])
    return f"{name[: MAX_SERVICE_NAME - len(suffix) - 1].rstrip('_')}_{suffix}"
