from __future__ import annotations

from compoworld_core.library.registry import library_package
from compoworld_core.tasks.affordances import explore
from compoworld_core.tasks.dependencies import dependency_graph, step_weights
from compoworld_core.worlds.catalogue import Catalogue
from tests.tasks.crafted import LIBRARY


def test_services_that_share_meanings_are_joined(library: Catalogue) -> None:
    found = [
        explore(package, library.backend(package), [tool.name for tool in package.spec.tools])
        for package in map(library_package, LIBRARY)
    ]

    graph = dependency_graph(found)
    weights = step_weights(graph, LIBRARY)

    assert set(graph.nodes) == set(LIBRARY)
    assert {"email", "organisation_name"} <= set(graph["mail"]["crm"]["words"])
    assert weights["mail", "crm"] > 1
    assert ("mail", "mail") not in weights
    assert all(weight >= 1 for weight in weights.values())
