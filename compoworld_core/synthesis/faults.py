"""Faults: a service module with one thing wrong in it, as a careless author would get it wrong.

Each fault replaces one node of the module's syntax tree. Some are about Python (a flipped comparison), most about what
services do with rows (a filter that is left out, a write that does not happen, an id that nobody looks up). What finds
none of them finds no real mistake either, so their share that admission catches says how far a `verified` can be
trusted.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from compoworld_core.synthesis.outline import (
    ModuleOutline,
    literal_values,
    parts_of,
    read_outline,
    table_call,
    tool_name,
)

Edit = tuple[str, ast.AST, ast.AST | None]
"""A kind of fault, the node that it is in, and what stands there instead; None removes the node."""

_FLIPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
_MOVED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_OTHER_ERRORS = {
    "NotFound": "FailedPrecondition",
    "FailedPrecondition": "NotFound",
    "AlreadyExists": "FailedPrecondition",
    "InvalidArguments": "NotFound",
    "PermissionDenied": "NotFound",
    "LimitExceeded": "FailedPrecondition",
}
_CONSTANTS = {
    "tuple": "()",
    "bool": "True",
    "int": "1",
    "float": "1",
    "Quantity": "1",
    "Money": "1",
    "Percent": "1",
    "Email": "'nobody@example.com'",
    "Day": "self.now.date()",
    "Timestamp": "self.now",
    "Title": "'unknown'",
    "Text": "'unknown'",
    "str": "'unknown'",
    "PersonName": "'unknown'",
    "OrganisationName": "'unknown'",
    "City": "'unknown'",
    "Tag": "'unknown'",
}
"""A legal constant of each type, the outermost type first."""


@dataclass(frozen=True)
class Fault:
    """A module with one fault.

    Attributes:
        kind: What was done wrong (`filter_dropped`).
        place: Name of the class or function that has it.
        tool: Name of the tool that the function is; empty where it is none.
        detail: The source before and after, in short.
        source: The module.
    """

    kind: str
    place: str
    tool: str
    line: int
    detail: str
    source: str


def draw_faults(source: str, count: int, rng: random.Random) -> tuple[Fault, ...]:
    """At most so many different faults of a module, the kinds taking turns."""
    seeder = _Seeder(source)
    by_kind: dict[str, list[_Place]] = {}
    for place in seeder.places:
        by_kind.setdefault(place.kind, []).append(place)
    kinds = [rng.sample(places, len(places)) for _, places in sorted(by_kind.items())]
    rng.shuffle(kinds)
    drawn = [place for turn in zip_longest(*kinds) for place in turn if place is not None]
    return tuple(seeder.fault(place) for place in drawn[:count])


def all_faults(source: str) -> tuple[Fault, ...]:
    """Every fault that the operators know for a module, in source order."""
    seeder = _Seeder(source)
    return tuple(seeder.fault(place) for place in seeder.places)


@dataclass(frozen=True)
class _Place:
    kind: str
    owner: str
    tool: str
    at: int
    """Position of the node in a walk over the tree."""
    replacement: ast.AST | None


class _Seeder:
    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        self._nodes = list(ast.walk(self._tree))
        self._at = {id(node): at for at, node in enumerate(self._nodes)}
        module = read_outline(self._tree)
        self.places: list[_Place] = []
        seen: set[tuple[int, str]] = set()
        for owner, top in parts_of(self._tree):
            for kind, node, replacement in _edits(top, module):
                key = (self._at[id(node)], "" if replacement is None else ast.dump(replacement))
                if key not in seen and key[1] != ast.dump(node):
                    seen.add(key)
                    self.places.append(_Place(kind, owner, tool_name(top), key[0], replacement))

    def fault(self, place: _Place) -> Fault:
        node = self._nodes[place.at]
        tree = copy.deepcopy(self._tree)
        target = list(ast.walk(tree))[place.at]
        _Swap(target, place.replacement).visit(tree)
        ast.fix_missing_locations(tree)
        _import_errors(tree)
        after = "nothing" if place.replacement is None else _short(place.replacement)
        return Fault(
            place.kind,
            place.owner,
            place.tool,
            getattr(node, "lineno", 0),
            f"{_short(node)} → {after}",
            f"{ast.unparse(tree)}\n",
        )


class _Swap(ast.NodeTransformer):
    def __init__(self, target: ast.AST, replacement: ast.AST | None) -> None:
        self._target = target
        self._replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node is self._target:
            return copy.deepcopy(self._replacement)
        return self.generic_visit(node)


def _import_errors(tree: ast.Module) -> None:
    """Import the errors that a fault raises instead of others."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & _OTHER_ERRORS.keys()
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    missing = used - {item.name for node in imports for item in node.names}
    for node in imports:
        if any(item.name == "Entity" for item in node.names):
            node.names += [ast.alias(name) for name in sorted(missing)]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:89]}…"


