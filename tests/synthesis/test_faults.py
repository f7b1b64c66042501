"""Do checks find what a careless author gets wrong?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from compoworld_core.services.host.allowlist import check_source
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.specs.sources import JsonlSource, read_specs
from compoworld_core.specs.sources.bundled import BundledSource
from compoworld_core.synthesis.admission import admit
from compoworld_core.synthesis.author import Draft
from compoworld_core.synthesis.faults import all_faults, draw_faults
from compoworld_core.synthesis.mutation import Found, Opened, difference, seek, tally, with_mutation_scores
from compoworld_core.synthesis.rules import RulesAuthor
from tests.synthesis.rules.drafts import start

SERVERS = Path(__file__).parents[2].parent / "shared" / "corpus" / "mcp-dev.jsonl.gz"


@cache
def bundled() -> dict[str, ServiceSpec]:
    return {spec.name: spec for spec in read_specs(BundledSource())[0]}


class Bench:
    """A service drafted from a spec, and others made of the same spec from other sources; all run in process."""

    def __init__(self, spec: ServiceSpec) -> None:
        self.spec = spec
        self.draft = RulesAuthor().write(spec)
        self.opened = self._open(self.draft)

    def _open(self, draft: Draft) -> Opened:
        running = start(self.spec, draft)
        return running.package, running.backend

    def build(self, package: object, source: str) -> Opened:
        return self._open(self.draft.model_copy(update={"source": source}))

    def seed(self, count: int, word: str = "faults") -> list[Found]:
        admissions = admit(*self.opened)
        faults = draw_faults(self.draft.source, count, random.Random(f"{word}/{self.spec.name}"))
        return [seek(self.opened, admissions, fault, self.build) for fault in faults]


def rate(found: Iterable[Found]) -> tuple[int, float]:
    """How many faults show, and the share of these that was caught."""
    outcomes = Counter(item.outcome for item in found)
    shown = outcomes["caught"] + outcomes["missed"]
    return shown, outcomes["caught"] / shown


def missed(found: Iterable[Found]) -> list[str]:
    return [
        f"{item.fault.kind} in {item.fault.place}: {item.fault.detail}" for item in found if item.outcome == "missed"
    ]


@pytest.mark.parametrize("name", ["expense_claims", "issue_board"])
def test_checks_catch_seeded_faults(name: str) -> None:
    found = Bench(bundled()[name]).seed(6)

    shown, share = rate(found)
    assert shown >= 4
    assert share >= 0.9, missed(found)


@pytest.mark.parametrize("name", ["expense_claims", "travel_guide"])
def test_each_fault_is_one_change_that_untrusted_code_may_contain(name: str) -> None:
    source = RulesAuthor().write(bundled()[name]).source
    faults = draw_faults(source, 24, random.Random(1))

    assert len({fault.source for fault in faults}) == len(faults) == 24
    assert len({fault.kind for fault in faults}) >= 12
    for fault in faults:
        check_source(fault.source, "service.py")


def test_the_same_seed_draws_the_same_faults() -> None:
    source = RulesAuthor().write(bundled()["expense_claims"]).source

    assert draw_faults(source, 8, random.Random(1)) == draw_faults(source, 8, random.Random(1))


PLAIN = '''"""Notes."""

from typing import Annotated, Literal

from compoworld_core.services.sdk import Entity, FailedPrecondition, Id, Service, State, Table, table, tool

NoteId = Annotated[str, Id("note")]


class Note(Entity):
    """A note."""

    id: NoteId
    about: NoteId | None = None
    status: Literal["open", "closed"] = "open"
    rank: int = 0


class NotesState(State):
    """Notes."""

    notes: Table[Note] = table(unique=("rank",))


class Notes(Service[NotesState]):
    """Notes."""

    domain = "documents"

    @tool(effect="write", name="close-note")
    def close_note(self, note_id: NoteId) -> Note:
        """Close a note."""
        note = self.state.notes.get(note_id)
        if note.status == "closed":
            raise FailedPrecondition("closed")
        return self.state.notes.update(note.id, status="closed")

    @tool(effect="read")
    def list_notes(self, least: int = 0) -> tuple[Note, ...]:
        """List notes."""
        return tuple(sorted([note for note in self.state.notes if note.rank >= least], key=lambda note: note.rank))
'''


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("guard_removed", "nothing is raised"),
        ("status_swapped", "status='open'"),
        ("write_dropped", "return self.state.notes.get(note.id)"),
        ("wrong_error", "raise NotFound('closed')"),
        ("boundary_moved", "note.rank > least"),
        ("comparison_flipped", "note.rank <= least"),
        ("filter_dropped", "[note for note in self.state.notes]"),
        ("order_reversed", "reverse=True"),
        ("default_changed", "least: int=1"),
        ("unique_dropped", "notes: Table[Note]\n"),
        ("reference_unchecked", "about: str | None"),
    ],
)
def test_a_kind_of_fault_does_what_it_says(kind: str, after: str) -> None:
    sources = [fault.source for fault in all_faults(PLAIN) if fault.kind == kind]

    if kind == "guard_removed":
        assert [source.count("raise") for source in sources] == [0]
    else:
        assert any(after in source for source in sources)


def test_a_fault_knows_its_tool_by_the_name_that_agents_use() -> None:
    assert {fault.tool for fault in all_faults(PLAIN)} == {"", "close-note", "list_notes"}


def test_what_no_call_shows_is_no_fault() -> None:
    bench = Bench(bundled()["expense_claims"])
    same = bench.draft.source.replace("return self.state", "pass\n        return self.state")

    assert difference(bench.opened, bench.build(None, same)) is None


def test_mutation_scores_are_shares_of_each_tools_own_faults() -> None:
    bench = Bench(bundled()["expense_claims"])
    admissions = admit(*bench.opened)

    scored = with_mutation_scores(bench.opened, admissions, bench.build, mutants=4)

    scores = [item.scorecard.mutation_score for item in scored]
    assert [item.outcome for item in scored] == [item.outcome for item in admissions]
    assert 0 < sum(score is not None for score in scores) < len(scores)
    assert all(score is None or 0 <= score <= 1 for score in scores)


@pytest.mark.slow
def test_nine_in_ten_of_many_faults_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    found = [item for spec in bundled().values() for item in Bench(spec).seed(8)]
    shown, share = rate(found)
    with capsys.disabled():
        print(f"\nbundled specs: {share:.1%} of {shown} faults caught: {tally(found)}")  # noqa: T201

    assert shown >= 200
    assert share >= 0.9, missed(found)


@pytest.mark.slow
@pytest.mark.skipif(not SERVERS.exists(), reason="the corpus is not here")
def test_nine_in_ten_faults_in_services_of_real_servers_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[Found] = []
    for spec in read_specs(JsonlSource(SERVERS))[0][::6]:
        bench = Bench(spec) if len(spec.tools) >= 5 and RulesAuthor().write(spec).implemented else None
        found += bench.seed(8) if bench is not None else []
    shown, share = rate(found)
    with capsys.disabled():
        print(f"\nreal servers: {share:.1%} of {shown} faults caught: {tally(found)}")  # noqa: T201

    assert shown >= 200
    assert share >= 0.9, missed(found)
