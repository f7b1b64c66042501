"""Result files of τ²-bench and of what grew out of it: a simulation is one trial of one task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.collection import Gap
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

_HEAD: Final = 4096
"""Bytes by which a result file is known: `info` stands at its beginning."""

_PROVIDERS: Final = ("openai/", "litellm_proxy/", "hosted_vllm/")


@dataclass(frozen=True)
class Simulations:
    """One result file.

    Attributes:
        model: What was evaluated.
        user: Who played the user.
        trials: Of each task.
        tasks: The tasks that were to be run, with their domains.
        instructions: What stands as their instruction, where it is text.
        items: The simulations, as they stand there.
    """

    info: Found
    model: str
    user: str
    trials: int
    tasks: dict[str, str]
    instructions: dict[str, str]
    items: tuple[Found, ...]

    @classmethod
    def read(cls, file: Path, domains: Collection[str]) -> Simulations:
        """Read a file; simulations in files of their own lie in `simulations/` beside it.

        Args:
            file: A result file.
            domains: Of the benchmark; a run may be of several, with commas between.

        Raises:
            InputError: It is malformed, of another benchmark, or has what it says was not to be run.
        """
        document = read_json(file)
        info = document.at("info")
        if document.has("simulations"):
            items = tuple(document.at("simulations").items())
        else:
            items = tuple(read_json(item) for item in sorted((file.parent / "simulations").glob("*.json")))
        if not items and not document.has("simulations"):
            raise document.wrong("has no simulations, and there are none in files beside it")
        domain = info.at("environment_info").at("domain_name").text()
        if not set(domain.split(",")).issubset(domains):
            raise (
                info.at("environment_info")
                .at("domain_name")
                .wrong(f"{domain!r} is not of this benchmark, which has {', '.join(sorted(domains))}")
            )
        tasks, instructions = {}, {}
        for task in document.at("tasks").items():
            own, instruction = task.maybe("domain"), task.maybe("instructions")
            name = task.at("id").text()
            tasks[name] = own.text() if own is not None else domain
            if instruction is not None and isinstance(instruction.value, str):
                instructions[name] = instruction.value
        trials = info.at("num_trials").whole()
        for item in items:
            found, trial = key_of(item)
            if found not in tasks:
                raise item.at("task_id").wrong(f"{found!r} is none of the tasks that {file} says were to be run")
            if not 0 <= trial < trials:
                raise item.at("trial").wrong(f"is {trial}, and {file} says that there are {trials}, from 0")
        return cls(
            info=info,
            model=_plain_name(info.at("agent_info").at("llm").text()),
            user=_plain_name(info.at("user_info").at("llm").text()),
            trials=trials,
            tasks=tasks,
            instructions=instructions,
            items=items,
        )

    def missing(self, rows: Iterable[Trial]) -> Iterator[Gap]:
        """Trials that were to be run and have no simulation."""
        seen = {(row.task, row.trial) for row in rows}
        for task in self.tasks:
            for trial in range(self.trials):
                if (task, trial) not in seen:
                    yield Gap(task=task, trial=trial, reason="the harness stored no simulation of it")


def simulation_files(folder: Path, harness: str) -> list[Path]:
    """The files in a folder that hold simulations, whatever they are called.

    Raises:
        InputError: There is none.
    """
    found = [file for file in result_files(folder, "*.json", harness) if _has_simulations(file)]
    if not found:
        raise InputError(f"{folder}: no file has simulations; give the folder that {harness} saved its results to")
    return found


def _has_simulations(file: Path) -> bool:
    """Whether it is meant to be a result file: those that are cut short count too, so that they are complained of."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    return b'"info"' in head and (b'"num_trials"' in head or b'"simulations"' in head)


def one_run(files: Sequence[Simulations], folder: Path) -> tuple[str, int]:
    """The model that all files are of, and the trials of each task.

    Raises:
        InputError: They are of several models, or tried tasks differently often.
    """
    models = sorted({file.model for file in files})
    if len(models) > 1:
        raise InputError(f"{folder}: has results of several models ({', '.join(models)}); collect one at a time")
    trials = sorted({file.trials for file in files})
    if len(trials) > 1:
        raise InputError(
            f"{folder}: has runs with {', '.join(map(str, trials))} trials of each task, which are not one score; "
            "collect one at a time"
        )
    return models[0], trials[0]


def together(told: Iterable[str]) -> str:
    """What the files of a run tell of one thing: once where they agree, all of it where they do not."""
    return ", ".join(sorted(set(told)))


def key_of(simulation: Found) -> tuple[str, int]:
    """Task and trial of a simulation."""
    return simulation.at("task_id").text(), simulation.at("trial").whole()


@dataclass(frozen=True)
class Effort:
    """What a simulation took: turns and tokens of the agent, and its price where the harness knows one."""

    steps: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None

    @classmethod
    def of(cls, simulation: Found) -> Effort:
        """Count the agent's messages."""
        steps = prompt = completion = 0
        for message in simulation.at("messages").items():
            if message.at("role").text() != "assistant" or not (message.has("raw_data") or message.has("usage")):
                continue  # not what the agent's model said: the user's message, a tool's, or a greeting that is set
            steps += 1
            if usage := message.maybe("usage"):
                prompt += usage.at("prompt_tokens").whole()
                completion += usage.at("completion_tokens").whole()
        cost = simulation.maybe("agent_cost")
        return cls(steps, prompt, completion, None if cost is None else cost.number())


def _plain_name(model: str) -> str:
    """The name that the model's server knows, without the client's word for the kind of server."""
    return next((model.removeprefix(provider) for provider in _PROVIDERS if model.startswith(provider)), model)