def _edits(top: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if isinstance(top, ast.ClassDef):
        yield from _class_edits(top, module)
        return
    assert isinstance(top, ast.FunctionDef)
    module.enter(top)
    yield from _default_edits(top, module)
    for statement in top.body:
        for node in ast.walk(statement):
            for operator in _OPERATORS:
                yield from operator(node, module)


# Rows and signatures


def _class_edits(top: ast.ClassDef, module: ModuleOutline) -> Iterator[Edit]:
    for item in top.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        if isinstance(item.value, ast.Call) and any(word.arg == "unique" for word in item.value.keywords):
            yield "unique_dropped", item, ast.AnnAssign(item.target, item.annotation, None, item.simple)
        if top.name not in module.rows:
            continue
        if isinstance(item.value, ast.Constant):
            for other in _other_values(item.value, literal_values(item.annotation, module)):
                yield "default_changed", item.value, other
        if item.target.id != "id":
            for node in ast.walk(item.annotation):
                if isinstance(node, ast.Name) and node.id in module.ids:
                    yield "reference_unchecked", node, ast.Name("str", ast.Load())


def _default_edits(top: ast.FunctionDef, module: ModuleOutline) -> Iterator[Edit]:
    arguments = top.args.args[len(top.args.args) - len(top.args.defaults) :]
    for argument, default in zip(arguments, top.args.defaults, strict=True):
        if isinstance(default, ast.Constant) and argument.annotation is not None:
            for other in _other_values(default, literal_values(argument.annotation, module)):
                yield "default_changed", default, other


def _other_values(constant: ast.Constant, choices: tuple[str, ...]) -> Iterator[ast.expr]:
    value = constant.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and choices:
        yield from (ast.Constant(other) for other in choices if other != value)
    elif isinstance(value, str):
        yield ast.Constant(f"{value}x")


# Conditions


def _comparison(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    operator = type(node.ops[0])
    if operator in _FLIPPED:
        yield "comparison_flipped", node, ast.Compare(node.left, [_FLIPPED[operator]()], node.comparators)
    if operator in _MOVED:
        yield "boundary_moved", node, ast.Compare(node.left, [_MOVED[operator]()], node.comparators)
    right = node.comparators[0]
    if isinstance(node.left, ast.Attribute):
        choices = sorted(module.fields.get(node.left.attr, ()))
        for name in module.like(node.left.attr):
            left = ast.Attribute(node.left.value, name, ast.Load())
            yield "wrong_field", node, ast.Compare(left, node.ops, node.comparators)
        if isinstance(right, ast.Constant) and right.value in choices:
            for other in choices:
                if other != right.value:
                    yield "status_swapped", right, ast.Constant(other)
        if isinstance(right, ast.Tuple) and operator in (ast.In, ast.NotIn):
            for at in range(len(right.elts) if len(right.elts) > 1 else 0):
                yield "status_dropped", right, ast.Tuple([*right.elts[:at], *right.elts[at + 1 :]], ast.Load())


def _connective(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for at in range(len(node.values)):
            rest = [*node.values[:at], *node.values[at + 1 :]]
            yield "filter_dropped", node, rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
        yield "connective_swapped", node, ast.BoolOp(ast.Or(), node.values)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield "connective_swapped", node, ast.BoolOp(ast.And(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "condition_negated", node, node.operand
    if isinstance(node, ast.ListComp) and node.generators[0].ifs:
        whole = node.generators[0]
        bare = ast.comprehension(whole.target, whole.iter, [], 0)
        yield "filter_dropped", node, ast.ListComp(node.elt, [bare])
        test = ast.UnaryOp(ast.Not(), whole.ifs[0])
        yield (
            "condition_negated",
            node,
            ast.ListComp(node.elt, [ast.comprehension(whole.target, whole.iter, [test], 0)]),
        )


def _guard(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
        yield "guard_removed", node, ast.Pass()
        yield "condition_negated", node.test, ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        other = _OTHER_ERRORS.get(node.exc.func.id)
        if other is not None:
            error = ast.Call(ast.Name(other, ast.Load()), node.exc.args, node.exc.keywords)
            yield "wrong_error", node, ast.Raise(error, None)
    if isinstance(node, ast.Expr) and table_call(node.value) == "get":
        yield "reference_unchecked", node, ast.Pass()


# Rows that are read


def _reading(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    method = table_call(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and method in ("where", "first"):
        for at in range(len(node.keywords)):
            rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
            yield "filter_dropped", node, ast.Call(node.func, node.args, rest)
        for word in node.keywords:
            choices = sorted(module.fields.get(word.arg or "", ()))
            if isinstance(word.value, ast.Constant) and word.value.value in choices:
                for other in choices:
                    if other != word.value.value:
                        yield "status_swapped", word.value, ast.Constant(other)
        if method == "where":
            yield "lists_all", node, _called(ast.Name("tuple", ast.Load()), node.func.value)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and table_call(node.value) == "get":
        assert isinstance(node.value.func, ast.Attribute)
        first = _called(ast.Attribute(node.value.func.value, "first", ast.Load()))
        yield "constant_returned", node.value, ast.BoolOp(ast.Or(), [first, node.value])
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "-1":
        yield "order_reversed", node, ast.Subscript(node.value, ast.Constant(0), ast.Load())
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "::-1":
        yield "order_reversed", node, node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _list_edits(node, node.func.id)


def _list_edits(node: ast.Call, called: str) -> Iterator[Edit]:
    if called == "sorted":
        reverse = ast.keyword("reverse", ast.Constant(True))
        yield "order_reversed", node, ast.Call(node.func, node.args, [*node.keywords, reverse])
        yield "order_dropped", node, _called(ast.Name("list", ast.Load()), node.args[0])
    if called == "paginate":
        rows, *rest = node.args
        yield "lists_none", rows, ast.Tuple([], ast.Load())
        for at, argument in enumerate(rest):
            if at == 0:
                more = ast.BinOp(argument, ast.Add(), ast.Constant(1))
                yield "paging_off", argument, more
            elif isinstance(argument, ast.Name):
                yield "argument_ignored", argument, ast.Constant(None)
    if called == "tuple" and node.args and isinstance(node.args[0], ast.Name):
        yield "lists_none", node, ast.Tuple([], ast.Load())
    if called == "len" and node.args:
        yield "off_by_one", node, ast.BinOp(node, ast.Add(), ast.Constant(1))
    if called in ("all", "any"):
        other = "any" if called == "all" else "all"
        yield "connective_swapped", node.func, ast.Name(other, ast.Load())


def _called(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    return ast.Call(function, list(arguments), [])


# Rows that are written


def _writing(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return
    method = table_call(node)
    is_given = isinstance(node.func, ast.Name) and node.func.id == "_given"
    if method == "delete":
        assert isinstance(node.func, ast.Attribute)
        yield "delete_dropped", node, ast.Call(ast.Attribute(node.func.value, "get", ast.Load()), node.args, [])
    if method == "update":
        assert isinstance(node.func, ast.Attribute)
        yield "write_dropped", node, ast.Call(ast.Attribute(node.func.value, "get", ast.Load()), node.args[:1], [])
    if method not in ("insert", "update") and not is_given:
        return
    words = [word for word in node.keywords if word.arg is not None]
    for word in words:
        rest = [other for other in node.keywords if other is not word]
        yield "argument_ignored", node, ast.Call(node.func, node.args, rest)
        choices = sorted(module.fields.get(word.arg or "", ()))
        if isinstance(word.value, ast.Constant):
            for other in _other_values(word.value, tuple(choices)):
                yield "status_swapped", word.value, other
        elif word.arg != "id" and (constant := _constant(word.value, choices, module)) is not None:
            yield "constant_stored", word.value, constant
    for place, one in enumerate(words):
        for two in words[place + 1 :]:
            if _is_alike(one.value, two.value, module):
                swapped = {one: ast.keyword(one.arg, two.value), two: ast.keyword(two.arg, one.value)}
                keywords = [swapped.get(word, word) for word in node.keywords]
                yield "wrong_field", node, ast.Call(node.func, node.args, keywords)


def _constant(value: ast.expr, choices: list[str], module: ModuleOutline) -> ast.expr | None:
    """A legal value to store instead of an argument."""
    if not isinstance(value, ast.Name) or value.id not in module.parameters:
        return None
    if choices:
        return ast.Constant(choices[0])
    words = set(re.findall(r"\w+", module.parameters[value.id]))
    if words & module.ids:
        return None
    return next((ast.parse(text, mode="eval").body for word, text in _CONSTANTS.items() if word in words), None)


def _is_alike(one: ast.expr, other: ast.expr, module: ModuleOutline) -> bool:
    """Whether both are parameters of the same type."""
    if not isinstance(one, ast.Name) or not isinstance(other, ast.Name):
        return False
    texts = [module.parameters.get(item.id, "").removesuffix(" | None") for item in (one, other)]
    return bool(texts[0]) and texts[0] == texts[1]


def _arithmetic(node: ast.AST, module: ModuleOutline) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant):
        yield "paging_off", node, node.left
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield "paging_off", node, ast.BinOp(node, ast.Add(), ast.Constant(1))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        yield "off_by_one", node, node.left
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "casefold":
        yield "case_matters", node, node.func.value


Operator = Callable[[ast.AST, ModuleOutline], Iterator[Edit]]

_OPERATORS: tuple[Operator, ...] = (_comparison, _connective, _guard, _reading, _writing, _arithmetic)
