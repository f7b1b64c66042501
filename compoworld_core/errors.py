"""Every failure belongs to one boundary and is typed here once.

Two families never mix. A `ToolError` is an *answer*: the agent asked for something that the service refuses, and reads
why. A `CompoWorldError` is a message to the *person or job* that runs CompoWorld; its class decides the exit code and
thereby whether an orchestrator retries. Anything else that escapes is a bug.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

ErrorCode = Literal[
    "invalid_arguments",
    "not_found",
    "already_exists",
    "failed_precondition",
    "permission_denied",
    "limit_exceeded",
    "unavailable",
]

MAX_MESSAGE: Final = 2000
"""Characters of a refusal that an agent is shown; arguments that it quotes may be of any length."""


class ToolError(Exception):
    """A refusal that is shown to the agent as an error envelope."""

    code: ClassVar[ErrorCode]

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


class InvalidArguments(ToolError):
    """The arguments do not satisfy the tool's parameters."""

    code = "invalid_arguments"


class NotFound(ToolError):
    """No row carries the given key."""

    code = "not_found"


class AlreadyExists(ToolError):
    """A row with the same unique value is there already."""

    code = "already_exists"


class FailedPrecondition(ToolError):
    """The state does not allow the operation now."""

    code = "failed_precondition"


class PermissionDenied(ToolError):
    """The acting user may not do this."""

    code = "permission_denied"


class LimitExceeded(ToolError):
    """The request is larger than the service accepts."""

    code = "limit_exceeded"


class Unavailable(ToolError):
    """The service did not answer: it crashed, hung or is not reachable."""

    code = "unavailable"


TOOL_ERRORS: dict[ErrorCode, type[ToolError]] = {
    kind.code: kind
    for kind in (
        InvalidArguments,
        NotFound,
        AlreadyExists,
        FailedPrecondition,
        PermissionDenied,
        LimitExceeded,
        Unavailable,
    )
}


class CompoWorldError(Exception):
    """A failure with a message for whoever runs the job; `exit_code` as in the job contract."""

    exit_code: ClassVar[int] = 1


class InputError(CompoWorldError):
    """Bad input or configuration: names the file, line or field and what to do. Never retried."""

    exit_code = 2


class IsolationError(InputError):
    """Untrusted code cannot be confined on this machine, so it does not run."""


class BudgetExhausted(InputError):
    """A budget is spent. What was paid for is kept; with a larger budget the same command goes on from there."""


class GateFailed(CompoWorldError):
    """A run finished, but its result does not meet a gate. Never retried."""


class StorageError(CompoWorldError):
    """Stored data is missing, damaged or contradicts what was committed."""


class TransientError(CompoWorldError):
    """Something outside failed and may work later (network, throttling). Retried."""

    exit_code = 75


class ServiceBug(CompoWorldError):
    """A service did something no service may do; its tool is recorded and quarantined."""
