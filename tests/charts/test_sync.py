"""What is made lies there as it is made today."""

from __future__ import annotations

from pathlib import Path

import pytest

from charts import sync
from tests.charts.conftest import Chart


def _differing(made: dict[Path, str]) -> list[str]:
    return [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]


def test_the_chart_has_the_workflows_of_the_stage_graph() -> None:
    assert _differing(sync.workflows()) == [], "run `make chart`"


def test_the_readme_has_every_value_with_its_default() -> None:
    described = {key for key, _, _ in sync.described_values()}

    assert {"store", "image.tag", "kueue.quota", "networkPolicy.store.to"} <= described
    assert _differing(sync.readme()) == [], "run `make chart`"


@pytest.mark.components
def test_manifests_are_what_helm_renders(chart: Chart) -> None:
    made = sync.manifests()

    assert {path.name for path in sync.MANIFESTS.iterdir()} == {path.name for path in made}
    assert _differing(made) == [], "run `make chart`"
