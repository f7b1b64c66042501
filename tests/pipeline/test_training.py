"""Which tasks a model explores, and what has to be installed for it."""

from __future__ import annotations

import importlib.util

import pytest

from compoworld_core.errors import InputError
from compoworld_core.library.registry import library_package
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.work.training import GrpoConfig, explorable
from compoworld_core.training.config import Layout
from compoworld_core.worlds.recipe import ServicePin
from tests.rollouts.complaint import SERVICES, complaint_task


def test_tasks_of_split_rl_are_explored_where_code_answers_every_tool() -> None:
    packages = [library_package(name) for name in SERVICES]
    crm = packages[0]
    outward = crm.model_copy(
        update={"modelled": crm.spec.tools[:1], "spec": crm.spec.model_copy(update={"tools": crm.spec.tools[1:]})}
    )
    beside = ServicePin(name=outward.name, package=outward.digest, tools=tuple(tool.name for tool in crm.spec.tools))
    known = complaint_task(seed=2, split="rl")
    asking = complaint_task(seed=3, split="rl", services=(beside, *known.recipe.services[1:]))

    found = explorable([complaint_task(seed=1), known, asking], [*packages, outward])

    assert found == [known]


@pytest.mark.parametrize(
    "layout", [Layout(generation="colocate"), Layout(generation="server", vllm_url="http://vllm:8000")]
)
def test_rollouts_by_vllm_are_refused_where_the_trainer_has_none(
    monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    def find(name: str) -> object:
        return None if name == "vllm" else object()

    monkeypatch.setattr(importlib.util, "find_spec", find)
    check = GRAPH["grpo"].check

    check(GrpoConfig())
    with pytest.raises(InputError, match=rf"{layout.generation}.* need vllm.*compoworld\[train,vllm\]"):
        check(GrpoConfig(layout=layout))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    check(GrpoConfig(layout=layout))
