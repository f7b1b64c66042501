"""A small helpdesk as source text, with its tool bodies left open, and the means to run what fills them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from textwrap import indent
from types import ModuleType
from typing import Any

from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.service import Service

HEADER = """
import hashlib
from typing import Annotated, Any, Literal

from compoworld_core.services.sdk import *

CustomerId = Annotated[str, Id("customer", prefix="cus")]
TicketId = Annotated[str, Id("ticket", prefix="tkt")]
CounterId = Annotated[str, Id("counter", prefix="cnt")]
Status = Literal["open", "pending", "solved"]

class Customer(Entity):
    id: CustomerId
    name: PersonName
    email: Email
    city: City

class Ticket(Entity):
    id: TicketId
    customer_id: CustomerId
    subject: Title
    status: Status = "open"

class Counter(Entity):
    id: CounterId
    value: Quantity

class HelpdeskState(State):
    customers: Table[Customer]
    tickets: Table[Ticket]
    counters: Table[Counter]

def words(given):
    return "|".join(f"{key}={given[key]}" for key in sorted(given))

def number(given):
    return int(hashlib.sha256(words(given).encode()).hexdigest()[:6], 16)

def view(row):
    return row.model_dump(mode="json")
"""

SIGNATURES: dict[str, tuple[str, str]] = {
    "get_ticket": ("read", "ticket_id: TicketId"),
    "search_tickets": ("read", "query: Query, limit: Limit = 10"),
    "list_tickets": ("read", "status: Status | None = None, limit: Limit = 10"),
    "count_tickets": ("read", "status: Status"),
    "get_customer": ("read", "customer_id: CustomerId"),
    "find_customer": ("read", "email: Email"),
    "create_ticket": ("write", "customer_id: CustomerId, subject: Title"),
    "update_ticket": ("write", "ticket_id: TicketId, status: Status"),
    "delete_ticket": ("write", "ticket_id: TicketId"),
    "close_all": ("write", "status: Status = 'open'"),
}

HONEST: dict[str, str] = {
    "get_ticket": "return view(self.state.tickets.get(ticket_id))",
    "search_tickets": """
found = self.state.tickets.where(lambda row: query.lower() in row.subject.lower())
return [view(row) for row in found[:limit]]
""",
    "list_tickets": """
return [view(row) for row in self.state.tickets.where(lambda row: status in (None, row.status))[:limit]]
""",
    "count_tickets": "return {'status': status, 'count': len(self.state.tickets.where(status=status))}",
    "get_customer": "return view(self.state.customers.get(customer_id))",
    "find_customer": """
found = self.state.customers.first(email=email)
if found is None:
    raise NotFound(f"no customer with address {email!r}")
return view(found)
""",
    "create_ticket": "return view(self.state.tickets.insert(customer_id=customer_id, subject=subject))",
    "update_ticket": "return view(self.state.tickets.update(ticket_id, status=status))",
    "delete_ticket": """
self.state.tickets.delete(ticket_id)
return {"deleted": ticket_id}
""",
    "close_all": """
rows = self.state.tickets.where(status=status)
for row in rows:
    self.state.tickets.update(row.id, status="solved")
return {"closed": len(rows)}
""",
}

READS = tuple(name for name, (effect, _) in SIGNATURES.items() if effect == "read")
WRITES = tuple(name for name, (effect, _) in SIGNATURES.items() if effect == "write")


def source(bodies: Mapping[str, str], extra: str = "") -> str:
    """Source text of a helpdesk; each body sees the arguments and, as `given`, all of them in a dict."""
    parts = [HEADER, extra, 'class Helpdesk(Service[HelpdeskState]):\n    """Tickets."""\n    domain = "support"\n']
    for name, body in bodies.items():
        effect, parameters = SIGNATURES[name]
        names = ", ".join(
            f"{part.split(':')[0].strip()!r}: {part.split(':')[0].strip()}" for part in _split(parameters)
        )
        lines = [
            f'@tool(effect="{effect}")',
            f"def {name}(self, {parameters}) -> Any:",
            f'    """{name.replace("_", " ").capitalize()}."""',
            f"    given = {{{names}}}",
            f'    name = "{name}"',
            indent(body.strip(), "    "),
        ]
        parts.append(indent("\n".join(lines), "    ") + "\n")
    return "\n".join(parts)


def _split(parameters: str) -> list[str]:
    return [part for part in parameters.split(", ") if ":" in part]


def load(text: str, **spec_changes: Any) -> tuple[ServicePackage, InProcessBackend]:
    """The package of a source text, and a backend that runs it.

    Args:
        text: The module.
        spec_changes: New fields of tool specs by tool: `get_ticket={"returns": …}`.
    """
    module = ModuleType("planted_service")
    sys.modules[module.__name__] = module
    exec(compile(text, "planted_service.py", "exec"), module.__dict__)
    service: type[Service[Any]] = module.__dict__["Helpdesk"]
    spec = service.spec()
    tools = tuple(item.model_copy(update=spec_changes.get(item.name, {})) for item in spec.tools)
    package = ServicePackage(
        name="helpdesk",
        origin="library",
        author="planted",
        code={"service.py": text},
        spec=spec.model_copy(update={"tools": tools}),
        tables=service.state_class.declaration()[0],
    )
    return package, InProcessBackend(service)


def helpdesk(changed: Mapping[str, str] | None = None, extra: str = "", **spec_changes: Any) -> tuple[Any, Any]:
    """The honest helpdesk, with some bodies replaced."""
    return load(source({**HONEST, **(changed or {})}, extra), **spec_changes)
