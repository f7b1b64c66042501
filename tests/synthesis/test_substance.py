import pytest

from compoworld_core.synthesis.admission import Admission, admit
from compoworld_core.synthesis.influence import parts, varying
from tests.synthesis.planted.constants import STYLES, constant_service
from tests.synthesis.planted.helpdesk import helpdesk, load


def _by_tool(admissions: tuple[Admission, ...]) -> dict[str, Admission]:
    return {item.tool: item for item in admissions}


@pytest.mark.parametrize("style", STYLES)
def test_no_tool_of_a_constant_service_is_verified(style: str) -> None:
    admissions = admit(*load(constant_service(style)))

    assert [item.tool for item in admissions if item.outcome == "verified"] == []


def test_there_are_many_ways_to_be_constant() -> None:
    assert len(STYLES) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_no_seed_lets_a_constant_service_pass(seed: int) -> None:
    verified = {
        (style, item.tool)
        for style in STYLES
        for item in admit(*load(constant_service(style)), seed=seed)
        if item.outcome == "verified"
    }

    assert verified == set()


@pytest.mark.parametrize("seed", range(3))
def test_all_tools_of_an_honest_service_are_verified(seed: int) -> None:
    admissions = admit(*helpdesk(), seed=seed)

    assert {item.tool: item.reason for item in admissions if item.outcome != "verified"} == {}


def test_an_option_without_influence_is_evidence_and_no_gate() -> None:
    body = "return [view(row) for row in self.state.tickets.where(lambda row: status in (None, row.status))]"

    admission = _by_tool(admit(*helpdesk({"list_tickets": body})))["list_tickets"]

    finding = next(item for item in admission.checks if item.check == "options_matter")
    assert admission.outcome == "verified"
    assert (finding.passed, finding.is_gate, finding.detail) == (False, False, "no influence seen: limit")


def test_a_pure_computation_is_not_verified() -> None:
    body = "return {'length': len(query), 'words': query.split()}"

    admission = _by_tool(admit(*helpdesk({"search_tickets": body})))["search_tickets"]

    assert admission.reason.startswith("read_depends_on_rows")


def test_a_read_of_nothing_but_keys_has_substance() -> None:
    """The answer holds ids only, so it follows rows only where ids differ."""
    body = "return [row.id for row in self.state.tickets.where(status=status)]"

    assert _by_tool(admit(*helpdesk({"count_tickets": body})))["count_tickets"].outcome == "verified"


def test_an_echo_is_masked_before_answers_are_compared() -> None:
    one = parts(
        {"message": "Found it for Ada", "rows": [{"owner": "Ada", "size": 3}]}, {"owner": "Ada"}, {"owner": "Bob"}
    )
    other = parts(
        {"message": "Found it for Bob", "rows": [{"owner": "Bob", "size": 4}]}, {"owner": "Ada"}, {"owner": "Bob"}
    )

    assert varying(one, other) == {"/rows/*/size"}


def test_an_argument_that_happens_to_be_in_a_row_is_no_influence() -> None:
    row = {"status": "open", "subject": "Printer"}
    one = parts(row, {"status": "open"}, {"status": "solved"})
    other = parts(row, {"status": "open"}, {"status": "solved"})

    assert not varying(one, other)
