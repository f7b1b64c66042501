"""Misbehaving tools: one fault each in an otherwise honest helpdesk, with the check that must find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        tool: The tool that has it.
        check: The check that finds it.
        detail: Words that the evidence holds.
        bodies: Replaced tool bodies.
        extra: Module text before the service class.
        spec: Changed fields of tool specs.
    """

    tool: str
    check: str
    detail: str
    bodies: Mapping[str, str] = {}
    extra: str = ""
    spec: Mapping[str, Any] = {}


_INTEGER = {"type": "integer"}
_STATUS = {"type": "string", "enum": ["open", "pending", "solved", "lost"]}
_SHORT_QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string", "maxLength": 40, "x-semantic": "query"}},
    "required": ["query"],
    "additionalProperties": False,
}
_RENAMED = {
    "type": "object",
    "properties": {"ticket_id": {"type": "string", "x-semantic": "id:ticket"}, "state": _STATUS},
    "required": ["ticket_id", "state"],
}

FAULTS: dict[str, Fault] = {
    "raises an untyped error": Fault(
        "get_ticket",
        "never_breaks",
        "KeyError",
        {"get_ticket": "return {row.id: view(row) for row in self.state.tickets}[ticket_id]"},
    ),
    "raises on odd text only": Fault(
        "search_tickets",
        "never_breaks",
        "UnicodeEncodeError",
        {
            "search_tickets": "part = query.encode('latin-1')\n"
            "return [view(row) for row in self.state.tickets if part in row.subject.encode()]"
        },
    ),
    "a read that writes": Fault(
        "get_ticket",
        "never_breaks",
        "declared read-only but wrote",
        {"get_ticket": "return view(self.state.tickets.update(ticket_id, subject='seen'))"},
    ),
    "differs from call to call": Fault(
        "get_ticket",
        "is_repeatable",
        "differently the second time",
        {"get_ticket": "CALLS.append(1)\nreturn {**view(self.state.tickets.get(ticket_id)), 'call': len(CALLS)}"},
        "CALLS = []",
    ),
    "worlds share the last search": Fault(
        "count_tickets",
        "keeps_worlds_apart",
        "another world",
        {
            "create_ticket": "row = self.state.tickets.insert(customer_id=customer_id, subject=subject)\n"
            "SEEN[customer_id] = subject\nreturn view(row)",
            "get_customer": "row = view(self.state.customers.get(customer_id))\nLAST[:] = [self.user.name]\nreturn row",
            "count_tickets": "return {'count': len(self.state.tickets.where(status=status)), 'by': ''.join(LAST)}",
        },
        "SEEN = {}\nLAST = []",
    ),
    "stale reads": Fault(
        "get_ticket",
        "read_depends_on_rows",
        "whatever the rows were",
        {
            "get_ticket": "if ticket_id not in CACHE:\n    CACHE[ticket_id] = view(self.state.tickets.get(ticket_id))\n"
            "return CACHE[ticket_id]"
        },
        "CACHE = {}",
    ),
    "reads miss new rows": Fault(
        "get_ticket",
        "follows_rows",
        "not_found for a row that create_ticket created",
        {
            "get_ticket": "if ticket_id not in [row.id for row in list(self.state.tickets)[:10]]:\n"
            "    raise NotFound('no such ticket')\nreturn view(self.state.tickets.get(ticket_id))"
        },
    ),
    "result is not as declared": Fault(
        "count_tickets", "answers_as_declared", "does not match", spec={"count_tickets": {"returns": _INTEGER}}
    ),
    "result is not JSON": Fault(
        "count_tickets",
        "answers_as_declared",
        "nan",
        {
            "count_tickets": "count = len(self.state.tickets.where(status=status))\n"
            "return {'count': count, 'mean': float('nan')}"
        },
    ),
    "result without bounds": Fault(
        "get_ticket",
        "answers_as_declared",
        "bytes long",
        {"get_ticket": "return [view(self.state.tickets.get(ticket_id))] * 20000"},
    ),
    "accepts what its schema forbids": Fault(
        "search_tickets",
        "survives_hostile_calls",
        "boundary(query)",
        spec={"search_tickets": {"parameters": _SHORT_QUERY}},
    ),
    "refuses what its schema requires": Fault(
        "update_ticket",
        "has_normal_call",
        "invalid_arguments",
        spec={"update_ticket": {"parameters": _RENAMED}},
    ),
    "an error that leaves a row behind": Fault(
        "update_ticket",
        "errors_change_nothing",
        "refused and yet changed",
        {
            "update_ticket": "row = self.state.tickets.find(ticket_id)\n"
            "if row is None:\n    self.state.tickets.counter += 1\n    raise NotFound('no such ticket')\n"
            "return view(self.state.tickets.update(ticket_id, status=status))"
        },
    ),
    "a write that ignores an argument": Fault(
        "create_ticket",
        "required_arguments_matter",
        "subject",
        {
            "create_ticket": "row = self.state.tickets.insert(customer_id=customer_id, subject='New')\n"
            "return {**view(row), 'subject': subject}"
        },
    ),
    "a read that ignores its filters": Fault(
        "list_tickets",
        "some_argument_matters",
        "no argument",
        {"list_tickets": "return [view(row) for row in self.state.tickets]"},
    ),
    "a delete that deletes nothing": Fault(
        "delete_ticket",
        "write_changes_rows",
        "changed nothing",
        {"delete_ticket": "self.state.tickets.get(ticket_id)\nreturn {'deleted': ticket_id}"},
    ),
    "an update of another row": Fault(
        "update_ticket",
        "required_arguments_matter",
        "ticket_id",
        {
            "update_ticket": "row = list(self.state.tickets)[-1]\n"
            "return view(self.state.tickets.update(row.id, status=status))"
        },
    ),
    "shows rows for ids that nothing has": Fault(
        "get_ticket",
        "knows_dangling_ids",
        "ticket_id",
        {"get_ticket": "return view(self.state.tickets.find(ticket_id) or next(iter(self.state.tickets)))"},
    ),
    "picks rows by the hash of a text": Fault(
        "search_tickets",
        "knows_nonsense",
        "query",
        {"search_tickets": "rows = list(self.state.tickets)\nreturn view(rows[number(given) % len(rows)])"},
    ),
}
