"""What drafted services do when they run."""

from __future__ import annotations

import random

import pytest

from compoworld_core.services.running import RunningService
from compoworld_core.services.universe import Universe
from tests.synthesis.rules.drafts import NUMBER, START, TEXT, code, data, optional, service, start, tool

STATUS = {"type": "string", "enum": ["draft", "submitted", "approved", "rejected"]}
DAY = {"type": "string", "format": "date"}
EMAIL = {"type": "string", "format": "email"}


@pytest.fixture
def claims() -> RunningService:
    return start(
        service(
            tool(
                "create_claim",
                "Open a draft claim.",
                title=TEXT,
                owner_email=EMAIL,
                amount=optional({"type": "number"}),
            ),
            tool("get_claim", claim_id=TEXT),
            tool("update_claim", claim_id=TEXT, title=optional(TEXT), amount=optional({"type": "number"})),
            tool("delete_claim", claim_id=TEXT),
            tool("submit_claim", "Hand in a draft claim.", claim_id=TEXT),
            tool("approve_claim", "Approve a submitted claim.", claim_id=TEXT, approver_email=EMAIL),
            tool(
                "list_claims",
                status=optional(STATUS),
                owner_email=optional(EMAIL),
                limit=optional(NUMBER),
                cursor=optional(TEXT),
            ),
            tool("search_claims", query=TEXT),
            tool("add_claim_item", "Add a receipt to a draft claim.", claim_id=TEXT, spent_on=DAY, note=TEXT),
            tool("list_claim_items", claim_id=TEXT, from_date=optional(DAY), to_date=optional(DAY)),
            tool("count_claims", "Count claims by status."),
        )
    )


def make(claims: RunningService, title: str = "Taxi", owner: str = "a@x.example") -> str:
    return str(data(claims, "create_claim", title=title, owner_email=owner)["id"])


def test_created_row_can_be_read_changed_and_deleted_once(claims: RunningService) -> None:
    key = make(claims)
    assert data(claims, "get_claim", claim_id=key)["status"] == "draft"
    changed = data(claims, "update_claim", claim_id=key, amount=12.5)
    assert (changed["amount"], changed["title"]) == ("12.50", "Taxi")
    data(claims, "delete_claim", claim_id=key)
    assert code(claims, "get_claim", claim_id=key) == "not_found"
    assert code(claims, "delete_claim", claim_id=key) == "not_found"


def test_transitions_start_from_the_state_that_the_description_names(claims: RunningService) -> None:
    key = make(claims)
    assert code(claims, "approve_claim", claim_id=key, approver_email="b@x.example") == "failed_precondition"
    data(claims, "submit_claim", claim_id=key)
    assert code(claims, "submit_claim", claim_id=key) == "failed_precondition"
    approved = data(claims, "approve_claim", claim_id=key, approver_email="b@x.example")
    assert (approved["status"], approved["approver_email"]) == ("approved", "b@x.example")


def test_lists_filter_and_page(claims: RunningService) -> None:
    keys = [make(claims, owner=owner) for owner in ("a@x.example", "b@x.example", "a@x.example")]
    page = data(claims, "list_claims", owner_email="a@x.example", limit=1)
    assert (page["total"], page["items"][0]["id"]) == (2, keys[0])
    rest = data(claims, "list_claims", owner_email="a@x.example", limit=1, cursor=page["next_cursor"])
    assert [item["id"] for item in rest["items"]] == [keys[2]]
    assert data(claims, "list_claims", status="approved")["total"] == 0


def test_search_looks_for_every_word_in_any_text(claims: RunningService) -> None:
    make(claims, "Taxi to the airport")
    make(claims, "Hotel")
    assert [row["title"] for row in data(claims, "search_claims", query="AIRPORT taxi")] == ["Taxi to the airport"]


def test_rows_of_a_parent_need_it_and_its_state(claims: RunningService) -> None:
    key = make(claims)
    data(claims, "add_claim_item", claim_id=key, spent_on="2026-02-03", note="taxi")
    assert code(claims, "add_claim_item", claim_id="claim_9", spent_on="2026-02-03", note="x") == "not_found"
    assert len(data(claims, "list_claim_items", claim_id=key, from_date="2026-02-03")) == 1
    assert data(claims, "list_claim_items", claim_id=key, to_date="2026-02-02") == []
    assert code(claims, "list_claim_items", claim_id="claim_9") == "not_found"
    assert code(claims, "delete_claim", claim_id=key) == "failed_precondition"
    data(claims, "submit_claim", claim_id=key)
    assert code(claims, "add_claim_item", claim_id=key, spent_on="2026-02-04", note="x") == "failed_precondition"


