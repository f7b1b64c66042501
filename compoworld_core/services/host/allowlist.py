"""The first wall: a service module that was not written here may contain only what is listed in `vocabulary`.

The check keeps honest authors honest (no state outside tables, no clock, no files) and leaves little to try for the
others; the sandbox is what holds. It answers with every violation at once, each with its line and what to do instead.
Annotations get a grammar of their own, because libraries evaluate the strings in them.
"""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass
from functools import cache
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.services.host import vocabulary as words
from compoworld_core.services.host.scopes import COMPREHENSIONS, bound_by_comprehension, bound_by_function

MAX_SOURCE_CHARS: Final = 256 * 1024
MAX_DEPTH: Final = 100
"""Nesting of syntax; an `elif` or a further `+` in a chain counts as one level."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """Something that a service module may not contain."""

    line: int
    message: str


class DisallowedCode(InputError):
    """A service module contains something that is not on the allowlist; `violations` has all of it."""

    def __init__(self, filename: str, violations: tuple[Violation, ...]) -> None:
        super().__init__("\n".join(f"{filename}:{item.line}: {item.message}" for item in violations))
        self.filename = filename
        self.violations = violations


def _parse(source: str, filename: str) -> ast.Module:
    try:
        return ast.parse(source, filename)
    except SystemError:  # Python 3.11 keeps the depth of a parse where another in between upsets it (gh-106905)
        return ast.parse(source, filename)


def check_source(source: str, filename: str) -> None:
    """Check the source of a service module against the allowlist. Never runs any of it.

    Args:
        source: The module.
        filename: How messages call it.

    Raises:
        DisallowedCode: It contains something else.
    """
    if len(source) > MAX_SOURCE_CHARS:
        _refuse(filename, 1, f"the module has {len(source)} characters; at most {MAX_SOURCE_CHARS} are allowed")
    try:
        tree = _parse(source, filename)
    except SyntaxError as error:
        _refuse(filename, error.lineno or 1, f"not Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        _refuse(filename, 1, f"not readable as Python: {error or 'nested too deeply'}")
    if (line := _too_deep(tree)) is not None:
        _refuse(filename, line, f"nested more than {MAX_DEPTH} levels deep; split it up")
    checker = _Checker(tree)
    checker.check()
    if checker.found:
        raise DisallowedCode(filename, tuple(sorted(checker.found)))


def _refuse(filename: str, line: int, message: str) -> None:
    raise DisallowedCode(filename, (Violation(line, message),)) from None


def _too_deep(tree: ast.AST) -> int | None:
    """Line at which the syntax is nested too deeply, if anywhere."""
    todo = [(tree, 0, 1)]
    while todo:
        node, depth, line = todo.pop()
        line = getattr(node, "lineno", line)
        if depth > MAX_DEPTH:
            return line
        todo += [(child, depth + 1, line) for child in ast.iter_child_nodes(node)]
    return None


@cache
def _exports(module: str) -> frozenset[str]:
    if module == words.SDK:
        return frozenset(importlib.import_module(module).__all__)
    return words.MODULES.get(module, frozenset())


def _is_allowed_module(module: str) -> bool:
    return module in words.MODULES or module == words.SDK


class _Checker:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.found: set[Violation] = set()
        self.modules: dict[str, str] = {}  # Names bound to a module.
        self.imports: dict[str, tuple[str, str]] = {}  # Names bound to (module, name).
        self.defined: set[str] = set()  # Names that the module defines itself.
        self.classes: dict[str, ast.ClassDef] = {}
        self.aliases: set[str] = set()  # Names of types that the module assigns.
        self.declared: set[str] = set()  # Attributes of the module's classes.
        self.scopes: list[frozenset[str]] = []  # Names of the functions around the node of now.
        self.class_names: frozenset[str] = frozenset()
        self.own_private: frozenset[str] = frozenset()

    def report(self, node: ast.AST, message: str) -> None:
        self.found.add(Violation(getattr(node, "lineno", 1), message))

    # The module and its classes

    def check(self) -> None:
        statements = [node for node in self.tree.body if not _is_docstring(node)]
        for node in statements:
            self.declare(node)
        for node in statements:
            if isinstance(node, ast.ClassDef):
                self.check_class(node)
            elif isinstance(node, ast.FunctionDef | ast.Assign | ast.AnnAssign):
                self.check_member(node, "module")

    def declare(self, node: ast.stmt) -> None:
        """Note what a statement of the module binds."""
        bound: list[str] = []
        match node:
            case ast.Import(names=names):
                for item in names:
                    bound.append(item.asname or item.name)
                    if not _is_allowed_module(item.name):
                        self.report(node, f"import of {item.name!r} is not allowed")
                    elif "." in item.name and item.asname is None:
                        self.report(node, f"write 'from {item.name} import …'")
                    self.modules[bound[-1]] = item.name
            case ast.ImportFrom(module=module, names=names, level=level):
                for item in names:
                    bound.append(item.asname or item.name)
                    if level or module is None or not _is_allowed_module(module):
                        self.report(node, f"import from {'.' * level + (module or '')!r} is not allowed")
                    elif item.name not in _exports(module):
                        self.report(node, f"import of {item.name!r} from {module!r} is not allowed")
                    self.imports[bound[-1]] = (module or "", item.name)
            case ast.ClassDef(name=name):
                bound.append(name)
                self.classes[name] = node
                self.declared |= {word for word in _class_bindings(node) if not word.startswith("_")}
            case ast.FunctionDef(name=name):
                bound.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                bound.append(name)
                if node.value is not None and self.is_type(node.value):
                    self.aliases.add(name)
            case ast.Assign() | ast.AnnAssign():
                self.report(node, "a module assigns one name at a time, with a value")
            case _:
                self.report(node, f"{_kind(node)} is not allowed at module level; put it into a function")
        for name in bound:
            self.check_word(node, name)
            if name in self.defined:
                self.report(node, f"{name!r} is defined twice")
            self.defined.add(name)

    def check_class(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            outer = base.value if isinstance(base, ast.Subscript) else base
            if not (isinstance(outer, ast.Name) and (outer.id in self.imports or outer.id in self.classes)):
                self.report(base, "a class may extend imported classes and classes of this module only")
            else:
                self.check_type(base)
        if node.keywords:
            self.report(node, "class keywords are not allowed")
        self.check_type_parameters(node)
        self.check_decorators(node)
        self.class_names = frozenset(_class_bindings(node))
        self.own_private = frozenset(name for name in self.class_names if name.startswith("_"))
        for name in self.class_names & words.RESERVED:
            self.report(node, f"{name!r} can't be the name of a member; choose another")
        for member in node.body:
            if isinstance(member, words.CLASS_STATEMENTS):
                self.check_member(member, "class")
            elif not _is_docstring(member):
                self.report(member, f"{_kind(member)} is not allowed in a class body")
        self.class_names = self.own_private = frozenset()

    def check_member(self, node: ast.stmt, place: str) -> None:
        """Check a function or an assignment of the module or of a class."""
        match node:
            case ast.FunctionDef():
                self.visit(node)
            case ast.Assign(targets=[ast.Name()], value=value):
                self.visit(node)
                self.check_immutable(value, place)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                self.visit(node)
                if name.startswith("_") and place == "class":
                    self.report(node, f"{name!r}: private fields are hidden state; keep it in a table")
                if value is not None:
                    self.check_immutable(value, place)
            case ast.Assign() | ast.AnnAssign():
                self.report(node, f"a {place} assigns one name at a time")

    def check_type_parameters(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        if getattr(node, "type_params", None):  # Python 3.12 and later
            self.report(node, "type parameters are not allowed")

    def check_decorators(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            origin = self.origin(name)
            if not (
                (isinstance(name, ast.Name) and name.id in words.BUILTIN_DECORATORS - self.defined)
                or (origin and (origin in words.DECORATORS or origin[0] == words.SDK))
            ):
                self.report(decorator, f"decorator {ast.unparse(name)[:60]!r} is not allowed")
            if isinstance(decorator, ast.Call):
                for argument in (*decorator.args, *(keyword.value for keyword in decorator.keywords)):
                    self.visit(argument)

    # Constants of modules and classes

    def check_immutable(self, node: ast.expr, place: str) -> None:
        """Check that a value which outlives calls can't change."""
        if self.is_type(node) or isinstance(node, ast.Constant | ast.Name | ast.Attribute | ast.Lambda | ast.JoinedStr):
            return
        match node:
            case ast.Tuple() | ast.UnaryOp() | ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.Starred():
                parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            case ast.Subscript(value=value):
                parts = [value]
            case ast.Call(func=function) if self.makes_constant(function):
                freezes = isinstance(function, ast.Name) and function.id in words.FREEZING_BUILTINS
                parts = [*node.args, *(keyword.value for keyword in node.keywords)]
                parts = [part for item in parts for part in (_elements(item) if freezes else (item,))]
            case _:
                instead = "a tuple, a frozenset or a table" if place != "default" else "None"
                self.report(node, f"{_kind(node)} would be shared by all worlds; use {instead}")
                return
        for part in parts:
            self.check_immutable(part, place)

    def makes_constant(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name) and function.id in words.IMMUTABLE_BUILTINS - self.defined:
            return True
        origin = self.origin(function)
        return origin is not None and (origin in words.IMMUTABLE_IMPORTS or origin[0] in words.IMMUTABLE_MODULES)

    def origin(self, node: ast.expr) -> tuple[str, str] | None:
        """Module and name that an imported name stands for."""
        match node:
            case ast.Name(id=name):
                return self.imports.get(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.modules:
                return (self.modules[name], attribute)
        return None

    # Types

    def is_type(self, node: ast.expr) -> bool:
        """Whether an expression is a type as annotations spell it, other than a plain constant."""
        return not isinstance(node, ast.Constant) and not self.type_errors(node)

    def check_type(self, node: ast.expr) -> None:
        for part, message in self.type_errors(node):
            self.report(part, message)

    def type_errors(self, node: ast.expr) -> list[tuple[ast.AST, str]]:
        match node:
            case ast.Name(id=name):
                known = name in self.imports or name in self.classes or name in self.aliases
                if known or name in words.BUILTIN_TYPES - self.defined:
                    return []
                return [(node, f"{name!r} is not a type that is known here")]
            case ast.Constant(value=value) if value is None or value is ...:
                return []
            case ast.Constant(value=str(text)):
                if text in self.classes or text in self.aliases or text in self.imports:
                    return []
                return [(node, f"the annotation {text[:60]!r} has to be the name of a class of this module")]
            case ast.Attribute() if self.origin(node):
                module, name = self.origin(node) or ("", "")
                return [] if name in _exports(module) else [(node, f"{module}.{name} is not allowed")]
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.type_errors(left) + self.type_errors(right)
            case ast.Subscript(value=outer, slice=inner):
                return self.type_errors(outer) + self.argument_errors(outer, inner)
        return [(node, f"{_kind(node)} is not allowed in an annotation")]

    def argument_errors(self, outer: ast.expr, inner: ast.expr) -> list[tuple[ast.AST, str]]:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        match self.origin(outer):
            case ("typing", "Literal"):
                bad = [part for part in parts if not isinstance(part, ast.Constant | ast.UnaryOp)]
                return [(part, "Literal takes constants only") for part in bad]
            case ("typing", "Annotated"):
                errors = self.type_errors(parts[0])
                for part in parts[1:]:
                    if not isinstance(part, ast.Constant):
                        constant = isinstance(part, ast.Call) and self.makes_constant(part.func)
                        errors += [] if constant else [(part, f"{_kind(part)} is not allowed in an annotation")]
                return errors
        parts = [item for part in parts for item in (part.elts if isinstance(part, ast.List) else (part,))]
        return [error for part in parts for error in self.type_errors(part)]

    # Functions

    def visit(self, node: ast.AST) -> None:
        """Check a node inside a function, or a function."""
        if not isinstance(node, words.SYNTAX):
            self.report(node, f"{_kind(node)} is not allowed")
            return
        match node:
            case ast.FunctionDef() | ast.Lambda():
                self.visit_function(node)
                return
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.visit_comprehension(node)
                return
            case ast.AnnAssign(annotation=annotation, value=value):
                self.visit(node.target)
                self.visit_annotation(annotation)
                if value is not None:
                    self.visit(value)
                return
            case ast.Name():
                self.check_name(node)
            case ast.Attribute():
                self.check_attribute(node)
                if isinstance(node.value, ast.Name) and node.value.id in self.modules:
                    return
            case ast.Subscript(value=outer, slice=inner) if self.is_generic(outer):
                for part, message in self.argument_errors(outer, inner):
                    self.report(part, message)
            case ast.ExceptHandler(type=None):
                self.report(node, "name the exceptions to catch")
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.check_word(node, name)
            case ast.MatchMapping(rest=str(name)) | ast.keyword(arg=str(name)):
                self.check_word(node, name)
            case ast.MatchClass(kwd_attrs=attributes):
                for attribute in attributes:
                    self.check_attribute_word(node, attribute)
            case ast.Constant(value=complex()):
                self.report(node, "complex numbers are not allowed")
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def visit_function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        # Decorators, defaults and annotations belong to the scope around the function.
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
                self.check_immutable(default, "default")
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                self.check_word(argument, argument.arg)
                if argument.annotation is not None:
                    self.visit_annotation(argument.annotation)
        if isinstance(node, ast.FunctionDef):
            self.check_word(node, node.name)
            self.check_decorators(node)
            self.check_type_parameters(node)
            if node.returns is not None:
                self.visit_annotation(node.returns)
        self.scopes.append(bound_by_function(node))
        for child in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(child)
        self.scopes.pop()

    def visit_comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first = node.generators[0].iter
        self.visit(first)  # It alone is evaluated in the scope around the comprehension.
        self.scopes.append(bound_by_comprehension(node))
        for generator in node.generators:
            if generator.is_async:
                self.report(node, "an asynchronous loop is not allowed")
            inner = [] if generator.iter is first else [generator.iter]
            for child in (generator.target, *inner, *generator.ifs):
                self.visit(child)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for child in results:
            self.visit(child)
        self.scopes.pop()

    def visit_annotation(self, node: ast.expr) -> None:
        self.check_type(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                self.visit(part)

    def is_generic(self, node: ast.expr) -> bool:
        """Whether an expression is a class that a subscript would make another class of."""
        if isinstance(node, ast.Name) and any(node.id in scope for scope in self.scopes):
            return False
        imported = isinstance(node, ast.Name) and node.id in self.imports and node.id[:1].isupper()
        return imported or (isinstance(node, ast.Name) and (node.id in self.classes or node.id in words.BUILTIN_TYPES))

    # Words

    def check_word(self, node: ast.AST, name: str) -> None:
        """Check a name that the code binds."""
        if name.startswith("__") or name == "*":
            self.report(node, f"the name {name!r} is not allowed")

    def check_name(self, node: ast.Name) -> None:
        name = node.id
        self.check_word(node, name)
        if not isinstance(node.ctx, ast.Load) or any(name in scope for scope in self.scopes):
            return
        if name in words.FORBIDDEN_BUILTINS:
            self.report(node, f"the builtin {name!r} is not allowed")
        elif name in self.modules:
            self.report(node, f"the module {name!r} may only be used as '{name}.…'")
        elif name not in self.defined | words.BUILTINS and (self.scopes or name not in self.class_names):
            self.report(node, f"the name {name!r} is not known here")

    def check_attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.report(node, f"the attribute {node.attr!r} can't be set; state lives in tables")
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        if base in self.modules:
            if node.attr not in _exports(self.modules[base]):
                self.report(node, f"{self.modules[base]}.{node.attr} is not allowed")
        elif node.attr in words.OWN_CLOCK:
            if base != "self":
                self.report(node, f"the wall clock is not allowed; use 'self.{node.attr}'")
        elif not (base in ("self", "cls") and node.attr in self.own_private and not node.attr.startswith("__")):
            self.check_attribute_word(node, node.attr)

    def check_attribute_word(self, node: ast.AST, attribute: str) -> None:
        allowed = words.ATTRIBUTES | (self.declared - words.RESERVED)
        if attribute not in allowed:
            self.report(node, f"the attribute {attribute!r} is not known here")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _class_bindings(node: ast.ClassDef) -> list[str]:
    names: list[str] = []
    for member in node.body:
        match member:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def _elements(node: ast.expr) -> list[ast.expr]:
    """What a list leaves behind in the value that is made of it."""
    if isinstance(node, ast.List | ast.Set | ast.Tuple):
        return node.elts
    if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
        return [node.elt]
    return [node]


def _kind(node: ast.AST) -> str:
    """What a node is, in words: `ClassDef` is "a class def"."""
    name = type(node).__name__
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return f"{'an' if spaced[0] in 'aeiou' else 'a'} {spaced}"
