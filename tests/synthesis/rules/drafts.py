"""Small specs, and what becomes of them: the draft, and the service that it describes, running in process."""

from __future__ import annotations

import sys
import types
from datetime import UTC, datetime
from typing import Any

from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.service import Service
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.synthesis.author import Draft
from compoworld_core.synthesis.build import join
from compoworld_core.synthesis.rules import RulesAuthor
from compoworld_core.synthesis.selftest import dump_tests

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def tool(name: str, description: str = "", /, **properties: Any) -> ToolSpec:
    """A tool; a parameter is optional where its schema says `"optional": true`."""
    schemas = {
        key: {word: part for word, part in value.items() if word != "optional"} for key, value in properties.items()
    }
    required = [key for key, value in properties.items() if not value.get("optional")]
    return ToolSpec(
        name=name,
        description=description or name.replace("_", " "),
        parameters={"type": "object", "properties": schemas, "required": required},
    )


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that need not be given."""
    return {**schema, "optional": True}


def service(*tools: ToolSpec, name: str = "desk") -> ServiceSpec:
    """A spec of these tools."""
    return ServiceSpec(name=name, title="Desk", description="A desk.", domain="support", source="test", tools=tools)


def load(draft: Draft) -> type[Service[Any]]:
    """The service class of a draft's module; the rules author's own output is trusted in tests."""
    module = types.ModuleType(f"drafted_{draft.service}")
    sys.modules[module.__name__] = module
    exec(compile(draft.source, f"{module.__name__}.py", "exec"), module.__dict__)
    found = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, Service)]
    return next(item for item in found if item is not Service)


def start(spec: ServiceSpec, draft: Draft | None = None) -> RunningService:
    """The drafted service, running in process with no rows."""
    draft = draft or RulesAuthor().write(spec)
    written = load(draft)
    backend = InProcessBackend(written)
    package = ServicePackage(
        name=spec.name,
        origin="synthesised",
        author=draft.author,
        code={"service.py": draft.source},
        spec=join(spec, written.spec()),
        tables=written.state_class.declaration()[0],
        tests=dump_tests(draft.tests),
    )
    context = Context(spec.name, 1, START, User("Ada Berg", "ada.berg@home.example"))
    return RunningService(package, backend, context, backend.new_state())


def data(running: RunningService, tool_name: str, **arguments: Any) -> Any:
    """The data of a call that must succeed."""
    result = running.call(tool_name, arguments)
    assert result.succeeded, (result.envelope, result.bug)
    return result.envelope["data"]


def code(running: RunningService, tool_name: str, **arguments: Any) -> str:
    """The error code of a call that must be refused."""
    result = running.call(tool_name, arguments)
    assert not result.succeeded
    assert result.bug is None, result.bug
    return str(result.envelope["error"]["code"])
