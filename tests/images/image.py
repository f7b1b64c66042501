"""Images built and run with neither a daemon nor a registry: debootstrap makes a base, buildah builds, runc runs.

A container gets what a pod under the standard `restricted` gets: no capabilities, no new privileges, a read-only root,
the engine's default filter of system calls. Limits of resources are left out, as raising one needs a privilege.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = "bookworm"
"""The oldest Debian that will do; its Python is 3.11."""
NOBODY: Final = 10001

_MIRROR: Final = "http://deb.debian.org/debian"
_PACKAGES: Final = "python3,python3-venv,ca-certificates"
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_SECCOMP: Final = Path("/usr/share/containers/seccomp.json")
_TOOLS: Final = ("buildah", "runc", "debootstrap")
_CHROOT: Final = {"BUILDAH_ISOLATION": "chroot"}


@dataclass(frozen=True)
class Image:
    """An image that lies in buildah's storage, mounted.

    Attributes:
        root: Its file system.
        config: What it says of itself: user, entry point, environment, labels.
        size: Bytes of all its layers.
    """

    root: Path
    config: dict[str, Any]
    size: int

    def run(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        mounts: Mapping[str, Path] | None = None,
        seconds: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a new container, as the image's user, with the machine's network.

        Args:
            command: In place of the image's entry point.
            environment: Variables beside the image's own.
            mounts: Folders that can be written, by where the container sees them.
            seconds: When it is killed.
        """
        with tempfile.TemporaryDirectory(prefix="bundle-") as bundle:
            subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
            path = Path(bundle, "config.json")
            spec = self._restricted(json.loads(path.read_text()))
            spec["process"]["args"] = list(command)
            spec["process"]["env"] += [f"{name}={value}" for name, value in (environment or {}).items()]
            for place, folder in (mounts or {}).items():
                spec["mounts"].append(
                    {"destination": place, "type": "bind", "source": str(folder), "options": ["bind", "rw"]}
                )
            path.write_text(json.dumps(spec))
            name = Path(bundle).name
            try:
                return subprocess.run(
                    ["runc", "run", "--bundle", bundle, name],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=seconds,
                    check=False,
                )
            finally:
                subprocess.run(["runc", "delete", "--force", name], capture_output=True, check=False)

    def _restricted(self, spec: dict[str, Any]) -> dict[str, Any]:
        process = spec["process"]
        process.pop("rlimits", None)
        user, _, group = self.config["User"].partition(":")
        process |= {
            "terminal": False,
            "user": {"uid": int(user), "gid": int(group)},
            "cwd": self.config["WorkingDir"],
            "env": list(self.config["Env"]),
            "capabilities": {kind: [] for kind in process["capabilities"]},
            "noNewPrivileges": True,
        }
        spec["root"] = {"path": str(self.root), "readonly": True}
        linux = spec["linux"]
        linux["namespaces"] = [space for space in linux["namespaces"] if space["type"] != "network"]
        linux["seccomp"] = _default_seccomp()
        scratch = {
            "destination": "/tmp",
            "type": "tmpfs",
            "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=1777"],
        }
        names = [
            {"destination": file, "type": "bind", "source": file, "options": ["bind", "ro"]}
            for file in ("/etc/resolv.conf", "/etc/hosts")
        ]
        spec["mounts"] += [scratch, *names]
        return spec


def require_tools() -> None:
    """Skip the test where images can't be built: without the tools, or as another user than root."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"images need root and {', '.join(missing or _TOOLS)}")


@contextmanager
def built(target: str, *, suite: str = SUITE, **arguments: str) -> Iterator[Image]:
    """Build a target of the Dockerfile; layers stay for the next time.

    Args:
        target: Its name.
        suite: Release of Debian that the base is made of.
        arguments: Of the build.
    """
    tag = f"localhost/compoworld-test:{target}"
    given = [f"--build-arg={name}={value}" for name, value in {"BASE": _base(suite), **arguments}.items()]
    _buildah("bud", "--layers", *given, "--target", target, "--tag", tag, str(ROOT))
    container = _buildah("from", "--pull-never", tag)
    try:
        root = Path(_buildah("mount", container))
        config = json.loads(_buildah("inspect", "--type", "image", tag))["OCIv1"]["config"]
        yield Image(root, config, _size(tag))
    finally:
        _buildah("rm", container)


def base_size() -> int:
    """Bytes of the base that images are built on."""
    return _size(_base(SUITE))


def _size(tag: str) -> int:
    """Bytes of an image's files, as they lie unpacked."""
    container = _buildah("from", "--pull-never", tag)
    try:
        root = Path(_buildah("mount", container))
        return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_symlink() and path.is_file())
    finally:
        _buildah("rm", container)


def _base(suite: str) -> str:
    """A Debian with Python and this machine's certificates, made once."""
    tag = f"localhost/compoworld-test-base:{suite}"
    if _buildah("images", "--quiet", "--filter", f"reference={tag}"):
        return tag
    with tempfile.TemporaryDirectory(prefix="base-") as folder:
        root = Path(folder, "root")
        made = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", suite, str(root), _MIRROR]
        _run(made)
        if _CERTIFICATES.exists():
            shutil.copy(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"))
        container = _buildah("from", "scratch")
        _buildah("add", container, str(root), "/")
        _buildah("commit", "--rm", container, tag)
    return tag


def _buildah(*arguments: str) -> str:
    return _run(["buildah", *arguments])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, env={**os.environ, **_CHROOT}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()


def _default_seccomp() -> dict[str, Any]:
    """The filter that container engines set unless told otherwise, for a container without capabilities."""
    profile = json.loads(_SECCOMP.read_text())
    rules = [
        {
            "names": rule["names"],
            "action": rule["action"],
            **({"errnoRet": rule["errnoRet"]} if "errnoRet" in rule else {}),
            "args": [
                {"index": test["index"], "value": test["value"], "valueTwo": test["valueTwo"], "op": test["op"]}
                for test in rule["args"] or ()
            ],
        }
        for rule in profile["syscalls"]
        if not rule["includes"].get("caps") and "amd64" in rule["includes"].get("arches", ["amd64"])
    ]
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": rules,
    }
