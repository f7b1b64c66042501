"""A benchmark is its authors' harness, run as they mean it to be, and its result files in one form.

Three steps. `prepare` checks all that the harness needs before anything is spent, and renders the commands. `run` runs
them. `collect` reads the harness's own result files, wherever they were made, and works the published metric out of
their rows again. Nothing that a harness leaves out is lost on the way: it is a drop, a gap or an error, and is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.harness import harness_version, require, run_job
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.results import Found, read_json
from compoworld_core.evaluation.secrets import Secrets, secrets_in
from compoworld_core.evaluation.trial import Trial
from compoworld_core.storage.digest import canonical_json, to_plain

PROVENANCE: Final = "provenance.json"
"""What is known of a run that its harness does not write down itself."""


class Benchmark(ABC):
    """One benchmark. A file in `benchmarks/` with one such class adds it.

    Attributes:
        name: As the command line knows it.
        title: As its authors write it.
        pin: The official harness.
        needs: What it needs.
        options: Its own options with their defaults; the first that is published comes first.
        trials: Of each task in the published figures.
        unit: What a row's `task` names.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    pin: ClassVar[Pin]
    needs: ClassVar[Needs]
    options: ClassVar[Mapping[str, str]] = {}
    trials: ClassVar[int] = 1
    unit: ClassVar[str] = "task"

    @abstractmethod
    def render(self, order: Order) -> tuple[Job, ...]:
        """The commands: as many as there are shards, in order; of each part where a benchmark has parts."""

    @abstractmethod
    def parse(self, folder: Path) -> Collection:
        """The results in a folder as the harness's own files have them; ends with `self.collection(…)`.

        Raises:
            InputError: A file is missing or malformed; names file and field.
        """

    @abstractmethod
    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """The published figure by its published definition, and after it the others that the harness prints."""

    def prepare(self, order: Order) -> tuple[Job, ...]:
        """Check all that the harness needs, and render its commands.

        Raises:
            InputError: Something is not there; all of it is said at once.
        """
        require(self.name, self.pin, self.needs_for(order), self.options, order)
        return self.render(order)

    def run(self, order: Order, jobs: Iterable[Job]) -> None:
        """Run the commands that are not finished yet, each in its own folder.

        Raises:
            InputError: The folder has results of another order.
            CompoWorldError: A command failed; shows the end of its log.
        """
        order.out.mkdir(parents=True, exist_ok=True)
        provenance = {
            "benchmark": self.name,
            "harness": harness_version(self.pin, order),
            "asked": order.content() | {"options": {name: self.option(order, name) for name in self.options}},
        }
        file = order.out / PROVENANCE
        if file.exists() and read_json(file).value != provenance:
            raise InputError(
                f"{order.out}: has results of another order (see {file}); choose another folder with --out"
            )
        file.write_text(canonical_json(provenance), encoding="utf-8")
        for index, job in enumerate(jobs):
            if order.shard is None or order.shard == index % order.shards:
                run_job(order, job)

    def collect(self, folder: Path) -> Collection:
        """The results in a folder, whoever made them, without any secret.

        Raises:
            InputError: A file is missing or malformed; names file and field.
        """
        collection = self.parse(folder)
        known = [read_json(file) for file in sorted(folder.rglob(PROVENANCE))]
        versions, setting = dict(collection.versions), dict(collection.setting)
        for found in known:
            if (of := found.at("benchmark")).text() != self.name:
                raise of.wrong(f"these are results of {of.text()}, not of {self.name}")
            if _asked(found.at("asked")) != _asked(known[0].at("asked")):
                raise found.at("asked").wrong(f"differs from that of {known[0].file}; collect one order at a time")
        if known:
            versions["harness"] = ", ".join(sorted({found.at("harness").text() for found in known}))
            setting = {**_asked(known[0].at("asked")), **setting}
        plain = to_plain(collection) | {"versions": versions, "setting": setting}
        return Collection.model_validate(Secrets(secrets_in(folder)).strip(plain))

    def needs_for(self, order: Order) -> Needs:
        """What an order needs, where that depends on its options."""
        return self.needs

    def option(self, order: Order, name: str) -> str:
        """The value of one of its own options."""
        return order.options.get(name, self.options[name])

    def collection(
        self,
        model: str,
        rows: Iterable[Trial],
        *,
        drops: Iterable[Gap] = (),
        missing: Iterable[Gap] = (),
        setting: Mapping[str, str | int] | None = None,
        versions: Mapping[str, str] | None = None,
        warnings: Iterable[str] = (),
    ) -> Collection:
        """A collection with the figures of its rows, in the order of tasks and trials.

        Raises:
            InputError: Two rows claim to be the same trial.
        """
        ordered = tuple(sorted(rows, key=lambda row: (row.task, row.trial)))
        for one, other in pairwise(ordered):
            if (one.task, one.trial) == (other.task, other.trial):
                raise InputError(
                    f"{self.name}: {self.unit} {one.task!r} has trial {one.trial} twice; collect one run at a time"
                )
        headline, *metrics = self.measure(ordered)
        return Collection(
            benchmark=self.name,
            model=model,
            unit=self.unit,
            rows=ordered,
            headline=headline,
            metrics=tuple(metrics),
            drops=tuple(drops),
            missing=tuple(missing),
            setting=dict(setting or {}),
            versions=dict(versions or {}),
            warnings=tuple(warnings),
        )


def _asked(asked: Found) -> dict[str, str]:
    """What a run was asked for and its result files need not tell: options, and who played the user and who judged."""
    found = {name: value.text() for name, value in asked.at("options").fields() if value.value}
    for role in ("user", "judge"):
        if party := asked.maybe(role):
            found[role] = party.at("model").text()
    return found
