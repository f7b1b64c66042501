"""What a harness is, what it needs, and what is asked of it.

A job is data: a command with its config files and environment, without any secret. Whoever runs it adds those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.llm.config import Endpoint, ModelConfig


class Pin(Data):
    """Which harness it is. What is None is not pinned: whoever runs it says which revision it is.

    Attributes:
        repository: `owner/name` on GitHub.
        commit: Of the repository.
        package: What it is called where Python packages are installed from, and in its own environment.
        version: Of the package.
    """

    repository: str
    commit: str | None = None
    package: str | None = None
    version: str | None = None


class Needs(Data):
    """What has to be there before anything is spent.

    Attributes:
        python: The harness's Python, as a version specifier: `>=3.12,<3.14`.
        modules: What that Python has to be able to import.
        files: What has to be in the harness's folder, such as data.
        user: Whether a model plays the user.
        judge: Whether a model judges.
        docker: Whether it starts containers.
        contained: Whether the agent asks its model from within a container or machine that the harness starts, which
            sees nothing of this machine's loopback, and which the harness reaches by this machine's ports and folders.
        programs: What has to be on the path.
        secrets: Environment variables that have to be set; the harness is given them.
        key_files: Those of `secrets` that hold no key but name the file that has it.
        parts: How to ask for a part of its tasks, if its scripts know no limit.
    """

    python: str = ">=3.10"
    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    user: bool = False
    judge: bool = False
    docker: bool = False
    contained: bool = False
    programs: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    key_files: tuple[str, ...] = ()
    parts: str | None = None

    def unmet(self, *, has_user: bool, has_judge: bool, has_limit: bool) -> Iterator[str]:
        """What is wrong with an order for it, by what the order says."""
        if self.user and not has_user:
            yield "a model has to play the user; name it with --user"
        if self.judge and not has_judge:
            yield "a model has to judge; name it with --judge"
        if self.parts is not None and has_limit:
            yield f"its scripts know no --limit; {self.parts}"


class Served(Data):
    """A model behind one OpenAI-compatible endpoint, as harnesses are told of it."""

    model: str
    endpoint: Endpoint
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, name: str, config: ModelConfig) -> Self:
        """The model of a configuration; harnesses know one server, so it is the first.

        Raises:
            InputError: It has no server.
        """
        if not config.endpoints:
            raise InputError(f"llm.models.{name}: has no endpoints; name the server that the harness shall ask")
        return cls(
            model=config.model,
            endpoint=config.endpoints[0],
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_tokens,
        )

    @property
    def base_url(self) -> str:
        """Up to and including `/v1`."""
        return self.endpoint.base_url.rstrip("/")


class Order(Data):
    """What shall be run.

    Attributes:
        agent: The model that is evaluated.
        user: Who plays the user.
        judge: Who judges.
        harness: Folder of the harness: its checkout, or whatever its environment lies in.
        python: The harness's interpreter; `.venv/bin/python` in its folder if left out.
        revision: Which revision the harness is of, for one that is not pinned.
        out: Folder that the results go to.
        limit: Most tasks, of each part of a benchmark that has parts; all if left out.
        trials: Of each task; as published if left out.
        concurrency: Most tasks at a time.
        shards: Parts that the tasks are split into, each of which is finished or not.
        shard: The only part to run, from 0; all of them if left out.
        options: The benchmark's own, by name; see its `options`.
    """

    agent: Served
    user: Served | None = None
    judge: Served | None = None
    harness: Path
    python: Path | None = None
    revision: str | None = None
    out: Path
    limit: int | None = Field(default=None, ge=1)
    trials: int | None = Field(default=None, ge=1)
    concurrency: int = Field(default=8, ge=1)
    shards: int = Field(default=1, ge=1)
    shard: int | None = Field(default=None, ge=0)
    options: dict[str, str] = Field(default={})

    @model_validator(mode="after")
    def _has_that_shard(self) -> Self:
        if self.shard is not None and self.shard >= self.shards:
            raise ValueError(f"there is no shard {self.shard} of {self.shards}")
        return self

    @property
    def interpreter(self) -> Path:
        """The harness's Python."""
        return self.python or self.harness / ".venv" / "bin" / "python"

    def content(self) -> dict[str, Any]:
        """What decides the results: who takes part, and in what; not where anything is, nor how fast."""
        parties = {"agent": self.agent, "user": self.user, "judge": self.judge}
        return {
            "limit": self.limit,
            "trials": self.trials,
            "shards": self.shards,
            **{role: served and served.model_dump(exclude={"endpoint"}) for role, served in parties.items()},
        }

    def folder(self, job: str) -> Path:
        """The folder of a job, as harnesses have to be told of it."""
        return (self.out / job).absolute()


class Job(Data):
    """One command of a harness. It has no secret: those are added when it runs, and only to its environment.

    Attributes:
        name: Of the job and of the folder in `Order.out` that it runs in.
        command: Program and arguments; a program without a slash is looked for beside the harness's Python first.
        done: File in the job's folder that the harness has to leave. A job that ended well and left it is finished and
            not run again; another is, so that the harness goes on where it can.
        environment: Variables that are no secret.
        keys: Variables that hold the key of an endpoint.
        passed: Variables that are handed on as they are set here.
        files: Config files by path in the job's folder.
        sealed: JSON or YAML files that must hold a key because the harness reads it nowhere else, by the variable that
            tells the harness the path. They exist in memory alone; `${NAME}` within quotes stands for the variable NAME
            of `keys` or `passed`.
        answers: Lines that the harness reads from its standard input, for one that asks whether to go on.
        folder: Where to run it, for a harness that only works in its own folder; the job's folder if left out.
        sources: Folders in the job's folder that hold sources of others, by what each is a copy of, or by itself if all
            in it is. A file that the original has, too, is source; what was added is results.
    """

    name: str
    command: tuple[str, ...]
    done: str
    environment: dict[str, str] = Field(default={})
    keys: dict[str, Endpoint] = Field(default={})
    passed: tuple[str, ...] = ()
    files: dict[str, str] = Field(default={})
    sealed: dict[str, str] = Field(default={})
    answers: str = ""
    folder: Path | None = None
    sources: dict[str, Path] = Field(default={})
