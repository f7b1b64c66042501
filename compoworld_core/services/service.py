"""Services: typed state and the tools that operate on it.

A service instance holds nothing of its own. It is a view of a state in a context, made for a call and thrown away, so
there is nowhere for two worlds to influence each other.
"""

from __future__ import annotations

import inspect
import random
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

from compoworld_core.services.acronyms import with_acronyms
from compoworld_core.services.context import Context, User
from compoworld_core.services.state import State
from compoworld_core.services.tool import Tool
from compoworld_core.specs.model import Domain, ServiceSpec

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

StateT = TypeVar("StateT", bound=State)


class Service(Generic[StateT]):
    """Base of all services; see `library/` for examples.

    A subclass names its state as type argument, sets `domain`, opens its docstring with one sentence for agents, and
    decorates its tools with `@tool`.
    """

    domain: ClassVar[Domain]
    name: ClassVar[str]
    """Name of the service: the class name in snake case unless set."""
    state_class: ClassVar[type[State]]
    tools: ClassVar[dict[str, Tool]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        base = next(iter(getattr(cls, "__orig_bases__", ())), None)
        if (arguments := get_args(base)) and isinstance(arguments[0], type):
            cls.state_class = arguments[0]
        if "name" not in vars(cls):
            cls.name = snake_case(cls.__name__)
        cls.tools = {}
        for _, function in inspect.getmembers_static(cls, Tool.is_marked):
            made = Tool(function)
            if made.name in cls.tools:
                raise TypeError(f"{cls.__qualname__} has two tools named {made.name!r}")
            cls.tools[made.name] = made

    def __init__(self, state: StateT, context: Context) -> None:
        self.state = state
        self.context = context

    @property
    def now(self) -> datetime:
        """The service's clock."""
        return self.context.now(self.state.writes)

    @property
    def today(self) -> date:
        """The day on the service's clock."""
        return self.now.date()

    @property
    def user(self) -> User:
        """The person on whose behalf the agent acts."""
        return self.context.user

    @property
    def rng(self) -> random.Random:
        """Random numbers, the same for every call that follows the same number of writes."""
        return self.context.rng(self.state.writes)

    @classmethod
    def populate(cls, state: StateT, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Fill an empty state from the universe; the default draws every field by its semantic type."""
        from compoworld_core.services.seeding import populate

        populate(state, universe, rng, start)

    @classmethod
    def spec(cls) -> ServiceSpec:
        """What the service promises."""
        doc = inspect.getdoc(cls) or ""
        return ServiceSpec(
            name=cls.name,
            title=with_acronyms(cls.name.replace("_", " ").capitalize()),
            description=doc,
            domain=cls.domain,
            source="library",
            original_name=cls.name,
            tools=tuple(cls.tools[name].spec for name in sorted(cls.tools)),
        )


def snake_case(name: str) -> str:
    """The name of a service whose class is called so."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
