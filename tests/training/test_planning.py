"""What people are told about memory: whether it fits, why, and which layout to write down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.training.memory import Hardware, plan_memory
from compoworld_core.training.planning import colocated_tensor_parallel
from compoworld_core.training.shape import SHAPES

LARGE = "Qwen/Qwen3.6-35B-A3B"
SMALL_FILE = {
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 4096,
    "tie_word_embeddings": True,
}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_cli(["plan-training", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_large_model_on_two_nodes_is_told_with_its_layout(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--model", LARGE, "--nodes", "2", "--gpus", "8")

    assert code == 0
    assert out.startswith("fits      yes, at 32768 tokens\n")
    assert "because   ZeRO-2 at 32768 tokens: needs" in out
    assert "layout    {nodes: 2, processes_per_node: 8, zero_stage: 3, offload: none}" in out
    assert "optimizer states" in out
    assert "tensor_parallel 2 on GPUs of its own" in out


def test_what_does_not_fit_fails_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--model", LARGE, "--gpus", "8", "--host-memory", "64")

    assert code == 1
    assert out.startswith("fits      no")
    assert "needs 546 GB of host memory on each node, 64 GB are there" in out
    assert "no room beside training (colocate)" in out


def test_a_context_that_had_to_be_halved_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "--model", LARGE, "--gpus", "8", "--nodes", "4", "--context", "262144")

    assert code == 0
    assert "tokens, not at 262144" in out


def test_programs_get_one_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL_FILE), encoding="utf-8")

    code, out, _ = told(capsys, "--model", str(tmp_path), "--gpus", "1", "--gpu-memory", "24", "--json")

    document = json.loads(out)
    assert code == 0
    assert document["fits"]
    assert document["layout"] == {"nodes": 1, "processes_per_node": 1, "zero_stage": 1, "offload": "none"}
    assert sum(document["parts_gb"].values()) == pytest.approx(document["needed_gb"], abs=0.05)
    assert document["tensor_parallel"] == {"server": 1, "colocate": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "has no config.json"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "tells no hidden_size"),
        ("[" * 100_000, "is not JSON"),
        ('{"text_config": 3}', "text_config: expected an object"),
        ('{"hidden_size": 0}', "hidden_size: 0 is no size of a model"),
        ('{"hidden_size": -64}', "hidden_size: -64 is no size of a model"),
        ('{"hidden_size": true}', "hidden_size: True is no size of a model"),
        ('{"hidden_size": 64, "num_attention_heads": 0}', "num_attention_heads: 0 is no size of a model"),
        (f'{{"hidden_size": {10**30}}}', "is no size of a model"),
    ],
)
def test_a_folder_that_tells_no_shape_is_refused(
    content: str | None, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="utf-8")

    code, _, error = told(capsys, "--model", str(tmp_path), "--gpus", "1")

    assert code == 2
    assert problem in error
    assert str(tmp_path) in error


def test_an_unknown_name_is_answered_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = told(capsys, "--model", "no-such-model", "--gpus", "8")

    assert code == 2
    assert all(name in error for name in SHAPES)


def test_a_server_beside_training_keeps_to_the_room_that_training_leaves() -> None:
    two, four = Hardware(nodes=2), Hardware(nodes=4)
    shape = SHAPES[LARGE]

    beside = [colocated_tensor_parallel(shape, some, plan_memory(shape, some, 32_768)) for some in (two, four)]

    assert beside == [8, 4]
    pair = Hardware(gpus_per_node=2)
    assert colocated_tensor_parallel(shape, pair, plan_memory(shape, pair, 32_768)) is None
