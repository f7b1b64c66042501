"""The numbers at the top and the distributions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.tasks.task import Task
from compoworld_core.viewer.summary import Bar, count_holdings, draw_charts, draw_scale, share_by_domain
from tests.viewer.samples import admissions, packages, task_and_trajectory


def _variant(**changes: object) -> Task:
    return Task.model_validate({**task_and_trajectory()[0].model_dump(), **changes})


def test_services_and_tools_are_counted_by_kind() -> None:
    found = packages()
    judged = [item for package in found for item in admissions(package)]
    holdings = count_holdings(found, judged)
    assert (holdings.services, holdings.library, holdings.synthesised) == (4, 4, 0)
    assert (holdings.world_model, holdings.quarantined) == (4, 4)
    assert holdings.tools == len(judged) == holdings.verified + 8
    assert holdings.modelled_share == 4 / (holdings.verified + 4)


def test_domains_share_the_verified_tools() -> None:
    found = packages()
    shares = share_by_domain(found, [item for package in found for item in admissions(package)])
    assert {item.domain for item in shares} == {package.spec.domain for package in found}
    assert abs(sum(item.share for item in shares) - 1) < 1e-9
    assert [item.tools for item in shares] == sorted((item.tools for item in shares), reverse=True)


def test_domains_without_verified_tools_have_no_share() -> None:
    assert [item.share for item in share_by_domain(packages(), [])] == [0, 0, 0, 0]


def test_charts_count_the_tasks() -> None:
    tasks = [
        _variant(),
        _variant(walk=("mail", "crm"), core=("crm", "mail"), split="rl", capabilities=("join",), shape="LU"),
        _variant(walk=("mail", "crm"), core=("mail", "crm"), split="rl", capabilities=(), shape="LU"),
    ]
    charts = {chart.title: chart for chart in draw_charts(tasks)}
    assert charts["Walk lengths"].bars == (Bar("2", 2), Bar("3", 0), Bar("4", 0), Bar("5", 1))
    assert charts["Splits"].bars == (Bar("rl", 2), Bar("sft", 1))
    assert charts["Capabilities"].bars[0] == Bar("join", 2)
    assert charts["Shapes"].bars[0] == Bar("LU", 2)
    assert charts["Core services"].caption.startswith("2 different sets")


def test_wide_distributions_are_drawn_in_ranges() -> None:
    tasks = [_variant(walk=("mail", "crm") * length) for length in range(1, 41)]
    (chart,) = [chart for chart in draw_charts(tasks) if chart.title == "Walk lengths"]
    assert len(chart.bars) <= 10
    assert chart.total == 40
    assert chart.bars[0].label == "2–9"


@pytest.mark.parametrize(
    ("largest", "marks"),
    [
        (0.153, (0, 0.05, 0.1, 0.15, 0.2)),
        (0.15, (0, 0.05, 0.1, 0.15)),
        (0.04, (0, 0.01, 0.02, 0.03, 0.04)),
        (1.0, (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0.0, (0, 0.01)),
    ],
)
def test_an_axis_ends_at_or_after_the_largest_share_at_a_round_number(largest: float, marks: tuple[float, ...]) -> None:
    assert draw_scale(largest) == marks


@settings(deadline=None)
@given(st.floats(0, 1))
def test_every_share_fits_its_axis(largest: float) -> None:
    scale = draw_scale(largest)
    assert largest <= scale[-1] + 1e-9
    assert 2 <= len(scale) <= 6


def test_words_among_the_labels_are_explained() -> None:
    charts = {chart.title: chart for chart in draw_charts([_variant(shape="FK-9"), _variant(shape="plain-2")])}
    assert [word for word, _ in charts["Shapes"].legend] == ["F", "K"]
    assert [word for word, _ in charts["Splits"].legend] == [bar.label for bar in charts["Splits"].bars]


def test_many_kinds_are_cut_with_a_sentence() -> None:
    tasks = [_variant(shape=f"shape {number}") for number in range(30)]
    (chart,) = [chart for chart in draw_charts(tasks) if chart.title == "Shapes"]
    assert (len(chart.bars), chart.rest) == (12, "And 18 others, 18 in all.")
