"""The benchmarks, found by scanning this room: adding one means adding its file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark


@cache
def benchmarks() -> dict[str, Benchmark]:
    """All of them by name, in the order of their names."""
    found: dict[str, Benchmark] = {}
    for module_info in pkgutil.iter_modules(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, value in inspect.getmembers(module, inspect.isclass):
            if issubclass(value, Benchmark) and not inspect.isabstract(value) and value.__module__ == module.__name__:
                found[value.name] = value()
    return dict(sorted(found.items()))


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name.

    Raises:
        InputError: There is none.
    """
    known = benchmarks()
    if name not in known:
        raise InputError(f"there is no benchmark {name!r}; there are {', '.join(known)}")
    return known[name]
