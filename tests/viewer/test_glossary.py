"""Every word of the project that the page shows has a sentence."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

from compoworld_core.pipeline.work.report import MAY_READ, READ
from compoworld_core.rollouts.selection import Reason
from compoworld_core.synthesis.admission import AdmissionOutcome
from compoworld_core.synthesis.datasets import OmissionReason
from compoworld_core.tasks.planner.ingredients import SPECIAL
from compoworld_core.tasks.task import Split
from compoworld_core.viewer.glossary import (
    CAPABILITIES,
    DATASETS,
    LEFT_OUT,
    OMITTED,
    OUTCOMES,
    SPLITS,
    letters,
    shape_in_words,
)
from tests.viewer.samples import HOSTILE


def test_every_dataset_of_the_page_is_explained() -> None:
    assert set(DATASETS) == {item.name for item in (*READ, *MAY_READ)}


def test_every_outcome_reason_and_split_is_explained() -> None:
    assert set(OUTCOMES) == set(get_args(AdmissionOutcome))
    assert set(OMITTED) >= set(get_args(OmissionReason))
    assert set(SPLITS) == set(get_args(Split))
    assert set(LEFT_OUT) == set(get_args(Reason)) - {"kept", *SPLITS}


def test_every_capability_that_planners_name_is_explained() -> None:
    sources = [file.read_text() for file in (files("compoworld_core.tasks") / "planner").iterdir() if file.is_file()]
    added = [names for text in sources for names in re.findall(r"capabilities(?:\.add\(| \|= \{)([^)}]*)", text)]
    assert set(re.findall(r'"(\w+)"', " ".join(added))) == set(CAPABILITIES)


def test_every_letter_of_a_shape_is_explained() -> None:
    found = letters()
    assert set(found) == {item.letter for item in SPECIAL}
    assert all(len(meaning.split()) > 3 for meaning in found.values())


@pytest.mark.parametrize(
    ("shape", "parts"),
    [("FK-9", ["F", "K", "9"]), ("plain-1", ["1"]), ("LU", []), ("", []), ("F-", []), ("?-2", []), (HOSTILE, [])],
    ids=["two letters", "plain", "no writes", "empty", "half", "unknown letter", "hostile"],
)
def test_a_shape_is_told_part_by_part(shape: str, parts: list[str]) -> None:
    assert [part for part, _ in shape_in_words(shape)] == parts
