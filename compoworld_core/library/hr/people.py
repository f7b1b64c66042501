"""The HR directory: its tools together."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.hr.people_careers import Careers, Checklists
from compoworld_core.library.hr.people_directory import Directory
from compoworld_core.library.hr.people_leave import Leave
from compoworld_core.library.hr.people_rows import PeopleState
from compoworld_core.library.hr.people_seed import seed_people

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class People(Directory, Leave, Careers, Checklists):
    """HR directory of all employees: org chart, departments, skills, leave and absences, job changes, checklists."""

    domain = "hr"

    @classmethod
    def populate(cls, state: PeopleState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All staff in their departments, the user as a manager of some, with leave, job changes and checklists."""
        seed_people(state, universe, rng, start)
