"""The rules author: reads names and schemas as a person would, and writes what they plainly say.

Reading makes sentences of tools, nouns become entities, deciding and planning turn each tool into one operation on an
entity, and the module is written from that plan. A tool whose sentence is not plain is left out with a reason; nothing
is ever made up to fill the gap.
"""

from __future__ import annotations

from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.author import Draft, LeftOut
from compoworld_core.synthesis.rules.examples import Examples
from compoworld_core.synthesis.rules.module import write_module
from compoworld_core.synthesis.rules.planning import Planner
from compoworld_core.synthesis.rules.trials import Trials


class RulesAuthor:
    """Writes services by rule; the same spec always gives the same draft."""

    name = "rules"

    def write(self, spec: ServiceSpec) -> Draft:
        """The draft of a service."""
        planner = Planner(spec)
        plan = planner.plan()
        return Draft(
            author=self.name,
            service=spec.name,
            source=write_module(spec, plan, planner.vocabulary) if plan.operations else "",
            implemented=tuple(item.reading.tool.name for item in plan.operations),
            left_out=tuple(
                LeftOut(
                    tool=tool, candidate_for="world_model" if reason.is_external else "nobody", reason=reason.reason
                )
                for tool, reason in plan.unwritable
            ),
            tests=Trials(plan, Examples(spec.name, planner.vocabulary)).tests(),
        )
