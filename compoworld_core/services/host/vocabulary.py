"""The words that an untrusted service module may use: modules, names, attributes, kinds of syntax.

Everything is a list of what is allowed. A name that some Python release adds is refused until it is put here.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain
from re import Match, Pattern
from typing import Any, Final

SDK: Final = "compoworld_core.services.sdk"
"""The only project module that a service module may import; its `__all__` lists what."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Final[dict[str, frozenset[str]]] = {
    "__future__": _words("annotations"),
    "collections": _words("ChainMap Counter OrderedDict defaultdict deque"),
    "collections.abc": _words(
        "Callable Collection Container Generator Hashable Iterable Iterator KeysView Mapping MutableMapping "
        "MutableSequence MutableSet Sequence Set Sized ValuesView"
    ),
    "dataclasses": _words("dataclass field replace"),
    "datetime": _words("MAXYEAR MINYEAR UTC date datetime time timedelta timezone"),
    "decimal": _words(
        "Decimal InvalidOperation ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP "
        "ROUND_UP"
    ),
    "enum": _words("Enum IntEnum StrEnum auto unique"),
    "functools": _words("cmp_to_key partial reduce"),
    "itertools": _words(
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse "
        "groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest"
    ),
    "math": _words(
        "acos asin atan atan2 ceil comb copysign cos degrees dist e exp fabs factorial floor fmod fsum gcd hypot inf "
        "isclose isfinite isinf isnan isqrt lcm log log10 log1p log2 nan perm pi pow prod radians sin sqrt tan "
        "tau trunc"
    ),
    "re": _words(
        "A ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S VERBOSE X compile escape findall finditer fullmatch "
        "match search split sub subn"
    ),
    "typing": _words(
        "Annotated Any Callable ClassVar Dict Final FrozenSet Generic Iterable Iterator List Literal Mapping "
        "NamedTuple Never NoReturn NotRequired Optional Required Self Sequence Set Tuple TypeAlias TypedDict Union "
        "assert_never cast"
    ),
}
"""Names that may be imported, by module, besides those of the SDK."""

BUILTINS: Final = _words(
    "ArithmeticError AssertionError AttributeError Exception False IndexError KeyError LookupError NotImplementedError "
    "OverflowError StopIteration True TypeError ValueError ZeroDivisionError "
    "None abs all any ascii bin bool bytes chr dict divmod enumerate filter float format frozenset hex int isinstance "
    "issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple zip"
)
"""Builtin names that code may use."""

FORBIDDEN_BUILTINS: Final = frozenset(dir(builtins)) - BUILTINS

BUILTIN_TYPES: Final = _words("bool bytes dict float frozenset int list object set str tuple")
"""Builtin names that annotations may use."""

BUILTIN_DECORATORS: Final = _words("classmethod property staticmethod")

DECORATORS: Final = frozenset({("dataclasses", "dataclass"), ("enum", "unique")})
"""Imported decorators, besides those of the SDK."""

IMMUTABLE_BUILTINS: Final = _words("abs bool bytes float frozenset int len max min range round str sum tuple")
IMMUTABLE_MODULES: Final = frozenset({"datetime", "decimal", "math", SDK})
IMMUTABLE_IMPORTS: Final = frozenset({("re", "compile"), ("enum", "auto"), ("dataclasses", "field")})
"""What a module or a class body may call to make a constant."""

FREEZING_BUILTINS: Final = _words("frozenset tuple sum len max min")
"""Calls that keep nothing of a list that they are given, except its elements."""

_VALUE_TYPES: Final[tuple[type[Any], ...]] = (
    *(str, bytes, int, float, list, dict, set, frozenset, tuple, range),
    *(date, datetime, time, timedelta, timezone, Decimal, Pattern, Match),
    *(Counter, deque, defaultdict, OrderedDict, ChainMap, chain),
)
_INTERPRETER_TYPES: Final[tuple[type[Any], ...]] = (
    *(types.FrameType, types.CodeType, types.TracebackType),
    *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
)

RESERVED: Final = frozenset(name for kind in _INTERPRETER_TYPES for name in dir(kind) if "_" in name) | _words(
    "construct format format_map from_orm model_construct model_copy model_rebuild mro parse_file parse_obj parse_raw "
    "update_forward_refs"
)
"""Attributes that lead into the interpreter or around validation: no class may declare one, so none can be allowed."""

OWN_CLOCK: Final = _words("now today")
"""Attributes that only `self` may be asked for: of a date, they would be the wall clock's."""

ATTRIBUTES: Final = (
    frozenset(name for kind in _VALUE_TYPES for name in dir(kind) if not name.startswith("_"))
    | _words("args name value")  # exceptions and enumerations
    | _words("delete email find first get insert items message model_dump next_cursor now rng state today total update")
    | _words("user where")  # services, tables, pages, errors
    | _words("choice choices gauss getrandbits randint random randrange sample shuffle triangular uniform")  # self.rng
) - (RESERVED | _words("fromtimestamp utcfromtimestamp utcnow"))
"""Attributes of values and of what the SDK gives; a module's own classes add what they declare."""

CLASS_STATEMENTS: Final[tuple[type[ast.AST], ...]] = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.Pass)

SYNTAX: Final[tuple[type[ast.AST], ...]] = (
    # Statements
    *(ast.FunctionDef, ast.Return, ast.Delete, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If),
    *(ast.With, ast.Match, ast.Raise, ast.Try, ast.Assert, ast.Expr, ast.Pass, ast.Break, ast.Continue),
    # Expressions
    *(ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp),
    *(ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Compare, ast.Call, ast.FormattedValue),
    *(ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice),
    # Their parts
    *(ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.comprehension, ast.ExceptHandler),
    *(ast.arguments, ast.arg, ast.keyword, ast.withitem, ast.match_case, ast.pattern),
)
"""Syntax that functions may use."""
