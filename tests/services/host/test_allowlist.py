"""The static check: what a service module may contain, and the ways around it that are closed."""

from __future__ import annotations

import ast

import pytest

from compoworld_core.services.host import DisallowedCode, check_source
from compoworld_core.services.host.allowlist import MAX_SOURCE_CHARS

HELPDESK = '''
"""Tickets and replies."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Optional

from compoworld_core.services.sdk import (
    Email, Entity, FailedPrecondition, Id, InvalidArguments, NotFound, Page, Service, State, Table, Tag,
    paginate, table, tool
)

TicketId = Annotated[str, Id("ticket", prefix="tkt")]
Status = Literal["open", "pending", "solved"]
MaybeText = str | None
Sorter = Callable[[Any], Any]
ORDER = ("low", "normal", "high")
CLOSED = frozenset({"solved", "cancelled"})
CENT = Decimal("0.01")
WEEK = timedelta(days=7)
WORDS = re.compile(r"[a-z]+", re.IGNORECASE)
WEIGHTS = tuple((name, index) for index, name in enumerate(ORDER))
type = "shadows a builtin, never read at module level"


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


class Ticket(Entity):
    """A request."""

    id: TicketId
    type: Literal["bug", "task"] = "bug"
    requester: Email
    tags: tuple[Tag, ...] = ()
    parent: Optional["TicketId"] = None
    status: Status = "open"
    note: MaybeText = None


class HelpdeskState(State):
    tickets: Table[Ticket] = table(unique=("requester",))


@dataclass(frozen=True)
class Tally:
    name: str
    counts: list[int] = field(default_factory=list)


def _rounded(value: Decimal, *, places: Decimal = CENT) -> Decimal:
    return value.quantize(places, rounding=ROUND_HALF_UP)


class Helpdesk(Service[HelpdeskState]):
    """Customer support tickets and replies."""

    domain = "support"
    _limit = 50

    @tool(effect="read")
    def list_tickets(self, type: str | None = None, filter: str = "", cursor: str = "") -> Page[Ticket]:
        """List tickets."""
        found = self.state.tickets.where(lambda ticket: type is None or ticket.type == type)
        id, input = 1, [ticket for ticket in found if filter.lower() in ticket.note.lower()]
        return paginate(sorted(input, key=lambda ticket: (ticket.status, ticket.id))[id:], 20, cursor)

    @tool(effect="write")
    def solve_ticket(self, ticket_id: TicketId, resolution: str) -> Ticket:
        """Solve a ticket."""
        ticket = self.state.tickets.get(ticket_id)
        if ticket.status in CLOSED:
            raise FailedPrecondition(f"ticket {ticket_id!r} is {ticket.status:>10}")
        counts: Counter[str] = Counter(word for word in WORDS.findall(resolution))
        names = {name: count for name, count in counts.most_common(3)}
        names["first"] = max(names.values(), default=0)
        try:
            share = Decimal(names["first"]) / len(names)
        except (ZeroDivisionError, ValueError) as error:
            raise InvalidArguments("nothing: %s" % error.args) from None
        match ticket:
            case Ticket(status="open", tags=[first, *rest]) if first:
                share += 1
            case _:
                pass
        while share > 10:
            share -= 1
        due = self.now + WEEK
        text = self._text(due.strftime("%Y-%m-%d"), _rounded(share), str(math.floor(2.5)), self.user.name)
        return self.state.tickets.update(ticket_id, status="solved", note=text)

    @staticmethod
    def _text(*parts: object) -> str:
        return " ".join(str(part) for part in parts)
'''

