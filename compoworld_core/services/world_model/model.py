"""The world model: predicts calls with a language model, and keeps every prediction so that it is never made again.

    question ─► predictions/… in the store ─► kept before: that
                        │ not yet
                        ▼
                 ask ─► check ─► rejected: ask again with the reason ─► valid, or given up ─► keep ─► that

What is kept is found by everything that it may depend on, so a run that is repeated answers every call as before, bit
for bit, whether or not the model can still be reached.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Final, Protocol

from pydantic import ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import InputError, StorageError, Unavailable
from compoworld_core.llm.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Usage,
    UserMessage,
    json_text,
    parse_object,
)
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.prompts import load_prompt
from compoworld_core.services.record import describe_validation_error
from compoworld_core.services.world_model import backend
from compoworld_core.services.world_model.prediction import Check, Prediction, Predictor, Rejected
from compoworld_core.services.world_model.question import Question
from compoworld_core.services.world_model.settings import WorldModelConfig
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import canonical_json, digest
from compoworld_core.storage.store import Store

FOLDER: Final = "predictions"

_MAX_ANSWER: Final = 256 * 1024
_MAX_QUOTED: Final = 4_000
_FENCE: Final = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class _Bounds(Data):
    max_changes: int
    max_chars: int


class _Document(Data):
    document: str


class _Reason(Data):
    reason: str


class RejectedAnswer(Data):
    """What a model answered, cut where it is long, and why that is no prediction."""

    answer: str
    reason: str


class Kept(Data):
    """A prediction as it lies in the store.

    Attributes:
        question: All that it may depend on, with the model's parameters and the prompts.
        prediction: None where no acceptable one came.
        rejected: What was answered before, in order.
        requests: How many answers all of it took.
        usage: What those took.
    """

    service: str
    question: JsonObject
    prediction: Prediction | None
    rejected: tuple[RejectedAnswer, ...] = ()
    requests: int
    usage: Usage


class Ask(Protocol):
    """Asks the language model from any thread and waits for its answer."""

    def __call__(self, messages: Sequence[Message], *, item: str, sample: int) -> AssistantMessage:
        """The model's next message; raises as `ChatModel.respond` does.

        Args:
            item: What the answer is for.
            sample: Tells apart answers to the same question.
        """
        ...

    def repeat(self, *, item: str, requests: int, usage: Usage) -> None:
        """Count what a prediction took that is not made again."""
        ...


class WorldModel(Predictor):
    """Predicts calls, or repeats what was predicted.

    Args:
        store: Where predictions are kept.
        config: How often to ask.
        parameters: All of the language model that decides its answers.
        ask: Reaches the language model; None repeats what is kept and predicts nothing new.
    """

    def __init__(self, store: Store, config: WorldModelConfig, parameters: JsonObject, ask: Ask | None) -> None:
        self._store = store
        self._config = config
        self._ask = ask
        self._counted: set[str] = set()
        self._counting = Lock()
        self._rules, self._call, self._again = (
            load_prompt(__package__, name, 1) for name in ("predict", "call", "rejected")
        )
        self._made_with = {
            "model": parameters,
            "prompts": [prompt.label for prompt in (self._rules, self._call, self._again)],
            "attempts": config.attempts,
        }

    def predict(self, question: Question, check: Check) -> Prediction:
        """The most frequent of the predictions; of equally frequent ones, the one that came first."""
        found = [self._sample(question, check, number) for number in range(self._config.samples)]
        valid = {canonical_json(prediction): prediction for prediction in found if prediction is not None}
        if not valid:
            raise Unavailable(f"{question.tool} did not answer")
        counts = Counter(canonical_json(prediction) for prediction in found if prediction is not None)
        return valid[counts.most_common(1)[0][0]]

    def _sample(self, question: Question, check: Check, number: int) -> Prediction | None:
        content = {**question.content, **self._made_with, "sample": number}
        key = digest(content)
        name = f"{FOLDER}/{key[:2]}/{key}.json"
        found = self._store.read(name)
        data = found
        if data is None:
            data = canonical_json(self._made(question, content, check, number)).encode()
            if not self._store.create(name, data):
                data = self._store.read(name) or data  # another's was first, and counts for all
        try:
            kept = Kept.model_validate_json(data)
        except ValidationError as error:
            raise StorageError(f"{self._store.uri}/{name}: is damaged: {describe_validation_error(error)}") from None
        if self._is_first(key) and found is not None and self._ask is not None:
            self._ask.repeat(item=_item(question), requests=kept.requests, usage=kept.usage)
        return kept.prediction

    def _is_first(self, key: str) -> bool:
        """Whether nobody had this prediction from here before: however many calls it answers, it is made once."""
        with self._counting:
            is_first = key not in self._counted
            self._counted.add(key)
            return is_first

    def _made(self, question: Question, content: JsonObject, check: Check, number: int) -> Kept:
        """Ask until an answer is acceptable or there were enough attempts."""
        if self._ask is None:
            raise InputError(
                f"the call of {question.tool} of {question.service} was never predicted here, and no model can be "
                "asked; name one of llm.models in the section world_model of the configuration"
            )
        bounds = _Bounds(max_changes=backend.MAX_CHANGES, max_chars=backend.MAX_CHARS)
        document = _Document(document=json_text(question.document()))
        messages: list[Message] = [
            SystemMessage(content=self._rules.render(bounds)),
            UserMessage(content=self._call.render(document)),
        ]
        rejected: list[RejectedAnswer] = []
        took: list[Usage] = []
        valid: Prediction | None = None
        for _ in range(self._config.attempts):
            answer = ""
            try:
                message = self._ask(tuple(messages), item=_item(question), sample=number)
                took.append(message.usage or Usage())
                answer = message.content
                prediction = read_prediction(answer)
                check(prediction)
                valid = prediction
                break
            except ModelFailure as error:
                took += [] if error.usage is None else [error.usage]
                if error.kind == "refused":
                    raise InputError(f"the world model cannot be asked about {question.tool}: {error}") from error
                reason = f"there is no usable answer: {error}"
                if error.kind in ("context", "filtered"):  # asking again would only add to it
                    rejected.append(RejectedAnswer(answer="", reason=reason))
                    break
            except Rejected as error:
                reason = str(error)
            reason = reason.encode(errors="replace").decode()
            rejected.append(RejectedAnswer(answer=answer[:_MAX_QUOTED], reason=reason))
            messages += [
                AssistantMessage(content=answer[:_MAX_QUOTED] or "(nothing)"),
                UserMessage(content=self._again.render(_Reason(reason=reason))),
            ]
        return Kept(
            service=question.service,
            question=content,
            prediction=valid,
            rejected=tuple(rejected),
            requests=len(took),
            usage=Usage.total(took),
        )


def _item(question: Question) -> str:
    return f"{question.service}.{question.tool}"


def read_prediction(text: str) -> Prediction:
    """The prediction that an answer states: one JSON object, alone or in a code fence.

    Raises:
        Rejected: It states none.
    """
    if len(text) > _MAX_ANSWER:
        raise Rejected(f"the answer has {len(text)} characters")
    fenced = _FENCE.fullmatch(text)
    found = parse_object(fenced[1] if fenced else text)
    if found is None:
        raise Rejected("the answer is not exactly one JSON object")
    try:
        return Prediction.model_validate(found)
    except ValidationError as error:
        raise Rejected(describe_validation_error(error)) from None
