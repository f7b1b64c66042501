"""Substance: a tool that answers the same whatever it is given, or whatever the rows are, is not a tool.

Mocks pass tests that only ask for a plausible answer. These checks ask where the answer comes from: from rows, chosen
by the arguments. See `influence.py` for how that is told from an echo, a hash, a clock or a random number.
"""

from __future__ import annotations

from compoworld_core.services.arguments import DANGLING, DANGLING_NUMBER
from compoworld_core.services.schema import semantic_of
from compoworld_core.synthesis.bench import scalars
from compoworld_core.synthesis.finding import Finding
from compoworld_core.synthesis.influence import Effect, Influence, addressed, answer, changed, stored, varying
from compoworld_core.synthesis.invariants import Check
from compoworld_core.synthesis.lifecycle import follows_rows
from compoworld_core.synthesis.trial import Trial


def has_normal_call(trial: Trial) -> Finding:
    """Some plausible call succeeds."""
    codes = ", ".join(f"{code} {count} times" for code, count in sorted(trial.refusals.items()))
    return Finding(
        check="has_normal_call",
        passed=bool(trial.samples),
        detail=f"{len(trial.samples)} normal calls kept" if trial.samples else f"no plausible call succeeded: {codes}",
        cases=len(trial.samples) + sum(trial.refusals.values()),
    )


def has_typed_error(trial: Trial) -> Finding:
    """Some call is refused; a tool that can't be asked wrongly need only answer from the rows."""
    refused = sum(1 for tried in trial.tried if not tried.result.succeeded) + sum(trial.refusals.values())
    excused = not refused and not trial.arguments.required and bool(_influence(trial).varied_by_rows)
    return Finding(
        check="has_typed_error",
        passed=bool(refused) or excused,
        detail=f"{refused} calls refused" if refused else "no call is refused" + (", and none has to be" * excused),
        cases=len(trial.tried),
    )


def write_changes_rows(trial: Trial) -> Finding | None:
    """A write tool's normal call changes rows."""
    if trial.effect != "write":
        return None
    tables = sorted({change.table.name for sample in trial.samples for change in sample.result.changes})
    return Finding(
        check="write_changes_rows",
        passed=bool(tables),
        detail=f"changed {', '.join(tables)}" if tables else "claimed success and changed nothing",
        cases=len(trial.samples),
    )


def read_depends_on_rows(trial: Trial) -> Finding | None:
    """A read's answer to the same call differs when the rows differ, and only the rows."""
    if trial.effect != "read" or not trial.samples:
        return None
    paths = _influence(trial).varied_by_rows
    return Finding(
        check="read_depends_on_rows",
        passed=bool(paths),
        detail=f"{len(paths)} parts of the answer follow the rows"
        if paths
        else "answered the same whatever the rows were",
        cases=len(trial.samples),
    )


def required_arguments_matter(trial: Trial) -> Finding | None:
    """Every required argument moves the changes, or a part of the answer that the rows move too."""
    effects = _influence(trial).of_required
    if not effects or not trial.samples:
        return None
    idle = sorted(name for name, effect in effects.items() if effect.kind in ("none", "untested"))
    return Finding(
        check="required_arguments_matter",
        passed=not idle,
        detail=f"without influence: {', '.join(idle)}" if idle else _described(effects),
        cases=sum(effect.tries for effect in effects.values()),
    )


def some_argument_matters(trial: Trial) -> Finding | None:
    """Of a tool that requires nothing, some optional argument has influence."""
    if trial.arguments.required or not trial.arguments.optional or not trial.samples:
        return None
    effects = _influence(trial).of_optional
    active = sorted(name for name, effect in effects.items() if effect.kind not in ("none", "untested"))
    return Finding(
        check="some_argument_matters",
        passed=bool(active),
        detail=f"with influence: {', '.join(active)}" if active else "no argument has any influence",
        cases=sum(effect.tries for effect in effects.values()),
    )


def options_matter(trial: Trial) -> Finding | None:
    """Evidence only: each optional argument has influence."""
    effects = _influence(trial).of_optional
    if not effects or not trial.samples:
        return None
    idle = sorted(name for name, effect in effects.items() if effect.kind in ("none", "untested"))
    return Finding(
        check="options_matter",
        passed=not idle,
        detail=f"no influence seen: {', '.join(idle)}" if idle else _described(effects),
        cases=sum(effect.tries for effect in effects.values()),
        is_gate=False,
    )


def changes_have_reason(trial: Trial) -> Finding | None:
    """A write's changes are about its arguments or about the rows, not the same stroke on every call."""
    if trial.effect != "write" or not any(sample.result.changes for sample in trial.samples):
        return None
    reason = _reason(trial)
    return Finding(
        check="changes_have_reason",
        passed=reason is not None,
        detail=reason or "changes neither hold, name nor select anything that the call was about",
        cases=len(trial.samples),
    )


