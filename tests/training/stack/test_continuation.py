"""Turns that read only what is new say what turns that read everything say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from compoworld_core.training.continuation import continued_turns


class Reader:
    """A model that counts what it reads; prompts are padded at the left, as TRL does it."""

    def __init__(self, base: Path) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(base).eval()
        self.model.model.register_forward_pre_hook(self._count, with_kwargs=True)
        self.read = 0

    def _count(self, _: Any, __: Any, named: dict[str, Any]) -> None:
        self.read += named["input_ids"].numel()

    def answers(self, prompts: list[list[int]], end: int) -> list[list[int]]:
        longest = max(map(len, prompts))
        config = GenerationConfig(max_new_tokens=12, do_sample=False, eos_token_id=end, pad_token_id=0)
        with torch.inference_mode():
            done = self.model.generate(
                input_ids=torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts]),
                attention_mask=torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts]),
                generation_config=config,
            )
        rows = [row[longest:].tolist() for row in done]
        return [row[: row.index(end) + 1] if end in row else row for row in rows]


def talk(reader: Reader, prompts: list[list[int]], leaving: dict[int, int], end: int) -> list[list[list[int]]]:
    """What is answered turn by turn, with tool results of several lengths in between.

    Args:
        leaving: The row that leaves after a turn.
    """
    drawn = torch.Generator().manual_seed(1)
    said = []
    for turn in range(5):
        answers = reader.answers(prompts, end)
        said.append(answers)
        results = [torch.randint(20, 900, (3 + 9 * row,), generator=drawn).tolist() for row in range(len(prompts))]
        prompts = [p + answer + result for p, answer, result in zip(prompts, answers, results, strict=True)]
        if turn in leaving:
            del prompts[leaving[turn]]
    return said


@pytest.fixture
def prompts() -> list[list[int]]:
    drawn = torch.Generator().manual_seed(5)
    first, second = (torch.randint(20, 900, (length,), generator=drawn).tolist() for length in (60, 41))
    return [first + first[:30], first + first[:30], second + second[:9], second + second[:17]]


def test_continued_turns_say_what_turns_that_read_everything_say(base: Path, prompts: list[list[int]]) -> None:
    plain, continued = Reader(base), Reader(base)
    end = plain.answers(prompts, end=-1)[2][5]  # so that some answers end early
    plain.read = 0

    expected = talk(plain, prompts, {1: 0, 2: 1}, end)
    with continued_turns(continued.model):
        said = talk(continued, prompts, {1: 0, 2: 1}, end)

    assert said == expected
    assert len({len(answer) for turn in expected for answer in turn}) > 1
    assert continued.read < plain.read / 2


def test_a_process_that_keeps_step_with_others_is_not_led_astray(base: Path, prompts: list[list[int]]) -> None:
    plain, continued = Reader(base), Reader(base)
    generate = continued.model.generate

    def and_go_on(ids: torch.Tensor, **others: Any) -> torch.Tensor:
        """As with parts of a model in several processes, of which the others are not done."""
        done: torch.Tensor = generate(ids, **others)
        for _ in range(4):
            continued.model(input_ids=done[:, -1:], cache=others["cache"])
        return done

    expected = talk(plain, prompts, {1: 0}, end=-1)
    continued.model.generate = and_go_on
    with continued_turns(continued.model):
        said = talk(continued, prompts, {1: 0}, end=-1)

    assert said == expected


def test_prompts_that_go_on_from_nothing_are_read_anew(base: Path, prompts: list[list[int]]) -> None:
    reader, other = Reader(base), [prompts[3][::-1], prompts[0][::-1]]
    expected = reader.answers(other, end=-1)

    with continued_turns(reader.model):
        reader.answers(prompts, end=-1)
        said = reader.answers(other, end=-1)

    assert said == expected


def test_weights_that_changed_are_not_mixed_with_what_was_computed_before(base: Path, prompts: list[list[int]]) -> None:
    reader = Reader(base)
    with continued_turns(reader.model):
        reader.answers(prompts, end=-1)
    with torch.no_grad():
        reader.model.model.embed_tokens.weight.mul_(-1)
    expected = reader.answers(prompts, end=-1)

    with continued_turns(reader.model):
        said = reader.answers(prompts, end=-1)

    assert said == expected
