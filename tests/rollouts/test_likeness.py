"""Likeness finds exactly what comparing everything with everything finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.rollouts.likeness import LikenessIndex, Shingles, shingles, words

texts = st.lists(st.sampled_from(["a b", "c d", "b a", "d", "e f g"]), min_size=1, max_size=9).map(" ".join)


def jaccard(one: Shingles, other: Shingles) -> float:
    return len({*one} & {*other}) / len({*one} | {*other})


@given(said=st.lists(texts, max_size=12), threshold=st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_first_that_is_like_is_found_and_nothing_else(said: list[str], threshold: float) -> None:
    sets = [shingles([text]) for text in said]
    index = LikenessIndex(sets, threshold)
    kept: list[Shingles] = []

    for item in sets:
        expected = next((str(place) for place, other in enumerate(kept) if jaccard(item, other) >= threshold), None)
        assert index.like(item) == expected
        if expected is None:
            index.add(str(len(kept)), item)
            kept.append(item)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send it, NOW!", ["send", "it", "now"]),
        ("Straße ﬁne Ａ", ["strasse", "fine", "a"]),
        ("订单A12 取消", ["订", "单", "a12", "取", "消"]),
        ("…", []),
        ("_Send_ __it__", ["send", "it"]),
        ("s\u200be\u00adnd\u2060 \ufeffi\u0301t", ["send", "it"]),
        ("Rés\u0065\u0301 Ärger Ōsaka", ["rese", "arger", "osaka"]),
        ("Send&nbsp;it &amp; wait", ["send", "it", "wait"]),
        ("が각", ["が", "각"]),
    ],
)
def test_words_have_no_case_punctuation_or_variants(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_text_shorter_than_a_sequence_counts_as_a_whole() -> None:
    assert shingles(["Done now."]) == shingles(["done NOW"]) != shingles(["Done."])
    assert not shingles(["", "…"])
