"""How the command line words what it tells: numbers of things, and commands to type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def counted(number: int, things: str) -> str:
    """A number with its noun, which is given in the plural: `1 trajectory`, `2 trajectories`."""
    return f"{number:,} {things if number != 1 else singular(things)}"


def singular(things: str) -> str:
    """The singular of a regular plural; of a phrase, that of its last word."""
    return f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")


def command(verb: str, options: Mapping[str, object] | None = None) -> str:
    """A command as a person would type it, with the options that have a value."""
    given = [f"--{name} {shlex.quote(str(value))}" for name, value in (options or {}).items() if value is not None]
    return " ".join(["compoworld", verb, *given])
