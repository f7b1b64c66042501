"""Memory plans: known cases of large models, and promises that hold for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.errors import InputError
from compoworld_core.training.memory import Hardware, plan_memory
from compoworld_core.training.shape import SHAPES, shape_of

LARGE = SHAPES["Qwen/Qwen3.6-35B-A3B"]
CONTEXT = 32_768

clusters = st.builds(
    Hardware,
    nodes=st.integers(1, 8),
    gpus_per_node=st.sampled_from([1, 2, 4, 8]),
    gpu_memory_gb=st.sampled_from([24, 40, 80, 141]),
    host_memory_gb=st.sampled_from([64, 512, 2000]),
)
shapes = st.sampled_from(sorted(SHAPES)).map(SHAPES.__getitem__)


@pytest.mark.parametrize(
    ("name", "billions", "active"), [("Qwen/Qwen3.6-35B-A3B", 34.1, 2.9), ("Qwen/Qwen3-8B", 8.2, 8.2)]
)
def test_known_models_have_their_published_sizes(name: str, billions: float, active: float) -> None:
    shape = SHAPES[name]

    assert shape.parameters / 1e9 == pytest.approx(billions, rel=0.02)
    assert shape.active_parameters / 1e9 == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize(("nodes", "offload"), [(1, "optimizer"), (2, "none"), (4, "none")])
def test_a_35b_model_needs_offload_on_one_node_and_none_on_two(nodes: int, offload: str) -> None:
    plan = plan_memory(LARGE, Hardware(nodes=nodes), CONTEXT)

    assert plan.fits
    assert (plan.settings.zero_stage, plan.settings.offload, plan.settings.context_tokens) == (3, offload, CONTEXT)
    assert plan.tensor_parallel == 2


def test_what_does_not_fit_says_why_for_every_setting() -> None:
    plan = plan_memory(LARGE, Hardware(gpus_per_node=1, host_memory_gb=64), CONTEXT)

    assert not plan.fits
    assert plan.tensor_parallel is None
    assert all("needs" in reason and "are there" in reason for reason in plan.reasons)


@given(shapes, clusters, st.sampled_from([4096, 32_768]))
def test_a_plan_that_fits_keeps_to_what_is_there(shape: object, cluster: Hardware, context: int) -> None:
    plan = plan_memory(shape, cluster, context)  # type: ignore[arg-type]

    assert plan.fits == (plan.needed_gb <= plan.available_gb and plan.host_gb <= cluster.host_memory_gb)


@given(shapes, clusters)
def test_twice_the_nodes_never_stop_a_model_from_fitting(shape: object, cluster: Hardware) -> None:
    twice = Hardware.model_validate({**dict(cluster), "nodes": 2 * cluster.nodes})

    if plan_memory(shape, cluster, CONTEXT).fits:  # type: ignore[arg-type]
        assert plan_memory(shape, twice, CONTEXT).fits  # type: ignore[arg-type]


def test_a_shape_is_read_from_the_files_of_a_model() -> None:
    config = {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12_288,
        "vocab_size": 151_936,
        "tie_word_embeddings": False,
    }

    assert shape_of(config, "config.json") == SHAPES["Qwen/Qwen3-8B"]


def test_a_file_without_a_size_is_named() -> None:
    with pytest.raises(InputError, match=r"m/config\.json: tells no num_attention_heads"):
        shape_of({"hidden_size": 8}, "m/config.json")
