"""Reading servers from local files and from the package."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.specs.model import Rejection
from compoworld_core.specs.sources import (
    BundledSource,
    JsonlSource,
    RawServer,
    open_source,
    read_servers,
    read_specs,
)

TOOL = {"name": "get_a", "description": "A.", "inputSchema": {"type": "object", "properties": {}}}


def server(name: str) -> dict[str, Any]:
    return {"server": name, "tools": [TOOL]}


def lines(*values: Any) -> bytes:
    return b"".join(
        value + b"\n" if isinstance(value, bytes) else json.dumps(value).encode() + b"\n" for value in values
    )


def test_servers_carry_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_bytes(lines(server("one"), b"", server("two")))

    items = list(JsonlSource(path).servers())

    assert items == [RawServer("found.jsonl:1", server("one")), RawServer("found.jsonl:3", server("two"))]


def test_gzipped_file_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl.gz"
    path.write_bytes(gzip.compress(lines(server("one"))))

    specs, rejections = read_specs(JsonlSource(path))

    assert [(spec.name, spec.source) for spec in specs] == [("one", "found.jsonl.gz")]
    assert not rejections


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(b'{"server": ', "not_json", id="cut"),
        pytest.param(b"\xff\xfe{}", "not_utf8", id="bytes"),
        pytest.param(b"[" * 100_000, "too_deep", id="deep"),
        pytest.param(b"9" * 5_000, "not_json", id="number"),
        pytest.param(b'"' + b"x" * 200_000 + b'"', "line_too_long", id="long"),
        pytest.param(b"17", "not_an_object", id="scalar"),
        pytest.param(b'{"jsonrpc": "2.0", "error": {"code": 1}}', "no_tools", id="rpc-error"),
        pytest.param(b'{"server": "a", "tools": []}', "no_tools", id="empty"),
        pytest.param(b'{"server": "a", "tools": [1]}', "no_valid_tools", id="no-valid-tools"),
    ],
)
def test_broken_line_is_rejected_and_the_others_go_on(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "found.jsonl"
    path.write_bytes(lines(server("one"), line, server("two")))

    outcomes = list(read_servers(JsonlSource(path, max_line=150_000)))

    assert [spec.name for spec, _ in outcomes if spec] == ["one", "two"]
    rejected = [found for _, rejections in outcomes for found in rejections if found.subject == "server"]
    assert [(found.reason, found.origin) for found in rejected] == [(reason, "found.jsonl:2")]


def test_last_line_needs_no_newline_and_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + lines(server("one")).rstrip())

    specs, rejections = read_specs(JsonlSource(path))

    assert len(specs) == 1
    assert not rejections


def test_damaged_gzip_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl.gz"
    noise = [server(f"s{n}-{hash(n) * 7919 % 10_007}") for n in range(3_000)]
    path.write_bytes(gzip.compress(lines(*noise))[:-4_000])

    items = list(JsonlSource(path).servers())

    assert isinstance(items[0], RawServer)
    assert isinstance(items[-1], Rejection)
    assert items[-1].reason == "damaged_file"


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda name: {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}}, id="rpc-response"),
        pytest.param(lambda name: {"tools": [TOOL]}, id="list-result"),
        pytest.param(lambda name: [TOOL], id="bare-list"),
    ],
)
def test_nameless_result_is_named_after_its_line(tmp_path: Path, form: Any) -> None:
    path = tmp_path / "wiki.jsonl"
    path.write_bytes(lines(form("x"), form("x")))

    specs, _ = read_specs(JsonlSource(path))

    assert [spec.name for spec in specs] == ["wiki_1", "wiki_2"]


def test_limit_counts_servers(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_bytes(lines(b"broken", *[server(f"s{n}") for n in range(5)]))

    specs, rejections = read_specs(JsonlSource(path), limit=2)

    assert [spec.name for spec in specs] == ["s0", "s1"]
    assert len(rejections) == 1
    assert read_specs(JsonlSource(path), limit=0) == ([], [])


def test_source_strings(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_bytes(b"")

    assert isinstance(open_source("bundled"), BundledSource)
    assert isinstance(open_source(str(path)), JsonlSource)
    assert isinstance(open_source(f"jsonl:{path}"), JsonlSource)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nonsense", "use `bundled`, `jsonl:<path>`", id="unknown"),
        pytest.param("", "use `bundled`", id="empty"),
        pytest.param("ftp:x", "use `bundled`", id="scheme"),
        pytest.param("jsonl:gone.jsonl", "there is no such file", id="missing"),
        pytest.param("./gone.jsonl.gz", "there is no such file", id="missing-path"),
        pytest.param("jsonl:.", "cannot be read", id="folder"),
        pytest.param("jsonl:/dev/zero", "is not a regular file", id="device"),
    ],
)
def test_unusable_source_string_says_what_to_do(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source(text)


def test_file_that_only_claims_to_be_gzip(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl.gz"
    path.write_bytes(b"{}\n")
    with pytest.raises(InputError, match="is not gzip"):
        open_source(str(path))

    path.write_bytes(b"\x1f\x8bnot really")
    with pytest.raises(InputError, match="cannot be read"):
        list(open_source(str(path)).servers())


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "found.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is not a regular file"):
        open_source(str(pipe))
