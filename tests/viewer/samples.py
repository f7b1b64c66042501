"""What reports are made of in these tests: a real task with a real episode, and the same kinds of data gone hostile."""

from __future__ import annotations

import asyncio
from functools import cache
from html.parser import HTMLParser
from typing import Any

from compoworld_core.library.registry import library_package
from compoworld_core.llm.messages import AssistantMessage, ToolCall, UserMessage
from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.trajectory import Call, Change, EpisodeError, Trajectory
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.synthesis.finding import Finding
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.tasks.sampler import Attempt
from compoworld_core.tasks.task import Task
from compoworld_core.viewer import ReportData
from tests.rollouts.complaint import SERVICES, complaint_task, open_catalogue

OWNED = "document.title='owned'"
HOSTILE = (
    f"</script><script>{OWNED}</script>"
    f'<img src=x onerror="{OWNED}">'
    f"<svg onload={OWNED}>"
    f'<a href="javascript:{OWNED}">go</a> javascript:{OWNED} \' onmouseover={OWNED} '
    "<!--<script> ]]> {{ 7 * 191 }} \u2028 \u2029 \u202eright to left\u202c \u2066isolated\u2069 \u200b \x00 "
    "\x1b[2J &lt;"
)


@cache
def task_and_trajectory() -> tuple[Task, Trajectory]:
    """A task that was made by hand, and the oracle's episode on it."""
    task, catalogue = complaint_task(), open_catalogue()

    async def run() -> Trajectory:
        async for trajectory in distill([task], catalogue, oracles(catalogue)):
            return trajectory
        raise AssertionError("no trajectory")

    return task, asyncio.run(run())


def packages() -> list[ServicePackage]:
    """The library services of the task."""
    return [library_package(name) for name in SERVICES]


def admissions(package: ServicePackage) -> list[Admission]:
    """Every tool verified but the last two, one of which is left to a world model and one quarantined."""
    outcomes = {package.spec.tools[-1].name: "quarantined", package.spec.tools[-2].name: "world_model"}
    reasons = {"quarantined": "is_repeatable: answers differ", "world_model": "reaches outside"}
    return [
        Admission.model_validate(
            {
                "service": package.name,
                "package": package.digest,
                "tool": tool.name,
                "outcome": (outcome := outcomes.get(tool.name, "verified")),
                "reason": reasons.get(outcome, "passed 1 checks"),
                "checks": (Finding(check="is_repeatable", passed=outcome != "quarantined", detail="seen", cases=3),),
            }
        )
        for tool in package.spec.tools
    ]


def attempt(outcome: str, detail: str = "", core: tuple[str, ...] = ("mail", "crm")) -> Attempt:
    """An attempt with this end."""
    return Attempt(number=0, profile="standard", split="sft", core=core, walk=core, outcome=outcome, detail=detail)


def real_data() -> ReportData:
    """A small run."""
    task, trajectory = task_and_trajectory()
    found = packages()
    return ReportData(
        created_from={"tasks": "0123abcd"},
        version="0.1.0",
        packages=found,
        admissions=[item for package in found for item in admissions(package)],
        tasks=[task],
        attempts=[attempt("accepted"), attempt("dead_end", "nothing to do in crm after LL")],
        trajectories=[trajectory],
    )


