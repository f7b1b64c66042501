"""Synthesize: specs become packages, beside those of the library; what stays unbuilt is a row with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.errors import CompoWorldError
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.specs.datasets import SPECS
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.author import Author
from compoworld_core.synthesis.build import BuildError, build_package
from compoworld_core.synthesis.datasets import Omission, OmissionReason
from compoworld_core.synthesis.finding import printable
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.synthesis.selftest import dump_tests

SPECS_PER_SHARD: Final = 10

_LEFT_OUT: Final[Mapping[str, OmissionReason]] = {"world_model": "world_model", "nobody": "unclear"}

AUTHORS: Final[Mapping[str, Callable[[], Author]]] = {"rules": RulesAuthor}


class SynthesizeConfig(BaseModel):
    """Who writes services."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    author: Literal["rules"] = Field(default="rules", description="Who writes services from specs.")


def plan(config: SynthesizeConfig, inputs: Inputs) -> int:
    """A shard for every few specs."""
    return shards_for(len(inputs[SPECS]), SPECS_PER_SHARD)


def run(config: SynthesizeConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Packages and omissions, in the order of the specs; the first shard begins with the library's packages."""
    if shard.index == 0:
        yield from (library_package(name) for name in library_services())
    author = AUTHORS[config.author]()
    for spec in inputs[SPECS].part(shard):
        yield from synthesize(spec, author)


def synthesize(spec: ServiceSpec, author: Author) -> Iterator[BaseModel]:
    """The package of one spec, if there is one, and an omission for every tool that it lacks."""
    try:
        draft = author.write(spec)
    except CompoWorldError:
        raise
    except Exception as error:
        yield from _omissions(
            spec.name, (tool.name for tool in spec.tools), "author", f"{type(error).__name__}: {error}"
        )
        return
    for left in draft.left_out:
        yield from _omissions(spec.name, (left.tool,), _LEFT_OUT[left.candidate_for], left.reason)
    if not draft.implemented:
        return
    try:
        tests = dump_tests(draft.tests)
        modelled = {left.tool for left in draft.left_out if left.candidate_for == "world_model"}
        yield build_package(spec, draft.source, draft.author, tests, host_pool(), modelled=modelled)
    except BuildError as error:
        yield from _omissions(spec.name, draft.implemented, error.reason, error.message)


def _omissions(service: str, tools: Iterable[str], reason: OmissionReason, detail: str) -> Iterator[Omission]:
    for tool in tools:
        yield Omission(service=service, tool=tool, reason=reason, detail=printable(detail))
