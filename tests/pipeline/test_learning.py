"""What a run tells of held-out tasks, and of trainings."""

from __future__ import annotations

from compoworld_core.pipeline.work.learning import in_words, phase_of_sft, standings
from compoworld_core.training.history import Metric
from tests.viewer.learned import trials


def test_a_run_tells_how_every_policy_did_and_how_far_training_came() -> None:
    lines = in_words(*standings(trials()))

    assert lines[2] == (
        "held out sft       30.0% of 10 tasks passed in full (10.8% to 60.3%), 30.0% of what is to be earned"
    )
    assert "base to sft: +30.0 points of full passes (+0.0 to +60.0, 95 %)" in lines
    assert len(lines) == 4 + 2 * 2


def test_nothing_is_told_where_nobody_was_tried() -> None:
    assert in_words(*standings([])) == []


def test_a_long_training_is_drawn_with_few_points() -> None:
    metrics = [Metric(phase="sft", step=step, name="loss", value=1.0 + (step % 2)) for step in range(1, 3001)]

    (picture,) = phase_of_sft(metrics, None, None).pictures

    points = picture.svg.split('<polyline points="')[1].split('"')[0].split()
    assert len(points) == 150
    assert len({point.split(",")[1] for point in points}) == 1, "each is the mean of its neighbours"


def test_what_was_no_number_is_not_drawn() -> None:
    metrics = [Metric(phase="sft", step=step, name="loss", value=None) for step in range(5)]

    assert phase_of_sft(metrics, None, None).pictures == ()
