"""Whatever an author hands in is answered; only a sound task is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.agent.workbench import AUTHOR_TOOLS, Workbench
from compoworld_core.tasks.bindings import binding_operator
from compoworld_core.tasks.play import play
from compoworld_core.tasks.rubric import verify
from compoworld_core.tasks.task import Solution
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import World, open_world
from tests.tasks.agent.crafted import asked, bench_for, submission
from tests.tasks.crafted import account, step

Spoil = Callable[[World], JsonObject]


@pytest.fixture
def bench(world: World, library: Catalogue) -> Workbench:
    return bench_for(world, library)


def file_of(world: World) -> JsonObject:
    return next(row for row in world.rows("drive", "files") if row.get("content"))


def planted(world: World, **changed: Any) -> JsonObject:
    values = {name: value for name, value in account(world).items() if name != "id"}
    name = f"{values['name']} Holding"
    unique = {"name": name, "billing_id": "CUST-99999"} if "billing_id" in values else {"name": name}
    return {"do": {"op": "insert", "service": "crm", "table": "accounts", "values": {**values, **unique, **changed}}}


def test_a_sound_task_is_accepted_with_what_follows_from_it(bench: Workbench, world: World) -> None:
    answer = asked(bench, "submit", submission(world))

    task = bench.accepted
    assert answer == {"success": True, "data": {"accepted": True, "information_edges": 4}}
    assert task is not None
    assert (task.author, task.walk, task.core) == ("agent", ("crm", "mail", "crm"), ("crm", "mail"))
    assert [step.effect for step in task.solution.steps] == ["read", "write", "write"]
    assert task.capabilities == ()
    assert task.shape == "plain-2"


def test_what_the_solution_leaves_alone_must_stay_as_it_is(bench: Workbench, world: World, library: Catalogue) -> None:
    asked(bench, "submit", submission(world))
    task = bench.accepted
    assert task is not None
    further = step("s9", "crm", "log_activity", write=True, account_id=account(world)["id"], kind="note", subject="Hm")
    mailed = step("s9", "mail", "send_message", write=True, to=["x@example.org"], subject="Hm", body="Hm")

    for extra in (further, mailed):
        steps = (*task.solution.steps, extra)
        played = play(
            Solution(values=task.solution.values, steps=steps, answer=task.solution.answer),
            open_world(task.recipe, library),
        )
        verdict = verify(task.rubric, played.world, played.answer)
        assert not played.refused
        assert [name.split("_")[0] for name in verdict.failed] == ["guard"]


def vacuous(world: World) -> JsonObject:
    quiet = {"kind": "unchanged", "service": "crm", "table": "deals"}
    return submission(world, criteria=[{"id": "fine", "description": "fine", "condition": quiet}])


def answer_only(world: World) -> JsonObject:
    """The rubric tests what the answer says, and not what was done."""
    whole = submission(world)
    return {**whole, "criteria": whole["criteria"][2:]}


def unwitnessed(world: World) -> JsonObject:
    """A message of literals alone, which nothing tests."""
    sent = {"to": ["x@example.org"], "subject": "Account review", "body": "Reviewed."}
    base = submission(world, solution__steps__1__arguments=sent)
    return {**base, "criteria": base["criteria"][1:]}


def never_reads(world: World) -> JsonObject:
    """All that it needs to know stands in the solution."""
    noted = {"account_id": account(world)["id"], "kind": "note", "subject": "Review sent"}
    sent = {"to": ["x@example.org"], "subject": "Account review", "body": "Reviewed."}
    steps = [
        {"id": "s1", "tool": "send_message", "arguments": sent},
        {"id": "s2", "tool": "log_activity", "arguments": noted},
    ]
    wanted = {"kind": "rows", "service": "mail", "table": "messages", "change": "created"}
    criteria = [{"id": "sent", "description": "sent", "condition": wanted}]
    return submission(world, solution__steps=steps, solution__answer=[], solution__values={}, criteria=criteria)


def leaking(world: World) -> JsonObject:
    return submission(world, instruction=f"{submission(world)['instruction']} Its id is {account(world)['id']}.")


def elsewhere(world: World) -> JsonObject:
    whole = submission(world)
    return {**whole, "solution": {**whole["solution"], "steps": whole["solution"]["steps"][:1], "answer": []}}


def bad_plant(world: World) -> JsonObject:
    return submission(world, plants=[planted(world, tier="platinum-plus")])


def unstated_fact(world: World) -> JsonObject:
    return submission(world, plants=[{**planted(world), "facts": {"rate": "0.35"}}])


def idle_reaction(world: World) -> JsonObject:
    """The world is to move once a case is opened, which the solution never does."""
    when = {"kind": "rows", "service": "crm", "table": "cases", "change": "created"}
    update = {"op": "update", "service": "crm", "table": "accounts", "key": account(world)["id"], "values": {}}
    tier = next(row["tier"] for row in world.rows("crm", "accounts") if row["tier"] != account(world)["tier"])
    return submission(world, reactions=[{"when": when, "apply": [{**update, "values": {"tier": tier}}]}])


def no_temptation(world: World) -> JsonObject:
    call = {"account_id": "acc_none", "kind": "note", "subject": "Review sent"}
    tempting = {"reason": "near_miss", "tool": "log_activity", "arguments": call, "after": "s2"}
    return submission(world, solution__temptations=[tempting])


def harmless_temptation(world: World) -> JsonObject:
    """It replaces a step by the very same call."""
    step = submission(world)["solution"]["steps"][2]
    tempting = {
        "reason": "near_miss",
        "tool": step["tool"],
        "arguments": step["arguments"],
        "after": "s3",
        "replaces": "s3",
    }
    return submission(world, solution__temptations=[tempting])


def secret(world: World) -> JsonObject:
    whole = submission(world, solution__steps__1__arguments__subject="Account review (Project Halcyon)")
    whole["criteria"][0]["condition"]["where"][1]["value"] = "Project Halcyon"
    return whole


@pytest.mark.parametrize(
    ("spoil", "gate"),
    [
        (vacuous, "no_op"),
        (answer_only, "unwitnessed"),
        (unwitnessed, "unwitnessed"),
        (never_reads, "named_id"),
        (leaking, "leak"),
        (elsewhere, "walk"),
        (bad_plant, "plants"),
        (unstated_fact, "unstated"),
        (idle_reaction, "reaction"),
        (no_temptation, "temptation"),
        (harmless_temptation, "temptation"),
        (secret, "unknowable"),
    ],
)
def test_an_unsound_task_is_refused_by_a_gate_with_advice(
    spoil: Spoil, gate: str, bench: Workbench, world: World
) -> None:
    answer = asked(bench, "submit", spoil(world))

    assert (answer["success"], answer.get("gate")) == (False, gate), answer
    assert answer["advice"]
    assert answer["submissions_left"] == 9
    assert bench.accepted is None


def test_a_refused_task_can_be_repaired(bench: Workbench, world: World) -> None:
    asked(bench, "submit", leaking(world))
    asked(bench, "submit", submission(world))

    assert [item.gate for item in bench.refused] == ["leak"]
    assert bench.accepted is not None


def test_no_more_submissions_are_looked_at_than_allowed(world: World, library: Catalogue) -> None:
    bench = bench_for(world, library, submissions=1)
    asked(bench, "submit", leaking(world))

    answer = asked(bench, "submit", submission(world))

    assert answer["error"]["code"] == "limit_exceeded"
    assert bench.accepted is None


def doubling(count: int) -> JsonObject:
    """Each value is twice the one before: small to write, endless to evaluate."""
    pairs = {f"v{n}": {"$text": [{"$value": f"v{n - 1}"}] * 2} for n in range(1, count)}
    return {"v0": "ha", "account.id": {"$ref": "s1.data.items.0.id"}, **pairs}


LOOKUP = "solution.steps.0.arguments.name"


@pytest.mark.parametrize(
    ("path", "value", "place", "reason"),
    [
        ("instruction", "x" * 5000, "instruction", "at most 4000"),
        ("criteria", [], "criteria", "at least 1"),
        ("verdict", "passed", "verdict", "not permitted"),
        ("solution__steps__0__effect", "read", "solution.steps.0.effect", "not permitted"),
        ("solution__steps__0__tool", "find_all", "solution.steps.0.tool", "no tool is named"),
        ("solution__steps__0__tool", "get_document", "solution.steps.0.tool", "belongs to drive"),
        ("solution__steps__1__id", "s1", "solution.steps", "2 times"),
        ("solution__steps__0__after", ["s2"], "solution.steps.0.after", "no earlier step"),
        ("solution__steps__0__arguments__name", {"$ref": "s3.data.id"}, f"{LOOKUP}.$ref", "no step whose answer"),
        ("solution__steps__0__arguments__name", {"$value": "account.id"}, "solution.steps.0.arguments", "before it is"),
        ("solution__steps__0__arguments__name", {"$value": "nothing"}, f"{LOOKUP}.$value", "has no 'nothing'"),
        ("solution__steps__0__arguments__name", {"$eval": "1+1"}, LOOKUP, "$eval is no binding"),
        ("solution__steps__0__arguments__name", {"$ref": "s1", "x": 1}, LOOKUP, "only key"),
        ("solution__steps__1__arguments__body", {"$pick": "s1"}, "solution.steps.1.arguments.body.$pick", "dictionary"),
        ("solution__steps__1__arguments__body", {"$add": ["1"]}, "solution.steps.1.arguments.body.$add", "at least 2"),
        (
            "solution__steps__1__arguments__body",
            {"$round": ["1", "9"]},
            "solution.steps.1.arguments.body.$round",
            "pla",
        ),
        ("solution__values__account.id", {"$value": "account.id"}, "solution.values.account.id", "refers to itself"),
        ("solution__values", doubling(30), "solution.values.v10", "more than 400 parts"),
        ("criteria__0__condition__table", "letters", "criteria.0.condition.table", "has no table 'letters'"),
        ("criteria__0__condition__service", "post", "criteria.0.condition.service", "no service 'post'"),
        ("criteria__0__condition__where__0__field", "addressee", "criteria.0.condition.where.0.field", "no field"),
        ("criteria__0__condition__kind", "always", "criteria.0.condition", "tag"),
        ("criteria__1__id", "message", "criteria", "2 times"),
    ],
)
def test_what_is_not_in_order_is_said_with_its_place(
    path: str, value: Any, place: str, reason: str, bench: Workbench, world: World
) -> None:
    answer = asked(bench, "submit", submission(world, **{path: value}))

    assert answer["error"]["code"] == "invalid_arguments"
    told = [line for line in answer["error"]["message"].splitlines() if line.startswith(f"- {place}")]
    assert any(reason in line for line in told), answer["error"]["message"]
    assert [item.gate for item in bench.refused] == ["invalid"]


@pytest.mark.parametrize(
    ("key", "is_fine"), [("acc_4711", True), ("acc_the_right_one", False), ("4711", False), (4711, False)]
)
def test_ids_of_planted_rows_tell_nothing(key: object, is_fine: bool, bench: Workbench, world: World) -> None:
    answer = asked(bench, "set_scene", {"plants": [planted(world, id=key)]})

    assert answer["success"] is is_fine, answer
    assert is_fine or "plants.0.do.values.id" in answer["error"]["message"]


def test_references_within_references_are_bounded(bench: Workbench, world: World) -> None:
    reference: JsonObject = {"service": "crm", "table": "accounts", "where": [], "field": "id"}
    for _ in range(5):
        reference = {**reference, "where": [{"field": "id", "row": reference}]}
    whole = submission(world)
    whole["criteria"][1]["condition"]["where"].append({"field": "account_id", "row": reference})

    answer = asked(bench, "submit", whole)

    assert "a reference within a reference has to be to changed rows" in answer["error"]["message"]


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} {"b": 2}', "[]", '{"a": 1, "a": 2}', "null", "{" * 5000])
def test_arguments_that_are_no_object_are_answered_and_never_guessed(text: str, bench: Workbench) -> None:
    answer = asked(bench, "submit", text)

    assert answer["error"]["code"] == "invalid_arguments"
    assert bench.refused == []


def test_huge_submissions_are_not_even_read(bench: Workbench, world: World) -> None:
    answer = asked(bench, "submit", {**submission(world), "plants": "x" * 200_000})

    assert answer["error"]["code"] == "limit_exceeded"


def test_exploring_keeps_what_it_does_until_the_scene_is_set_anew(bench: Workbench, world: World) -> None:
    note = {"account_id": account(world)["id"], "kind": "note", "subject": "Only a try"}
    call = {"tool_name": "log_activity", "arguments": note}

    first = asked(bench, "call_tool", call)["data"]["id"]
    second = asked(bench, "call_tool", call)["data"]["id"]
    asked(bench, "set_scene", {})
    again = asked(bench, "call_tool", call)["data"]["id"]

    assert first == again != second


def test_exploring_leaves_probes_and_submissions_alone(bench: Workbench, world: World) -> None:
    note = {"account_id": account(world)["id"], "kind": "note", "subject": "Review sent"}
    asked(bench, "call_tool", {"tool_name": "log_activity", "arguments": note})

    assert asked(bench, "submit", submission(world))["success"]


def test_a_probe_shows_what_its_steps_came_to(bench: Workbench, world: World) -> None:
    whole = submission(world)
    lost = {"label": "Colour", "value": {"$ref": "s1.data.items.0.colour"}}
    whole["solution"]["answer"].append(lost)

    shown = asked(bench, "probe", {"solution": whole["solution"]})["data"]

    assert shown["refused"] == []
    assert [item["arguments"] for item in shown["steps"]][2]["account_id"] == account(world)["id"]
    assert [item["label"] for item in shown["answer"] if item["value"] is None] == ["Colour"]
    assert "nothing at s1.data.items.0.colour" in shown["answer"][2]["problem"]
    assert {(item["service"], item["table"]) for item in shown["changes"]} >= {("crm", "activities")}


def test_tables_are_shown_with_their_meanings_and_rows(bench: Workbench, world: World) -> None:
    accounts = asked(bench, "show_tables", {"service": "crm"})["data"]["accounts"]

    assert accounts["fields"]["owner_email"]["x-semantic"] == "email"
    assert accounts["samples"][0] == account(world)


def test_an_unknown_tool_is_answered_with_those_there_are(bench: Workbench) -> None:
    message = asked(bench, "accept_my_task", {})["error"]["message"]

    assert all(tool["function"]["name"] in message for tool in AUTHOR_TOOLS)


_NAMES = st.sampled_from(["$value", "$ref", "$pick", "$sum", "$fact", "$text", "$add", "$mul", "$round", "$shift"])
_LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["s1", "s1.data", "a", "1e999999999", ""])
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES, inner, min_size=1, max_size=1)
        | st.dictionaries(st.sampled_from(["from", "where", "take", "step", "name", "on"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=_VALUES)
def test_any_value_whatever_is_answered(value: Any, bench: Workbench, world: World) -> None:
    whole = submission(world, solution__steps__1__arguments__body=value)

    answer = asked(bench, "probe", {"solution": whole["solution"]})

    assert answer["success"] or answer["error"]["code"] in ("invalid_arguments", "failed_precondition")
    assert not answer["success"] or not _has_binding(answer["data"]["steps"][1]["arguments"])


def _has_binding(value: Any) -> bool:
    if binding_operator(value) is not None:
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_binding, items))
