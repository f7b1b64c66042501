"""Whatever is done to a state and its forks, each behaves like plain dictionaries of its own."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from compoworld_core.errors import ToolError
from compoworld_core.services.table import FIRST_ID
from tests.services.workshop import WorkshopState

NUMBERS = st.one_of(st.none(), st.integers(0, 4))
KEYS = st.integers(FIRST_ID - 1, FIRST_ID + 12).map(lambda number: f"job_{number}")


class Model:
    """The rows of the two tables as dictionaries, with the copy that a rollback or a diff goes back to."""

    def __init__(self) -> None:
        self.jobs: dict[str, tuple[int | None, str | None]] = {}
        self.customers: list[str] = []
        self.counters = [FIRST_ID, FIRST_ID]
        self.writes = 0
        self.committed: tuple[Any, ...] = self.copy()
        self.sealed: dict[str, tuple[int | None, str | None]] = {}

    def copy(self) -> tuple[Any, ...]:
        return dict(self.jobs), list(self.customers), list(self.counters)

    def rollback(self) -> None:
        jobs, customers, counters = self.committed
        self.jobs, self.customers, self.counters = dict(jobs), list(customers), list(counters)

    def fork(self) -> Model:
        twin = Model()
        twin.jobs, twin.customers, twin.counters = self.copy()
        twin.writes, twin.sealed = self.writes, dict(self.sealed)
        twin.committed = twin.copy()
        return twin

    def issue(self) -> str:
        while (key := f"job_{self.counters[1]}") in self.jobs:
            self.counters[1] += 1
        self.counters[1] += 1
        return key

    def allows(self, key: str, number: int | None, customer: str | None) -> bool:
        taken = number is not None and any(number == n for other, (n, _) in self.jobs.items() if other != key)
        return not taken and (customer is None or customer in self.customers)


World = tuple[WorkshopState, Model]


class Tables(RuleBasedStateMachine):
    worlds = Bundle("worlds")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[World] = []

    def track(self, world: World) -> World:
        self.all.append(world)
        return world

    @initialize(target=worlds)
    def begin(self) -> World:
        return self.track((WorkshopState.empty(), Model()))

    @rule(target=worlds, source=worlds)
    def fork(self, source: World) -> World:
        state, model = source
        state.commit()
        _settle(model)
        return self.track((state.fork(), model.fork()))

    @rule(target=worlds, world=consumes(worlds))
    def seal(self, world: World) -> Any:
        state, model = world
        state.commit()
        _settle(model)
        state.seal()
        model.sealed = dict(model.jobs)
        return multiple(world)

    @rule(world=worlds)
    def add_customer(self, world: World) -> None:
        state, model = world
        key = f"cus_{model.counters[0]}"
        assert state.customers.insert(name="N", email=f"{key}@a.example").id == key
        model.counters[0] += 1
        model.customers.append(key)

    @rule(world=worlds, number=NUMBERS, customer=st.one_of(st.none(), st.integers(0, 2)), key=st.none() | KEYS)
    def insert(self, world: World, number: int | None, customer: int | None, key: str | None) -> None:
        state, model = world
        reference = None if customer is None else f"cus_{FIRST_ID + customer}"
        counters = list(model.counters)
        wanted = key or model.issue()
        if wanted in model.jobs or not model.allows(wanted, number, reference):
            model.counters = counters
            _refused(lambda: state.jobs.insert(id=key, title="J", key=wanted, number=number, customer_id=reference))
            return
        made = state.jobs.insert(id=key, title="J", key=wanted, number=number, customer_id=reference)
        assert made.id == wanted
        model.jobs[wanted] = (number, reference)

    @rule(world=worlds, key=KEYS, number=NUMBERS)
    def update(self, world: World, key: str, number: int | None) -> None:
        state, model = world
        if key not in model.jobs or not model.allows(key, number, None):
            _refused(lambda: state.jobs.update(key, number=number))
            return
        state.jobs.update(key, number=number)
        model.jobs[key] = (number, model.jobs[key][1])

    @rule(world=worlds, key=KEYS)
    def delete(self, world: World, key: str) -> None:
        state, model = world
        if key not in model.jobs:
            _refused(lambda: state.jobs.delete(key))
            return
        state.jobs.delete(key)
        del model.jobs[key]

    @rule(world=worlds)
    def delete_customer(self, world: World) -> None:
        state, model = world
        for key in list(model.customers):
            if any(key == reference for _, reference in model.jobs.values()):
                _refused(lambda key=key: state.customers.delete(key))
            else:
                state.customers.delete(key)
                model.customers.remove(key)

    @rule(world=worlds)
    def commit(self, world: World) -> None:
        state, model = world
        before = model.committed[0]
        changes = {c.key: (c.before is None, c.after is None) for c in state.commit() if c.table.name == "jobs"}
        expected = {
            key: (key not in before, key not in model.jobs)
            for key in before.keys() | model.jobs.keys()
            if before.get(key) != model.jobs.get(key)
        }
        assert changes == expected
        _settle(model)

    @rule(world=worlds)
    def rollback(self, world: World) -> None:
        state, model = world
        state.rollback()
        model.rollback()

    @invariant()
    def every_state_is_like_its_model(self) -> None:
        for state, model in self.all:
            jobs = {row.id: (row.number, row.customer_id) for row in state.jobs}
            assert jobs == model.jobs
            assert len(state.jobs) == len(jobs) == len(list(state.jobs))
            assert [row.id for row in state.customers] == model.customers
            assert [state.customers.counter, state.jobs.counter] == model.counters
            assert state.writes == model.writes
            assert model.sealed == {row.id: (row.number, row.customer_id) for row in state.jobs.base_rows()}
            differing = {key for key in jobs.keys() | model.sealed.keys() if jobs.get(key) != model.sealed.get(key)}
            assert {key for key, _, _ in state.jobs.changed()} == differing
            order = [row.id for row in state.jobs]
            for number in (None, 0, 1):
                found = [row.id for row in state.jobs.where(number=number)]
                assert found == [key for key in order if jobs[key][0] == number]
            for key in jobs:
                assert key in state.jobs
                assert state.jobs.get(key).id == key


def _settle(model: Model) -> None:
    jobs, customers, _ = model.committed
    if jobs != model.jobs or customers != model.customers:
        model.writes += 1
    model.committed = model.copy()


def _refused(write: Any) -> None:
    try:
        write()
    except ToolError:
        return
    raise AssertionError("the write should have been refused")


TestTables = Tables.TestCase
TestTables.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
