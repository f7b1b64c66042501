"""Synthesize: specs become packages, beside those of the library; what stays unbuilt is a row with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from compoworld_core.errors import CompoWorldError
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.llm.config import ModelUser
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.datasets import SPECS
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.author import Author, AuthorFailed, Draft
from compoworld_core.synthesis.build import BuildError, build_package
from compoworld_core.synthesis.datasets import Omission, OmissionReason
from compoworld_core.synthesis.finding import printable
from compoworld_core.synthesis.pi.settings import SessionSettings
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.synthesis.selftest import dump_tests

SPECS_PER_SHARD: Final = {"rules": 10, "pi": 1}
"""A session takes minutes and money, so a shard that is lost should lose one."""

_LEFT_OUT: Final[Mapping[str, OmissionReason]] = {"world_model": "world_model", "nobody": "unclear"}


class SynthesizeConfig(ModelUser):
    """Who writes services."""

    author: Literal["rules", "pi"] = Field(
        default="rules", description="Who writes services from specs: `rules`, or the coding agent `pi`."
    )
    model: str | None = Field(default=None, description="The model of llm.models that pi writes with.")
    adversary: str | None = Field(
        default=None, description="The model that challenges what was written; the author's if left out."
    )
    session: SessionSettings = Field(default=SessionSettings(), description="How far each of pi's sessions may go.")

    @model_validator(mode="after")
    def _models_fit_the_author(self) -> Self:
        if self.author == "pi" and self.model is None:
            raise _wrong("model", "author pi needs one; name a model of llm.models")
        if self.author == "rules" and (self.model or self.adversary):
            raise _wrong("author", "is rules, which asks no model; write `author: pi`, or leave the models out")
        return self

    def named(self) -> dict[str, str]:
        """The models of author and adversary."""
        wanted = {"model": self.model, "adversary": self.adversary}
        return {field: name for field, name in wanted.items() if name is not None}


def _wrong(field: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{problem}", {"key": f"synthesize.{field}", "problem": problem})


def _open_pi(config: SynthesizeConfig, shard: Shard) -> AbstractContextManager[Author]:
    from compoworld_core.pipeline.work.pi import open_pi_author

    return open_pi_author(config, shard)


AUTHORS: Final[Mapping[str, Callable[[SynthesizeConfig, Shard], AbstractContextManager[Author]]]] = {
    "rules": lambda config, shard: nullcontext(RulesAuthor()),
    "pi": _open_pi,
}


def plan(config: SynthesizeConfig, inputs: Inputs) -> int:
    """A shard for every few specs."""
    return shards_for(len(inputs[SPECS]), SPECS_PER_SHARD[config.author])


def run(config: SynthesizeConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Packages and omissions, in the order of the specs; the first shard begins with the library's packages."""
    if shard.index == 0:
        yield from (library_package(name) for name in library_services())
    with AUTHORS[config.author](config, shard) as author:
        for spec in inputs[SPECS].part(shard):
            yield from synthesize(spec, author)


def synthesize(spec: ServiceSpec, author: Author) -> Iterator[BaseModel]:
    """The package of one spec, if there is one, and an omission for every tool that it lacks."""
    everything = [tool.name for tool in spec.tools]
    try:
        draft = author.write(spec)
    except CompoWorldError:
        raise
    except AuthorFailed as failure:
        yield from _omissions(spec.name, everything, failure.reason, failure.detail)
        return
    except Exception as error:
        yield from _omissions(spec.name, everything, "author", f"{type(error).__name__}: {error}")
        return
    package: ServicePackage | None = None
    failed: tuple[OmissionReason, str] = ("author", "the author forgot it")
    if draft.implemented:
        try:
            package = _build(spec, draft)
        except BuildError as error:
            failed = (error.reason, error.message)
    there = {tool.name for tool in package.spec.tools} if package is not None else set()
    left_out = {left.tool: left for left in draft.left_out}
    for tool in everything:
        if tool in there:
            continue
        if left := left_out.get(tool):
            yield from _omissions(spec.name, (tool,), _LEFT_OUT[left.candidate_for], left.reason)
        else:
            yield from _omissions(spec.name, (tool,), *failed)
    if package is not None:
        yield package


def _build(spec: ServiceSpec, draft: Draft) -> ServicePackage:
    return build_package(
        spec,
        draft.source,
        draft.author,
        dump_tests(draft.tests),
        host_pool(),
        modelled={left.tool for left in draft.left_out if left.candidate_for == "world_model"},
        challenges="" if draft.challenges is None else dump_tests(draft.challenges),
        provenance=draft.provenance,
    )


def _omissions(service: str, tools: Iterable[str], reason: OmissionReason, detail: str) -> Iterator[Omission]:
    for tool in tools:
        yield Omission(service=service, tool=tool, reason=reason, detail=printable(detail))
