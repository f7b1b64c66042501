"""The page is whole, needs nothing else, and never takes data for markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest

from compoworld_core.viewer import ReportData, render_report, report
from tests.viewer.learned import learned_data
from tests.viewer.samples import (
    OWNED,
    Elements,
    hostile_data,
    hostile_trajectory,
    real_data,
    task_and_trajectory,
)

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def page() -> str:
    return render_report(real_data())


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return render_report(hostile_data())


def _blocks(page: str) -> dict[str, object]:
    return {
        str(attributes["id"]): json.loads(text)
        for tag, attributes, text in Elements(page).raw
        if tag == "script" and "id" in attributes
    }


def test_numbers_stand_in_the_page_itself(page: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "4 services with 113 verified tools, recombined into 1 task and 1 verified trajectory" in text
    assert "1 of 2 attempts" in text
    assert "dead end: nothing to do in a service" in text
    assert "0123abcd" in text


def test_services_stand_by_domain_then_by_the_name_that_is_shown() -> None:
    blocks = _blocks(render_report(real_data()))
    shown = [(entry["domain"], entry["title"].casefold()) for entry in blocks["services"]]  # type: ignore[attr-defined]
    assert shown == sorted(shown)
    assert len(shown) == 4
    for place, (_, title) in enumerate(shown):
        assert blocks[f"service-{place}"]["title"].casefold() == title  # type: ignore[index]


def test_what_the_page_was_made_from_is_named_and_explained(page: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "tasks 0123abcd tasks that passed every gate" in text
    assert "These keys identify it" in text


def test_a_page_tells_of_training_where_there_was_any(page: str) -> None:
    learned = render_report(learned_data(real_data()))

    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", learned))
    for words in (
        "Fine-tuning",
        "0.150 6.000 at first",
        "7 cut after a message, 3 dropped",
        "3,200 in 12 s of steps; 3.1% padding beside them",
        "of 1 task; 1 could not be judged",
        "25.0% of all rollouts",
        "30.0 % 10.8 to 60.3",
        "+20.0 points of full passes from sft to grpo, paired over 10 tasks",
    ):
        assert words in text
    assert len([0 for tag, attributes in Elements(learned).found if attributes.get("class") == "curves"]) == 4
    assert "Held-out tasks" not in page
    assert "Fine-tuning" not in page


def test_the_same_data_gives_the_same_page(page: str) -> None:
    assert render_report(real_data()) == page


def test_an_empty_run_has_a_page_too() -> None:
    assert "This run has no services yet." in render_report(ReportData())


@pytest.mark.parametrize("make", [real_data, hostile_data], ids=["real", "hostile"])
def test_only_the_templates_make_elements(make: object) -> None:
    data = make()  # type: ignore[operator]
    elements = Elements(render_report(data))
    assert not {tag for tag, _ in elements.found} & {
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "image",
    }
    for tag, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")], tag
        assert (attributes.get("href") or "#").startswith("#")
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert sum(attributes.get("type") != "application/json" for attributes in scripts) == 1


def test_hostile_texts_are_data(hostile_page: str) -> None:
    blocks = _blocks(hostile_page)
    assert OWNED in json.dumps(blocks["trajectory-0"])
    assert OWNED in json.dumps(blocks["task-0"])
    assert OWNED in json.dumps(blocks["service-0"])
    for _, attributes, text in Elements(hostile_page).raw:
        if "id" in attributes:
            assert not set("<>&") & set(text)


def test_hostile_reasons_of_the_funnel_are_text(hostile_page: str) -> None:
    _, *told = hostile_page.split('<span class="example" dir="auto">')
    assert len(told) >= 4, "a rejection, an omission, an admission and an attempt"
    assert all(part.startswith("&lt;/script&gt;&lt;script&gt;") for part in told)


def test_templates_do_not_evaluate_data(hostile_page: str) -> None:
    assert "{{ 7 * 191 }}" in hostile_page
    assert "1337" not in hostile_page


def test_invisible_characters_are_shown(hostile_page: str) -> None:
    assert not _INVISIBLE.search(hostile_page)
    assert "⟨U+202E⟩" in hostile_page


def test_policy_allows_the_own_script_and_style_only(page: str) -> None:
    elements = Elements(page)
    (policy,) = [
        str(attributes["content"])
        for tag, attributes in elements.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (text,) = [text for tag, attributes, text in elements.raw if tag == kind and "id" not in attributes]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_scripts_make_elements_from_text_only() -> None:
    folder = files("compoworld_core.viewer") / "templates"
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(", text)
        assert not re.search(r"@import|url\(", text)


def test_huge_texts_are_cut_with_a_notice() -> None:
    task, _ = task_and_trajectory()
    page = render_report(ReportData(tasks=[task], trajectories=[hostile_trajectory(task.id, "x" * 1_000_000)]))
    assert len(page) < 500_000
    assert "[cut here: 1,000,000 characters in all]" in page


def test_big_runs_carry_the_first_and_count_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_TRAJECTORIES", 2)
    task, trajectory = task_and_trajectory()
    page = render_report(ReportData(tasks=[task], trajectories=(trajectory for _ in range(5))))
    assert "The first 2 of 5 trajectories can be opened here." in page
    assert "trajectory-1" in _blocks(page)
    assert "trajectory-2" not in _blocks(page)
    assert "of 5 episodes" in page


def test_a_trajectory_shows_what_each_call_changed(page: str) -> None:
    detail = _blocks(page)["trajectory-0"]
    assert isinstance(detail, dict)
    calls = [call for turn in detail["turns"] for call in turn["calls"]]
    opened = next(call for call in calls if call["tool"] == "create_case")
    assert [(change["row"], change["cause"], change["kind"]) for change in opened["changes"]] == [
        ("crm.cases", "agent", "created"),
        ("crm.accounts", "reaction", "updated"),
    ]
    assert [field for field, _, _ in opened["changes"][1]["fields"]] == ["owner_email"]
    assert all(passed for _, _, passed, _ in detail["verdict"])
