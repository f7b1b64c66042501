"""The backend of packages with modelled tools: code runs as ever, and what no code can do is predicted.

A prediction is a claim by something that may err or be misled. Its changes pass the same table operations as those of
code, its observation is kept to what the tool promises and to rows that exist, and whatever is wrong with it leaves the
state as it was.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from compoworld_core.errors import TOOL_ERRORS, InputError, ServiceBug, ToolError, Unavailable
from compoworld_core.services.backend import Outcome, ToolBackend, broken
from compoworld_core.services.context import Context
from compoworld_core.services.envelope import Envelope, failure, success
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.parameters import Parameters
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.services.world_model.excerpt import texts
from compoworld_core.services.world_model.prediction import Prediction, Predictor, Rejected, RowEdit
from compoworld_core.services.world_model.question import Question
from compoworld_core.specs.model import ToolSpec
from compoworld_core.specs.validation import validator
from compoworld_core.storage.digest import canonical_json

MAX_CHANGES: Final = 50
MAX_CHARS: Final = 64 * 1024
"""Most that one prediction may hold."""

_MAX_REASON: Final = 500


class ModelledBackend(ToolBackend):
    """Runs the tools of a package, and has a predictor answer for those that no code executes."""

    __slots__ = ("_inner", "_package", "_parameters", "_predictor", "_returns")

    def __init__(self, package: ServicePackage, inner: ToolBackend, predictor: Predictor) -> None:
        self._package = package
        self._inner = inner
        self._predictor = predictor
        self._parameters = Parameters(package.name, package.modelled)
        self._returns: dict[str, Any] = {}

    def new_state(self) -> State:
        """An empty state, as the code has it."""
        return self._inner.new_state()

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Fill an empty state, as the code does."""
        self._inner.populate(state, universe, rng, start)

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        """Run one call, or have it predicted and stage what is predicted.

        Raises:
            InputError: There is no prediction, and nobody to ask.
            TransientError: There is no prediction now, but there may be later.
        """
        if tool not in self._package.modelled_names:
            return self._inner.execute(state, tool, arguments, context)
        try:
            plain = self._parameters.checked(tool, arguments)
        except ToolError as error:
            return Outcome(failure(error))
        except ServiceBug as error:
            return broken(str(error))
        return Outcome(self._predicted(state, Question(self._package, tool, plain, state, context)), world_model=True)

    def _predicted(self, state: State, question: Question) -> Envelope:
        def check(prediction: Prediction) -> None:
            try:
                self._stage(state, question, prediction)
            finally:
                state.rollback()

        try:
            prediction = self._predictor.predict(question, check)
            return self._stage(state, question, prediction)
        except ToolError as error:
            return failure(error)
        except Rejected as reason:
            return failure(Unavailable(f"{question.tool} gave no valid answer: {reason}"))

    def _stage(self, state: State, question: Question, prediction: Prediction) -> Envelope:
        """Make the predicted changes in the state's open transaction; the predicted envelope.

        Raises:
            Rejected: The prediction is not acceptable; some of its changes may be staged.
        """
        if prediction.error is not None:
            return failure(TOOL_ERRORS[prediction.error.code](prediction.error.message))
        spec = self._package.tool(question.tool)
        if prediction.changes and spec.effect == "read":
            raise Rejected(f"{spec.name} is read-only, so it changes no row; leave changes empty")
        _check_size(prediction)
        for place, edit in enumerate(prediction.changes):
            try:
                _apply(state, edit)
            except Rejected as reason:
                raise Rejected(f"changes[{place}]: {reason}") from None
            except ToolError as error:
                raise Rejected(f"changes[{place}]: {error.code}: {error.message[:_MAX_REASON]}") from None
            except Exception as error:  # Values are whatever was predicted.
                raise Rejected(f"changes[{place}]: {type(error).__name__}: {str(error)[:_MAX_REASON]}") from None
        self._check_observation(spec, prediction)
        if invented := sorted(set(_invented(state, question, prediction)))[:5]:
            raise Rejected(f"the observation names rows that do not exist: {', '.join(invented)}")
        return success(prediction.observation)

    def _check_observation(self, spec: ToolSpec, prediction: Prediction) -> None:
        if spec.returns is None:
            return
        if spec.name not in self._returns:
            self._returns[spec.name] = validator(spec.returns)
        try:
            wrong = next(self._returns[spec.name].iter_errors(prediction.observation), None)
        except ValueError as error:
            raise Rejected(f"the observation cannot be checked: {str(error)[:_MAX_REASON]}") from None
        if wrong is not None:
            where = ".".join(str(part) for part in wrong.instance_path)
            raise Rejected(f"the observation breaks the schema at {where or 'its top'}: {wrong.message[:_MAX_REASON]}")


def _check_size(prediction: Prediction) -> None:
    if len(prediction.changes) > MAX_CHANGES:
        raise Rejected(f"there are {len(prediction.changes)} changes; at most {MAX_CHANGES} are accepted")
    try:
        size = len(canonical_json(prediction))
    except InputError as error:
        raise Rejected(f"it cannot be stored as JSON: {error}") from None
    if size > MAX_CHARS:
        raise Rejected(f"it has {size} characters as JSON; at most {MAX_CHARS} are accepted")


def _apply(state: State, edit: RowEdit) -> None:
    """Make one change by the table's own operations.

    Raises:
        Rejected: It is about no table or no row.
        ToolError: The table refuses it.
    """
    table = state.tables.get(edit.table)
    if table is None:
        raise Rejected(f"there is no table {edit.table[:80]!r}; there are {', '.join(state.tables) or 'none'}")
    if edit.op == "insert":
        issued = table.next_id()
        if edit.key not in (None, issued) or edit.values.get("id") not in (None, issued):
            raise Rejected(f"the next id of {edit.table} is {issued!r}; use it as key, or leave the key out")
        table.insert(**{**edit.values, "id": None})
    elif edit.key is None:
        raise Rejected(f"there is no key; {edit.op} is about one row")
    elif edit.op == "update":
        table.update(edit.key, **edit.values)
    elif edit.values:
        raise Rejected("a delete has no values")
    else:
        table.delete(edit.key)


def _invented(state: State, question: Question, prediction: Prediction) -> Iterator[str]:
    """Ids in the observation that look like a table's own, and that neither a row nor the call has."""
    known = {*texts(question.arguments), *(edit.key for edit in prediction.changes if edit.op == "delete")}
    prefixes: dict[str, list[Any]] = {}
    for table in state.tables.values():
        if table.schema.id_prefix:
            prefixes.setdefault(table.schema.id_prefix, []).append(table)
    for text in texts(prediction.observation):
        found = re.fullmatch(r"(.+)_\d+", text)
        tables = prefixes.get(found[1], []) if found else []
        if tables and text not in known and not any(text in table for table in tables):
            yield text
