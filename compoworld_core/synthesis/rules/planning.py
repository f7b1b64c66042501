"""Planning a service: entities gather their fields from the tools that make and change them, then lists find theirs.

The order matters. Creations are read first, because what they store is what an entity is; changes add what they set;
only then are the parameters of reading tools matched with the fields that there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from compoworld_core.specs.model import JsonObject, ServiceSpec
from compoworld_core.specs.semantics import infer_semantic
from compoworld_core.synthesis.rules import states
from compoworld_core.synthesis.rules.deciding import Decision, decide
from compoworld_core.synthesis.rules.filters import bind_filters
from compoworld_core.synthesis.rules.model import (
    EntityField,
    EntityModel,
    Filter,
    Operation,
    ServicePlan,
    Setting,
    Unwritable,
)
from compoworld_core.synthesis.rules.naming import CLASS_NAMES_IN_USE, quoted, service_class
from compoworld_core.synthesis.rules.nouns import Nouns, Words
from compoworld_core.synthesis.rules.reading import Parameter, read_service
from compoworld_core.synthesis.rules.types import TypeExpr, TypeWriter, Vocabulary, union
from compoworld_core.synthesis.rules.words import ALL_VALUES, CONTROL_NAMES, FLAG_VERBS, NAMING_ENDINGS, STATUS_NAMES

_ORDER = ("create", "update", "transition", "append", "delete", "detach", "get", "list", "count")


class Planner:
    """Plans one service."""

    def __init__(self, spec: ServiceSpec) -> None:
        self.spec = spec
        self.readings = read_service(spec)
        self.nouns = Nouns(self.readings)
        self.vocabulary = Vocabulary(taken=set(CLASS_NAMES_IN_USE))
        self.types = TypeWriter(self.vocabulary, _meaning)
        self.entities: dict[Words, EntityModel] = {}
        self.unwritable: dict[str, Unwritable] = {}

    def plan(self) -> ServicePlan:
        """The plan of the whole service."""
        decisions: list[Decision] = []
        for reading in self.readings:
            try:
                decisions.append(decide(reading, self.nouns))
            except Unwritable as reason:
                self.unwritable[reading.tool.name] = reason
        self._make_entities(decisions)
        operations = self._bind(decisions)
        self._drop_ineffective(operations)
        self._drop_unreachable(operations)
        used = {id(item.entity) for item in operations}
        used |= {id(entity) for item in operations for entity in item.references.values()}
        entities = [entity for entity in self.entities.values() if id(entity) in used]
        for entity in entities:
            _break_cycles(entity)
            self._complete(entity, operations)
        order = {reading.tool.name: at for at, reading in enumerate(self.readings)}
        operations.sort(key=lambda item: order[item.reading.tool.name])
        return ServicePlan(_referred_first(entities), operations, tuple(self.unwritable.items()))

    # Entities

    def _make_entities(self, decisions: Iterable[Decision]) -> None:
        name = service_class(self.spec.name)
        self.vocabulary.taken |= {name, f"{name}State"}
        for decision in decisions:
            for noun in (decision.entity, decision.parent):
                if noun is not None and noun not in self.entities:
                    self.entities[noun] = EntityModel(noun)
        for decision in decisions:
            entity = self.entities[decision.entity]
            entity.has_creation |= decision.kind == "create"
            for item in decision.reading.parameters:
                referred = self._referred(item, decision)
                if referred is not None and _is_number(item.schema):
                    referred.is_numeric = True
        for entity in self.entities.values():
            entity.settle_name(self.vocabulary.taken, self.spec.name)

    def _referred(self, item: Parameter, decision: Decision) -> EntityModel | None:
        """The entity that a parameter carries the id of: the tool's own, or another one."""
        if item == decision.key:
            return self.entities[decision.entity]
        if item.stem == () and decision.parent is not None:
            return self.entities[decision.parent] if item.words[-1:] in (("id",), ("uuid",)) else None
        noun = self.nouns.referred(item)
        entity = self.entities.get(noun) if noun is not None else None
        if entity is None or (entity.natural and entity.natural[0] == item.field):
            return None
        word = _meaning(item.wire, item.schema, entity.name)
        is_id = word is None or word.startswith("id:")
        return entity if is_id and _is_scalar_or_list(item.schema) and "enum" not in item.schema else None

    # Operations

    def _bind(self, decisions: list[Decision]) -> list[Operation]:
        for decision in decisions:
            self._find_naturals(decision)
        operations = []
        for kind in _ORDER:
            for decision in decisions:
                if decision.kind != kind:
                    continue
                try:
                    operations.append(self._operation(decision))
                except Unwritable as reason:
                    self.unwritable[decision.reading.tool.name] = reason
            if kind == "create":
                self._settle_given(operations)
        return operations

    def _settle_given(self, creations: list[Operation]) -> None:
        """A field is given where every creation of its entity requires it."""
        for entity in self.entities.values():
            own = [item for item in creations if item.entity is entity]
            required = [{setting.field for setting in item.settings if setting.parameter.is_required} for item in own]
            for field in entity.fields.values():
                field.is_given = bool(required) and all(field.name in names for names in required)
                if field.type.kind == "list" and not field.is_given:
                    field.default = "()"

    def _find_naturals(self, decision: Decision) -> None:
        """Note the field that identifies a row where tools read or delete by it alone."""
        if decision.key is not None or decision.kind not in ("get", "delete"):
            return
        entity = self.entities[decision.entity]
        own = [item for item in decision.reading.required if self._referred(item, decision) is None]
        is_telling = len(own) == 1 and _is_scalar(own[0].schema) and "enum" not in own[0].schema
        if is_telling and own[0].field not in entity.natural:
            entity.natural.append(own[0].field)

    def _operation(self, decision: Decision) -> Operation:
        entity = self.entities[decision.entity]
        operation = Operation(decision.reading, decision.kind, entity, decision.key)
        operation.parent = self.entities[decision.parent] if decision.parent else None
        for item in decision.reading.parameters:
            referred = self._referred(item, decision)
            if referred is not None:
                operation.references[item.name] = referred
            operation.types[item.name] = self._type(item, operation)
        if decision.kind == "create":
            self._bind_create(operation)
            self._find_parent(operation)
        elif decision.kind in ("list", "count"):
            bind_filters(operation, decision.modifiers, self)
        else:
            if decision.kind == "get":
                self._adopt(operation)
            self._bind_row(operation)
            if decision.kind in ("update", "transition"):
                self._bind_changes(operation)
                self._settle_states(operation)
        return operation

    def _adopt(self, operation: Operation) -> None:
        """Give a read without key, of a noun that no other tool speaks of, the entity that has all that it asks for.

        `get_current_version(application, environment)` reads the last deployment of the application.
        """
        entity, required = operation.entity, operation.reading.required
        if operation.key is not None or entity.has_creation or entity.fields or len(required) < 2:
            return
        for other in self.entities.values():
            if other.has_creation and all(item.field in other.fields for item in required):
                operation.entity, operation.is_latest = other, True
                return

    def _type(self, item: Parameter, operation: Operation) -> TypeExpr:
        referred = operation.references.get(item.name)
        owner = operation.entity.name
        if referred is None:
            return self.types.type_of(item.field, item.schema, operation.reading.definitions, owner)
        return reference_type(referred, is_list=item.schema.get("type") == "array", is_number=_is_number(item.schema))

    def _bind_create(self, operation: Operation) -> None:
        if operation.key is not None and operation.key.schema.get("type") == "array":
            raise Unwritable(f"it adds several rows of {operation.entity.label} at once")
        for item in operation.reading.parameters:
            if item == operation.key or (
                not item.is_required and item.field in CONTROL_NAMES and item.field != "language"
            ):
                continue
            operation.settings.append(Setting(item, self.add_field(operation, item, is_given=item.is_required)))

    def _find_parent(self, operation: Operation) -> None:
        """The one entity that a new row belongs to."""
        if operation.parent is None:
            places = {
                id(found): found
                for item in operation.reading.required
                if (found := operation.references.get(item.name))
            }
            others = [found for found in places.values() if found is not operation.entity]
            operation.parent = others[0] if len(others) == 1 else None

    def _bind_row(self, operation: Operation) -> None:
        """How the tool says which row it is about."""
        entity, key = operation.entity, operation.key
        if key is not None and key.schema.get("type") == "array":
            raise Unwritable(f"it changes several rows of {entity.label} at once")
        is_pure = operation.kind in ("get", "delete")
        if key is not None and is_pure:
            entity.scopes |= {item.field for item in operation.reading.required if item != key}
        for item in operation.reading.required:
            if item == key:
                continue
            is_natural = item.field in entity.natural or item.words[-1:] in NAMING_ENDINGS
            is_place = item.name in operation.references and operation.references[item.name] is not entity
            if is_pure or (item.field in entity.scopes) or (key is None and (is_natural or is_place)):
                operation.match.append(Setting(item, self.add_field(operation, item, is_given=True)))
        if key is None and not operation.match:
            raise Unwritable(f"nothing tells which {entity.label} it is about")

    def _bind_changes(self, operation: Operation) -> None:
        taken = {item.parameter.name for item in operation.match}
        verb = operation.reading.verb
        for item in operation.reading.parameters:
            if item == operation.key or item.name in taken or (not item.is_required and item.field in CONTROL_NAMES):
                continue
            operation.settings.append(Setting(item, self.add_field(operation, item, is_given=False)))
        if operation.kind == "update" and not operation.settings:
            if verb in FLAG_VERBS:
                operation.kind = "transition"
            else:
                raise Unwritable("it names no new value")
        if operation.kind == "transition" and operation.entity.status in {item.field for item in operation.settings}:
            operation.kind = "update"

    def add_field(self, operation: Operation, item: Parameter, *, is_given: bool, name: str = "") -> str:
        """Make sure that the entity has a field for a parameter's value; its name."""
        entity = operation.entity
        name = name or self._canonical(operation, item)
        made = operation.types[item.name]
        reference = operation.references.get(item.name)
        if made.kind == "integer" and reference is not None:
            made = reference_type(reference, is_list=False, is_number=False)
        known = entity.fields.get(name)
        if operation.kind in ("list", "count") and set(made.values) & set(ALL_VALUES):
            values = [value for value in made.values if value not in ALL_VALUES]
            made = self.types.type_of(name, {"enum": values} if values else {"type": "string"}, {}, entity.name)
        if known is None:
            given = is_given and (operation.kind == "create" or not entity.has_creation)
            known = entity.fields[name] = EntityField(name, made, is_given=given, reference=reference)
            known.is_made = operation.kind == "create"
        elif known.reference is None and reference is None:
            known.type = union(known.type, made, self.vocabulary, f"{entity.name} {name}")
        known.is_made |= operation.kind == "create"
        if made.kind == "list" and not known.is_given:
            known.default = "()"
        if name in STATUS_NAMES and made.values and made.kind == "text" and (entity.status in (None, name)):
            entity.status = name
            entity.states += [value for value in made.values if isinstance(value, str) and value not in entity.states]
        return name

    def _canonical(self, operation: Operation, item: Parameter) -> str:
        """A field's name: `new_` and the entity's own name in front of a known field are dropped."""
        name = self._short_name(operation.entity, item)
        if name == "id":
            name = f"{operation.parent.name}_id" if operation.parent else f"{operation.entity.name}_code"
        taken = {setting.field for setting in (*operation.settings, *operation.match)}
        return item.field if name in taken and item.field != "id" else name

    def _short_name(self, entity: EntityModel, item: Parameter) -> str:
        words = item.words
        for start in (("new",), ("updated",), ("target",)):
            if words[:1] == start and len(words) > 1:
                rest = "_".join(words[1:])
                if rest in entity.fields or start == ("new",):
                    return rest
        if words[: len(entity.noun)] == entity.noun and len(words) > len(entity.noun):
            rest = "_".join(words[len(entity.noun) :])
            if rest in entity.fields:
                return rest
        return item.field

    def _drop_ineffective(self, operations: list[Operation]) -> None:
        """A required argument that changes nothing would make the tool a sham."""
        for operation in list(operations):
            idle = [item.wire for item in operation.reading.required if item.name not in operation.used]
            if idle:
                operations.remove(operation)
                self.unwritable[operation.reading.tool.name] = Unwritable(f"nothing tells what {', '.join(idle)} does")

    def _drop_unreachable(self, operations: list[Operation]) -> None:
        """Rows that nobody can find or make are no use: an agent would have to guess what to ask for."""
        known = [item.entity for item in operations if item.kind == "create"]
        while True:
            more = [
                item.entity
                for item in operations
                if item.entity not in known
                and item.kind == "list"
                and all(_is_knowable(item, part, known) for part in item.filters)
            ]
            more += [
                field.reference
                for entity in known
                for field in entity.fields.values()
                if field.reference is not None and field.reference not in known
            ]
            if not more:
                break
            known += more
        for operation in list(operations):
            if operation.entity not in known:
                operations.remove(operation)
                reason = f"nothing in the service tells which {operation.entity.label} there are"
                self.unwritable[operation.reading.tool.name] = Unwritable(reason, is_external=True)

    # Finishing

    def _settle_states(self, operation: Operation) -> None:
        entity = operation.entity
        if operation.kind != "transition":
            return
        verb = operation.reading.verb
        words = operation.reading.name.object
        target = states.state_for(verb, entity.states)
        if verb in ("mark", "flag") and words:
            target = states.state_for(words[-1], entity.states) if words[-1] in entity.states else words[-1]
        if verb in FLAG_VERBS and target not in entity.states:
            operation.flag = FLAG_VERBS[verb]
            field = operation.flag[0]
            boolean = TypeExpr("boolean", "bool", "bool", {"type": "boolean"})
            entity.fields.setdefault(field, EntityField(field, boolean, default=str(not operation.flag[1])))
            return
        if entity.status is None:
            kept = entity.fields.get("status")
            entity.status = "status" if kept is None or kept.type.kind == "text" else "state"
        if target not in entity.states:
            entity.states.append(target)
        operation.target = target

    def _complete(self, entity: EntityModel, operations: list[Operation]) -> None:
        """Give the entity its states and, where nothing else says what a row is, a name and a description."""
        if entity.status is not None:
            self._complete_states(entity, [item for item in operations if entity in (item.entity, item.parent)])
        is_searched = any(part.test == "words" for item in operations if item.entity is entity for part in item.filters)
        if not entity.texts() and (is_searched or not entity.has_creation):
            for name, word, kept in (("name", "title", "Title"), ("description", "text", "Text")):
                type_ = TypeExpr("text", kept, kept, {"type": "string", "x-semantic": word})
                entity.fields.setdefault(name, EntityField(name, type_, is_given=not entity.has_creation))

    def _complete_states(self, entity: EntityModel, operations: list[Operation]) -> None:
        name = entity.status or "status"
        targets = {item.target for item in operations if item.target and item.entity is entity}
        made = [item.reading.tool.description for item in operations if item.kind == "create" and item.entity is entity]
        entity.initial = states.initial_state(entity, targets, made)
        if entity.initial not in entity.states:
            entity.states.insert(0, entity.initial)
        if len(entity.states) == 1:
            entity.states.append(states.opposite(entity.initial))
        known = entity.fields.get(name)
        if known is None or known.type.values:
            type_ = self.types.type_of(name, {"enum": entity.states}, {}, entity.name)
            known = entity.fields[name] = EntityField(name, type_, is_given=known.is_given if known else False)
        if known.type.kind == "text" and not known.is_given:
            known.default = quoted(entity.initial)
        for item in operations:
            if item.kind in ("transition", "update", "delete") or (item.kind == "create" and item.parent is entity):
                text = item.reading.tool.description
                item.requires, item.forbids = states.named_states(text, entity.states, item.target)


