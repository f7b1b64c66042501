"""Sessions: whole conversations with a model, kept once they are over.

The journal keeps single answers, so that a session which was cut short goes on without paying twice. A session keeps
what they came to: who has it need not hold the conversation again. Of several writers one wins, and all adopt its.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compoworld_core.errors import StorageError
from compoworld_core.llm.messages import Usage
from compoworld_core.storage import Store, canonical_json
from compoworld_core.storage.digest import JsonObject

_FOLDER: Final = "sessions"


class Session(BaseModel):
    """A conversation that is over.

    Attributes:
        kind: What it was for, such as `task_author`.
        item: What it was about.
        model: What records call the model.
        prompts: Labels of the prompts that it began with.
        transcript: Its messages as chat-completion endpoints write them.
        requests: How many answers it took.
        usage: What those took: who repeats the session counts it like answers out of the journal.
        outcome: How it ended; what the words mean is up to its kind.
        result: What it made; what that looks like is up to its kind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    item: str
    model: str
    prompts: tuple[str, ...]
    transcript: tuple[JsonObject, ...]
    requests: int
    usage: Usage
    outcome: str
    result: JsonObject = Field(default_factory=dict)


def find(store: Store, key: str) -> Session | None:
    """The session of a key, the digest of all that decides how it goes; None where none has ended yet.

    Raises:
        StorageError: What is stored under the key is no session.
    """
    data = store.read(_name(key))
    if data is None:
        return None
    try:
        return Session.model_validate_json(data)
    except ValidationError as error:
        raise StorageError(
            f"{store.uri}/{_name(key)}: is no session ({error.error_count()} faults); delete it"
        ) from None


def keep(store: Store, key: str, session: Session) -> Session:
    """Store a session under its key, unless another got there first; the one that is kept."""
    if store.create(_name(key), canonical_json(session).encode()):
        return session
    return find(store, key) or session


def _name(key: str) -> str:
    return f"{_FOLDER}/{key}.json"
