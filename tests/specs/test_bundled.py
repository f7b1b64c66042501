"""The bundled services: sound, varied and spread over the domains."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import get_args

from compoworld_core.specs.domains import infer_domain
from compoworld_core.specs.model import Domain, ServiceSpec
from compoworld_core.specs.semantics import infer_semantic
from compoworld_core.specs.sources import BundledSource, read_specs


@cache
def bundled() -> tuple[ServiceSpec, ...]:
    specs, rejections = read_specs(BundledSource())
    assert not rejections
    return tuple(specs)


def test_there_are_enough_services_of_a_usable_size() -> None:
    assert len(bundled()) >= 24
    assert all(5 <= len(spec.tools) <= 12 for spec in bundled())
    assert all(spec.title and spec.description and spec.source == "bundled" for spec in bundled())


def test_every_domain_is_there_and_none_dominates() -> None:
    tools = Counter[str]()
    for spec in bundled():
        tools[spec.domain] += len(spec.tools)

    assert set(tools) == set(get_args(Domain))
    assert max(tools.values()) / tools.total() < 0.25
    assert tools["devops"] / tools.total() < 0.22


def test_declared_domains_are_mostly_those_inferred() -> None:
    agreeing = [
        spec.domain
        == infer_domain(
            spec.original_name, spec.title, spec.description, [], [(tool.name, tool.description) for tool in spec.tools]
        )
        for spec in bundled()
    ]

    assert sum(agreeing) / len(agreeing) >= 0.9


def test_services_read_and_write() -> None:
    for spec in bundled():
        assert {"read", "write"} <= {tool.effect for tool in spec.tools}, spec.name


def test_naming_styles_vary() -> None:
    names = [tool.name for spec in bundled() for tool in spec.tools]

    assert any("_" in name for name in names)
    assert any("-" in name for name in names)
    assert any(name != name.lower() for name in names)


def test_services_share_the_meanings_that_tasks_join_on() -> None:
    services: dict[str, set[str]] = {}
    for spec in bundled():
        for tool in spec.tools:
            for name, schema in tool.parameters["properties"].items():
                if word := infer_semantic(name, schema):
                    services.setdefault(word, set()).add(spec.name)

    for word in ("email", "person_name", "organisation_name", "date", "text", "title", "money"):
        assert len(services[word]) >= 8, word
    for word in ("sku", "id:project", "currency", "quantity", "id:order"):
        assert len(services[word]) >= 3, word