def test_counts_are_broken_down_as_described(claims: RunningService) -> None:
    data(claims, "submit_claim", claim_id=make(claims))
    make(claims)
    assert data(claims, "count_claims") == {"submitted": 1, "draft": 1}


def test_ids_that_tools_take_as_numbers_are_issued_as_numbers() -> None:
    running = start(
        service(
            tool("create_note", text=TEXT), tool("get_note", note_id=NUMBER), tool("list_notes", page=optional(NUMBER))
        )
    )
    made = data(running, "create_note", text="hello")
    assert data(running, "get_note", note_id=int(made["id"])) == made
    assert data(running, "list_notes", page=2)["items"] == []


def test_a_natural_key_is_unique_and_finds_its_row() -> None:
    running = start(
        service(
            tool("add_user", email=EMAIL, full_name=TEXT),
            tool("get_user", email=EMAIL),
            tool("remove_user", email=EMAIL),
        )
    )
    data(running, "add_user", email="a@x.example", full_name="Ada Berg")
    assert code(running, "add_user", email="a@x.example", full_name="Ada Dahl") == "already_exists"
    assert data(running, "get_user", email="a@x.example")["full_name"] == "Ada Berg"
    data(running, "remove_user", email="a@x.example")
    assert code(running, "get_user", email="a@x.example") == "not_found"


def test_a_key_that_the_creation_takes_is_the_id() -> None:
    running = start(service(tool("create_flag", flag_key=TEXT, description=TEXT), tool("get_flag", flag_key=TEXT)))
    data(running, "create_flag", flag_key="new-cart", description="Cart")
    assert data(running, "get_flag", flag_key="new-cart")["id"] == "new-cart"
    assert code(running, "create_flag", flag_key="new-cart", description="Again") == "already_exists"


def test_a_verb_may_make_something_of_its_own() -> None:
    running = start(
        service(
            tool("create_vendor", vendor_name=TEXT),
            tool("rate_vendor", vendor_id=TEXT, score={"type": "integer", "minimum": 1, "maximum": 5}),
            tool("list_vendor_ratings", vendor_id=TEXT),
        )
    )
    key = data(running, "create_vendor", vendor_name="Halden Foods")["id"]
    data(running, "rate_vendor", vendor_id=key, score=4)
    assert [row["score"] for row in data(running, "list_vendor_ratings", vendor_id=key)] == [4]


def test_wire_names_that_python_cannot_take_are_aliases() -> None:
    running = start(
        service(
            tool("send-message", **{"from": EMAIL, "class": TEXT, "x-y": optional(TEXT), "rows": optional(TEXT)}),
            tool("list-messages", **{"from": optional(EMAIL)}),
        )
    )
    data(running, "send-message", **{"from": "a@x.example", "class": "b", "x-y": "c"})
    assert data(running, "list-messages", **{"from": "a@x.example"})[0]["x_y"] == "c"
    assert code(running, "send-message", from_="a@x.example", class_="b") == "invalid_arguments"


def test_nested_values_become_parts_and_free_form_ones_text() -> None:
    line = {"type": "object", "properties": {"sku": TEXT, "quantity": NUMBER}, "required": ["sku"]}
    running = start(
        service(
            tool("create_order", items={"type": "array", "items": line}, extra={"type": "object"}),
            tool("list_orders"),
        )
    )
    made = data(running, "create_order", items=[{"sku": "LMP-1"}], extra={"b": 1, "a": None})
    assert made["items"] == [{"sku": "LMP-1", "quantity": None}]
    assert made["extra"] == '{"a":null,"b":1}'
    assert code(running, "create_order", items=[{"quantity": 2}], extra={}) == "invalid_arguments"


def test_rows_that_refer_to_each_other_can_be_seeded() -> None:
    running = start(
        service(
            tool("create_team", name=TEXT),
            tool("list_teams", user_id=optional(TEXT)),
            tool("list_users", team_id=optional(TEXT)),
            tool("get_user", user_id=TEXT, team_id=TEXT),
        )
    )
    running.backend.populate(running.state, Universe.generate(1), random.Random(1), START)
    assert all(len(table) > 0 for table in running.state.tables.values())


def test_a_tool_may_be_called_like_the_decorator() -> None:
    create, lists = tool("create_claim", title=TEXT), tool("list_claims")
    running = start(service(create, tool("tool", "List all claims"), lists))

    data(running, "create_claim", title="Taxi")
    assert data(running, "list_claims")[0]["title"] == "Taxi"
