"""A request through the pool takes little more of the processor than one with the bare client."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llm.weighing import MODEL
from tests.llm_server import Named, ServerProcess

_ROUNDS = 5
_MOST = 1.5


def _weigh(client: str, server: ServerProcess, store: Path) -> float:
    command = [sys.executable, "-m", "tests.llm.weighing", client, server.base_url, str(store)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["whole", "stream"])
def test_the_pool_weighs_little_more_than_the_client(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = []
    with ServerProcess({MODEL: Named("tests.llm.weighing:talker")}) as server:
        for number in range(_ROUNDS):  # side by side in time: what else the machine does weighs on both
            bare = _weigh(f"bare-{form}", server, tmp_path)
            pairs.append((bare, _weigh(f"pool-{form}", server, tmp_path / str(number))))

    ratio = statistics.median(pool / bare for bare, pool in pairs)
    with capsys.disabled():
        bare, pool = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
        print(f"\n{form}: bare {bare:.2f} ms, pool {pool:.2f} ms a request: {ratio:.2f} times")  # noqa: T201
    assert ratio <= _MOST
