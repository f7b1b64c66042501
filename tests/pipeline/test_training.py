"""Which tasks a model explores."""

from __future__ import annotations

from compoworld_core.library.registry import library_package
from compoworld_core.pipeline.work.training import explorable
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
