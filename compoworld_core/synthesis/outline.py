"""The outline of a service module: what its rows, tables, types and tools are, read off its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class ModuleOutline:
    """What operators know about the module around a node.

    Attributes:
        choices: Values of each literal type, by its alias.
        fields: Legal values of each field that lists some, over all rows.
        ids: Names of types that are ids.
        rows: Annotation of each field, by class of row.
        tables: Class of row, by table.
        parameters: Annotation of each parameter of the function that the node is in.
        function: That function.
    """

    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fields: dict[str, set[str]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    function: ast.FunctionDef | None = None

    def enter(self, function: ast.FunctionDef) -> None:
        """Note the function that the next nodes are in."""
        self.function = function
        self.parameters = {
            item.arg: ast.unparse(item.annotation) for item in function.args.args if item.annotation is not None
        }

    def like(self, name: str) -> list[str]:
        """Fields that the function's rows have besides one, of the same type."""
        assert self.function is not None
        used = {node.attr for node in ast.walk(self.function) if isinstance(node, ast.Attribute) and is_table(node)}
        classes = [row for table in sorted(used) if name in (row := self.rows.get(self.tables.get(table, ""), {}))]
        if len(classes) != 1:
            return []
        (fields,) = classes
        wanted = fields[name].removesuffix(" | None")
        return [other for other, text in fields.items() if other != name and text.removesuffix(" | None") == wanted]


def read_outline(tree: ast.Module) -> ModuleOutline:
    """What a module declares."""
    module = ModuleOutline()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, text = node.targets[0].id, ast.unparse(node.value)
            if values := literal_values(node.value, module):
                module.choices[name] = values
            if "Id(" in text:
                module.ids.add(name)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            is_row = any(isinstance(base, ast.Name) and base.id == "Entity" for base in node.bases)
            for item in node.body:
                if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                    continue
                if is_row:
                    values = literal_values(item.annotation, module)
                    module.fields.setdefault(item.target.id, set()).update(values)
                    module.rows.setdefault(node.name, {})[item.target.id] = ast.unparse(item.annotation)
                elif isinstance(item.annotation, ast.Subscript):
                    module.tables[item.target.id] = ast.unparse(item.annotation.slice)
    return module


def literal_values(annotation: ast.expr, module: ModuleOutline) -> tuple[str, ...]:
    """The texts that a type allows, where it lists them."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return tuple(
                item.value
                for item in ast.walk(node.slice)
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            )
        if isinstance(node, ast.Name) and node.id in module.choices:
            return module.choices[node.id]
    return ()


def parts_of(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Each function and each class without its methods, by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield node.name, node
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    yield item.name, item


def tool_name(top: ast.AST) -> str:
    """Name of the tool that a function is."""
    for call in top.decorator_list if isinstance(top, ast.FunctionDef) else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "tool":
            assert isinstance(top, ast.FunctionDef)
            names = [word.value for word in call.keywords if word.arg == "name"]
            return str(names[0].value) if names and isinstance(names[0], ast.Constant) else top.name
    return ""


def table_call(node: ast.AST | None) -> str | None:
    """Name of the table's method that an expression calls on a table of the state."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_table(node.func.value):
        return node.func.attr
    return None


def is_table(node: ast.AST) -> bool:
    """Whether an expression is one of the service's tables."""
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self.state"
