"""What a guest may reply: the exact shapes, checked before anything in them is used."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from compoworld_core.errors import ErrorCode, ServiceBug
from compoworld_core.services.envelope import Envelope, success
from compoworld_core.services.record import describe_validation_error

MAX_ENVELOPE_BYTES: Final = 2 * 1024 * 1024

_MAX_MESSAGE_CHARS: Final = 20_000
_MAX_PROBLEMS: Final = 50
_MAX_PROBLEM_CHARS: Final = 1000


class HostFault(ServiceBug):
    """Hosted code answered what no service may answer."""


class CodeRefused(ServiceBug):
    """Hosted code is not a service.

    Attributes:
        reason: `disallowed` (not on the allowlist), `definition` (it fails when defined) or `service` (not exactly one
            complete service).
        problems: What is wrong, by line.
    """

    def __init__(self, reason: Literal["disallowed", "definition", "service"], problems: list[tuple[int, str]]) -> None:
        super().__init__("\n".join(f"service.py:{line}: {message}" for line, message in problems))
        self.reason = reason
        self.problems = problems


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Success(_Data):
    """The envelope of a success."""

    success: Literal[True]
    data: Any

    def envelope(self) -> Envelope:
        """The envelope as it goes on to the agent."""
        return success(self.data)


class Error(_Data):
    """Why a call was refused."""

    code: ErrorCode
    message: Annotated[str, Field(max_length=_MAX_MESSAGE_CHARS)]


class Failure(_Data):
    """The envelope of a refusal."""

    success: Literal[False]
    error: Error

    def envelope(self) -> Envelope:
        """The envelope as it goes on to the agent."""
        return {"success": False, "error": {"code": self.error.code, "message": self.error.message}}


class Write(_Data):
    """A row that was written, or deleted if there is none; `issued` if the table chose the new row's id."""

    table: str
    key: str
    row: dict[str, Any] | None
    issued: bool


class Reply(_Data):
    """The reply to a call; with a bug, nothing else in it counts."""

    envelope: Success | Failure
    bug: str | None
    writes: list[Write]


class Rewritten(_Data):
    """Rows in the service's own form, None for those that it refuses."""

    tables: dict[str, list[dict[str, Any] | None]]


class Refusal(_Data):
    """Why code can't be loaded."""

    reason: Literal["disallowed", "definition", "service"]
    problems: Annotated[list[Annotated[tuple[int, str], Field(strict=False)]], Field(min_length=1)]

    def lines(self) -> list[tuple[int, str]]:
        """What is wrong, by line."""
        return [(line, message[:_MAX_PROBLEM_CHARS]) for line, message in self.problems[:_MAX_PROBLEMS]]


def parse_call(reply: dict[str, Any]) -> Reply:
    """The reply to a call, in shape and within its limits.

    Raises:
        HostFault: It isn't.
    """
    try:
        parsed = Reply.model_validate(reply)
        to_json(reply["writes"])  # Refuses what is nested too deeply to be handled.
        size = len(to_json(reply["envelope"]))
    except ValidationError as error:
        raise HostFault(f"its answer is malformed: {describe_validation_error(error)}") from None
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise HostFault(f"its answer is not acceptable: {str(error)[:200]}") from None
    if size > MAX_ENVELOPE_BYTES:
        raise HostFault(f"its answer has {size} bytes, more than the {MAX_ENVELOPE_BYTES} allowed")
    if parsed.bug is None and isinstance(parsed.envelope, Failure) and parsed.envelope.error.code == "unavailable":
        raise HostFault("it says that it is unavailable, which is not for a service to say")
    return parsed
