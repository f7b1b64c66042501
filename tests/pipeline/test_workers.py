"""Workers keep to their work: what they print is nobody's answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from compoworld_core.pipeline.workers import Workers


def chatter(_: int) -> None:
    sys.stdout.write("a library's banner\n")
    os.write(1, b"a compiler's words\n")


def answer(count: int) -> None:
    with Workers(count) as workers:
        sys.stdout.write(str(len(list(workers.map(chatter, [1, 2])))))


@pytest.mark.parametrize("count", [1, 2])
def test_standard_output_has_the_answer_alone(count: int) -> None:
    script = f"from tests.pipeline.test_workers import answer; answer({count})"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "2"
    assert done.stderr.count("a library's banner") == done.stderr.count("a compiler's words") == 2


def test_standard_output_may_be_closed() -> None:
    script = "from compoworld_core.pipeline.workers import Workers; assert list(Workers(1).map(len, [''])) == [('', 0)]"

    subprocess.run([sys.executable, "-c", script], check=True, preexec_fn=lambda: os.close(1))
