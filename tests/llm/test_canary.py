"""A key is seen by the endpoint alone: not in errors, logs, records or files, even where an endpoint shows it."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.servers import Patience
from tests.llm.endpoints import MODEL, ask, echo, model, using
from tests.llm_server import Fault, Faults, LlmServer

CANARY = "sk-canary-3f9a04c1"
_IMPATIENT = Patience(attempts=2, pause_s=0.001, total_s=0.1)
_FAULTS: tuple[Fault, ...] = (
    "rate_limit", "unauthorized", "error", "context", "hang", "cut", "half_json", "not_json", "no_choices", "empty",
)  # fmt: skip


@pytest.fixture(params=["key_env", "key_file"])
def key(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """How an endpoint is told where its key is."""
    monkeypatch.setenv("CANARY_KEY", CANARY)
    (tmp_path / "key").write_text(f"{CANARY}\n")
    place = "CANARY_KEY" if request.param == "key_env" else str(tmp_path / "key")
    return {f"e_{request.param}": place}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_failure_does_not_tell_the_key(
    fault: Fault, stream: bool, key: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with LlmServer({MODEL: echo}, Faults(rates={fault: 1.0}, retry_after="0"), keys={CANARY}) as server:
        served = model(server, stream=stream, e_first_byte_s=0.1, e_total_s=0.1, **key)
        with pytest.raises(CompoWorldError) as caught:
            using(served, tmp_path / "store", ask, patience=_IMPATIENT)

    assert server.requests[0].key == "known"
    assert not [text for text in _told(caught.value) if CANARY in text]
    assert CANARY not in caplog.text
    assert CANARY not in repr(served)


def test_an_answer_does_not_tell_the_key(key: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with LlmServer({MODEL: echo}, keys={CANARY}) as server:
        using(model(server, **key), tmp_path / "store", ask)

    stored = [path.read_text() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert stored
    assert not [text for text in (*stored, caplog.text) if CANARY in text]


def _told(error: BaseException) -> Iterator[str]:
    """All that an exception tells, whoever prints, sends or inspects it."""
    yield "".join(traceback.format_exception(error))
    yield pickle.dumps(error).decode("latin-1")
    seen: BaseException | None = error
    while seen is not None:
        yield repr(seen) + repr(vars(seen))
        seen = seen.__cause__ or seen.__context__
