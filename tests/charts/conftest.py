"""The chart as Helm renders it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts import sync
from charts.tools import tool

Document = dict[str, Any]


@cache
def _rendered(*arguments: str) -> tuple[Document, ...]:
    return tuple(document for document in yaml.safe_load_all(sync.template(*arguments)) if document)


class Chart:
    """Renders the chart."""

    def render(self, *arguments: str) -> tuple[Document, ...]:
        """The documents, for arguments such as `--set a=b`."""
        return _rendered(*arguments)

    def example(self, values: Path) -> tuple[Document, ...]:
        """The documents for a file of values."""
        return _rendered("--values", str(values))

    def refusal(self, *arguments: str) -> str:
        """What Helm says of values that it refuses."""
        with pytest.raises(ValueError, match="Error:") as refused:
            sync.template(*arguments)
        return str(refused.value)


@pytest.fixture(scope="session")
def chart() -> Chart:
    try:
        tool("helm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return Chart()


@pytest.fixture(params=sync.values_files(), ids=lambda path: path.name.removesuffix("-values.yaml"))
def example(request: pytest.FixtureRequest, chart: Chart) -> tuple[Document, ...]:
    """The chart with each of its examples of values."""
    return chart.example(request.param)
