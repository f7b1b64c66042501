"""Becomes a third-party server in a cell: no network, nothing of the machine but what is handed in, limits on the rest.

Run as a script, with a description of the cell as its argument; needs nothing but the standard library. The cell is
built by bubblewrap, or by this file from the same kernel features (user, mount, process and network namespaces). Each
either holds or fails: there is no way to run without it.

    /usr /bin /lib …      the system, read-only          /tmp /workspace   empty, writable, of bounded size
    /package              the server, read-only          everything else   absent
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
from typing import Any

WORKSPACE = "/workspace"
TMPFS_BYTES = 128 * 1024 * 1024
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/usr/share/zoneinfo",
)
FILES = {
    "/etc/passwd": "user:x:1000:1000:user:/workspace:/bin/sh\n",
    "/etc/group": "user:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
DEVICES = ("null", "zero", "full", "random", "urandom")
CANNOT = 125
"""Exit status if the cell could not be built; the reason is on standard error."""

_USER = 1000
_CLONE = {"mount": 0x00020000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000, "net": 0x40000000}
_CLONE_PID = 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Build the cell that the first argument describes, and become its command."""
    cell = json.loads(sys.argv[1])
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        die_with(cell["parent"])
        limit(cell["limits"])
        if cell["bwrap"]:
            os.execv(cell["bwrap"], bubblewrap(cell))
        enter(cell)
    except OSError as error:
        sys.stderr.write(f"the cell cannot be built: {error}\n")
    sys.exit(CANNOT)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:  # it went before the line above took effect
        os._exit(CANNOT)


def limit(limits: dict[str, int]) -> None:
    """Set resource limits by name. Address space is not among them: JavaScript engines reserve far more than they use.

    Processes are counted by user, here and outside, so theirs is an allowance on top of what runs already.
    """
    for name, wanted in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        value = wanted + _threads_of_user() if name == "NPROC" else wanted
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def _threads_of_user() -> int:
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def views(cell: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What is seen read-only, as (outside, inside), and symbolic links, as (target, inside)."""
    binds, links = [], []
    for path in (*SYSTEM, *SETTINGS):
        if os.path.islink(path) and path in SYSTEM:
            links.append((os.readlink(path), path))
        elif os.path.exists(path):
            binds.append((os.path.realpath(path), path))
    binds += [(outside, inside) for inside, outside in cell["readable"].items()]
    return binds, links


def bubblewrap(cell: dict[str, Any]) -> list[str]:
    """The arguments that have bubblewrap build the cell."""
    binds, links = views(cell)
    arguments = ["bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--uid", str(_USER), "--gid", str(_USER), "--hostname", "localhost", "--clearenv", "--dev", "/dev"]
    arguments += ["--proc", "/proc"] if cell["proc"] else []
    for folder in ("/tmp", WORKSPACE):
        arguments += ["--size", str(TMPFS_BYTES), "--tmpfs", folder]
    for target, inside in links:
        arguments += ["--symlink", target, inside]
    for outside, inside in binds:
        arguments += ["--ro-bind", outside, inside]
    for path, text in FILES.items():
        arguments += ["--ro-bind-data", str(_memory_file(text)), path]
    for folder in cell["folders"]:
        inside_writable = folder.startswith(("/tmp/", f"{WORKSPACE}/"))
        arguments += ["--dir", folder] if inside_writable else ["--size", str(TMPFS_BYTES), "--tmpfs", folder]
    for name, value in cell["environment"].items():
        arguments += ["--setenv", name, value]
    return [*arguments, "--remount-ro", "/", "--chdir", WORKSPACE, "--", *cell["command"]]


def _memory_file(text: str) -> int:
    descriptor = os.memfd_create("text", 0)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def enter(cell: dict[str, Any]) -> None:
    """Build the cell without bubblewrap, and run its command as the first process of the cell."""
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(sum(_CLONE.values()) | _CLONE_PID), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_USER} {uid} 1")
    _write("/proc/self/gid_map", f"{_USER} {gid} 1")
    parent = os.getpid()
    # A new process namespace holds the children of the process that made it, not that process itself.
    child = os.fork()
    if child:
        os.closerange(0, 3)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    try:
        _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        if not os.path.exists(f"/proc/{parent}"):
            os._exit(CANNOT)
        _build(cell)
        _raise_loopback()
        for capability in range(64):
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
        os.closerange(3, 4096)
        os.execve(cell["command"][0], cell["command"], cell["environment"])
    except OSError as error:
        os.write(2, f"the cell cannot be built: {error}\n".encode(errors="replace"))
    os._exit(CANNOT)


def _build(cell: dict[str, Any]) -> None:
    """Make a root of its own out of an empty file system, and let go of the old one."""
    binds, links = views(cell)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={TMPFS_BYTES},mode=755")
    os.mkdir("/tmp/new")
    os.mkdir("/tmp/old")
    _pivot("/tmp", "/tmp/old")
    os.chdir("/")
    new = "/new"
    _mount("tmpfs", new, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1048576,mode=755")
    for folder in ("/tmp", WORKSPACE, "/dev/shm"):
        os.makedirs(new + folder)
        _mount("tmpfs", new + folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={TMPFS_BYTES},mode=755")
    for target, inside in links:
        os.makedirs(os.path.dirname(new + inside), exist_ok=True)
        os.symlink(target, new + inside)
    for outside, inside in binds:
        _bind(f"/old{outside}", new + inside, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)
    for device in DEVICES:
        _bind(f"/old/dev/{device}", f"{new}/dev/{device}", _ATTR_NOSUID)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{new}/dev/{name}")
    os.symlink("/proc/self/fd", f"{new}/dev/fd")
    for path, text in FILES.items():
        os.makedirs(os.path.dirname(new + path), exist_ok=True)
        _write(new + path, text)
    for folder in cell["folders"]:
        os.makedirs(new + folder, exist_ok=True)
        if not folder.startswith(("/tmp/", f"{WORKSPACE}/")):
            _mount("tmpfs", new + folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={TMPFS_BYTES},mode=755")
    os.mkdir(f"{new}/proc")
    if cell["proc"]:
        _mount("proc", f"{new}/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    os.chdir(new)
    _pivot(".", ".")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
    _set_attributes("/", _ATTR_RDONLY, recursive=False)
    os.chdir(WORKSPACE)


def _bind(outside: str, inside: str, attributes: int) -> None:
    if os.path.isdir(outside):
        os.makedirs(inside, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        os.close(os.open(inside, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(outside, inside, None, _MS_BIND | _MS_REC)
    _set_attributes(inside, attributes, recursive=True)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [os.fsencode(word) if word is not None else None for word in (source, target, kind, options)]
    result = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _check(result, f"mount {target}")


def _set_attributes(path: str, attributes: int, *, recursive: bool) -> None:
    """Add attributes to a mount, and to those below it; needs Linux 5.12."""
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    result = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_long(_AT_FDCWD),
        os.fsencode(path),
        ctypes.c_ulong(flags),
        wanted,
        ctypes.c_ulong(len(wanted)),
    )
    _check(result, f"make {path} read-only")


def _pivot(new: str, old: str) -> None:
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"there is no system call table for {platform.machine()}; install bubblewrap")
    _check(_libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)), "pivot_root")


def _raise_loopback() -> None:
    """Have the cell's own 127.0.0.1 work; some servers listen there for their own parts."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", request)[1]
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
