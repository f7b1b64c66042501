"""The datasets of this room: what was judged, and what there is nothing of to judge."""

from __future__ import annotations

from typing import Literal

from compoworld_core.data import Data
from compoworld_core.storage import DatasetType
from compoworld_core.synthesis.admission import Admission
from compoworld_core.synthesis.build import BuildReason

OmissionReason = Literal["world_model", "unclear", "author", "budget", BuildReason]


class Omission(Data):
    """A tool that a spec promises and no package has.

    Attributes:
        reason: `world_model`: its effect lies outside stored rows. `unclear`: the author could not tell what it means.
            `author`: the author failed on the whole spec, or forgot the tool. `budget`: the author was stopped by its
            budget. Otherwise why its source is no package (`BuildError`).
        detail: A sentence for people.
    """

    service: str
    tool: str
    reason: OmissionReason
    detail: str


VERIFICATIONS = DatasetType("verifications", 1, Admission)
OMISSIONS = DatasetType("omissions", 1, Omission)
