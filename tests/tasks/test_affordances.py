from __future__ import annotations

from dataclasses import replace

import pytest

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.backend import InProcessBackend, Outcome, ToolBackend
from compoworld_core.tasks.affordances import Affordances, Reading, Writing, explore
from tests.tasks.crafted import LIBRARY, changed


def explored(name: str) -> Affordances:
    package = library_package(name)
    return explore(package, InProcessBackend(library_services()[name]), [tool.name for tool in package.spec.tools])


@pytest.fixture(scope="module")
def library_affordances() -> dict[str, Affordances]:
    return {name: explored(name) for name in LIBRARY}


def reading(found: Affordances, tool: str, **by: str) -> Reading:
    return next(item for item in found.readings if item.tool == tool and dict(item.by) == by)


def writing(found: Affordances, tool: str) -> Writing:
    return next(item for item in found.writings if item.tool == tool)


@pytest.mark.parametrize(
    ("service", "tool", "by", "table", "many"),
    [
        ("crm", "get_account", {"account_id": "id"}, "accounts", False),
        ("crm", "search_accounts", {}, "accounts", True),
        ("crm", "search_accounts", {"name": "name"}, "accounts", True),
        ("crm", "search_accounts", {"billing_id": "billing_id"}, "accounts", True),
        ("crm", "find_contact_by_email", {"email": "email"}, "contacts", False),
        ("crm", "list_cases", {"account_id": "account_id"}, "cases", True),
        ("drive", "get_document", {"document_id": "id"}, "documents", False),
        ("drive", "list_documents", {}, "documents", True),
        ("drive", "search_documents", {"owner": "owner"}, "documents", True),
        ("invoicing", "search_customers", {"email": "email"}, "customers", True),
        ("invoicing", "list_payments", {"customer_id": "customer_id"}, "payments", True),
        ("mail", "search_messages", {"sender": "sender"}, "messages", True),
        ("mail", "search_address_book", {"query": "name"}, "address_book", True),
    ],
)
def test_readings_of_the_library_are_found(
    library_affordances: dict[str, Affordances], service: str, tool: str, by: dict[str, str], table: str, many: bool
) -> None:
    found = reading(library_affordances[service], tool, **by)

    assert (found.table, found.many) == (table, many)
    assert "id" in found.shows


@pytest.mark.parametrize(
    ("service", "tool", "table", "change", "key", "copies"),
    [
        ("crm", "create_case", "cases", "created", None, {"account_id", "kind", "summary"}),
        ("crm", "log_activity", "activities", "created", None, {"account_id", "kind", "subject"}),
        ("crm", "update_contact", "contacts", "updated", "contact_id", {"email"}),
        ("crm", "close_case", "cases", "updated", "case_id", {"resolution"}),
        ("drive", "create_document", "documents", "created", None, {"title", "text"}),
        ("drive", "add_document_comment", "comments", "created", None, {"document_id", "text"}),
        ("invoicing", "create_refund", "refunds", "created", None, {"payment_id", "amount", "reason"}),
        ("invoicing", "place_customer_on_hold", "customers", "updated", "customer_id", {"reason"}),
        ("mail", "send_message", "messages", "created", None, {"to", "subject", "body"}),
        ("mail", "create_draft", "drafts", "created", None, {"body"}),
        ("mail", "delete_draft", "drafts", "deleted", "draft_id", set()),
    ],
)
def test_writings_of_the_library_are_found(
    library_affordances: dict[str, Affordances],
    service: str,
    tool: str,
    table: str,
    change: str,
    key: str | None,
    copies: set[str],
) -> None:
    found = writing(library_affordances[service], tool)

    assert (found.table, found.change, found.key) == (table, change, key)
    assert copies <= set(found.copies)


def test_what_a_call_always_leaves_and_needs_is_noted(library_affordances: dict[str, Affordances]) -> None:
    hold = writing(library_affordances["invoicing"], "place_customer_on_hold")
    reopen = writing(library_affordances["crm"], "reopen_case")

    assert dict(hold.sets) == {"status": "on_hold"}
    assert dict(reopen.needs) == {"status": "closed"}


def test_only_the_given_tools_are_tried() -> None:
    package = library_package("crm")

    found = explore(package, InProcessBackend(library_services()["crm"]), ["get_account", "close_case"])

    assert {item.tool for item in found.readings} == {"get_account"}
    assert {item.tool for item in found.writings} == {"close_case"}


class Renamed:
    """A backend whose tools have other names."""

    def __init__(self, inner: ToolBackend, names: dict[str, str]) -> None:
        self.new_state = inner.new_state
        self.populate = inner.populate
        self._inner = inner
        self._names = names

    def execute(self, state: object, tool: str, arguments: object, context: object) -> Outcome:
        return self._inner.execute(state, self._names[tool], arguments, context)  # type: ignore[arg-type]


@pytest.mark.parametrize("service", ["crm", "mail"])
def test_nothing_depends_on_what_tools_are_called(service: str, library_affordances: dict[str, Affordances]) -> None:
    package = library_package(service)
    names = {tool.name: f"t{number:03}" for number, tool in enumerate(package.spec.tools)}
    tools = tuple(changed(tool, name=names[tool.name]) for tool in package.spec.tools)
    renamed = changed(package, spec=changed(package.spec, tools=tools))
    backend = Renamed(InProcessBackend(library_services()[service]), {new: old for old, new in names.items()})

    found = explore(renamed, backend, list(names.values()))

    plain = library_affordances[service]
    own = {new: old for old, new in names.items()}
    assert {repr(replace(item, tool=own[item.tool])) for item in found.writings} == set(map(repr, plain.writings))
    readings = [replace(item, tool=own[item.tool]) for item in found.readings]
    assert len(readings) == len(plain.readings)
    assert all(item in plain.readings for item in readings)


def test_exploring_twice_finds_the_same(library_affordances: dict[str, Affordances]) -> None:
    again = explored("drive")

    assert again.readings == library_affordances["drive"].readings
    assert again.writings == library_affordances["drive"].writings
