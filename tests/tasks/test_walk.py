from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.errors import InputError
from compoworld_core.tasks.walk import count_walks, sample_walk


def valid_walks(services: int, length: int) -> list[tuple[int, ...]]:
    return [
        walk
        for walk in product(range(services), repeat=length)
        if len(set(walk)) == services and all(a != b for a, b in pairwise(walk))
    ]


@pytest.mark.parametrize(
    ("services", "length"), [(2, 2), (2, 5), (3, 3), (3, 6), (4, 4), (4, 7), (5, 5), (5, 6), (5, 7), (3, 2)]
)
def test_count_is_that_of_all_valid_walks(services: int, length: int) -> None:
    assert count_walks(services, length) == len(valid_walks(services, length))


@pytest.mark.parametrize(("services", "length"), [(3, 4), (3, 5), (4, 4), (2, 7), (4, 5)])
def test_every_valid_walk_is_drawn_equally_often(services: int, length: int) -> None:
    walks = valid_walks(services, length)
    draws = 100 * len(walks)
    rng = random.Random(f"{services}/{length}")

    seen = Counter(sample_walk(range(services), length, rng) for _ in range(draws))

    assert set(seen) == set(walks)
    chi_square = sum((seen[walk] - 100) ** 2 / 100 for walk in walks)
    freedom = len(walks) - 1
    # a chi-square has mean f and variance 2 f; five standard deviations above is beyond its 0.1 % point
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


@given(services=st.integers(2, 6), extra=st.integers(0, 8), seed=st.integers(0, 10_000))
def test_a_walk_visits_every_service_and_never_stays(services: int, extra: int, seed: int) -> None:
    names = [f"service_{number}" for number in range(services)]

    walk = sample_walk(names, services + extra, random.Random(seed))

    assert len(walk) == services + extra
    assert set(walk) == set(names)
    assert all(a != b for a, b in pairwise(walk))


def test_walks_are_drawn_in_proportion_to_their_weights() -> None:
    weights = {("a", "b"): 6, ("b", "a"): 2, ("a", "c"): 0}
    rng = random.Random(5)

    seen = Counter(sample_walk("abc", 3, rng, weights) for _ in range(4000))

    # a-b-c: 6, b-a-c: 0, b-c-a: 1, c-a-b: 6, c-b-a: 2, a-c-b: 0, of 15
    assert ("a", "c", "b") not in seen
    assert ("b", "a", "c") not in seen
    for walk, weight in {"abc": 6, "bca": 1, "cab": 6, "cba": 2}.items():
        assert seen[tuple(walk)] / 4000 == pytest.approx(weight / 15, abs=0.03)


@pytest.mark.parametrize(("services", "length"), [("abc", 2), ("a", 2), ("ab", 0)], ids=["short", "alone", "empty"])
def test_impossible_walks_are_refused(services: str, length: int) -> None:
    with pytest.raises(InputError, match=f"no walk of length {length}"):
        sample_walk(services, length, random.Random(0))


def test_weights_may_make_walks_impossible() -> None:
    with pytest.raises(InputError):
        sample_walk("ab", 2, random.Random(0), {("a", "b"): 0, ("b", "a"): 0})


def test_a_walk_starts_only_where_it_may() -> None:
    rng = random.Random(5)
    walks = {sample_walk("abc", 4, rng, starts={"b"}) for _ in range(400)}

    valid = {
        walk
        for walk in product("abc", repeat=4)
        if walk[0] == "b" and set(walk) == set("abc") and all(x != y for x, y in pairwise(walk))
    }
    assert walks == valid
