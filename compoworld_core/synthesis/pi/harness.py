"""The pi coding agent: which one, where it is installed, and how it is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.packages import INSIDE, Package, installed, node_view
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.pi.confinement import Places, Program

VERSION: Final = "1.6.0"
NODE: Final = (22, 19, 0)

_PACKAGE: Final = Package("npx", "@earendil-works/pi-coding-agent", VERSION)
_PROVIDER: Final = "proxy"

ENVIRONMENT: Final = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}

SETTINGS: Final[JsonObject] = {
    "retry": {"enabled": False},  # whoever answers behind the proxy does that
    "httpIdleTimeoutMs": "disabled",
    "enableInstallTelemetry": False,
    "cacheWarming": "off",
    "quietStartup": True,
}


class Pi:
    """An installed pi.

    Attributes:
        program: What has to be seen for it to run.
    """

    def __init__(self, program: Program, node: str, script: str) -> None:
        self.program = program
        self._node = node
        self._script = script

    def command(self, places: Places, model: str, task: str) -> list[str]:
        """The command that has it work on a task, by the system prompt that lies in the session's folder."""
        script = self._script.replace(INSIDE, places.package, 1)
        command = [self._node, script, "--print", "--mode", "json", "--provider", _PROVIDER, "--model", model]
        command += ["--no-session", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes"]
        command += ["--no-context-files", "--no-mcp", "--no-approve", "--tools", "read,bash,edit,write"]
        return [*command, "--system-prompt", f"{places.session}/system.md", "--thinking", "off", "--", task]


@contextmanager
def open_pi() -> Iterator[Pi]:
    """Have pi installed; what is installed stays in the cache.

    Raises:
        InputError: It can't be, or there is no node that is new enough.
        TransientError: The network failed.
    """
    node, view = node_view(NODE)
    try:
        with installed(_PACKAGE, keep=True) as launch:
            yield Pi(Program(launch.readable[INSIDE], view), node, launch.command[1])
    except ServerFailure as failure:
        raise failure.error(_PACKAGE.label) from failure


def models(model: str, context_tokens: int, answer_tokens: int) -> dict[str, Any]:
    """pi's list of models: the one that the proxy serves. The proxy needs no key; its address is filled in later."""
    compat = {
        "supportsDeveloperRole": False,
        "supportsStore": False,
        "supportsReasoningEffort": False,
        "maxTokensField": "max_tokens",
        "promptCacheKeyMode": "disabled",
    }
    listed = {"id": model, "contextWindow": context_tokens, "maxTokens": answer_tokens}
    provider = {"api": "openai-completions", "apiKey": "none", "compat": compat, "models": [listed]}
    return {"providers": {_PROVIDER: provider}}
