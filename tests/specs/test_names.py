"""Names of tools and services: legal, unique, the same whatever stands around them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.specs.names import service_name, tool_names, unique_service_names

LEGAL_TOOL = re.compile(r"^[a-zA-Z0-9_-]{1,64}\Z")
LEGAL_SERVICE = re.compile(r"^[a-z][a-z0-9_]{0,47}\Z")

originals = st.lists(
    st.sampled_from(["a.b", "a/b", "a_b", "é", "天气", "x" * 70, "", "!"]) | st.text(max_size=5), max_size=8
)


def spec(name: str, description: str = "") -> ServiceSpec:
    tool = ToolSpec(name="get_a", description="A.", parameters={"type": "object"})
    return ServiceSpec(name=name, description=description, domain="data", source="test", tools=(tool,))


@given(originals)
def test_tool_names_are_legal_and_unique(names: list[str]) -> None:
    result = tool_names(names)

    assert all(LEGAL_TOOL.match(name) for name in result)
    assert len(set(result)) == len(result) == len(names)


@given(originals)
def test_a_tool_keeps_its_name_in_any_order(names: list[str]) -> None:
    names = list(dict.fromkeys(names))
    shuffled = sorted(names, reverse=True)

    assert dict(zip(names, tool_names(names), strict=True)) == dict(zip(shuffled, tool_names(shuffled), strict=True))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["get_a", "get-b"], ["get_a", "get-b"], id="legal"),
        pytest.param(["/v1/items"], ["v1_items"], id="separators"),
        pytest.param(["a.b", "a_b"], [None, "a_b"], id="legal-name-wins"),
        pytest.param(["a.b", "a/b"], [None, None], id="both-move"),
        pytest.param(["天气"], [None], id="nothing-left"),
    ],
)
def test_only_lossy_renames_get_a_suffix(names: list[str], expected: list[str | None]) -> None:
    for result, wanted in zip(tool_names(names), expected, strict=True):
        assert result == wanted if wanted else re.search(r"_[0-9a-f]{6}$", result)


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("team_wiki", "team_wiki"),
        ("Asset Register", "asset_register"),
        ("some-owner/some-repo/stockRoom", "stock_room"),
        ("some-owner/mcp", "some_owner_mcp"),
        ("3d-printer", "s_3d_printer"),
        ("x" * 90, "x" * 48),
    ],
)
def test_service_name(original: str, expected: str) -> None:
    assert service_name(original) == expected


@given(st.text())
def test_service_name_is_an_identifier(original: str) -> None:
    assert LEGAL_SERVICE.match(service_name(original))


def test_every_clashing_service_is_renamed_in_any_order() -> None:
    specs = [spec("wiki", "one"), spec("mail"), spec("wiki", "two"), spec("wiki", "two")]

    forward = unique_service_names(specs)
    backward = unique_service_names(reversed(specs))

    names = [found.name for found in forward]
    assert names[1] == "mail"
    assert all(re.fullmatch(r"wiki_[0-9a-f]{6}", name) for name in (names[0], names[2], names[3]))
    assert len(set(names)) == 4
    assert {found.name: found.description for found in forward} == {found.name: found.description for found in backward}
