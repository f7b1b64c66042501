"""The bench trains twice on the same batches, and says what each took."""

from __future__ import annotations

import pytest

from compoworld_core.pipeline.training_bench import measure_training, sentence


def test_fine_tuning_is_measured_beside_a_bare_loop() -> None:
    result = measure_training(micro_batch=2, conversations=9)

    assert result.steps == 2, "three steps of four, four and one; the first is for warming up"
    assert result.ratio == pytest.approx(result.tokens_per_s / result.bare_tokens_per_s)
    assert 0 < result.padding < 0.5
    assert f"{result.ratio:.2f} ×" in sentence(result)
