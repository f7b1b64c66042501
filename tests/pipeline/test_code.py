"""Code digests follow the rooms, and the rooms are what the imports say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import compoworld_core
from compoworld_core.pipeline import code
from compoworld_core.pipeline.code import BELOW, code_digest

ROOT = Path(compoworld_core.__file__).parent


def imported_rooms(room: str) -> set[str]:
    """Rooms that a room's modules import from."""
    found = set()
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.split(".")[1] for name in modules if name.startswith("compoworld_core.")}
            if isinstance(node, ast.ImportFrom) and node.module == "compoworld_core":
                found |= {alias.name for alias in node.names if (ROOT / alias.name).is_dir()}
    return found


@pytest.mark.parametrize("room", sorted(name for name in BELOW if (ROOT / name).is_dir()))
def test_a_room_imports_only_what_its_digest_covers(room: str) -> None:
    covered = code._and_below([room]) | {path.removesuffix(".py") for path in code._EVERYWHERE}

    assert imported_rooms(room) <= covered


def test_the_digest_follows_sources_and_data_of_rooms_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = ("data.py", "errors.py", "storage/store.py")
    for path in (*everywhere, "specs/model.py", "specs/bundled/a.json", "services/table.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    monkeypatch.setattr(code, "_ROOT", tmp_path)

    def digest(*rooms: str) -> str:
        return code_digest.__wrapped__(rooms, __file__)

    specs, services = digest("specs"), digest("services")
    (tmp_path / "specs/__pycache__").mkdir()
    (tmp_path / "specs/__pycache__/model.pyc").write_text("compiled")
    assert digest("specs") == specs
    (tmp_path / "services/table.py").write_text("changed")
    assert digest("specs") == specs
    assert digest("services") != services
    (tmp_path / "specs/bundled/a.json").write_text("changed")
    assert digest("specs") != specs
