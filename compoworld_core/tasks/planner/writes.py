"""Writes: put what was learnt to use, by creating a row or changing one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.planner.lookup import Key, find_row, keys_for, read_row
from compoworld_core.tasks.planner.matching import (
    NAMING,
    fits,
    is_choice,
    is_long_text,
    is_plain_text,
    is_title,
    kinds,
    label,
    noun,
)
from compoworld_core.tasks.planner.plan import Known, Plan, Written

_MOST_IN_TEXT = 3
_HEADINGS = (
    "Action needed",
    "As agreed",
    "Confirmation",
    "Decision",
    "Follow-up",
    "For your review",
    "Next steps",
    "Outcome",
    "Please note",
    "Update",
)


def _parameters(plan: Plan, service: str, writing: Writing) -> Mapping[str, Any]:
    return plan.affordances[service].tools[writing.tool].parameters.get("properties", {})  # type: ignore[no-any-return]


@dataclass
class _Filling:
    """Arguments of a write, with what they came from."""

    arguments: dict[str, Any]
    used: list[Known]
    mentions: list[tuple[str, Known]]
    phrases: list[str]
    free: list[str]


def _fill(
    plan: Plan, service: str, writing: Writing, links: Mapping[str, Any], target: str | None = None
) -> _Filling | None:
    """Arguments for a write: known values where they fit, else literals that the instruction states.

    Args:
        target: The row that is changed; its own values are no news to it.
    """
    filling = _Filling(dict(links), [], [], [], [])
    properties = _parameters(plan, service, writing)
    fresh = plan.drawing.fresh()
    order = sorted(properties, key=lambda name: (name not in writing.required, is_long_text(properties[name])))
    optional_left = 1
    for name in order:
        part = properties[name]
        if name in filling.arguments or name == writing.key:
            continue
        is_required = name in writing.required
        if name in writing.links:
            if is_required:
                return None
            continue
        if not is_required and (name not in writing.copies or not optional_left):
            continue
        known = _matching(plan, service, part, filling.used, target) if name in writing.copies else None
        if known is not None:
            filling.arguments[name] = _shaped(part, known.binding)
            filling.used.append(known)
            filling.phrases.append(f"{label(name)} {known.phrase}")
            optional_left -= not is_required
        elif name in writing.copies and is_title(part):
            _fill_title(plan, name, filling, (service, target))
            optional_left -= not is_required
        elif name in writing.copies and is_plain_text(part) and semantic_of(part) in (None, "text"):
            _fill_text(plan, name, filling, (service, target), required=is_required)
        elif is_required:
            try:
                value = fresh.value(name, part)
            except ValueError:
                return None
            if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
                return None
            filling.arguments[name] = value
            filling.phrases.append(f"{label(name)} {_spoken(value)}")
    return filling


def _matching(plan: Plan, service: str, part: Any, used: list[Known], target: str | None) -> Known | None:
    item = part.get("items", part) if kinds(part) == {"array"} else part
    candidates = [
        known
        for known in _usable(plan, used, (service, target))
        if fits(known.semantic, item) and (known.service != service or not plan.uses[known.name])
    ]
    candidates.sort(key=lambda known: (plan.uses[known.name], known.service == service))
    best = [known for known in candidates if plan.uses[known.name] == plan.uses[candidates[0].name]]
    return plan.rng.choice(best) if best else None


def _usable(plan: Plan, used: list[Known], target: tuple[str, str | None]) -> list[Known]:
    """Values that may go into a write to the target row, apart from those it already has."""
    return [
        known
        for known in plan.usable()
        if not known.is_id and known not in used and (known.service, known.row) != target
    ]


def _shaped(part: Mapping[str, Any], binding: Any) -> Any:
    return [binding] if kinds(part) == {"array"} else binding


def _fill_title(plan: Plan, name: str, filling: _Filling, target: tuple[str, str | None]) -> None:
    """A heading, named after something where there is something."""
    heading = plan.rng.choice(_HEADINGS)
    named = [
        known for known in _usable(plan, filling.used, target) if known.semantic in NAMING and not plan.uses[known.name]
    ]
    if not named:
        filling.arguments[name] = f"{heading} {plan.rng.randint(12, 98)}"
        filling.phrases.append(f"{label(name)} {_spoken(filling.arguments[name])}")
        return
    known = plan.rng.choice(named)
    filling.arguments[name] = {"$text": [f"{heading}: ", known.binding]}
    filling.used.append(known)
    filling.phrases.append(f'{label(name)} "{heading}: …", ending with {known.phrase}')


def _fill_text(plan: Plan, name: str, filling: _Filling, target: tuple[str, str | None], *, required: bool) -> None:
    """Compose a text from values that nothing else uses yet."""
    waiting = [known for known in _usable(plan, filling.used, target) if not plan.uses[known.name]]
    chosen = plan.rng.sample(waiting, min(plan.rng.randint(1, _MOST_IN_TEXT), len(waiting)))
    if not chosen and not required:
        return
    parts: list[Any] = []
    for known in chosen:
        lead = "\n" if parts else ""
        parts += [f"{lead}{known.phrase[0].upper()}{known.phrase[1:]}: ", known.binding]
    filling.arguments[name] = {"$text": parts} if parts else "For your information."
    filling.used += chosen
    filling.mentions += [(name, known) for known in chosen]
    if chosen:
        called = label(name)
        text = f"{called} that state" if called.endswith("s") else f"{_article(called)} that states"
        filling.phrases.append(f"{text} {_listed([known.phrase for known in chosen])}")
    else:
        filling.phrases.append(f"{_article(label(name))} of your own")
        filling.free.append(name)


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _listed(phrases: list[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _spoken(value: Any) -> str:
    if isinstance(value, list):
        return _listed([_spoken(item) for item in value]) if value else "none"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _commit_write(plan: Plan, service: str, writing: Writing, filling: _Filling, target: str | None) -> Written | None:
    made = plan.call(service, writing.tool, filling.arguments, "write", _earlier_on(plan, service, target))
    if made is None:
        return None
    step, changes = made
    main = [
        change
        for change in changes
        if change.table.name == writing.table
        and (change.before is None if writing.change == "created" else change.key == target)
    ]
    if len(main) != 1:
        return None
    entity = noun(plan.schema(service, writing.table).entity)
    texts = {*(name for name, _ in filling.mentions), *filling.free}
    fields = [field for name, field in writing.copies.items() if name in filling.arguments and name not in texts]
    if writing.change == "updated":
        before, now = main[0].before_row or {}, main[0].after_row or {}
        fields = [*(f for f in fields if before.get(f) != now.get(f)), *(f for f in writing.sets if f in now)]
        if not fields and not texts:
            return None
    written = Written(
        service=service,
        table=writing.table,
        row=main[0].key,
        step=step.id,
        change=writing.change,
        fields=tuple(dict.fromkeys(fields)),
        mentions=tuple((writing.copies[name], known) for name, known in filling.mentions),
        noun=entity,
    )
    plan.uses.update(known.name for known in filling.used)
    plan.stale |= {
        known.name
        for known in plan.known
        if (known.service, known.row) == (service, written.row) and known.field in written.fields
    }
    plan.written.append(written)
    if writing.id_path is not None and writing.change == "created":
        _learn_id(plan, service, writing, step.id, main[0].key, entity)
    return written


def _earlier_on(plan: Plan, service: str, row: str | None) -> tuple[str, ...]:
    """Steps that read or wrote a row, and so must come before the next write to it."""
    read = [item.step for item in plan.found if (item.service, item.row) == (service, row)]
    written = [item.step for item in plan.written if (item.service, item.row) == (service, row)]
    return tuple(dict.fromkeys([*read, *written]))


def _learn_id(plan: Plan, service: str, writing: Writing, step: str, key: str, entity: str) -> None:
    others = [row["id"] for row in plan.rows(service, writing.table) if row["id"] != key]
    schema = plan.schema(service, writing.table)
    plan.known.append(
        Known(
            name=plan.name(f"new {entity}", "id", {"$ref": f"{step}.{writing.id_path}"}),
            value=key,
            decoy=others[0] if others else f"{key}0",
            semantic=schema.semantics.get("id"),
            schema=schema.row["properties"]["id"],
            phrase=f"the id of the new {entity}",
            step=step,
            service=service,
            table=writing.table,
            row=key,
            field="id",
            is_new=True,
        )
    )


def _linked_ids(plan: Plan, service: str, writing: Writing) -> dict[str, Any] | None:
    """Ids for the required links of a write: rows that were looked up or created in this service."""
    links: dict[str, Any] = {}
    for name, entity in writing.links.items():
        known = next(
            (item for item in reversed(plan.known) if item.service == service and item.semantic == f"id:{entity}"), None
        )
        if known is not None and (name in writing.required):
            links[name] = known.binding
            plan.uses[known.name] += 1
        elif name in writing.required:
            return None
    return links


@dataclass(frozen=True)
class Create:
    """Create a row from what was learnt elsewhere."""

    letter = "C"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Writings that create rows, in random order."""
        if not plan.known:
            return []
        found = [
            item
            for item in plan.affordances[service].writings
            if item.change == "created"
            and item.copies
            and all(name in item.copies for name in item.links if name in item.required)
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Writing) -> bool:
        """Add the creation, after looking up the rows that it must refer to."""
        clauses = len(plan.clauses)
        links = _resolve_links(plan, service, attempt)
        if links is None:
            return False
        filling = _fill(plan, service, attempt, links)
        if filling is None or not any(known.service != service or not plan.uses[known.name] for known in filling.used):
            return False
        written = _commit_write(plan, service, attempt, filling, None)
        if written is None:
            return False
        what = _article(written.noun)
        details = f" with {_listed(filling.phrases)}" if filling.phrases else ""
        linked = " for it" if len(plan.clauses) > clauses or links else ""
        plan.clauses.append(f"Create {what}{linked} in {plan.place(service)}{details}.")
        return True


