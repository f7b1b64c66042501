"""What stands in a folder of texts is recognised, and what only sounds like it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compoworld_core.errors import InputError
from compoworld_core.rollouts.contamination import find_overlaps

LONG = "Find the overdue order of Nordwind, read the returns policy, and write to the person who owns the account."
SHORT = "Refund order ten and tell Mara by mail today"
CHINESE = "请查找北风公司逾期的订单，阅读退货政策，并写信给客户经理。"
ASKED = {
    "long": f"Good morning. {LONG} Thank you.",
    "short": f"{SHORT}; then stop.",
    "chinese": CHINESE,
    "other": "Find the overdue invoice of Nordwind and pay it.",
}


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        pytest.param("a.txt", f"Task 1:\n{LONG.upper()}\n", ["long"], id="text"),
        pytest.param("a.md", f"# Tasks\n\n* **{LONG}**", ["long"], id="markdown"),
        pytest.param("a.json", json.dumps({"tasks": [{"q": LONG}, {"q": SHORT}]}), ["long", "short"], id="json"),
        pytest.param("a.json", json.dumps({LONG: "Yes", "b": {SHORT: 1}}), ["long", "short"], id="json keys"),
        pytest.param("a.txt", "\u200b".join(LONG), ["long"], id="invisible characters"),
        pytest.param("a.md", LONG.replace(" ", "_ _"), ["long"], id="underscores"),
        pytest.param("a.jsonl", f'{{"q": "{SHORT}"}}\n\n{{"q": "{LONG}"}}\n', ["long", "short"], id="json lines"),
        pytest.param("a.txt", LONG.replace(", and write", ", and then write"), [], id="eleven words"),
        pytest.param("a.txt", "Find the overdue invoice of Nordwind", [], id="a mere phrase"),
        pytest.param("a.json", '["Refund order ten and tell Mara by phone today"]', [], id="another short one"),
        pytest.param("a.txt", CHINESE, ["chinese"], id="no spaces between words"),
        pytest.param("a.txt", "", [], id="empty"),
    ],
)
def test_overlap_is_thirteen_words_in_a_row_or_a_whole_short_string(
    name: str, content: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")

    assert find_overlaps(ASKED, tmp_path).found == dict.fromkeys(found, name)


def test_folder_is_searched_with_its_subfolders_and_what_is_not_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.TXT").write_text(LONG)
    (tmp_path / "a.parquet").touch()

    overlaps = find_overlaps(ASKED, tmp_path)

    assert overlaps.found == {"long": "deep/b.TXT"}
    assert (overlaps.files, overlaps.unread) == (1, ("a.parquet",))


def test_digest_covers_names_and_contents_of_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    first = find_overlaps({}, tmp_path).digest

    (tmp_path / "b.bin").write_text("not read")
    assert find_overlaps({}, tmp_path).digest == first
    (tmp_path / "a.txt").write_text("two")
    assert find_overlaps({}, tmp_path).digest != first


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        pytest.param("a.jsonl", b'{"q": 1}\n{"q": \n', "a.jsonl:2: is not JSON", id="broken line"),
        pytest.param("a.json", b"[" * 100_000, "a.json: is not JSON", id="endless nesting"),
        pytest.param("a.txt", b"\xff\xfe", "a.txt: is not UTF-8 text", id="binary"),
        pytest.param("a.pdf", b"", "nothing can be compared", id="nothing to read"),
    ],
)
def test_folder_that_cannot_be_read_is_bad_input(name: str, content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(InputError, match=told):
        find_overlaps(ASKED, tmp_path)


def test_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        find_overlaps(ASKED, tmp_path / "absent")