def reference_type(entity: EntityModel, *, is_list: bool, is_number: bool) -> TypeExpr:
    """The type of an id, or of a list of ids, of an entity."""
    sample: JsonObject = {"type": "string", "x-semantic": f"id:{entity.name}"}
    taken = entity.number_type if is_number else entity.id_type
    made = TypeExpr("integer" if is_number else "text", taken, entity.id_type, sample)
    if not is_list:
        return made
    return TypeExpr(
        "list", f"tuple[{taken}, ...]", f"tuple[{entity.id_type}, ...]", {"type": "array", "items": sample}, item=made
    )


def _meaning(name: str, schema: JsonObject, owner: str) -> str | None:
    word = infer_semantic(name, schema, owner)
    return None if word in ("json", "list", "offset", f"id:{owner}") else word


def _referred_first(entities: list[EntityModel]) -> list[EntityModel]:
    """Entities such that each stands after those that it refers to, as far as they do not refer to each other."""
    done: list[EntityModel] = []
    todo = list(entities)
    while todo:
        ready = next((item for item in todo if not _awaits(item, todo)), todo[0])
        todo.remove(ready)
        done.append(ready)
    return done


def _break_cycles(entity: EntityModel) -> None:
    """A row that needs a row that needs the first could never be the first of its table."""
    for field in entity.fields.values():
        if field.is_given and field.reference is not None and _needs(field.reference, entity, set()):
            field.is_given = False


