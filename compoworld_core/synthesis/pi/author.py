"""The pi author: one session writes the service, another, which sees the spec only, writes challenges to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from compoworld_core.llm.prompts import Prompt, load_prompt
from compoworld_core.llm.sessions import Session
from compoworld_core.services.hosted import HostPool
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.storage.digest import to_plain
from compoworld_core.synthesis.author import AuthorFailed, Draft
from compoworld_core.synthesis.pi.check import Report, check_challenges, check_service, read_left_out, read_tests
from compoworld_core.synthesis.pi.harness import VERSION
from compoworld_core.synthesis.pi.session import Assignment, PiSessions

_HOME: Final = "compoworld_core.synthesis.pi"
_TASKS: Final = {
    "author": "Write the service that spec.json describes, as GUIDE.md says, until ./check prints OK.",
    "adversary": "Write challenges to the service that spec.json describes, as GUIDE.md says, until ./check prints OK.",
}


class _Nothing(BaseModel):
    """The inputs of a prompt that has none: what varies lies in files."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PiAuthor:
    """Writes services through pi.

    Args:
        sessions: Where sessions are held.
        model: The author's model, by its name in the configuration.
        adversary: The model of whoever writes challenges.
        pool: Where services are run to be checked.
        run: Runs a coroutine to its end.
    """

    name = "pi"

    def __init__(
        self,
        sessions: PiSessions,
        model: str,
        adversary: str,
        pool: HostPool,
        run: Callable[[Coroutine[Any, Any, Draft]], Draft],
    ) -> None:
        self._sessions = sessions
        self._model = model
        self._adversary = adversary
        self._pool = pool
        self._run = run

    def write(self, spec: ServiceSpec) -> Draft:
        """See `Author.write`.

        Raises:
            AuthorFailed: The session left nothing that is a service.
            InputError: pi can't be confined or installed here, or the stage's budget is spent.
            TransientError: A model does not answer now.
        """
        return self._run(self._write(spec))

    async def _write(self, spec: ServiceSpec) -> Draft:
        session = await self._sessions.hold(
            _assignment("author", spec, self._model, partial(check_service, spec, pool=self._pool))
        )
        files = _files(session)
        left_out = read_left_out(files)
        missing = {left.tool for left in left_out}
        implemented = tuple(tool.name for tool in spec.tools if tool.name not in missing)
        provenance = {"model": self._model, "pi": VERSION, "prompts": " ".join(session.prompts)}
        if not implemented:
            return Draft(author=self.name, service=spec.name, source="", left_out=left_out, provenance=provenance)
        challenger = await self._sessions.hold(
            _assignment("adversary", spec, self._adversary, partial(check_challenges, spec))
        )
        provenance |= {"adversary": self._adversary, "adversary_prompts": " ".join(challenger.prompts)}
        answer = challenger.result
        return Draft(
            author=self.name,
            service=spec.name,
            source=files["service.py"],
            implemented=implemented,
            left_out=left_out,
            tests=read_tests(files, "tests.json"),
            challenges=read_tests(answer["files"], "challenges.json") if answer["made"] == "whole" else (),
            provenance=provenance,
        )


def _assignment(
    kind: Literal["author", "adversary"], spec: ServiceSpec, model: str, check: Callable[..., Report]
) -> Assignment:
    prompts = [load_prompt(_HOME, name, 1) for name in (kind, f"{kind}-guide")]
    system, guide = (_text(prompt) for prompt in prompts)
    return Assignment(
        kind=f"pi_{kind}",
        item=spec.name,
        model=model,
        system=system,
        task=_TASKS[kind],
        prompts=tuple(prompt.label for prompt in prompts),
        inputs={"spec.json": _shown(spec), "GUIDE.md": guide},
        wanted=("service.py", "tests.json", "left_out.json") if kind == "author" else ("challenges.json",),
        check=check,
    )


def _text(prompt: Prompt) -> str:
    return prompt.render(_Nothing())


def _shown(spec: ServiceSpec) -> str:
    """The spec in lines: pi reads files by the line."""
    plain = to_plain(spec)
    shown = {key: plain[key] for key in ("name", "title", "description", "domain")}
    parts = ("name", "description", "effect", "parameters", "returns")
    shown["tools"] = [{part: tool[part] for part in parts if tool[part] is not None} for tool in plain["tools"]]
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def _files(session: Session) -> dict[str, str]:
    """What an author left, if it is a service.

    Raises:
        AuthorFailed: It is none.
    """
    result = session.result
    is_spent = session.outcome == "budget"
    if result["made"] == "nothing" or (is_spent and result["made"] == "draft"):
        raise AuthorFailed("budget" if is_spent else "author", str(result["detail"]))
    files: dict[str, str] = result["files"]
    return files
