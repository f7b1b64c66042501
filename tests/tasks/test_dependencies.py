from __future__ import annotations

from compoworld_core.library.registry import library_package
from compoworld_core.tasks.dependencies import Exchange, dependency_graph, exchange_of, step_weights
from tests.tasks.crafted import LIBRARY


def _exchange(name: str) -> Exchange:
    package = library_package(name)
    return exchange_of(package, [tool.name for tool in package.spec.tools])


def test_services_that_share_meanings_are_joined() -> None:
    graph = dependency_graph(map(_exchange, LIBRARY))
    weights = step_weights(graph, LIBRARY)

    assert set(graph.nodes) == set(LIBRARY)
    assert {"email", "organisation_name"} <= set(graph["mail"]["crm"]["words"])
    assert weights["mail", "crm"] > 1
    assert ("mail", "mail") not in weights
    assert all(weight >= 1 for weight in weights.values())


def test_a_service_offers_only_what_its_admitted_tools_show() -> None:
    package = library_package("crm")

    nothing_read = exchange_of(package, ["create_account"])

    assert nothing_read.offers == frozenset()
    assert not nothing_read.is_start
    assert "organisation_name" in nothing_read.takes


def test_headings_take_names_and_free_text_takes_everything() -> None:
    heading = Exchange("notes", frozenset(), frozenset({"title"}), 1, is_start=False)
    free = Exchange("log", frozenset(), frozenset({"text"}), 1, is_start=False)
    offers = frozenset({"person_name", "money"})

    assert heading.accepts(offers) == {"person_name"}
    assert free.accepts(offers) == offers
