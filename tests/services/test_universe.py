"""The cast: the same for a seed everywhere, without two of the same name."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.universe import _SIZES, Scale, Universe
from compoworld_core.storage.digest import digest

PRINT_DIGESTS = """
from compoworld_core.services.universe import Universe
from compoworld_core.storage.digest import digest
print(*(digest(Universe.generate(seed, scale)) for seed in (0, 7) for scale in ("small", "medium", "large")))
"""


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_every_process_draws_the_same_cast(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_DIGESTS], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()

    scales: tuple[Scale, ...] = ("small", "medium", "large")
    assert printed == [digest(Universe.generate(seed, scale)) for seed in (0, 7) for scale in scales]
    assert len(set(printed)) == 6


@pytest.mark.parametrize("scale", ["small", "medium", "large"])
def test_a_cast_has_the_promised_size(scale: Scale) -> None:
    for seed in range(5):
        cast = Universe.generate(seed, scale)

        assert {name: len(getattr(cast, name)) for name in _SIZES[scale]} == _SIZES[scale]
        assert len(cast.contacts) >= len(cast.organisations)


def check(cast: Universe) -> None:
    organisations = (cast.home, *cast.organisations)
    for values in (
        [person.email for person in cast.people],
        [person.name for person in cast.people],
        [person.username for person in cast.people],
        [item.name for item in organisations],
        [item.domain for item in organisations],
        [item.name for item in cast.products],
        [item.sku for item in cast.products],
        [item.name for item in cast.projects],
        [item.code for item in cast.projects],
    ):
        assert len(set(values)) == len(values)
    domains = {item.name: item.domain for item in organisations}
    assert all(person.email.endswith(f"@{domains[person.organisation]}") for person in cast.people)
    assert all(person.organisation == cast.home.name and person.department for person in cast.staff)
    assert all(cast.contacts_of(item.name) for item in cast.organisations)
    assert cast.user in cast.staff
    assert {item.owner for item in cast.projects} <= {person.email for person in cast.staff}
    assert all(item.price > 0 for item in cast.products)


@settings(max_examples=40, deadline=None)
@given(st.integers(), st.sampled_from(["small", "medium"]))
def test_nobody_and_nothing_is_there_twice(seed: int, scale: Scale) -> None:
    check(Universe.generate(seed, scale))


def test_nobody_is_there_twice_in_a_large_cast_either() -> None:
    for seed in range(3):
        check(Universe.generate(seed, "large"))


@settings(max_examples=60, deadline=None)
@given(st.integers())
def test_small_casts_have_no_accidental_near_duplicates(seed: int) -> None:
    cast = Universe.generate(seed)

    stems = [item.name.split()[0] for item in (cast.home, *cast.organisations)]
    assert len(set(stems)) == len(stems)
