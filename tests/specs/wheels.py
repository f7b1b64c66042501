"""A folder of wheels that stands for PyPI."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

SERVER = Path(__file__).with_name("scripted_server.py")


def wheel(folder: Path, name: str, version: str = "1.0", scripts: str | None = None) -> None:
    """A wheel that carries the scripted server."""
    module = name.replace("-", "_")
    listed = scripts or f"{name} = {module}.server:main"
    entries = {
        f"{module}/__init__.py": "",
        f"{module}/server.py": SERVER.read_text(),
        f"{module}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{module}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{module}-{version}.dist-info/entry_points.txt": f"[console_scripts]\n{listed}\n",
        f"{module}-{version}.dist-info/RECORD": "",
    }
    folder.mkdir(exist_ok=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in entries.items():
            archive.writestr(path, text)
    (folder / f"{module}-{version}-py3-none-any.whl").write_bytes(buffer.getvalue())