REFUSED = {  # By name: source, what the message says.
    # Imports
    "import": ("import os", "import of 'os'"),
    "import_from": ("from subprocess import run", "import from 'subprocess'"),
    "import_submodule": ("import collections.abc", "from collections.abc import"),
    "import_relative": ("from . import sdk", "import from '.'"),
    "import_star": ("from typing import *", "import of '*'"),
    "import_of_module_through_module": ("from re import enum", "import of 'enum' from 're'"),
    "import_evaluator": ("from typing import get_type_hints", "import of 'get_type_hints'"),
    "import_other_project_module": ("from compoworld_core.services.state import State", "import from"),
    "import_unexported": ("from compoworld_core.services.sdk import State, TypeVar", "import of 'TypeVar'"),
    "import_in_function": ("def f():\n  import os", "import is not allowed"),
    "import_builtins": ("import builtins", "import of 'builtins'"),
    "future_other": ("from __future__ import division", "import of 'division'"),
    "module_through_module": ("import re\nX = re.enum", "re.enum is not allowed"),
    "module_of_module": ("import re\ndef f(): return re.enum.sys.modules", "re.enum is not allowed"),
    "module_as_value": ("import re\ndef f():\n  x = re\n  return x.enum", "may only be used as 're.…'"),
    "module_alias": ("import typing as t\ndef f(): return t.sys", "typing.sys is not allowed"),
    # Builtins
    **{
        f"builtin_{name}": (f"def f(x): return {name}(x)", f"the builtin '{name}' is not allowed")
        for name in (
            "eval exec open compile getattr setattr delattr hasattr globals locals vars dir type super object id hash "
            "input print breakpoint memoryview callable help exit BaseException"
        ).split()
    },
    "builtins_name": ("def f(): return __builtins__", "'__builtins__' is not allowed"),
    "import_function": ("def f(): return __import__('os')", "'__import__' is not allowed"),
    "shadowed_in_another_function": ("def f(type): return type\ndef g(x): return type(x)", "'type' is not allowed"),
    "shadowed_at_module_level": ("type = 1\ndef f(x): return type(x)", "'type' is not allowed"),
    "shadowed_in_class": ("class A:\n  type: str\n  x = type", "'type' is not allowed"),
    "shadowed_by_own_default": ("def f(type=type): return type", "'type' is not allowed"),
    "shadowed_by_lambda_default": ("f = lambda eval=eval: eval", "'eval' is not allowed"),
    "shadowed_by_comprehension": ("def f(): return [type for type in (type,)]", "'type' is not allowed"),
    "shadowed_after_comprehension": ("def f(x): return [type for type in x], type(x)", "'type' is not allowed"),
    "shadowed_by_nested_function": ("def f(x):\n  def g(eval): pass\n  return eval(x)", "'eval' is not allowed"),
    "unknown_name": ("def f(): return nothing", "the name 'nothing' is not known"),
    "wide_letters": ("def f(x): return ｅｖａｌ(x)", "'eval' is not allowed"),
    # Attributes
    "class_of": ("def f(x): return ().__class__.__mro__", "attribute '__class__'"),
    "dict_of": ("def f(x): return x.__dict__", "attribute '__dict__'"),
    "dunder_in_f_string": ("def f(x): return f'{x.__class__}'", "attribute '__class__'"),
    "format": ("def f(x): return '{0.__class__}'.format(x)", "attribute 'format'"),
    "format_map": ("def f(x): return '{a.__class__}'.format_map(x)", "attribute 'format_map'"),
    "generator_frame": ("def f():\n  g = (x for x in ())\n  return g.gi_frame", "attribute 'gi_frame'"),
    "traceback": ("def f():\n  try: pass\n  except ValueError as e: return e.tb_frame", "attribute 'tb_frame'"),
    "declared_frame": ("class A:\n  f_globals = 1\ndef f(x): return x.f_globals", "attribute 'f_globals'"),
    "pattern_attribute": ("def f(x):\n  match x:\n    case int(__class__=c): return c", "attribute '__class__'"),
    "pattern_frame": ("def f(x, g):\n  match x:\n    case g(gi_frame=c): return c", "attribute 'gi_frame'"),
    "private_of_other": ("class A:\n  def _x(self): pass\ndef f(a): return a._x", "attribute '_x'"),
    "private_unknown": ("class A:\n  def f(self): return self._state", "attribute '_state'"),
    "private_mangled": ("class A:\n  def __x(self): pass", "name '__x'"),
    "unpickle": ("from compoworld_core.services.sdk import Entity\ndef f(): Entity.parse_raw('')", "'parse_raw'"),
    "unvalidated": ("from compoworld_core.services.sdk import Entity\ndef f(e): e.model_copy()", "'model_copy'"),
    "transaction": ("class A:\n  def f(self): self.state.commit()", "attribute 'commit'"),
    "set_attribute": ("class A:\n  def f(self): self.total = 1", "'total' can't be set"),
    "add_to_attribute": ("class A:\n  def f(self): self.total += 1", "'total' can't be set"),
    "delete_attribute": ("class A:\n  def f(self): del self.total", "'total' can't be set"),
    "loop_over_attribute": ("class A:\n  def f(self):\n    for self.total in (1,): pass", "'total' can't be set"),
    "wall_clock": ("from datetime import datetime\ndef f(): return datetime.now()", "use 'self.now'"),
    "wall_day": ("import datetime\ndef f(): return datetime.date.today()", "use 'self.today'"),
    "wall_clock_utc": ("from datetime import datetime\ndef f(): return datetime.utcnow()", "'utcnow'"),
    # Annotations
    "text_annotation": ("class A:\n  x: \"__import__('os')\"", "has to be the name of a class"),
    "text_in_annotation": ("class A:\n  x: list[\"eval('1')\"]", "has to be the name of a class"),
    "text_in_generic": ("from typing import Optional\nX = Optional[\"eval('1')\"]", "has to be the name of a class"),
    "text_in_base": (
        "from compoworld_core.services.sdk import Service\nclass A(Service[\"eval('1')\"]): pass",
        "has to be the name of a class",
    ),
    "text_in_generic_in_function": (
        "from compoworld_core.services.sdk import Page\ndef f(): return Page[\"eval('1')\"]",
        "has to be the name of a class",
    ),
    "hidden_alias": ("A = (list, 1)[0]['evil()']\ndef f(x: A): pass", "'A' is not a type"),
    "called_annotation": ("def f(x: f()): pass", "a call is not allowed in an annotation"),
    "annotated_call": (
        "from typing import Annotated\nclass A:\n  x: Annotated[str, eval('1')]",
        "a call is not allowed in an annotation",
    ),
    "annotated_argument": (
        "from typing import Annotated\nfrom compoworld_core.services.sdk import Id\n"
        "def f(x: Annotated[str, Id(open('x'))]): pass",
        "'open' is not allowed",
    ),
    # State that outlives a call
    "module_list": ("X = []", "a list would be shared"),
    "module_dict": ("X = {'a': 1}", "a dict would be shared"),
    "module_comprehension": ("X = [x for x in (1,)]", "a list comp would be shared"),
    "module_generator": ("X = (x for x in (1,))", "a generator exp would be shared"),
    "class_set": ("class A:\n  x = {1}", "a set would be shared"),
    "class_annotated_list": ("class A:\n  x: list[int] = []", "a list would be shared"),
    "call_of_list": ("X = list()", "a call would be shared"),
    "iterator": ("from itertools import count\nX = count()", "a call would be shared"),
    "counter": ("from collections import Counter\nX = Counter()", "a call would be shared"),
    "list_in_tuple": ("X = (1, [])", "a list would be shared"),
    "list_in_frozen": ("X = tuple([[]])", "a list would be shared"),
    "list_times": ("X = [1] * 3", "a list would be shared"),
    "list_by_walrus": ("X = (y := [])", "a named expr would be shared"),
    "shadowed_tuple": ("def tuple(x): return x\nX = tuple([])", "a call would be shared"),
    "default_list": ("def f(x=[]): pass", "use None"),
    "default_of_keyword": ("def f(*, x={}): pass", "use None"),
    "default_of_lambda": ("def f(): return lambda x=[]: x", "use None"),
    "private_field": ("class A:\n  _x: int = 1", "hidden state"),
    "global": ("X = 1\ndef f():\n  global X", "a global is not allowed"),
    "nonlocal": ("def f():\n  x = 1\n  def g():\n    nonlocal x", "a nonlocal is not allowed"),
    # Syntax
    "statement": ("for x in (1,): pass", "is not allowed at module level"),
    "call": ("def f(): pass\nf()", "is not allowed at module level"),
    "condition": ("if 1:\n  eval = 1", "is not allowed at module level"),
    "async": ("async def f(): pass", "is not allowed at module level"),
    "async_method": ("class A:\n  async def f(self): pass", "is not allowed in a class body"),
    "await": ("def f():\n  async def g(): await g()", "an async function def is not allowed"),
    "class_in_function": ("def f():\n  class A: pass", "a class def is not allowed"),
    "class_in_class": ("class A:\n  class B: pass", "a class def is not allowed in a class body"),
    "metaclass": ("class A(metaclass=f): pass", "class keywords"),
    "builtin_base": ("class A(dict): pass", "a class may extend"),
    "computed_base": ("class A((lambda: 1)()): pass", "a class may extend"),
    "decorator": ("def d(f): return f\n@d\ndef f(): pass", "decorator 'd'"),
    "decorator_attribute": ("import functools\n@functools.cache\ndef f(): pass", "decorator 'functools.cache'"),
    "shadowed_decorator": (
        "def property(f): return f\nclass A:\n  @property\n  def x(self): pass",
        "decorator 'property'",
    ),
    "bare_except": ("def f():\n  try: pass\n  except: pass", "name the exceptions"),
    "dunder_method": ("class A:\n  def __init__(self): pass", "name '__init__'"),
    "dunder_parameter": ("def f(__x): pass", "name '__x'"),
    "dunder_keyword": ("def f(g): g(__class__=1)", "name '__class__'"),
    "dunder_variable": ("__all__ = ('f',)", "name '__all__'"),
    "two_targets": ("X = Y = 1", "one name at a time"),
    "unpacking": ("X, Y = 1, 2", "one name at a time"),
    "twice": ("X = 1\nX = 2", "defined twice"),
    "complex": ("X = 1j", "complex numbers"),
    # Sources that are not modules
    "syntax_error": ("def f(:", "not Python"),
    "null": ("x = 1\0", "not "),
    "too_long": ("#" * (MAX_SOURCE_CHARS + 1), "at most"),
}

