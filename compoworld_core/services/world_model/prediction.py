"""Predictions: what is claimed that a call changes and answers, and the contract of whoever claims it.

A prediction is worth nothing until it was checked. Whoever predicts gets the check and may try again with the reason
for which a claim was rejected; what it hands over at last is staged by the same check once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol, Self

from pydantic import Field, JsonValue, model_validator

from compoworld_core.data import Data
from compoworld_core.errors import ErrorCode, Unavailable
from compoworld_core.services.world_model.question import Question
from compoworld_core.storage.digest import JsonObject


class RowEdit(Data):
    """A row operation.

    Attributes:
        key: The row's id; of an insert the id that the table issues next, or None for whatever it issues.
    """

    op: Literal["insert", "update", "delete"]
    table: str
    key: str | None = None
    values: JsonObject = Field(default_factory=dict)


class PredictedError(Data):
    """An answer that refuses the call."""

    code: ErrorCode
    message: str = Field(min_length=1)


class Prediction(Data):
    """What a call changes and answers.

    Attributes:
        observation: The data of a successful answer.
        error: The refusal, where the call does not succeed; it changes nothing then.
    """

    changes: tuple[RowEdit, ...] = ()
    observation: JsonValue = None
    error: PredictedError | None = None

    @model_validator(mode="after")
    def _a_refusal_is_all(self) -> Self:
        if self.error is not None and (self.changes or self.observation is not None):
            raise ValueError("a call that is refused changes nothing and has no observation")
        return self


class Rejected(Exception):
    """A prediction that is not acceptable; its text says why, for whoever predicts."""


Check = Callable[[Prediction], None]
"""Accepts a prediction, or raises `Rejected`; leaves no trace in the state."""


class Predictor(Protocol):
    """Predicts calls. One may serve many worlds, from many threads."""

    def predict(self, question: Question, check: Check) -> Prediction:
        """What a call changes and answers.

        Raises:
            Unavailable: No acceptable prediction came.
            InputError: There is no prediction, and nobody to ask.
            TransientError: There is no prediction now, but there may be later.
        """
        ...


class _NoPredictions(Predictor):
    def predict(self, question: Question, check: Check) -> Prediction:
        raise Unavailable(f"{question.tool} is not reachable here")


NO_PREDICTIONS: Final[Predictor] = _NoPredictions()
"""Predicts nothing: for those who open worlds to judge or to plan, and call no modelled tool."""
