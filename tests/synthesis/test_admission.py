import json
import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.backend import InProcessBackend, Outcome, broken
from compoworld_core.services.context import Context
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.storage.digest import canonical_json
from compoworld_core.synthesis.admission import Admission, admit
from compoworld_core.synthesis.bench import MAX_CALLS
from tests.synthesis.planted.faults import FAULTS
from tests.synthesis.planted.helpdesk import SIGNATURES, helpdesk


def _by_tool(admissions: tuple[Admission, ...]) -> dict[str, Admission]:
    return {item.tool: item for item in admissions}


class _Host(InProcessBackend):
    """A backend on which some tools do not survive their calls; it counts calls."""

    def __init__(self, inner: InProcessBackend, lost: frozenset[str] = frozenset(), *, populates: bool = True) -> None:
        self._inner = inner
        self._lost = lost
        self._populates = populates
        self.calls: Counter[str] = Counter()

    def new_state(self) -> State:
        return self._inner.new_state()

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        if not self._populates:
            raise RuntimeError("no rows today")
        self._inner.populate(state, universe, rng, start)

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        self.calls[tool] += 1
        if tool in self._lost:
            return broken("the host was killed after 5 s")
        return self._inner.execute(state, tool, arguments, context)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_the_right_check(name: str) -> None:
    fault = FAULTS[name]

    admissions = _by_tool(admit(*helpdesk(fault.bodies, fault.extra, **fault.spec)))

    failed = {item.check: item.detail for item in admissions[fault.tool].checks if not item.passed}
    assert admissions[fault.tool].outcome == "quarantined"
    assert fault.detail in failed[fault.check]


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_costs_no_other_tool(name: str) -> None:
    fault = FAULTS[name]

    admissions = admit(*helpdesk(fault.bodies, fault.extra, **fault.spec))

    assert {item.tool for item in admissions if item.outcome != "verified"} == {fault.tool}


def test_the_same_package_and_seed_give_the_same_admissions() -> None:
    one = canonical_json(admit(*helpdesk(), seed=3))
    other = canonical_json(admit(*helpdesk(), seed=3))

    assert one == other


def test_a_lost_host_ends_the_testing_of_that_tool_only() -> None:
    package, backend = helpdesk()
    host = _Host(backend, frozenset({"get_ticket", "create_ticket"}))

    admissions = _by_tool(admit(package, host))

    assert admissions["get_ticket"].reason == "never_breaks: the host was killed after 5 s"
    assert {item.tool for item in admissions.values() if item.outcome != "verified"} == {"get_ticket", "create_ticket"}
    assert (host.calls["get_ticket"], host.calls["create_ticket"]) == (1, 1)


def test_a_service_that_cannot_be_populated_is_quarantined_as_a_whole() -> None:
    package, backend = helpdesk()

    admissions = admit(package, _Host(backend, populates=False))

    assert {item.outcome for item in admissions} == {"quarantined"}
    assert admissions[0].reason == "populates: the service can't be populated: RuntimeError: no rows today"


def test_a_tool_left_to_a_world_model_is_not_called() -> None:
    package, backend = helpdesk()
    host = _Host(backend)

    admissions = admit(package, host, candidates={"search_tickets": "asks the web", "send_fax": "dials a number"})

    assert [item.tool for item in admissions] == [*sorted(SIGNATURES), "send_fax"]
    assert {item.tool: item.reason for item in admissions if item.outcome == "world_model"} == {
        "search_tickets": "asks the web",
        "send_fax": "dials a number",
    }
    assert host.calls["search_tickets"] == 0


def _claim(tool: str, arguments: Mapping[str, Any], **expect: Any) -> dict[str, Any]:
    return {
        "name": f"{tool} as its author sees it",
        "tool": tool,
        "kind": "error" if "error" in expect else "normal",
        "steps": [{"tool": tool, "arguments": arguments, "expect": expect}],
    }


def test_a_failing_self_test_quarantines_its_tool() -> None:
    package, backend = helpdesk()
    tests = [
        _claim("get_ticket", {"ticket_id": "tkt_1"}, error="permission_denied"),
        _claim("get_customer", {"customer_id": "cus_1"}, error="not_found"),
    ]

    admissions = _by_tool(admit(package.model_copy(update={"tests": json.dumps(tests)}), backend))

    assert admissions["get_ticket"].reason.startswith("self_tests: get_ticket as its author sees it: step 1")
    assert admissions["get_customer"].outcome == "verified"
    assert admissions["get_customer"].scorecard.self_tests == 1


def test_unreadable_self_tests_quarantine_the_service() -> None:
    package, backend = helpdesk()

    admissions = admit(package.model_copy(update={"tests": "[{}]"}), backend)

    assert {item.reason.split(":")[0] for item in admissions} == {"self_tests"}


def test_a_self_test_that_breaks_the_host_ends_the_testing() -> None:
    package, backend = helpdesk()
    host = _Host(backend, frozenset({"get_ticket"}))
    tests = [_claim("get_ticket", {"ticket_id": "tkt_1"}, error="not_found")] * 3

    admissions = _by_tool(admit(package.model_copy(update={"tests": json.dumps(tests)}), host))

    assert admissions["get_ticket"].outcome == "quarantined"
    assert host.calls["get_ticket"] == 1


def test_the_scorecard_counts_what_was_done() -> None:
    card = _by_tool(admit(*helpdesk()))["update_ticket"].scorecard

    assert (card.arguments, card.influential_arguments) == (2, 2)
    assert 0 < card.illegal_cases < card.cases <= card.calls <= MAX_CALLS
    assert card.error_codes == ("invalid_arguments", "not_found")


@pytest.mark.parametrize("name", library_services())
def test_the_library_is_verified_at_modest_cost(name: str) -> None:
    admissions = admit(library_package(name), InProcessBackend(library_services()[name]))

    rejected = {item.tool: item.reason for item in admissions if item.outcome != "verified"}
    calls = [item.scorecard.calls for item in admissions]
    assert len(rejected) <= len(admissions) // 20, rejected
    assert sum(calls) / len(calls) <= 150
