"""Local references of a foreign schema: finding what they point at, and keeping their cycles harmless.

Small targets that do not contain themselves are written in place; the others become entries of `$defs`. Remote
references are never followed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Final
from urllib.parse import unquote

from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.values import Budget

DEFINITIONS: Final = ("$defs", "definitions")
_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE: Final = ("not", "if", "then", "else")
_MAX_SEARCHED: Final = 5_000
_MAX_WORK: Final = 2_000


class Dangling(Exception):
    """A reference that leads nowhere in its document."""


class Document:
    """A foreign schema as the thing that its own references point into."""

    def __init__(self, root: object) -> None:
        self.root = root

    def find(self, reference: str) -> tuple[str, object]:
        """The normal form of a local reference's pointer, and what it points at.

        Generators nest a schema that was made to stand alone without moving its references: a definition that is not
        where the pointer says is looked up by its name.

        Raises:
            Dangling: There is nothing, or the reference is not local.
        """
        if not reference.startswith("#") or len(reference) > 1_000:
            raise Dangling
        segments = [
            unquote(segment).replace("~1", "/").replace("~0", "~") for segment in reference[1:].split("/") if segment
        ]
        target = self.root
        for segment in segments:
            if isinstance(target, dict) and segment in target:
                target = target[segment]
            elif isinstance(target, list) and re.fullmatch(r"[0-9]{1,6}", segment) and int(segment) < len(target):
                target = target[int(segment)]
            elif len(segments) == 2 and segments[0] in DEFINITIONS and segments[1] in self._nested_definitions:
                target = self._nested_definitions[segments[1]]
                break
            else:
                raise Dangling
        return "/".join(segments), target

    @cached_property
    def _nested_definitions(self) -> dict[str, object]:
        """Every named definition anywhere near the top of the document; the outermost of a name wins."""
        found: dict[str, object] = {}
        todo = deque([self.root])
        for _ in range(_MAX_SEARCHED):
            if not todo:
                break
            node = todo.popleft()
            if isinstance(node, dict):
                for keyword in DEFINITIONS:
                    if isinstance(definitions := node.get(keyword), dict):
                        for name, target in definitions.items():
                            found.setdefault(name, target)
                todo.extend(node.values())
            elif isinstance(node, list):
                todo.extend(node)
        return found


def definition_name(pointer: str, taken: JsonObject) -> str:
    """A legal `$defs` key for a pointer: its last telling segment, counted up where that is taken."""
    telling = [part for part in pointer.split("/") if part not in ("items", "properties", *_BRANCHES) and part]
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", telling[-1] if telling else "part")[:60] or "part"
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


def size(schema: object) -> int:
    """Number of objects and lists in a schema, itself included."""
    total, todo = 0, [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            total += 1
            todo.extend(node.values())
        elif isinstance(node, list):
            total += 1
            todo.extend(node)
    return total


def tame_references(root: JsonObject, budget: Budget) -> None:
    """Removes the references that would make checking one value endless, or exponentially long.

    Endless is a cycle that never reaches a smaller part of the value. Exponential is a ladder of definitions each of
    which applies the next several times to the same value.
    """
    nodes: dict[str, JsonObject] = {"#": root}
    nodes.update({f"#/$defs/{name}": schema for name, schema in root.get("$defs", {}).items()})
    work: dict[str, int] = {}

    def settle(uri: str) -> None:
        """Adds up the schemas that one check of this node applies to the same value; all it refers to is settled."""
        total = 1
        for holder in _in_place_references(nodes[uri]):
            steps = work.get(holder["$ref"], 1)
            if total + steps > _MAX_WORK:
                del holder["$ref"]
                budget.note("cut-size")
            else:
                total += steps
        work[uri] = total

    for start in nodes:
        if start in work:
            continue
        path: dict[str, None] = {start: None}
        stack = [(start, _in_place_references(nodes[start]))]
        while stack:
            uri, references = stack[-1]
            holder = next(references, None)
            if holder is None:
                stack.pop()
                path.pop(uri)
                settle(uri)
            elif holder["$ref"] in path:
                del holder["$ref"]
                budget.note("cut-recursion")
            elif holder["$ref"] in nodes and holder["$ref"] not in work:
                path[holder["$ref"]] = None
                stack.append((holder["$ref"], _in_place_references(nodes[holder["$ref"]])))


def _in_place_references(schema: JsonObject) -> Iterator[JsonObject]:
    """The schemas with a `$ref` that apply to the same value as the given schema."""
    todo: list[object] = [schema]
    while todo:
        node = todo.pop()
        if not isinstance(node, dict):
            continue
        if "$ref" in node:
            yield node
        todo.extend(part for keyword in _BRANCHES for part in node.get(keyword, ()))
        todo.extend(node[keyword] for keyword in _IN_PLACE if keyword in node)
        todo.extend(node.get("dependentSchemas", {}).values())


def resolve(schema: JsonObject, root: JsonObject) -> JsonObject:
    """The schema with a `$ref` at its top replaced by what it points at in a normalised root schema."""
    seen: set[str] = set()
    while (reference := schema.get("$ref")) is not None and reference not in seen:
        seen.add(reference)
        target = root if reference == "#" else root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema
