"""The image `author`, built and run: pi is there at its pinned version, and nothing has to be fetched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compoworld_core.synthesis.pi.harness import VERSION
from tests.images.image import Image, built, require_tools

pytestmark = pytest.mark.components

START_PI = """
import subprocess
from compoworld_core.specs.sources.packages import BROUGHT
from compoworld_core.synthesis.pi.harness import open_pi

with open_pi() as pi:
    assert pi.program.package.is_relative_to(BROUGHT), pi.program.package
    script = pi._script.replace("/package", str(pi.program.package), 1)
    subprocess.run([pi._node, script, "--version"], check=True, timeout=120)
"""


@pytest.fixture(scope="module")
def author() -> Iterator[Image]:
    require_tools()
    with built("author") as image:
        yield image


def test_pi_starts_from_what_the_image_brings(author: Image) -> None:
    # No proxy and no registry: whoever tried to install it would fail.
    nowhere = {"npm_config_registry": "http://127.0.0.1:9", "PI_OFFLINE": "1", "PI_CODING_AGENT_DIR": "/tmp/pi"}

    done = author.run(["python", "-c", START_PI], environment=nowhere)

    assert done.returncode == 0, done.stderr
    assert VERSION in done.stdout + done.stderr
