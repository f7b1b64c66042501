"""A server in a process of its own: `python -m tests.llm_server --script NAME MODULE:FUNCTION OPTIONS …`.

The first line that it prints is its base URL. It serves until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
from collections.abc import Mapping

from aiohttp import web

from tests.llm_server.app import Endpoint
from tests.llm_server.faults import Faults
from tests.llm_server.reply import Script
from tests.llm_server.server import serve


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.llm_server", description=__doc__)
    parser.add_argument("--script", nargs=3, action="append", default=[], metavar=("NAME", "FUNCTION", "OPTIONS"))
    parser.add_argument("--faults", type=json.loads, default={}, help="The fields of `Faults` as JSON.")
    options = parser.parse_args()
    scripts = {name: _script(factory, json.loads(text)) for name, factory, text in options.script}
    faults = {**options.faults, "at": {int(number): fault for number, fault in options.faults.get("at", {}).items()}}
    asyncio.run(_serve(scripts, Faults(**faults)))


async def _serve(scripts: Mapping[str, Script], faults: Faults) -> None:
    endpoint = Endpoint(scripts, faults, keep_bodies=False)
    port = await serve(web.AppRunner(endpoint.app(), access_log=None, handler_cancellation=True))
    print(f"http://127.0.0.1:{port}/v1", flush=True)  # noqa: T201
    await asyncio.get_running_loop().create_future()


def _script(factory: str, options: Mapping[str, object]) -> Script:
    module, _, function = factory.partition(":")
    script: Script = getattr(importlib.import_module(module), function)(**options)
    return script


if __name__ == "__main__":
    main()
