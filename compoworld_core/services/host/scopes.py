"""Which names a function binds, so that a name can be told from the builtin of the same name.

Without `global` and `nonlocal`, which the allowlist refuses, this is exact: a name that a function binds anywhere is
that function's own everywhere in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_by_function(node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
    """Parameters and everything that the body assigns, defines or captures."""
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    return frozenset([parameter.arg for parameter in parameters if parameter] + list(_bound(body)))


def bound_by_comprehension(node: Comprehension) -> frozenset[str]:
    """The targets of its loops."""
    return frozenset(_bound([generator.target for generator in node.generators]))


def _bound(nodes: Iterable[ast.AST], *, only_walrus: bool = False) -> Iterator[str]:
    todo = [(node, only_walrus) for node in nodes]
    while todo:
        node, walrus = todo.pop()
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
        if not walrus:
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    yield name
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    yield name
                case ast.MatchMapping(rest=str(name)) | ast.FunctionDef(name=name):
                    yield name
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        walrus = walrus or isinstance(node, COMPREHENSIONS)
        todo += [(child, walrus) for child in ast.iter_child_nodes(node)]