BOMBS = {
    "parentheses": "x = " + "(" * 20_000 + ")" * 20_000,
    "brackets": "x = " + "[" * 180 + "]" * 180,
    "unary": "x = " + "-" * 100_000 + "1",
    "nots": "x = " + "not " * 50_000 + "1",
    "sum": "x = " + "1+" * 100_000 + "1",
    "power": "x = " + "1**" * 50_000 + "1",
    "attributes": "x = a" + ".b" * 100_000,
    "calls": "x = a" + "()" * 100_000,
    "lambdas": "x = " + "lambda:" * 30_000 + "1",
    "ternary": "x = " + "1 if 1 else " * 20_000 + "1",
    "comparison": "x = " + "f(" * 150 + ")" * 150,
    "indentation": "\n".join(" " * depth + "if 1:" for depth in range(99)) + "\n" + " " * 99 + "pass",
    "elif": "if 1: pass\n" + "elif 1: pass\n" * 15_000,
    "f_strings": "x = " + "f'{" * 50 + "1" + "}'" * 50,
    "comprehensions": "x = " + "[x for x in " * 150 + "y" + "]" * 150,
    "patterns": "match x:\n case " + "[" * 150 + "]" * 150 + ": pass",
    "decorators": "@a\n" * 50_000 + "def f(): pass",
    "star": "x = " + "*" * 100_000 + "a",
}


