"""The harvest of a run: how many of its trajectories become training data, why the others do not, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from compoworld_core.pipeline.wording import counted
from compoworld_core.rollouts.distill import SkipReason
from compoworld_core.rollouts.selection import TRAINING_SPLITS, Reason, Selection
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import Split
from compoworld_core.viewer.glossary import LEFT_OUT, SPLITS

_SKIPPED: Final[Mapping[SkipReason, str]] = {
    "always": "their task always succeeds",
    "never": "their task never succeeds",
    "enough": "their task has enough successes",
}
_HINTS: Final[Mapping[Reason, str]] = {
    "failed": "; --failures includes them",
    "world_model": "; export.world_model includes them",
}


def skipped(sidecars: Iterable[Mapping[str, Any]]) -> dict[SkipReason, int]:
    """Rollouts that were planned and not run, by reason, as the sidecars of the trajectories note them."""
    found: Counter[SkipReason] = Counter()
    for sidecar in sidecars:
        for reason, rollouts in sidecar.get("skipped", {}).values():
            found[reason] += rollouts
    return dict(sorted(found.items()))


def spent(sidecars: Iterable[Mapping[str, Any]]) -> Decimal:
    """US dollars that the trajectories cost, as their sidecars note it."""
    return sum((Decimal(entry["usd"]) for sidecar in sidecars for entry in sidecar.get("spend", ())), Decimal(0))


def left_out(selection: Selection) -> dict[Reason, int]:
    """Trajectories without a record, by reason."""
    return {reason: count for reason, count in selection.counts.items() if reason != "kept"}


def sentences(selection: Selection, not_run: Mapping[SkipReason, int], usd: Decimal) -> Iterator[str]:
    """The harvest for people, a line per reason.

    Args:
        usd: What all trajectories cost.
    """
    for why, count in not_run.items():
        yield f"  {counted(count, 'rollouts')} not run  {_SKIPPED[why]}"
    for reason, count in left_out(selection).items():
        yield f"  {counted(count, 'trajectories')} left out  {_why(reason)}"
    if usd and selection.size:
        yield f"cost {usd:.2f} US dollars, {usd / selection.size:.4f} for each that was kept"
    if selection.overlaps is not None:
        compared = selection.overlaps
        unread = f"; {counted(len(compared.unread), 'files')} of other kinds not read" if compared.unread else ""
        yield f"compared with {counted(compared.files, 'files')} of texts, digest {compared.digest[:16]}{unread}"


def document(selection: Selection, not_run: Mapping[SkipReason, int], usd: Decimal) -> JsonObject:
    """The harvest for machines; `usd` as in `sentences`."""
    compared = selection.overlaps
    return {
        "trajectories": len(selection.outcomes),
        "left_out": left_out(selection),
        "not_run": dict(not_run),
        "usd": str(usd),
        "usd_per_record": f"{usd / selection.size:.6f}" if selection.size else None,
        "compared_with": compared
        and {"files": compared.files, "digest": compared.digest, "unread": list(compared.unread)},
    }


def _why(reason: Reason) -> str:
    if reason in TRAINING_SPLITS:
        return f"{reason}: the other training split; --split {reason} writes them"
    split: Split | None = next((name for name in SPLITS if name == reason), None)
    if split is not None:
        return f"{split}: {SPLITS[split]}; never exported"
    return f"{LEFT_OUT[reason]}{_HINTS.get(reason, '')}"