def _resolve_links(plan: Plan, service: str, writing: Writing) -> dict[str, Any] | None:
    """Ids for required links, found by known values where no earlier step of this service has them."""
    links = _linked_ids(plan, service, writing)
    if links is not None:
        return links
    for name, entity in writing.links.items():
        if name not in writing.required or any(
            item.service == service and item.semantic == f"id:{entity}" for item in plan.known
        ):
            continue
        if not _look_up(plan, service, entity, {}):
            return None
    return _linked_ids(plan, service, writing)


def _look_up(plan: Plan, service: str, entity: str, needs: Mapping[str, Any]) -> Known | None:
    """Find a row of an entity by a known value; returns its id."""
    options: list[Any] = []
    for reading in plan.affordances[service].readings:
        schema = plan.schema(service, reading.table)
        if (
            schema.entity != entity
            or len(reading.by) > 1
            or "id" not in reading.shows
            or not (reading.by or reading.many)
        ):
            continue
        for name in list(reading.by.values()) or sorted(reading.shows):
            part = schema.row["properties"].get(name)
            if name != "id" and part is not None and name in reading.shows:
                options += [(reading, name, key) for key in keys_for(plan, service, name, part)]
    plan.rng.shuffle(options)
    options.sort(key=lambda item: (plan.uses[item[2].known.name], not item[0].by))
    for reading, name, key in options[:6]:
        branch = plan.branch()
        known = _try_look_up(branch, service, reading, name, key, needs)
        if known is not None:
            plan.adopt(branch)
            return known
    return None