def _needs(entity: EntityModel, other: EntityModel, seen: set[int]) -> bool:
    if entity is other:
        return True
    seen.add(id(entity))
    given = [field.reference for field in entity.fields.values() if field.is_given and field.reference is not None]
    return any(id(item) not in seen and _needs(item, other, seen) for item in given)


def _is_knowable(operation: Operation, item: Filter, known: list[EntityModel]) -> bool:
    """Whether somebody outside the service can think of a value for a filter."""
    type_ = operation.types[item.parameter.name]
    if not item.parameter.is_required or item.test in ("words", "hides", "at_least", "at_most"):
        return True
    referred = operation.references.get(item.parameter.name)
    if referred is not None:
        return referred in known
    word = type_.word or ""
    return bool(type_.values) or type_.kind in ("boolean", "day", "moment") or bool(word and not word.startswith("id:"))


def _awaits(entity: EntityModel, todo: list[EntityModel]) -> bool:
    return any(item.reference in todo and item.reference is not entity for item in entity.fields.values())


def _is_number(schema: JsonObject) -> bool:
    kinds = {schema.get("type")} if isinstance(schema.get("type"), str) else set(schema.get("type") or ())
    for key in ("anyOf", "oneOf"):
        kinds |= {part.get("type") for part in schema.get(key, ()) if isinstance(part, dict)}
    if kinds == {"array"}:
        items = schema.get("items")
        return isinstance(items, dict) and _is_number(items)
    return bool(kinds - {"null"}) and kinds <= {"integer", "number", "null"}


def _is_scalar(schema: JsonObject) -> bool:
    if "anyOf" in schema or "oneOf" in schema:
        parts = [part for key in ("anyOf", "oneOf") for part in schema.get(key, ()) if isinstance(part, dict)]
        kinds = {str(part.get("type")) for part in parts} - {"null"}
        return len(kinds) == 1 and kinds <= {"string", "integer", "number"}
    kinds_ = schema.get("type")
    kinds = {kinds_} if isinstance(kinds_, str) else set(kinds_ or ("string",))
    return len(kinds - {"null"}) == 1 and kinds <= {"string", "integer", "number", "null"}


def _is_scalar_or_list(schema: JsonObject) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items")
        return isinstance(items, dict) and _is_scalar(items)
    return _is_scalar(schema)
