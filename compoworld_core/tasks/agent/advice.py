"""Advice: what each gate wants, in words that help an author to repair a task."""

from __future__ import annotations

from typing import Final

_ADVICE: Final = {
    "plants": "Every planted row needs the table's required fields, legal values and ids that are free.",
    "walk": "The steps have to visit all core services, and no others, in a sensible order of the drawn length.",
    "temptation": "A temptation is a call that the service accepts, and the criteria have to see what it does.",
    "reference_refused": "Probe the solution, and bind what its steps need to answers that really have it.",
    "reference": "The criteria have to hold after your own solution; compare them with the changes that probe shows.",
    "inert": "Take something from every read, in a later step or in the answer, or leave the read out.",
    "leak": "Say what is meant in a person's words: no ids and no names of tools.",
    "named_id": "Bind ids to the answers that show them; an agent that does not look cannot know them.",
    "unstated": "Facts are what a reader takes from the planted text, so the text has to state them.",
    "reaction": "A reaction has to be set off by a step of the solution and to change a row then.",
    "unknowable": "Want words that the instruction gives or an answer shows; test long texts by what they mention.",
    "no_op": "At least one criterion has to be unfulfilled at the start.",
    "unwitnessed": "Add a criterion on the rows that this write creates or changes.",
    "dump": "Have the answer criterion omit values that only a wrong reading gives, such as the stale or outdated one.",
    "order": "Name steps that have to come first in `after`, or make the criteria independent of the order.",
    "edges": "Bind more arguments of later steps to answers of earlier ones, and test what they decide.",
    "mutant_skip_write": "Add a criterion on the rows that this write creates or changes.",
    "mutant_skip_fact": "Have the answer criterion state every fact of the answer.",
    "mutant_substitute": "Test the field that this value decides, so that a wrong value shows.",
}


def advice(gate: str) -> str:
    """What to do about a gate that failed."""
    return _ADVICE.get(gate, "With this temptation the criteria must no longer hold: test what it changes.")
