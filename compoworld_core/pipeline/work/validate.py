"""Validate: every tool of every package is admitted, left to a world model, or quarantined."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import BaseModel, Field

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError, ServiceBug
from compoworld_core.library.registry import installed_service
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.package import ServicePackage
from compoworld_core.synthesis.admission import Admission, admit
from compoworld_core.synthesis.datasets import OMISSIONS
from compoworld_core.synthesis.finding import printable

PACKAGES_PER_SHARD: Final = 4


class ValidateConfig(Data):
    """How tools are checked."""

    seed: int = Field(default=0, description="Seed of the worlds and of the generated cases.")


def plan(config: ValidateConfig, inputs: Inputs) -> int:
    """A shard for every few packages."""
    return shards_for(len(inputs[SERVICES]), PACKAGES_PER_SHARD)


def run(config: ValidateConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """The admissions of the shard's packages."""
    candidates: dict[str, dict[str, str]] = {}
    for omission in inputs[OMISSIONS]:
        if omission.reason == "world_model":
            candidates.setdefault(omission.service, {})[omission.tool] = omission.detail
    for package in inputs[SERVICES].part(shard):
        yield from validate(package, config.seed, candidates.get(package.name, {}))


def validate(package: ServicePackage, seed: int, candidates: Mapping[str, str]) -> tuple[Admission, ...]:
    """The admissions of one package; where checking it breaks, all its tools are quarantined for that."""
    trusted = package.origin == "library"
    backend = InProcessBackend(installed_service(package)) if trusted else host_pool().backend(package)
    try:
        return admit(package, backend, seed=seed, candidates=candidates)
    except ServiceBug as error:
        reason = f"bug: {error}"
    except CompoWorldError:
        raise
    except Exception:
        reason = f"checks broke: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}"
    return tuple(
        Admission(
            service=package.name,
            package=package.digest,
            tool=tool.name,
            outcome="quarantined",
            reason=printable(reason),
        )
        for tool in package.spec.tools
    )