def hostile_task() -> Task:
    """The task with every text for people, and every name that it may choose, replaced."""
    content = task_and_trajectory()[0].model_dump()
    content["instruction"] = content["author"] = content["shape"] = HOSTILE
    content["capabilities"] = (HOSTILE,)
    content["walk"] = content["core"] = (HOSTILE, "crm")
    for criterion in content["rubric"]["criteria"]:
        criterion["description"] = HOSTILE
    for step in content["solution"]["steps"]:
        step["service"] = step["tool"] = HOSTILE
        step["arguments"] = {HOSTILE: {"$value": HOSTILE}, "__proto__": [HOSTILE, {"constructor": HOSTILE}]}
    content["solution"]["values"] = {HOSTILE: {"$ref": f"s1.data.{HOSTILE}"}}
    content["solution"]["answer"] = [{"label": HOSTILE, "value": {"$value": HOSTILE}}]
    for edge in content["edges"]:
        edge["argument"] = edge["criterion"] = edge["target_service"] = HOSTILE
    content["recipe"]["plants"][0]["do"]["values"] = {HOSTILE: HOSTILE, "__proto__": {"polluted": HOSTILE}}
    content["recipe"]["plants"][0]["facts"] = {HOSTILE: HOSTILE}
    content["recipe"]["services"][0]["name"] = HOSTILE
    return Task.model_validate(content)


def hostile_trajectory(task_id: str, text: str = HOSTILE) -> Trajectory:
    """An episode in which every text is the given one."""
    row: dict[str, Any] = {"id": text, text: text, "__proto__": text}
    change = Change(service=text, table=text, key=text, before={**row, "new": 1}, after=row, cause="reaction")
    call = Call(
        index=0,
        name="call_tool",
        arguments={"tool_name": text, "arguments": row},
        envelope={"success": False, "error": {"code": text, "message": text}},
        service=text,
        tool=text,
        changes=(change,),
        bug=text,
        world_model=True,
    )
    asked = (ToolCall.of("a", "call_tool", {"tool_name": text}), ToolCall(id="b", name=text, arguments=text))
    malformed = Call(index=1, name=text, arguments=None, envelope={"success": False, text: text})
    return Trajectory(
        task_id=task_id,
        rollout_idx=0,
        policy=text,
        domains=(text,),
        messages=(
            UserMessage(content=text),
            AssistantMessage(content=text, reasoning_content=text, tool_calls=asked),
            AssistantMessage(content=text),
        ),
        calls=(call, malformed),
        answer=text,
        verdict=Verdict(criteria=("case", text), passed=(True, False)),
        error=EpisodeError(kind="policy", message=text),
        finish_reason="error",
        n_steps=2,
    )


def hostile_data() -> ReportData:
    """A run in which everything that a server, an author or an agent can write is hostile."""
    task = hostile_task()
    package = library_package("mail")
    tools = tuple(
        tool.model_copy(update={"name": HOSTILE, "description": HOSTILE, "repairs": (HOSTILE,)})
        for tool in package.spec.tools[:1]
    )
    spec = ServiceSpec(
        name=HOSTILE, title=HOSTILE, description=HOSTILE, domain="communication", source=HOSTILE, tools=tools
    )
    shady = ServicePackage(
        name=HOSTILE, origin="synthesised", author=HOSTILE, code={}, spec=spec, tables=package.tables
    )
    judged = Admission(
        service=HOSTILE,
        package=shady.digest,
        tool=HOSTILE,
        outcome="quarantined",
        reason=f"{HOSTILE}: {HOSTILE}",
        checks=(Finding(check=HOSTILE, passed=False, detail=HOSTILE),),
    )
    return ReportData(
        created_from={HOSTILE: HOSTILE},
        version=HOSTILE,
        specs=[spec],
        rejections=[Rejection(subject="server", origin=HOSTILE, reason=HOSTILE, detail=HOSTILE)],
        packages=[shady],
        omissions=[Omission(service=HOSTILE, tool=HOSTILE, reason="disallowed", detail=HOSTILE)],
        admissions=[judged],
        tasks=[task],
        attempts=[attempt(HOSTILE, HOSTILE, core=(HOSTILE,))],
        trajectories=[hostile_trajectory(task.id)],
    )


class Elements(HTMLParser):
    """The elements of a page as a parser finds them, and the text of every script and style."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self._inside: tuple[str, dict[str, str | None]] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.raw.append((*self._inside, data))

    def handle_endtag(self, tag: str) -> None:
        self._inside = None
