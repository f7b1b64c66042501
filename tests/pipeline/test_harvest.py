"""An export says why it has fewer records than there are trajectories, and what each cost."""

from __future__ import annotations

from decimal import Decimal
from typing import get_args

from compoworld_core.llm.messages import Usage
from compoworld_core.pipeline.harvest import document, sentences, skipped, spent
from compoworld_core.rollouts.contamination import Overlaps
from compoworld_core.rollouts.selection import Outcome, Reason, Selection

FREE = Decimal(0)


def selection(*reasons: Reason, overlaps: Overlaps | None = None) -> Selection:
    outcomes = {("task", index): Outcome(reason) for index, reason in enumerate(reasons)}
    return Selection(outcomes, Usage(), overlaps)


def test_every_reason_has_words_for_people_and_a_count_for_machines() -> None:
    reasons: tuple[Reason, ...] = get_args(Reason)
    whole = selection(*reasons, "failed")

    lines = list(sentences(whole, {}, FREE))
    counts = document(whole, {}, FREE)["left_out"]

    assert len(lines) == len(reasons) - 1, "all but `kept`"
    assert sum("  2 trajectories left out  " in line for line in lines) == 1
    assert counts == {reason: 1 + (reason == "failed") for reason in reasons if reason != "kept"}
    assert document(whole, {}, FREE)["trajectories"] == len(reasons) + 1


def test_money_and_texts_are_told_where_there_are_any() -> None:
    texts = Overlaps(digest="abc", files=2, unread=("a.pdf",))

    told = list(sentences(selection("kept", "kept", "failed", overlaps=texts), {}, Decimal(3)))

    assert told[1:] == [
        "cost 3.00 US dollars, 1.5000 for each that was kept",
        "compared with 2 files of texts, digest abc; 1 file of other kinds not read",
    ]
    assert list(sentences(selection("kept"), {}, FREE)) == []
    assert document(selection(), {}, Decimal(3))["usd_per_record"] is None


def test_rollouts_that_were_not_run_are_told_with_their_reason() -> None:
    sidecars = [{"skipped": {"a": ["always", 2], "b": ["enough", 1]}}, {"skipped": {"c": ["always", 3]}}, {}]

    not_run = skipped(sidecars)

    assert not_run == document(selection("kept"), not_run, FREE)["not_run"] == {"always": 5, "enough": 1}
    assert list(sentences(selection("kept"), not_run, FREE)) == [
        "  5 rollouts not run  their task always succeeds",
        "  1 rollout not run  their task has enough successes",
    ]


def test_money_is_what_all_models_took_for_the_trajectories() -> None:
    sidecars = [{"spend": [{"usd": "0.10"}, {"usd": "0.20"}]}, {}, {"spend": [{"usd": "1"}]}]

    assert spent(sidecars) == Decimal("1.30")
    assert spent([{}]) == 0
