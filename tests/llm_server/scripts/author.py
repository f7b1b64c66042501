"""The author: works through pi's tools, reads the spec, writes a service by rule, and mends what the check says.

It is as stateless as any script: where it stands follows from the tool results that the conversation holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from compoworld_core.specs.model import ServiceSpec
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.author import Draft
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.synthesis.selftest import dump_tests
from tests.llm_server.reply import Reply

Writer = Callable[[ServiceSpec], Draft]
"""What the author writes for a spec."""


@dataclass(frozen=True)
class AuthorScript:
    """Plays the author.

    Args:
        write: Makes what is written.
        first: What is written at first, to be mended after the check; the right thing if left out.
    """

    write: Writer = RulesAuthor().write
    first: Writer | None = None

    def __call__(self, request: JsonObject) -> Reply:
        """Say what comes next."""
        told = [message for message in request["messages"] if message["role"] == "tool"]
        if not told:
            calls = [("read", {"path": "spec.json"}), ("bash", {"command": "head -5 GUIDE.md"})]
            return Reply(content="I read the spec.", tool_calls=calls, reasoning_content="First things first.")
        spec = ServiceSpec.model_validate({**json.loads(text_of(told[0])), "source": "spec.json"})
        checked = [text_of(message) for message in told if text_of(message).startswith(("OK", "FAILED"))]
        if checked and (checked[-1].startswith("OK") or len(checked) > 1 or self.first is None):
            return Reply(content="The service is written.")
        return _files(self.write(spec) if checked or self.first is None else self.first(spec))


def _files(draft: Draft) -> Reply:
    left_out = json.dumps([item.model_dump() for item in draft.left_out])
    files = {"service.py": draft.source, "tests.json": dump_tests(draft.tests), "left_out.json": left_out}
    calls = [("write", {"path": name, "content": text}) for name, text in files.items() if text]
    return Reply(tool_calls=[*calls, ("bash", {"command": "./check"})])


def text_of(message: JsonObject) -> str:
    """The text of a message, which may come in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
