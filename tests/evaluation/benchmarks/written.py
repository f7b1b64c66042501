"""Result files as harnesses write them, and orders to run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compoworld_core.evaluation.order import Order, Served
from compoworld_core.llm.config import Endpoint

CANARY = "sk-canary-0123456789abcdef"
"""A key, where harnesses leak keys."""


def put(file: Path, value: Any) -> Path:
    """Write a JSON document, and the folders that it lies in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")
    return file


def served(model: str = "org/Model-1.5", key_env: str | None = "AGENT_KEY") -> Served:
    """A model behind an endpoint whose key is in a variable."""
    return Served(model=model, endpoint=Endpoint(base_url="http://127.0.0.1:9/v1", key_env=key_env))


def order(tmp_path: Path, **fields: Any) -> Order:
    """An order for a harness in a folder."""
    given = {"agent": served(), "judge": served("converter", "JUDGE_KEY"), "harness": tmp_path / "harness"}
    return Order.model_validate({**given, "out": tmp_path / "out", **fields})