def test_service_as_authors_write_it_passes() -> None:
    check_source(HELPDESK, "helpdesk.py")


@pytest.mark.parametrize("case", REFUSED)
def test_disallowed_code_is_named_with_its_line(case: str) -> None:
    source, message = REFUSED[case]

    with pytest.raises(DisallowedCode) as caught:
        check_source(f"\n{source}" if case != "too_long" else source, "service.py")

    assert any(message in violation.message for violation in caught.value.violations), str(caught.value)
    assert all(1 <= violation.line <= source.count("\n") + 2 for violation in caught.value.violations)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("bomb", BOMBS)
def test_deeply_nested_source_is_refused(bomb: str) -> None:
    with pytest.raises(DisallowedCode):
        check_source(BOMBS[bomb], "bomb.py")


def test_all_violations_are_reported_in_order() -> None:
    source = "import os\n\nX = []\n\ndef f(x):\n    x.__class__\n    return eval(x)\n"

    with pytest.raises(DisallowedCode) as caught:
        check_source(source, "service.py")

    assert [violation.line for violation in caught.value.violations] == [1, 3, 6, 7]
    assert str(caught.value).splitlines()[3] == "service.py:7: the builtin 'eval' is not allowed"


def test_a_slip_of_the_interpreter_is_no_fault_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, slips = ast.parse, [SystemError("AST constructor recursion depth mismatch")]

    def slipping(source: str, filename: str) -> ast.Module:
        if slips:
            raise slips.pop()
        return parse(source, filename)

    monkeypatch.setattr(ast, "parse", slipping)

    with pytest.raises(DisallowedCode, match="os"):
        check_source("import os", "service.py")

    assert not slips
