"""The module: docstring, imports, types, entities, state, service, helpers."""

from __future__ import annotations

import io
import tokenize

from compoworld_core.services import sdk
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.rules.layout import bracketed
from compoworld_core.synthesis.rules.methods import MethodWriter
from compoworld_core.synthesis.rules.model import EntityField, EntityModel, ServicePlan
from compoworld_core.synthesis.rules.naming import prose, quoted, service_class
from compoworld_core.synthesis.rules.types import PartField, TypeExpr, Vocabulary

_TYPING = ("Annotated", "Any", "Literal")
_HELPERS = {
    "_given": [
        "def _given(**fields: Any) -> dict[str, Any]:",
        '    """The fields that a call gives."""',
        "    return {name: value for name, value in fields.items() if value is not None}",
    ],
    "_matches": [
        "def _matches(query: str, *texts: str | None) -> bool:",
        '    """Whether every word of the query occurs in one of the texts."""',
        '    haystack = " ".join(text for text in texts if text is not None).casefold()',
        "    return all(word in haystack for word in query.casefold().split())",
    ],
}


def write_module(spec: ServiceSpec, plan: ServicePlan, vocabulary: Vocabulary) -> str:
    """The source of a service."""
    service = service_class(spec.name)
    methods = MethodWriter()
    tools = [methods.write(operation) for operation in plan.operations]
    body: list[str] = []
    for entity in plan.entities:
        body += _id_aliases(entity, plan)
    used = _used_names([*(_joined(tools)), *(line for item in plan.entities for line in _entity(item))], vocabulary)
    for name, text in vocabulary.aliases.items():
        if name in used:
            body += _alias(name, text)
    for name, fields in vocabulary.parts.items():
        if name in used:
            body += ["", "", *_part(name, fields)]
    for entity in plan.entities:
        body += ["", "", *_entity(entity)]
    body += ["", "", *_state(service, spec, plan)]
    body += ["", "", *_service(service, spec, tools)]
    for helper in sorted(methods.helpers):
        body += ["", "", *_HELPERS[helper]]
    about = prose(spec.description or spec.title or spec.name, 110)
    head = [f'"""{about}"""', "", "from __future__ import annotations", ""]
    return "\n".join([*head, *_imports(body), "", *body]) + "\n"


def _joined(tools: list[list[str]]) -> list[str]:
    return [line for lines in tools for line in lines]


def _names(lines: list[str]) -> set[str]:
    source = "\n".join(lines) + "\n"
    tokens = tokenize.generate_tokens(io.StringIO(f"if 1:\n{source}" if source.startswith(" ") else source).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def _used_names(lines: list[str], vocabulary: Vocabulary) -> set[str]:
    """Names that the lines use, and those that the definitions of these names use."""
    used = set().union(*(_words(line) for line in lines))
    while True:
        more = {word for name in used & set(vocabulary.aliases) for word in _words(vocabulary.aliases[name])}
        more |= {
            word
            for name in used & set(vocabulary.parts)
            for item in vocabulary.parts[name]
            for word in _words(item.type.kept)
        }
        if more <= used:
            return used
        used |= more


def _words(line: str) -> set[str]:
    return set("".join(character if character.isalnum() or character == "_" else " " for character in line).split())


def _imports(body: list[str]) -> list[str]:
    names = _names(body)
    typing = [name for name in _TYPING if name in names]
    used = [name for name in sdk.__all__ if name in names]
    lines = [f"from typing import {', '.join(typing)}", ""] if typing else []
    used.sort(key=lambda name: (name != name.upper(), name[0].islower(), name))
    line = f"from compoworld_core.services.sdk import {', '.join(used)}"
    if len(line) <= 120:
        return [*lines, line]
    return [*lines, "from compoworld_core.services.sdk import (", *(f"    {name}," for name in used), ")"]


def _id_aliases(entity: EntityModel, plan: ServicePlan) -> list[str]:
    prefix = ', prefix=""' if entity.is_numeric else ""
    lines = [f"{entity.id_type} = Annotated[str, Id({quoted(entity.name)}{prefix})]"]
    taken = {type_.taken for item in plan.operations for type_ in item.types.values()}
    if any(entity.number_type in _words(text) for text in taken):
        lines.append(f"{entity.number_type} = Annotated[int, Id({quoted(entity.name)}{prefix})]")
    return lines


def _alias(name: str, text: str) -> list[str]:
    opening, _, inner = text.partition("[")
    parts = _split_literal(inner[:-1]) if opening == "Literal" else [inner[:-1]]
    return bracketed(f"{name} = {opening}[", parts, "]", 0)


def _split_literal(text: str) -> list[str]:
    """The items of a literal's source; strings may hold commas."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    parts, current = [], ""
    for token in tokens:
        if token.type == tokenize.OP and token.string == ",":
            parts.append(current)
            current = ""
        elif token.type in (tokenize.STRING, tokenize.NUMBER, tokenize.NAME) or token.string == "-":
            current += token.string
    return [*parts, current]


def _part(name: str, fields: tuple[PartField, ...]) -> list[str]:
    lines = [f"class {name}(Entity):", f'    """{_a(_spaced(name)).capitalize()}."""', ""]
    for item in fields:
        null = " | None" if item.type.is_nullable or not item.is_required else ""
        text = item.type.taken if item.type.kind == "list" and item.is_required else item.type.kept
        lines.append(f"    {item.name}: {text}{null}" + ("" if item.is_required else " = None"))
    return lines


def _entity(entity: EntityModel) -> list[str]:
    lines = [f"class {entity.class_name}(Entity):", f'    """{_a(entity.label).capitalize()}."""', ""]
    lines.append(f"    id: {entity.id_type}")
    fields = sorted(entity.fields.values(), key=lambda item: not (item.is_given or item.automatic))
    return lines + [_field(item) for item in fields]


def _field(item: EntityField) -> str:
    null = " | None" if item.is_optional or (item.type.is_nullable and item.default is None) else ""
    default = " = None" if item.is_optional else f" = {item.default}" if item.default is not None else ""
    return f"    {item.name}: {_kept(item.type)}{null}{default}"


def _kept(type_: TypeExpr) -> str:
    return type_.kept


def _state(service: str, spec: ServiceSpec, plan: ServicePlan) -> list[str]:
    lines = [f"class {service}State(State):", f'    """Everything that the {_spaced(service)} keeps."""', ""]
    for entity in plan.entities:
        unique = tuple(name for name in entity.natural if name in entity.fields)
        options = f" = table(unique=({', '.join(quoted(name) for name in unique)},))" if unique else ""
        lines.append(f"    {entity.table}: Table[{entity.class_name}]{options}")
    return lines


def _service(service: str, spec: ServiceSpec, tools: list[list[str]]) -> list[str]:
    about = " ".join((spec.description or spec.title or spec.name).split())
    lines = [f"class {service}(Service[{service}State]):", f'    """{prose(about, 110)}"""', ""]
    lines.append(f"    domain = {quoted(spec.domain)}")
    derived = "".join(f"_{c.lower()}" if c.isupper() else c for c in service).lstrip("_")
    if derived != spec.name:
        lines.append(f"    name = {quoted(spec.name)}")
    for tool in tools:
        lines += ["", *tool]
    return lines


def _spaced(name: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def _a(label: str) -> str:
    return f"{'an' if label[:1] in 'aeiou' else 'a'} {label}"
