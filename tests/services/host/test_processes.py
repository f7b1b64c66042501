"""Processes come and go: whoever dies, nobody is left behind, and the next call works."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from compoworld_core.errors import CompoWorldError, IsolationError, TransientError
from compoworld_core.services.host import Guest, GuestFailure, Limits, kernel, landlock, probe, transport
from compoworld_core.services.host.confinement import confine, die_with, escapes
from compoworld_core.services.host.nursery import Nursery
from tests.services.host.processes import HANDLERS, becomes_busy, children, ends, in_child, zygote

PATIENT_S = 20.0
HANG = {"op": "exec", "source": "while True: pass"}


@pytest.fixture
def guest() -> Iterator[Guest]:
    with Guest(handlers=HANDLERS) as guest:
        yield guest


def test_killed_parent_takes_zygote_and_hung_guest_along() -> None:
    script = (
        "import os, sys, threading\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from compoworld_core.services.host import Guest\n"
        "from tests.services.host.processes import HANDLERS, zygote\n"
        "guest = Guest(handlers=HANDLERS)\n"
        "pid = guest.spawn()\n"
        "heir = os.fork()\n"
        "if heir == 0: threading.Event().wait()\n"  # Holds whatever descriptors a fork leaves open.
        "print(zygote(), pid, heir, flush=True)\n"
        f"guest.request({HANG!r}, 300)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    *pids, heir = [int(word) for word in parent.stdout.readline().split()]
    watched = [os.pidfd_open(pid) for pid in pids]

    parent.kill()

    assert ends(watched)
    os.kill(heir, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()


def test_killed_zygote_takes_its_guests_along_and_is_replaced(guest: Guest) -> None:
    watched = [os.pidfd_open(guest.spawn())]
    old = zygote()

    os.kill(old, signal.SIGKILL)

    assert ends(watched)
    assert guest.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}
    assert zygote() != old


def test_zygote_killed_during_a_call_costs_that_call(guest: Guest) -> None:
    pid = guest.spawn()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(guest.request, HANG, 300)
        assert becomes_busy(pid)

        os.kill(zygote(), signal.SIGKILL)

        with pytest.raises(GuestFailure, match="crash"):
            call.result(PATIENT_S)
    assert guest.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}


def test_guest_killed_between_calls_costs_nothing(guest: Guest) -> None:
    before = guest.spawn()
    watched = [os.pidfd_open(before)]
    os.kill(before, signal.SIGKILL)
    assert ends(watched)

    assert guest.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}
    assert children(zygote()) == {guest.pid}


def test_dropped_guest_leaves_no_process() -> None:
    guest = Guest(handlers=HANDLERS)
    watched = [os.pidfd_open(guest.spawn())]

    del guest

    assert ends(watched)


def test_zygote_outlives_the_thread_that_started_it(guest: Guest) -> None:
    thread = threading.Thread(target=guest.spawn)
    thread.start()
    thread.join()
    pid = guest.pid

    assert guest.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}
    assert guest.pid == pid


def test_interrupted_call_leaves_no_half_conversation(guest: Guest) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = guest.spawn()
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            guest.request(HANG, 300)
    finally:
        signal.signal(signal.SIGALRM, previous)

    assert guest.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}
    assert before not in children(zygote())


def test_threads_share_a_guest_and_have_their_own(guest: Guest) -> None:
    def talk(number: int) -> object:
        with Guest(handlers=HANDLERS) as own:
            shared = guest.request({"op": "echo", "value": number}, PATIENT_S)["echo"]
            return shared, own.request({"op": "echo", "value": number}, PATIENT_S)["echo"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, range(32))) == [(number, number) for number in range(32)]
    assert children(zygote()) == {guest.pid}


_shared = Guest(handlers=HANDLERS)


def _echo_in_worker(number: int) -> tuple[int, int, int]:
    answer = _shared.request({"op": "echo", "value": number}, PATIENT_S)["echo"]
    return os.getpid(), zygote(), answer


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_worker_processes_start_their_own(method: str) -> None:
    before, watched = _shared.spawn(), []
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.map(_echo_in_worker, range(6), chunksize=1)
        watched = [os.pidfd_open(pid) for pid in {zygote for _, zygote, _ in results}]

    assert sorted(answer for *_, answer in results) == list(range(6))
    assert zygote() not in {pid for _, pid, _ in results}
    assert _shared.request({"op": "echo", "value": 1}, PATIENT_S) == {"echo": 1}
    assert _shared.pid == before
    assert ends(watched)
    _shared.close()


def test_processor_limit_never_hits_an_innocent_call() -> None:
    with Guest(handlers=HANDLERS, limits=Limits(cpu_s=20)) as guest:
        before = guest.spawn()
        with pytest.raises(ValueError, match="processor limit"):
            guest.request({"op": "echo", "value": 1}, 20)
        guest.request({"op": "exec", "source": "while time.process_time() < 0.3: pass"}, 19.9)
        assert guest.pid == before

        guest.request({"op": "echo", "value": 1}, 19.9)

        assert guest.pid != before


def test_request_beyond_the_limit_is_refused_unsent() -> None:
    with Guest(handlers=HANDLERS, limits=Limits(request_bytes=1000)) as guest:
        with pytest.raises(ValueError, match="more than the 1000 allowed"):
            guest.request({"op": "echo", "value": "x" * 1000}, 1)

        assert guest.pid is None


def test_large_requests_and_replies_pass(guest: Guest) -> None:
    value = "é" * 3_000_000

    assert guest.request({"op": "echo", "value": value}, PATIENT_S) == {"echo": value}


@pytest.mark.parametrize("user", [0, 65534], ids=["root", "nobody"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_confinement_holds_for_any_user(user: int) -> None:
    parent = os.getpid()

    def attempt() -> list[str]:
        os.setresuid(user, user, user)
        die_with(parent)
        confine(Limits())
        return escapes()

    assert in_child(attempt) == "[]"


def test_landlock_holds_by_itself() -> None:
    parent = os.getpid()

    def attempt() -> list[str]:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict()
        refused = []
        for name, action in (
            ("open", lambda: os.open("/etc/passwd", os.O_RDONLY)),
            ("create", lambda: os.open("/tmp/compoworld-escaped", os.O_CREAT | os.O_WRONLY)),
            ("list", lambda: os.listdir("/")),
            ("connect", lambda: socket.create_connection(("127.0.0.1", 9))),
            ("bind", lambda: socket.create_server(("127.0.0.1", 0))),
            ("signal", lambda: os.kill(parent, 0)),
        ):
            try:
                action()
            except PermissionError:
                refused.append(name)
        return refused

    expected = ["open", "create", "list"]
    expected += ["connect", "bind"] if landlock.version() >= 4 else []
    expected += ["signal"] if landlock.version() >= 6 else []
    assert in_child(attempt) == repr(expected)


def test_machine_without_a_wall_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "missing", lambda: "Landlock is not available (gone)")
    monkeypatch.setattr(transport, "nursery_for", lambda *_: Nursery(HANDLERS))

    assert probe() == ["Landlock is not available (gone)"]
    with pytest.raises(IsolationError, match="Landlock is not available") as caught:
        Guest(handlers=HANDLERS).spawn()
    assert caught.value.exit_code == 2


def test_walls_that_do_not_hold_are_noticed() -> None:
    with pytest.raises(IsolationError) as caught:
        Guest(handlers="tests.services.host.breached_handlers").request({"op": "echo"}, PATIENT_S)

    for escape in ("read a file", "open a socket", "start a process", "map executable memory"):
        assert escape in str(caught.value)


def test_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "MACHINE", "riscv64")

    assert probe() == ["there is no system call table for riscv64; use x86_64 or aarch64"]


def test_handlers_that_can_not_be_imported_are_named() -> None:
    with pytest.raises(CompoWorldError, match=r"No module named 'tests\.services\.host\.nowhere'"):
        Guest(handlers="tests.services.host.nowhere").spawn()


def test_exhausted_machine_is_transient(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    guest.spawn()
    guest.close()
    monkeypatch.setattr(Nursery, "_ask", lambda *_: ({"error": "no guest could be started: out of processes"}, []))

    with pytest.raises(TransientError, match="out of processes"):
        guest.spawn()
