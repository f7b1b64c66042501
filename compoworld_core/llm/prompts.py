"""Prompts: files with a name and a version, rendered with typed inputs, known by a digest.

A prompt is a file `<name>.v<version>.md` in a `prompts/` folder of the room that uses it. Its text is a Jinja template;
a name that the inputs do not have is an error, and so is any attempt of the template to reach beyond them. The digest
goes into everything that was made with the prompt, so an answer can be traced to the words that asked for it.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict

from compoworld_core.errors import InputError
from compoworld_core.storage.digest import digest

_FILE: Final = re.compile(r"(?P<name>[a-z][a-z0-9-]*)\.v(?P<version>[1-9][0-9]*)\.md")


class Prompt(BaseModel):
    """A prompt as its file has it.

    Attributes:
        name: What the file is called, less version and ending.
        text: A Jinja template.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: int
    text: str

    @property
    def label(self) -> str:
        """Name, version and the start of the digest: `adversary.v1.3f9a04c1b2d7`."""
        return f"{self.name}.v{self.version}.{digest(self)[:12]}"

    def render(self, inputs: BaseModel) -> str:
        """The text with its inputs.

        Raises:
            jinja2.TemplateError: The template asks for something that the inputs do not have: a bug in the file.
        """
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        values = {name: getattr(inputs, name) for name in type(inputs).model_fields}
        return environment.from_string(self.text).render(values)


@cache
def load_prompt(package: str, name: str, version: int) -> Prompt:
    """A prompt of a package.

    Args:
        package: Dotted name of the package that has the `prompts` folder.
        name: The prompt.
        version: Its version; a new wording is a new file.

    Raises:
        InputError: There is no such file; the message names those that there are.
    """
    module = importlib.import_module(package)
    folder = Path(str(module.__file__)).parent / "prompts"
    path = folder / f"{name}.v{version}.md"
    if not path.is_file():
        known = sorted(item.name for item in folder.glob("*.md") if _FILE.fullmatch(item.name))
        raise InputError(f"{package} has no prompt {path.name}; there are {', '.join(known) or 'none'}")
    return Prompt(name=name, version=version, text=path.read_text(encoding="utf-8"))
