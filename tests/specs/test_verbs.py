"""Tool names taken apart, and the effect that verb and annotations tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.verbs import common_prefix, parse_name, tokenise


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("get_user", "get user"),
        ("getURLInfo", "get url info"),
        ("list-user-IDs", "list user ids"),
        ("OAuth2Token.refresh", "o auth2 token refresh"),
        ("天气_get", "天气 get"),
        ("__", ""),
    ],
)
def test_tokenise(name: str, tokens: str) -> None:
    assert " ".join(tokenise(name)) == tokens


@pytest.mark.parametrize(
    ("name", "prefix", "verb", "verb_class", "object_"),
    [
        ("create_issue", "", "create", "create", "issue"),
        ("createIssue", "", "create", "create", "issue"),
        ("jira_create_issue", "jira", "create", "create", "issue"),
        ("API-post-page", "api", "post", "create", "page"),
        ("issue-list", "", "list", "list", "issue"),
        ("order_create", "", "create", "create", "order"),
        ("knowledge_base_search", "", "search", "search", "knowledge base"),
        ("close_incident", "", "close", "transition", "incident"),
        ("approve-expense-claim", "", "approve", "transition", "expense claim"),
        ("signups.check_in", "", "check in", "transition", "signups"),
        ("log_time", "", "log", "create", "time"),
        ("log_delete", "", "delete", "delete", "log"),
        ("comment_finding", "", "comment", "create", "finding"),
        ("send_message", "", "send", "send", "message"),
        ("calculate_tax", "", "calculate", "compute", "tax"),
        ("run_query", "", "run", "execute", "query"),
        ("server_status", "", None, "read", "server status"),
        ("report_summary", "", None, "read", "report summary"),
        ("mystery", "", None, None, "mystery"),
        ("ping", "", "ping", "read", ""),
        ("", "", None, None, ""),
    ],
)
def test_parse_name(name: str, prefix: str, verb: str | None, verb_class: str | None, object_: str) -> None:
    parsed = parse_name(name)

    assert (" ".join(parsed.prefix), parsed.verb, parsed.verb_class) == (prefix, verb, verb_class)
    assert " ".join(parsed.object) == object_


def test_shared_prefix_is_found_and_skipped() -> None:
    names = ["shop_order_create", "shop_report", "shop_get_item"]
    prefix = common_prefix(names)

    assert prefix == ("shop",)
    assert parse_name("shop_report", prefix).verb == "report"
    assert common_prefix(["get_a", "get_b", "get_c"]) == ()
    assert common_prefix(["shop_a", "shop_b"]) == ()


@given(st.text())
def test_any_name_parses(name: str) -> None:
    parsed = parse_name(name)

    assert set(parsed.prefix + parsed.object) <= set(tokenise(name))


@pytest.mark.parametrize(
    ("name", "annotations", "effect"),
    [
        pytest.param("get_a", None, "read", id="verb-reads"),
        pytest.param("drop_a", None, "write", id="verb-writes"),
        pytest.param("mystery", None, "unknown", id="nothing-known"),
        pytest.param("mystery", {"readOnlyHint": True}, "read", id="hint-reads"),
        pytest.param("mystery", {"readOnlyHint": False}, "write", id="hint-writes"),
        pytest.param("run_a", {"readOnlyHint": True}, "read", id="hint-settles-execute"),
        pytest.param("search_a", {"readOnlyHint": True, "destructiveHint": True}, "read", id="contradiction-reads"),
        pytest.param("delete_a", {"readOnlyHint": True, "destructiveHint": True}, "write", id="contradiction-writes"),
        pytest.param("delete_a", {"readOnlyHint": True}, "write", id="verb-beats-hint"),
        pytest.param("get_a", {"readOnlyHint": False}, "read", id="careless-hint"),
        pytest.param("mystery", {"readOnlyHint": "yes"}, "unknown", id="hint-is-no-boolean"),
    ],
)
def test_effect(name: str, annotations: Any, effect: str) -> None:
    raw = {"server": "s", "tools": [{"name": name, "description": "A.", "annotations": annotations}]}

    spec, _ = normalise_server(raw, "test")

    assert spec is not None
    assert spec.tools[0].effect == effect
