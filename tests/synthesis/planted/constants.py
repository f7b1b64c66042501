"""Constant-return services: how a mock pretends, from the blunt to the sneaky. None has a tool worth verifying.

Each is (body of every read, body of every write); bodies see the arguments as `given` and the tool's name as `name`.
"""

from __future__ import annotations

from tests.synthesis.planted.helpdesk import READS, WRITES, source

_FIRST_TICKET = "view(next(iter(self.state.tickets)))"
_CHECKED = """
for table, key in (("tickets", "ticket_id"), ("customers", "customer_id")):
    if key in given:
        getattr(self.state, table).get(given[key])
"""
_BUMP = """
row = next(iter(self.state.counters))
self.state.counters.update(row.id, value=row.value + 1)
"""
_OK = 'return {"status": "ok"}'

STYLES: dict[str, tuple[str, str]] = {
    "constant": (_OK, _OK),
    "nothing": ("return None", "return None"),
    "empty list": ("return []", "return []"),
    "constant per tool": ("return {'tool': name, 'id': 'tkt_1'}", "return {'tool': name, 'id': 'tkt_1'}"),
    "echo": ("return {'request': given, 'result': 'done'}", "return {'request': given, 'result': 'done'}"),
    "echo in a sentence": (
        "return f'Found one result for {words(given)}.'",
        "return f'Done: {words(given)}.'",
    ),
    "echo, transformed": (
        "return {key.upper(): str(value).upper()[::-1] for key, value in given.items()}",
        "return {key.upper(): str(value).title() for key, value in given.items()}",
    ),
    "lengths of the arguments": (
        "return {key: len(str(value)) for key, value in given.items()}",
        "return sum(len(str(value)) for value in given.values())",
    ),
    "random": ("return {'score': self.rng.random()}", "return {'id': self.rng.randint(1, 10**9)}"),
    "random choice of phrases": (
        "return self.rng.choice(['all good', 'nothing found', 'three results'])",
        "return {'message': self.rng.choice(['saved', 'queued', 'stored'])}",
    ),
    "clock": ("return {'at': self.now.isoformat(), 'ok': True}", "return {'saved_at': self.now.isoformat()}"),
    "user and seed": (
        "return {'user': self.user.name, 'world': self.context.seed}",
        "return {'by': self.user.email, 'world': self.context.seed}",
    ),
    "hash of the arguments": ("return {'id': f'tkt_{number(given)}'}", "return {'id': f'tkt_{number(given)}'}"),
    "list as long as the hash says": (
        "return [{'id': f'tkt_{place}'} for place in range(number(given) % 5)]",
        "return {'affected': number(given) % 5}",
    ),
    "canned answers by argument": (
        "return {'tkt_1001': 'open', 'tkt_1002': 'solved', 'open': 4}.get(str(next(iter(given.values()))), 'pending')",
        "return {'tkt_1001': 'done', 'tkt_1002': 'kept'}.get(str(next(iter(given.values()))), 'queued')",
    ),
    "ids are checked, answers are constant": (_CHECKED + _OK, _CHECKED + _OK),
    "ids are checked, answers are echoed": (
        _CHECKED + "return {**given, 'subject': 'Printer on fire'}",
        _CHECKED + "return {**given, 'saved': True}",
    ),
    "blank text is refused, the rest is constant": (
        "if any(value == '' for value in given.values()):\n    raise InvalidArguments('blank')\n" + _OK,
        "if any(value == '' for value in given.values()):\n    raise InvalidArguments('blank')\n" + _OK,
    ),
    "every second call is refused": (
        "if number(given) % 2:\n    raise NotFound('nothing')\n" + _OK,
        "if number(given) % 2:\n    raise FailedPrecondition('busy')\n" + _OK,
    ),
    "writes store nothing": (
        "return {'tickets': [], 'total': 0}",
        "return {'id': 'tkt_1011', 'status': 'open', **given}",
    ),
    "writes build a row and drop it": (
        _OK,
        "return view(Ticket(id='tkt_1011', customer_id='cus_1001', subject=words(given)))",
    ),
    "writes are taken back": (
        _OK,
        "row = next(iter(self.state.tickets))\n"
        "self.state.tickets.update(row.id, subject='x')\n"
        "self.state.tickets.update(row.id, subject=row.subject)\n" + _OK,
    ),
    "writes bump a counter": (_OK, _BUMP + _OK),
    "writes bump a counter and echo": ("return {'request': given}", _BUMP + "return {**given, 'saved': True}"),
    "writes bump a counter and hash": (
        "return {'id': number(given)}",
        _BUMP + "return {'id': f'tkt_{number(given)}'}",
    ),
    "writes check ids and bump a counter": (_CHECKED + _OK, _CHECKED + _BUMP + "return {**given, 'saved': True}"),
    "writes bump a counter and return it": (
        "return {'calls': 3}",
        _BUMP + "return {'revision': self.state.counters.get(row.id).value}",
    ),
    "writes add the same row": (
        _OK,
        "customer = next(iter(self.state.customers))\n"
        "return view(self.state.tickets.insert(customer_id=customer.id, subject='New ticket'))",
    ),
    "writes store a hash": (
        "return {'id': number(given)}",
        "row = next(iter(self.state.counters))\nself.state.counters.update(row.id, value=number(given))\n" + _OK,
    ),
    "writes change the first row": (
        f"return {_FIRST_TICKET}",
        "row = next(iter(self.state.tickets))\n"
        "return view(self.state.tickets.update(row.id, subject=f'{row.subject[:200]}!'))",
    ),
    "reads show the first row": (f"return {_FIRST_TICKET}", f"return {_FIRST_TICKET}"),
    "reads show the first row and the echo": (
        f"return {{'request': given, 'row': {_FIRST_TICKET}}}",
        f"return {{'request': given, 'row': {_FIRST_TICKET}}}",
    ),
    "reads show the first row and the hash": (
        f"return {{'etag': number(given), 'row': {_FIRST_TICKET}}}",
        f"return {{'etag': number(given), 'row': {_FIRST_TICKET}}}",
    ),
    "ids are checked, reads show the first row": (_CHECKED + f"return {_FIRST_TICKET}", _CHECKED + _OK),
    "reads show all rows": (
        "return [view(row) for row in self.state.tickets]",
        "return [view(row) for row in self.state.tickets]",
    ),
    "reads count rows": (
        "return {'total': len(self.state.tickets), 'request': given}",
        "return {'total': len(self.state.tickets)}",
    ),
    "reads show a random row": (
        "return view(self.rng.choice(list(self.state.tickets)))",
        "return view(self.rng.choice(list(self.state.tickets)))",
    ),
}


def constant_service(style: str) -> str:
    """Source text of the helpdesk in one style."""
    read, write = STYLES[style]
    return source({**dict.fromkeys(READS, read), **dict.fromkeys(WRITES, write)})
