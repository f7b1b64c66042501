"""The harvest of a run: how many of its trajectories become training data, why the others do not, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from compoworld_core.pipeline.wording import counted
from compoworld_core.rollouts.selection import TRAINING_SPLITS, Reason, Selection
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import Split
from compoworld_core.viewer.glossary import SPLITS

_WORDS: Final[Mapping[Reason, str]] = {
    "not_well_formed": "have a call whose arguments are no JSON object",
    "failed": "were not verified; --failures includes them",
    "world_model": "have answers of a world model; export.world_model includes them",
    "contaminated": "overlap with the texts to stay clear of",
    "duplicate": "make nearly the same calls as another of their task",
    "near_duplicate": "say nearly the same as another",
    "over_cap": "are more of their task than wanted",
}


def left_out(selection: Selection) -> dict[Reason, int]:
    """Trajectories without a record, by reason."""
    return {reason: count for reason, count in selection.counts.items() if reason != "kept"}


def sentences(selection: Selection) -> Iterator[str]:
    """The harvest for people, a line per reason."""
    for reason, count in left_out(selection).items():
        yield f"  {counted(count, 'trajectories')} left out  {_why(reason)}"
    if selection.usd_per_kept is not None and selection.usd:
        yield f"cost {selection.usd:.2f} US dollars, {selection.usd_per_kept:.4f} for each that was kept"
    if selection.overlaps is not None:
        compared = selection.overlaps
        unread = f"; {counted(len(compared.unread), 'files')} of other kinds not read" if compared.unread else ""
        yield f"compared with {counted(compared.files, 'files')} of texts, digest {compared.digest[:16]}{unread}"


def document(selection: Selection) -> JsonObject:
    """The harvest for machines."""
    compared = selection.overlaps
    return {
        "trajectories": len(selection.outcomes),
        "left_out": left_out(selection),
        "usd": str(selection.usd),
        "usd_per_record": None if selection.usd_per_kept is None else f"{selection.usd_per_kept:.6f}",
        "compared_with": compared
        and {"files": compared.files, "digest": compared.digest, "unread": list(compared.unread)},
    }


def _why(reason: Reason) -> str:
    if reason in TRAINING_SPLITS:
        return f"{reason}: the other training split; --split {reason} writes them"
    split: Split | None = next((name for name in SPLITS if name == reason), None)
    return _WORDS[reason] if split is None else f"{split}: {SPLITS[split]}; never exported"
