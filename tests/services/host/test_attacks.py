"""Arbitrary Python inside a guest, past the static check: each attack fails, and costs its own call at most."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compoworld_core.services.host import Guest, GuestFailure, Limits, kernel
from tests.services.host.processes import HANDLERS, children, ends, zygote

LIMITS = Limits(memory_bytes=192 * 1024 * 1024, reply_bytes=1024 * 1024, output_bytes=256 * 1024)
HANG_S = 0.4
PATIENT_S = 20.0

SYSCALLS = {  # By name: number on (x86_64, aarch64), arguments.
    "bpf": ((321, 280), "0, 0, 0"),
    "clone": ((56, 220), "17, 0, 0, 0, 0"),
    "clone3": ((435, 435), "0, 0"),
    "close_transport": ((3, 57), "3"),
    "connect": ((42, 203), "3, 0, 0"),
    "dup": ((32, 23), "3"),
    "execve": ((59, 221), "b'/bin/true', 0, 0"),
    "execveat": ((322, 281), "-100, b'/bin/true', 0, 0, 0"),
    "io_uring_setup": ((425, 425), "8, ctypes.create_string_buffer(256)"),
    "keyctl": ((250, 219), "0, 0, 0"),
    "kill_init": ((62, 129), "1, 0"),
    "kill_everyone": ((62, 129), "-1, 0"),
    "memfd_create": ((319, 279), "b'x', 0"),
    "mount": ((165, 40), "0, 0, 0, 0, 0"),
    "mprotect_exec": ((10, 226), "ctypes.addressof(ctypes.create_string_buffer(8192)) & ~4095, 4096, 7"),
    "mmap_exec": ((9, 222), "0, 4096, 7, 0x22, -1, 0"),
    "mmap_shared": ((9, 222), "0, 4096, 3, 0x21, -1, 0"),
    "openat": ((257, 56), "-100, b'/etc/passwd', 0"),
    "openat2": ((437, 437), "-100, b'/etc/passwd', ctypes.create_string_buffer(24), 24"),
    "open_by_handle_at": ((304, 265), "-100, 0, 0"),
    "perf_event_open": ((298, 241), "0, 0, -1, -1, 0"),
    "personality": ((135, 92), "0x0400000"),
    "pidfd_getfd": ((438, 438), "3, 3, 0"),
    "pidfd_open": ((434, 434), "1, 0"),
    "prctl_dumpable": ((157, 167), "4, 1, 0, 0, 0"),
    "prlimit64": ((302, 261), "0, 7, 0, ctypes.create_string_buffer(16)"),
    "process_vm_readv": ((310, 270), "1, 0, 0, 0, 0, 0"),
    "process_vm_writev": ((311, 271), "1, 0, 0, 0, 0, 0"),
    "ptrace": ((101, 117), "0, 0, 0, 0"),
    "recvmsg": ((47, 212), "3, 0, 0"),
    "sched_setaffinity": ((203, 122), "0, 8, ctypes.create_string_buffer(8)"),
    "seccomp": ((317, 277), "1, 0, 0"),
    "sendmsg": ((46, 211), "3, 0, 0"),
    "setns": ((308, 268), "3, 0"),
    "setuid": ((105, 146), "0"),
    "shmget": ((29, 194), "0, 4096, 0x3ff"),
    "socket": ((41, 198), "2, 1, 0"),
    "tgkill_self": ((234, 131), "os.getpid(), os.getpid(), 19"),
    "unshare": ((272, 97), "0x10000000"),
    "userfaultfd": ((323, 282), "0"),
}

REFUSED = {
    "read_passwd": "open('/etc/passwd').read()",
    "read_environ_of_self": "open('/proc/self/environ').read()",
    "read_memory_of_self": "open('/proc/self/mem', 'rb').read(1)",
    "write_file": "open('TMP/escaped', 'w').write('x')",
    "list_root": "os.listdir('/')",
    "stat": "os.stat('/etc')",
    "unlink": "os.unlink('TMP/canary')",
    "chdir": "os.chdir('TMP')",
    "fork": "os.fork()",
    "fork_bomb": "\nwhile True: os.fork()",
    "subprocess": "subprocess.run(['/bin/true'])",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "execv": "os.execv('/bin/true', ['true'])",
    "tcp": "socket.create_connection(('127.0.0.1', 80), 1)",
    "unix_abstract": "socket.socket(socket.AF_UNIX).connect(chr(0) + 'x')",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socketpair": "socket.socketpair()",
    "pass_descriptor": "socket.socket(fileno=3)",
    "pipe": "os.pipe()",
    "signal_zygote": "os.kill(os.getppid(), 9)",
    "signal_self_stop": "signal.raise_signal(signal.SIGSTOP)",
    "timer": "signal.setitimer(signal.ITIMER_REAL, 0.01)",
    "raise_limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
    "thread": "threading.Thread(target=print).start()",
    "import_from_disk": "\nimport sqlite3",
    "sleep": "time.sleep(60)",
    "exit_politely": "\nraise SystemExit(3)",
    "interrupt": "\nraise KeyboardInterrupt",
    "memory_bomb": "[bytearray(1 << 20) for _ in range(1 << 20)]",
    "memory_bomb_at_once": "bytearray(1 << 40)",
    "int_to_str": "str(10 ** 100_000)",
    "reply_of_surrogates": "chr(0xD800)",
    "reply_of_nan": "float('nan')",
    "exception_that_raises": "\nclass E(Exception):\n  def __str__(self): raise self\nraise E",
    "exception_huge": "\nraise Exception('x' * 50_000_000)",
    "mutual_recursion": "\ndef f(): return f()\nf()",
}

FATAL = {  # By name: source, expected reasons, something in the message.
    "endless_loop": ("while True: pass", {"timeout"}, "SIGKILL"),
    "endless_loop_ignoring_signals": (
        "for n in range(1, 32):\n  if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        {"timeout"},
        "SIGKILL",
    ),
    "swallow_everything": ("while True:\n  try: open('/')\n  except BaseException: pass", {"timeout"}, ""),
    "deadlock": ("lock = threading.Lock()\nlock.acquire(); lock.acquire()", {"timeout"}, ""),
    "regex": ("import re\nre.match('(a|a)+$', 'a' * 60 + 'b')", {"timeout"}, ""),
    "huge_power": ("import sys\nsys.set_int_max_str_digits(0)\nresult = str(7 ** 5_000_000)", {"timeout"}, ""),
    "exit": ("os._exit(3)", {"crash"}, "exit code 3"),
    "exit_as_if_well": ("os._exit(0)", {"crash"}, "exit code 0"),
    "segfault": ("ctypes.string_at(0)", {"crash"}, "SIGSEGV"),
    "abort": ("os.abort()", {"crash"}, "SIG"),
    "system": ("os.system('true'); os._exit(9)", {"crash"}, "exit code 9"),
    "native_recursion": (
        "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n  def __repr__(self): return repr([self])\nrepr(A())",
        {"crash", "timeout"},
        "",
    ),
    "flood_transport": ("while True: os.write(3, bytes(65536))", {"protocol", "flood"}, ""),
    "huge_frame_header": ("import struct\nos.write(3, struct.pack('!II', 1, 2 ** 32 - 1))", {"flood"}, "4294967295"),
    "huge_reply": ("result = 'x' * 2_000_000", {"flood"}, ""),
    "half_header": ("os.write(3, b'abc')\nwhile True: pass", {"timeout"}, ""),
    "half_frame": ("import struct\nos.write(3, struct.pack('!II', 1, 99) + b'{')\nwhile True: pass", {"timeout"}, ""),
    "two_answers": ("import struct\nos.write(3, (struct.pack('!II', 1, 2) + b'{}') * 2)", {"protocol"}, "more than"),
    "answer_to_another": ("import struct\nos.write(3, struct.pack('!II', 7, 2) + b'{}')", {"protocol"}, "not asked"),
    "flood_stdout": ("while True: os.write(1, bytes(65536))", {"flood"}, "printed"),
    "flood_stderr": ("import sys\nwhile True: print('x' * 5000, file=sys.stderr)", {"flood"}, "printed"),
}

FORGED = {
    "not_json": b"{",
    "not_text": b'{"a":"\xff"}',
    "not_an_object": b"[]",
    "nothing": b"",
    "nan": b'{"a":NaN}',
    "infinite": b'{"a":1e999}',
    "surrogate": b'{"a":"\\ud800"}',
    "nested": b'{"a":' + b"[" * 200_000,
    "huge_integer": b'{"a":' + b"9" * 100_000 + b"}",
}


@pytest.fixture
def guest() -> Iterator[Guest]:
    with Guest(handlers=HANDLERS, limits=LIMITS) as guest:
        yield guest


def assert_unharmed(guest: Guest) -> None:
    """The next call works, and there is no process but the one that serves it."""
    assert guest.request({"op": "echo", "value": "still here"}, PATIENT_S) == {"echo": "still here"}
    assert children(zygote()) == {guest.pid}


@pytest.mark.parametrize("attack", REFUSED)
def test_attack_is_refused(guest: Guest, attack: str, tmp_path: Path) -> None:
    (tmp_path / "canary").touch()
    source = f"result = {REFUSED[attack]}".replace("TMP", str(tmp_path))

    reply = guest.request({"op": "exec", "source": source}, PATIENT_S)

    assert set(reply) == {"error"}
    assert len(str(reply)) < 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["canary"]
    assert_unharmed(guest)


@pytest.mark.parametrize("call", SYSCALLS)
def test_system_call_is_refused(guest: Guest, call: str) -> None:
    numbers, arguments = SYSCALLS[call]
    number = numbers[kernel.ARCHITECTURES[kernel.MACHINE][0]]
    source = (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "word = lambda value: ctypes.c_long(value) if isinstance(value, int) else value\n"
        f"code = libc.syscall(ctypes.c_long({number}), *map(word, ({arguments},)))\n"
        "result = [code, ctypes.get_errno()]"
    )

    reply = guest.request({"op": "exec", "source": source}, PATIENT_S)

    assert reply == {"result": [-1, 1]}
    assert_unharmed(guest)


@pytest.mark.parametrize("attack", FATAL)
def test_attack_costs_one_call(guest: Guest, attack: str) -> None:
    source, reasons, message = FATAL[attack]
    before = guest.spawn()

    with pytest.raises(GuestFailure) as caught:
        guest.request({"op": "exec", "source": source}, HANG_S if reasons == {"timeout"} else PATIENT_S)

    assert caught.value.reason in reasons
    assert message in str(caught.value)
    assert len(caught.value.output) <= 4096
    assert_unharmed(guest)
    assert guest.pid != before


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_answer_costs_one_call(guest: Guest, forgery: str) -> None:
    body = FORGED[forgery]
    source = (
        f"import struct\nrest = struct.pack('!II', 1, {len(body)}) + {body!r}\n"
        "while rest: rest = rest[os.write(3, rest):]\nos._exit(0)"
    )

    with pytest.raises(GuestFailure) as caught:
        guest.request({"op": "exec", "source": source}, PATIENT_S)

    assert caught.value.reason == "protocol"
    assert_unharmed(guest)


@pytest.mark.skipif(kernel.MACHINE != "x86_64", reason="the convention exists on x86_64 only")
def test_foreign_calling_convention_kills(guest: Guest) -> None:
    with pytest.raises(GuestFailure, match="SIGSYS"):
        guest.request({"op": "exec", "source": "ctypes.CDLL(None).syscall(ctypes.c_long(0x40000002), b'/', 0)"}, 9)

    assert_unharmed(guest)


def test_guest_that_ends_after_its_answer_is_replaced(guest: Guest) -> None:
    watched = [os.pidfd_open(guest.spawn())]
    late = "import struct\nos.write(3, struct.pack('!II', 1, 2) + b'{}')\nos._exit(0)"

    assert guest.request({"op": "exec", "source": late}, PATIENT_S) == {}

    assert ends(watched)
    assert_unharmed(guest)


def test_guest_sees_neither_environment_nor_arguments_of_its_parent(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "sk-not-a-real-key")
    source = (
        "import sys\n"
        "block = (ctypes.c_char_p * 64).in_dll(ctypes.CDLL(None), 'environ') and ctypes.POINTER(ctypes.c_char_p)"
        ".in_dll(ctypes.CDLL(None), 'environ')\n"
        "count = 0\n"
        "while block[count]: count += 1\n"
        "result = [dict(os.environ), [block[i].decode() for i in range(count)], sys.orig_argv, hash('a')]"
    )

    names, block, arguments, digest = guest.request({"op": "exec", "source": source}, PATIENT_S)["result"]

    assert set(names) == {"PYTHONHASHSEED", "LANG", "LC_ALL", "TZ"}
    assert len(block) == 4
    assert "sk-not-a-real-key" not in str(arguments)
    guest.close()
    assert guest.request({"op": "exec", "source": "result = hash('a')"}, PATIENT_S)["result"] == digest


def test_guest_holds_four_descriptors_and_no_capability(guest: Guest) -> None:
    process = Path(f"/proc/{guest.spawn()}")

    status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines() if ":\t" in line)

    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    if os.geteuid() == 0:
        assert {path.name for path in (process / "fd").iterdir()} == {"0", "1", "2", "3"}


def test_evidence_of_a_crash_names_the_place(guest: Guest) -> None:
    with pytest.raises(GuestFailure) as caught:
        guest.request({"op": "exec", "source": "print('x' * 9000, flush=True)\n\nctypes.string_at(0)"}, PATIENT_S)

    assert "line 3 in <module>" in caught.value.output


def test_exception_is_an_answer_and_the_guest_goes_on(guest: Guest) -> None:
    before = guest.spawn()

    reply = guest.request({"op": "exec", "source": "x = 1\n{}['missing']"}, PATIENT_S)

    assert reply["error"]["kind"] == "KeyError"
    assert "line 2" in reply["error"]["traceback"]
    assert guest.request({"op": "no such operation"}, PATIENT_S)["error"]["kind"] == "KeyError"
    assert guest.pid == before


def test_models_can_be_made_after_confinement(guest: Guest) -> None:
    source = (
        "from datetime import datetime\nfrom decimal import Decimal\n"
        "class Row(BaseModel):\n  at: datetime\n  price: Decimal\n  tags: tuple[str, ...] = ()\n"
        "row = Row(at=datetime.strptime('2026-01-31', '%Y-%m-%d'), price='1.50')\n"
        "result = [row.model_dump(mode='json'), 'é'.encode('latin-1').hex(), Row.model_json_schema()['type']]"
    )

    reply = guest.request({"op": "exec", "source": source}, PATIENT_S)

    assert reply == {"result": [{"at": "2026-01-31T00:00:00", "price": "1.50", "tags": []}, "e9", "object"]}
