"""The report: everything that a run made, as one HTML page that needs nothing else.

The page works from a file, without a network, in light and dark. Its numbers are plain HTML; services, tasks and
trajectories lie in JSON blocks, one per item, and become elements only when they are opened. Whatever they contain is
shown as text: no markup is ever made from data, and the content security policy allows only the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compoworld_core.rollouts.selection import Selection
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import JsonObject, Rejection, ServiceSpec
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.tasks.quality import VerifierQuality
from compoworld_core.tasks.rubric import Criterion
from compoworld_core.tasks.sampler import Attempt
from compoworld_core.tasks.task import Task
from compoworld_core.viewer.details import service_detail, task_detail, trajectory_detail
from compoworld_core.viewer.funnel import (
    Episodes,
    Sieve,
    admission_sieve,
    attempt_sieve,
    crawl_sieves,
    omission_sieve,
    selection_sieve,
    synthesis_sieve,
)
from compoworld_core.viewer.glossary import DATASETS, as_json
from compoworld_core.viewer.learning import Gain, Phase, Standing
from compoworld_core.viewer.legible import clipped, embedded, legible
from compoworld_core.viewer.summary import count_holdings, draw_charts, draw_scale, share_by_domain

MAX_TASKS = 500
"""Tasks that the page carries; its numbers cover all."""

MAX_TRAJECTORIES = 200
"""Trajectories that the page carries; its numbers cover all."""

_SCRIPTS = ("dom.js", "walk.js", "services.js", "tasks.js", "trajectories.js", "router.js")
_STYLES = ("base.css", "parts.css")


@dataclass(frozen=True)
class ReportData:
    """What a report is made of; each part is read once, and any may be missing.

    Attributes:
        created_from: Key of every dataset that was read, by name.
        version: Of the package that made them.
        quality: How well the rubrics of some of the tasks judge.
        selection: Which of the trajectories are training data.
        phases: How models were trained.
        standings: How policies do on held-out tasks.
        gains: What each phase of training has brought there.
    """

    created_from: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    specs: Iterable[ServiceSpec] = ()
    rejections: Iterable[Rejection] = ()
    packages: Iterable[ServicePackage] = ()
    omissions: Iterable[Omission] = ()
    admissions: Iterable[Admission] = ()
    tasks: Iterable[Task] = ()
    attempts: Iterable[Attempt] = ()
    trajectories: Iterable[Trajectory] = ()
    quality: VerifierQuality | None = None
    selection: Selection | None = None
    phases: Sequence[Phase] = ()
    standings: Sequence[Standing] = ()
    gains: Sequence[Gain] = ()


@dataclass(frozen=True)
class _Block:
    """A JSON block of the page, under the id that the script asks for."""

    id: str
    text: Markup

    @classmethod
    def of(cls, id: str, value: Any) -> _Block:
        return cls(id, embedded(value))


def render_report(data: ReportData) -> str:
    """The page; the same data always gives the same text."""
    specs, packages = tuple(data.specs), sorted(data.packages, key=_place)
    admissions, tasks = tuple(data.admissions), tuple(data.tasks)
    domains = share_by_domain(packages, admissions)
    episodes = Episodes()
    blocks = [_Block.of("words", as_json()), *_service_blocks(packages, admissions), *_task_blocks(tasks)]
    blocks += _trajectory_blocks(data.trajectories, tasks, episodes)
    sieves = [
        *crawl_sieves(specs, tuple(data.rejections)),
        synthesis_sieve(specs, packages),
        omission_sieve(specs, packages, data.omissions),
        admission_sieve(packages, admissions),
        attempt_sieve(data.attempts),
        episodes.sieve,
        selection_sieve(data.selection) if data.selection is not None else None,
    ]
    style, script = _source(_STYLES), _source(_SCRIPTS)
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            holdings=count_holdings(packages, admissions),
            domains=domains,
            scale=draw_scale(domains[0].share if domains else 0),
            meanings=DATASETS,
            sieves=[sieve for sieve in sieves if isinstance(sieve, Sieve)],
            charts=draw_charts(tasks, packages),
            episodes=episodes,
            n_tasks=len(tasks),
            max_tasks=MAX_TASKS,
            max_trajectories=MAX_TRAJECTORIES,
            blocks=blocks,
        )
    )


def _place(package: ServicePackage) -> tuple[str, str, str]:
    """Where a service stands in the list: by domain, then by the name that is shown."""
    return package.spec.domain, (package.spec.title or package.name).casefold(), package.name


def _service_blocks(packages: Sequence[ServicePackage], admissions: Sequence[Admission]) -> Iterator[_Block]:
    by_package: dict[tuple[str, str], list[Admission]] = {}
    for admission in admissions:
        by_package.setdefault((admission.service, admission.package), []).append(admission)
    index: list[JsonObject] = []
    for place, package in enumerate(packages):
        judged = by_package.get((package.name, package.digest), [])
        yield _Block.of(f"service-{place}", service_detail(package, judged))
        outcomes = [admission.outcome for admission in judged]
        index.append(
            {
                "id": package.name,
                "title": package.spec.title,
                "domain": package.spec.domain,
                "origin": package.origin,
                "verified": outcomes.count("verified"),
                "world_model": outcomes.count("world_model"),
                "quarantined": outcomes.count("quarantined"),
                "tools": len(judged) or len(package.spec.tools),
                "tables": len(package.tables.tables),
            }
        )
    yield _Block.of("services", index)


def _task_blocks(tasks: Sequence[Task]) -> Iterator[_Block]:
    for place, task in enumerate(tasks[:MAX_TASKS]):
        yield _Block.of(f"task-{place}", task_detail(task))
    yield _Block.of(
        "tasks",
        [
            {
                "id": task.id,
                "text": clipped(task.instruction, 400),
                "split": task.split,
                "difficulty": task.difficulty,
                "capabilities": list(task.capabilities),
                "core": list(dict.fromkeys(task.walk)),
                "visits": len(task.walk),
                "edges": len(task.edges),
                "criteria": len(task.rubric.criteria),
                "reactions": len(task.recipe.reactions),
            }
            for task in tasks[:MAX_TASKS]
        ],
    )


def _trajectory_blocks(
    trajectories: Iterable[Trajectory], tasks: Sequence[Task], episodes: Episodes
) -> Iterator[_Block]:
    """Blocks of the first trajectories; all are counted."""
    criteria: dict[str, dict[str, Criterion]] = {
        task.id: {item.id: item for item in task.rubric.criteria} for task in tasks
    }
    index: list[JsonObject] = []
    for trajectory in trajectories:
        episodes.add(trajectory)
        if len(index) < MAX_TRAJECTORIES:
            detail = trajectory_detail(trajectory, criteria.get(trajectory.task_id, {}))
            yield _Block.of(f"trajectory-{len(index)}", detail)
            index.append(
                {
                    "id": trajectory.id,
                    "task": trajectory.task_id,
                    "rollout": trajectory.rollout_idx,
                    "policy": trajectory.policy,
                    "domains": list(trajectory.domains),
                    "succeeded": trajectory.succeeded,
                    "score": round(trajectory.score, 4),
                    "error": trajectory.error.kind if trajectory.error else "",
                    "steps": trajectory.n_steps,
                    "calls": trajectory.n_real_tool_calls,
                    "predicted": sum(call.world_model for call in trajectory.calls),
                }
            )
    yield _Block.of("trajectories", index)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("compoworld_core.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalise,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalise(value: object) -> object:
    """Everything that a template prints, apart from what is markup already, is made legible."""
    return legible(clipped(value, 2_000)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _source(names: Sequence[str]) -> str:
    folder = files("compoworld_core.viewer") / "templates"
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    return f'(() => {{\n"use strict";\n{text}\n}})();' if names is _SCRIPTS else text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