def _try_look_up(plan: Plan, service: str, reading: Any, name: str, key: Key, needs: Mapping[str, Any]) -> Known | None:
    matching = [row for row in plan.rows(service, reading.table) if row.get(name) == key.value]
    if not matching and needs:
        row = plan.clone_row(service, reading.table, {name: key.value, **needs})
    else:
        row = find_row(plan, service, reading, name, key)
    if row is None or any(row.get(field) != value for field, value in needs.items()):
        return None
    found = read_row(plan, service, reading, name, key, row)
    if found is None:
        return None
    plan.clauses.append(f"In {plan.place(service)}, find the {found.noun} {key.clue}.")
    plan.capabilities.add("join")
    return next((known for known in found.known if known.field == "id"), None)


@dataclass(frozen=True)
class Change:
    """Change a row that is found by something learnt elsewhere."""

    letter = "U"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Writings that change rows, in random order."""
        if not plan.known:
            return []
        found = [
            item
            for item in plan.affordances[service].writings
            if item.change == "updated" and item.key is not None and (item.copies or item.sets)
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Writing) -> bool:
        """Look the row up and change it."""
        entity = plan.schema(service, attempt.table).entity
        target = _look_up(plan, service, entity, attempt.needs)
        if target is None or attempt.key is None:
            return False
        plan.uses[target.name] += 1
        filling = _fill(plan, service, attempt, {attempt.key: target.binding}, target.row)
        if filling is None:
            return False
        filling = _with_choice(plan, service, attempt, filling)
        written = _commit_write(plan, service, attempt, filling, target.value)
        if written is None:
            return False
        effects = [_effect(name, value) for name, value in attempt.sets.items() if name in written.fields]
        if filling.phrases and not effects:
            plan.clauses.append(f"Give that {written.noun} {_listed(filling.phrases)}.")
        elif effects:
            details = f", with {_listed(filling.phrases)}" if filling.phrases else ""
            plan.clauses.append(f"Then {_listed(effects)}{details}.")
        return bool(effects or filling.phrases)


def _effect(name: str, value: Any) -> str:
    """How to ask for a field to have a value: `mark it as primary`, `set its status to "closed"`."""
    if isinstance(value, bool):
        return f"mark it as {'' if value else 'not '}{label(name.removeprefix('is_'))}"
    return f"set its {label(name)} to {_spoken(value)}"


def _with_choice(plan: Plan, service: str, writing: Writing, filling: _Filling) -> _Filling:
    """Where nothing else would change, choose a value for an optional choice and state it."""
    if any(name in writing.copies for name in filling.arguments) or writing.sets:
        return filling
    properties = _parameters(plan, service, writing)
    for name in writing.copies:
        if name not in filling.arguments and (is_choice(properties[name]) or semantic_of(properties[name]) is not None):
            try:
                value = plan.drawing.fresh().value(name, properties[name])
            except ValueError:
                continue
            if value is not None and not isinstance(value, dict | list):
                filling.arguments[name] = value
                filling.phrases.append(f"{label(name)} {_spoken(value)}")
                break
    return filling