def knows_dangling_ids(trial: Trial) -> Finding | None:
    """A tool neither shows nor changes rows of an entity for an id that none of them has."""
    own = {table.schema.entity: table for table in trial.world.running.state.tables.values()}
    guilty, cases = [], 0
    for name in trial.arguments.required if trial.samples else ():
        entity = _entity(trial, name)
        nothing = next((value for value in (DANGLING, DANGLING_NUMBER) if trial.arguments.allows(name, value)), None)
        if entity not in own or nothing is None:
            continue
        arguments = {**trial.samples[0].arguments, name: nothing}
        result = trial.call(arguments)
        cases += 1
        ids = {str(own[entity].type.field(record, "id")) for record in own[entity]} - _texts(arguments)
        touched = {change.key for change in result.changes if change.before is not None}
        if result.succeeded and ids & (
            touched | (_texts(result.envelope["data"]) if trial.effect == "read" else set())
        ):
            guilty.append(name)
    if not cases:
        return None
    return Finding(
        check="knows_dangling_ids",
        passed=not guilty,
        detail=f"found rows for no id: {', '.join(guilty)}" if guilty else "no rows for ids that nothing has",
        cases=cases,
    )


def knows_nonsense(trial: Trial) -> Finding | None:
    """A read does not pick one row for one meaningless text and another for the next, as a hash would."""
    if trial.effect != "read" or not trial.samples:
        return None
    keys = {str(table.type.field(row, "id")) for table in trial.world.running.state.tables.values() for row in table}
    guilty, cases = [], 0
    for name in trial.arguments.required:
        texts = [text for text in _NONSENSE if trial.arguments.allows(name, text)]
        if _entity(trial, name) is not None or len(texts) < 2:
            continue
        picked = set()
        for text in texts:
            arguments = {**trial.samples[0].arguments, name: text}
            result = trial.call(arguments)
            cases += 1
            if result.succeeded and (found := keys & _texts(result.envelope["data"]) - _texts(arguments)):
                picked.add(frozenset(found))
        if len(picked) > 1:
            guilty.append(name)
    if not cases:
        return None
    return Finding(
        check="knows_nonsense",
        passed=not guilty,
        detail=f"picked rows by nonsense: {', '.join(guilty)}" if guilty else "nonsense picks no rows",
        cases=cases,
    )


SUBSTANCE: tuple[Check, ...] = (
    has_normal_call,
    has_typed_error,
    write_changes_rows,
    read_depends_on_rows,
    required_arguments_matter,
    some_argument_matters,
    options_matter,
    changes_have_reason,
    knows_dangling_ids,
    knows_nonsense,
    follows_rows,
)


_NONSENSE = ("qzxwvkq", "jjxqpwz", "vvkqzzx", "xq.jzw@vkq.example", "zz.qxv@jwk.example")


def _entity(trial: Trial, name: str) -> str | None:
    """The entity whose id an argument is."""
    word = semantic_of(trial.arguments.properties[name]) or ""
    return word.removeprefix("id:") if word.startswith("id:") else None


def _texts(value: object) -> set[str]:
    return {str(item) for item in scalars(value)}


def _influence(trial: Trial) -> Influence:
    return trial.shared(Influence)


def _described(effects: dict[str, Effect]) -> str:
    return ", ".join(f"{name} moves {_MOVES[effect.kind]}" for name, effect in effects.items())


_MOVES = {
    "changes": "the changes",
    "answer": "the answer",
    "refusal": "whether the call is refused",
    "none": "nothing",
    "untested": "nothing that could be tested",
}


def _reason(trial: Trial) -> str | None:
    if any(stored(sample) for sample in trial.samples):
        return "changed rows hold an argument's value"
    writing = [sample for sample in trial.samples if sample.result.changes]
    if all(addressed(sample, trial.world.vocabulary) for sample in writing):
        return "the changed row is one that the arguments name, describe or lead to"
    influence = _influence(trial)
    effects = [*influence.of_required.values(), *influence.of_optional.values()]
    by_rows = {path.removeprefix("changes/") for path in influence.varied_by_rows if path.startswith("changes/")}
    by_rows -= {path for path in by_rows if path.endswith("/created/id")}
    for sample in trial.samples:
        for effect in effects:
            for other in effect.others:
                moved = varying(changed(sample.result), changed(other.result))
                if any(path.endswith(("/updated/id", "/deleted/id")) for path in moved):
                    return "an argument selects the rows that change"
                if moved & by_rows:
                    return "an argument and the rows together decide the changes"
    if not effects:
        selecting = any(path.endswith(("/updated/id", "/deleted/id")) for path in by_rows)
        answering = by_rows and influence.varied_by_rows & answer(trial.samples[0]).keys()
        if selecting or answering:
            return "the rows decide the changes"
    return None
