"""A walk's picture shows visits, calls and the values that travel."""

from __future__ import annotations

import pytest

from compoworld_core.tasks.task import InformationEdge, Solution
from compoworld_core.viewer.walks import label_of, picture_of_task, picture_of_trajectory
from tests.viewer.samples import task_and_trajectory

_PICK = {"from": {"$ref": "s2.data.items"}, "where": {"email": {"$value": "flag.owner"}}, "take": "id"}
_SOLUTION = Solution.model_validate(
    {
        "values": {"flag.owner": {"$ref": "s1.data.owner"}, "invoice.id": {"$pick": _PICK}},
        "steps": [
            {"id": "s1", "service": "flags", "tool": "get", "arguments": {}, "effect": "read"},
            {"id": "s2", "service": "ledger", "tool": "list", "arguments": {}, "effect": "read"},
            {
                "id": "s3",
                "service": "ledger",
                "tool": "send",
                "arguments": {
                    "number": {"$value": "invoice.id"},
                    "note": {"$text": ["for ", {"$ref": "s1.data.name"}]},
                },
                "effect": "write",
            },
        ],
        "answer": [{"label": "The owner", "value": {"$value": "flag.owner"}}],
    }
)


@pytest.mark.parametrize(
    ("source", "target", "argument", "label"),
    [
        ("s2", "s3", "number", "invoice.id"),
        ("s1", "s2", "invoice.id", "flag.owner"),
        ("s1", "answer", "The owner", "flag.owner"),
        ("s1", "s3", "note", "note"),
        ("s1", "s3", "number", "flag.owner"),
        ("s9", "s3", "gone", "gone"),
    ],
    ids=["argument", "selection", "answer", "unnamed", "through another value", "unknown"],
)
def test_an_edge_is_labelled_by_the_value_that_travels(source: str, target: str, argument: str, label: str) -> None:
    edge = InformationEdge(
        source=source, target=target, source_service="", target_service="", argument=argument, criterion="c"
    )
    assert label_of(edge, _SOLUTION) == label


def test_values_that_name_each_other_in_a_circle_do_no_harm() -> None:
    circle = Solution.model_validate(
        {**dict(_SOLUTION), "values": {"a": {"$text": [{"$value": "b"}]}, "b": {"$text": [{"$value": "a"}]}}}
    )
    edge = InformationEdge(source="s1", target="s2", source_service="", target_service="", argument="a", criterion="c")
    assert label_of(edge, circle) == "a"


def test_revisits_come_back_to_the_same_lane() -> None:
    task, trajectory = task_and_trajectory()
    picture = picture_of_task(task)
    assert picture.lanes == ("mail", "crm", "drive")
    assert [visit.service for visit in picture.visits] == ["mail", "crm", "drive", "crm", "mail"]
    assert [dot.is_write for visit in picture.visits for dot in visit.dots] == [False] * 4 + [True, False, True]
    assert [visit.service for visit in picture_of_trajectory(trajectory).visits] == list(task.walk)
