"""The filter, run in a simulator: what it does on an architecture that the tests do not run on."""

from __future__ import annotations

import struct

import pytest

from compoworld_core.services.host import kernel, seccomp

ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000


def run(machine: str, number: int, arguments: tuple[int, ...] = (), architecture: int | None = None) -> int:
    """What the filter answers to a call."""
    arguments = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    own = kernel.ARCHITECTURES[machine][1]
    data = struct.pack("<IIQ6Q", number, own if architecture is None else architecture, 0, *arguments)
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    accumulator, place = 0, 0
    while True:
        operation, if_true, if_false, value = code[place]
        place += 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x06:
                return int(value)


@pytest.mark.parametrize("machine", kernel.ARCHITECTURES)
def test_only_listed_calls_pass(machine: str) -> None:
    column = kernel.ARCHITECTURES[machine][0]
    plain = {kernel.NUMBERS[name][column] for name, conditions in seccomp.ALLOWED.items() if not conditions}
    conditional = {kernel.NUMBERS[name][column] for name, conditions in seccomp.ALLOWED.items() if conditions}

    answers = {number: run(machine, number, (0, 0, 4, 4)) for number in range(600)}

    assert {number for number, answer in answers.items() if answer == ALLOW} == plain | {
        number for number in conditional if number == kernel.NUMBERS["futex"][column]
    }
    assert set(answers.values()) == {ALLOW, EPERM}


@pytest.mark.parametrize("machine", kernel.ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x4022), ALLOW),
        ("mmap", (0, 4096, 7, 0x22), EPERM),
        ("mmap", (0, 4096, 3, 0x21), EPERM),
        ("mmap", (0, 4096, 3, 0x02), EPERM),
        ("mmap", (0, 4096, 3, 0x40022), EPERM),
        ("mprotect", (0, 4096, 3), ALLOW),
        ("mprotect", (0, 4096, 5), EPERM),
        ("futex", (0, 128), ALLOW),
        ("futex", (0, 128 | 256 | 9), ALLOW),
        ("futex", (0, 6), EPERM),
        ("futex", (0, 12), EPERM),
    ],
)
def test_arguments_decide(machine: str, name: str, arguments: tuple[int, ...], answer: int) -> None:
    assert run(machine, kernel.NUMBERS[name][kernel.ARCHITECTURES[machine][0]], arguments) == answer


@pytest.mark.parametrize("machine", kernel.ARCHITECTURES)
def test_foreign_conventions_kill(machine: str) -> None:
    assert run(machine, 0, architecture=0x40000003) == KILL
    if machine == "x86_64":
        assert run(machine, 0x40000000) == KILL
