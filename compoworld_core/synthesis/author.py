"""Authors: whoever turns a spec into the source of a service.

An author promises nothing but text. What it hands over is a draft: source that is still to be checked, tests that it
believes in, and the tools that it leaves to others. Whether a tool may be used is decided by admission alone.
"""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.selftest import SelfTest


class LeftOut(Data):
    """A tool that a draft does not implement.

    Attributes:
        candidate_for: `world_model` where the effect lies outside stored rows; `nobody` where its meaning is unclear.
        reason: A sentence for people.
    """

    tool: str
    candidate_for: Literal["world_model", "nobody"]
    reason: str


class Draft(Data):
    """What an author hands over for one spec.

    Attributes:
        source: Text of the service module; empty where no tool could be written.
        implemented: Names of the tools that the module has.
        left_out: All other tools of the spec, with the reason.
        tests: Self-tests of the implemented tools.
        challenges: Tests by somebody who knew the spec only; None where nobody was asked for any.
        provenance: How it was written, in words by topic.
    """

    author: str
    service: str
    source: str
    implemented: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tests: tuple[SelfTest, ...] = ()
    challenges: tuple[SelfTest, ...] | None = None
    provenance: dict[str, str] = Field(default_factory=dict)


class AuthorFailed(Exception):
    """An author has nothing to hand over, and would not have if it was asked again.

    Attributes:
        reason: `budget` where it was stopped before it was done.
        detail: A sentence for people.
    """

    def __init__(self, reason: Literal["author", "budget"], detail: str) -> None:
        super().__init__(detail)
        self.reason: Literal["author", "budget"] = reason
        self.detail = detail


class Author(Protocol):
    """Writes services."""

    @property
    def name(self) -> str:
        """The word that packages record as their author."""
        ...

    def write(self, spec: ServiceSpec) -> Draft:
        """The draft of a service for a normalised spec.

        Raises:
            AuthorFailed: There is none.
        """
        ...
