"""How much is learnt from is counted in the tokens that the loss is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.base import prepare
from compoworld_core.training.config import SftSettings, TinyModel
from compoworld_core.training.conversations import fit, portion
from tests.training.stack.test_tokens import trained_rows

WHOLE = 16_384
TINY = TinyModel(layers=2, hidden=64, heads=2, vocabulary=1024)


def test_taught_tokens_are_those_that_the_trainer_takes_the_loss_of(
    records: list[JsonObject], base: Path, tokenizer: Any, tmp_path: Path
) -> None:
    rows = fit(records[:2], tokenizer, WHOLE).rows
    trained = trained_rows(records[:2], base, tmp_path)

    chosen, epoch = portion(rows, str(base), None)

    assert chosen == rows
    assert epoch.taught == sum(label != -100 for row in trained for label in row["labels"])
    assert epoch.tokens == sum(len(row["input_ids"]) for row in trained)


def test_a_portion_is_the_first_conversations_that_fit_it(
    records: list[JsonObject], base: Path, tokenizer: Any
) -> None:
    rows = fit(records, tokenizer, WHOLE).rows
    _, two = portion(rows[:2], str(base), None)
    _, three = portion(rows[:3], str(base), None)

    assert portion(rows, str(base), two.taught) == (rows[:2], two)
    assert portion(rows, str(base), three.taught - 1) == (rows[:2], two)


@pytest.mark.parametrize(
    ("taught", "message"), [(1, "the first conversation has more"), (10**6, "2 conversations have .* only")]
)
def test_a_portion_that_cannot_be_had_is_refused(
    taught: int, message: str, records: list[JsonObject], base: Path, tokenizer: Any
) -> None:
    with pytest.raises(InputError, match=f"training.sft.taught_tokens={taught}: {message}"):
        portion(fit(records[:2], tokenizer, WHOLE).rows, str(base), taught)


def test_what_is_learnt_from_decides_nothing_about_a_tiny_model(records: list[JsonObject], tmp_path: Path) -> None:
    other = [{**item, "meta": {**item["meta"], "difficulty": "single"}} for item in records[:2]]
    mixed = [*other, *records[2:]]

    def made(folder: str, settings: SftSettings) -> tuple[int, dict[str, bytes]]:
        _, fitting = prepare(None, TINY, settings, mixed, tmp_path / folder)
        return len(fitting.rows), {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}

    rows, files = made("whole", SftSettings(context_tokens=WHOLE))
    fewer_rows, same_files = made("single", SftSettings(context_tokens=WHOLE, profile="single"))

    assert (rows, fewer_rows) == (len(mixed), 2)
    assert files == same_files
