"""Who takes part in a conversation that a harness plays, as its configuration of models names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compoworld_core.errors import InputError
from compoworld_core.evaluation.order import Order, Served
from compoworld_core.llm.config import Endpoint


class Roles:
    """Names in the harness's configuration of models for who takes part, and the variables that have their keys.

    One entry serves those who are the same model at the same server; two models that only share a name get two.
    """

    def __init__(self, agent: Served, user: Served, judge: Served) -> None:
        self._entries: dict[str, tuple[Served, str]] = {}
        self.agent = self._name(agent, "AGENT_KEY")
        self.user = self._name(user, "USER_KEY")
        self.judge = self._name(judge, "JUDGE_KEY")

    @classmethod
    def of(cls, order: Order) -> Roles:
        """The roles of an order that has all three."""
        if order.user is None or order.judge is None:
            raise InputError("a model has to play the user, and one has to judge")
        return cls(order.agent, order.user, order.judge)

    @property
    def renamed(self) -> tuple[str, ...]:
        """Names of entries that are not what their model is called."""
        return tuple(name for name, (served, _) in self._entries.items() if name != served.model)

    @property
    def keys(self) -> dict[str, Endpoint]:
        """Endpoints by the variable that has their key."""
        return {variable: served.endpoint for served, variable in self._entries.values()}

    def entries(self, write: Callable[[Served, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The entries of the configuration, each as `write(served, variable)` has it."""
        return [
            {"name": name, **({} if name == served.model else {"model": served.model}), **write(served, variable)}
            for name, (served, variable) in self._entries.items()
        ]

    def _name(self, served: Served, variable: str) -> str:
        for name, (known, _) in self._entries.items():
            if known == served:
                return name
        name = served.model if served.model not in self._entries else f"{served.model} ({variable})"
        self._entries[name] = (served, variable)
        return name
