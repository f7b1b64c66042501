"""Secrets leave nothing that is stored."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from compoworld_core.evaluation.secrets import Secrets, is_secret_variable, secrets_in

CANARY = "sk-canary-0123456789abcdef"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"llm_args": {"api_key": CANARY, "temperature": 0.0}}, id="api_key"),
        pytest.param({"headers": {"Authorization": f"Bearer {CANARY}"}}, id="header"),
        pytest.param({"providers": [{"apiKey": CANARY}]}, id="camel case"),
        pytest.param({"OPENAI_API_KEY": CANARY}, id="variable"),
        pytest.param({"error": f"401: {{'Authorization': 'Bearer {CANARY}'}}"}, id="header in a message"),
        pytest.param({"error": f"api_key={CANARY} is not known"}, id="key in a message"),
        pytest.param({"cookie": [CANARY]}, id="list"),
        pytest.param({"openaiApiKey": "plain-word-key"}, id="camel case after a word"),
        pytest.param({"aws_secret_access_key": "plain-word-key"}, id="cloud"),
        pytest.param({"error": "Authorization: plain-word-key"}, id="header without a scheme"),
        pytest.param({"error": json.dumps({"body": json.dumps({"api_key": "plain-word-key"})})}, id="JSON in JSON"),
        pytest.param({"error": "Incorrect API key: plain-word-key"}, id="in words"),
        pytest.param({"error": f"Incorrect API key provided: {CANARY}."}, id="a key by its form"),
        pytest.param({"proxy": "http://user:plain-word-key@proxy:3128/"}, id="user of a URL"),
        pytest.param({"error": "GET https://host/v1?page=1&key=plain-word-key&x=2"}, id="query of a URL"),
        pytest.param({"error": "password=plain-word-key"}, id="password in a message"),
        pytest.param({"a": "-----BEGIN PRIVATE KEY-----\nplain-word-key\n-----END PRIVATE KEY-----"}, id="private key"),
    ],
)
def test_keys_are_known_by_the_names_around_them(value: Any) -> None:
    stripped = Secrets(environment={}).strip(value)

    assert CANARY not in json.dumps(stripped)
    assert "plain-word-key" not in json.dumps(stripped)
    assert "[secret]" in json.dumps(stripped)


def test_what_only_sounds_like_a_secret_stays() -> None:
    value = {
        "prompt_tokens": 5, "max_tokens": 10, "api_key": None, "token_type": "word", "text": "a bearer of news",
        "said": "password reset was asked for; authorization failed with total_tokens: 123456 at http://host:8000/v1",
        "package": "sk-learn-classification", "again": "api_key=[secret]",
    }  # fmt: skip

    assert Secrets(environment={}).strip(value) == value


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_a_known_key_is_found_encoded(before: str) -> None:
    key = 'plain/word+key"é='
    encoded = base64.b64encode(f"{before}{key}@host".encode()).decode()

    told = Secrets([key], environment={}).strip_text(
        f"x-auth {encoded} and {quote(key, safe='')} and {json.dumps(key)}"
    )

    assert told.count("[secret]") == 3
    assert all(encoded[place : place + 12] not in told for place in range(6, len(encoded) - 12))


def test_the_name_of_the_variable_that_has_a_key_stays() -> None:
    secrets = Secrets(environment={})

    assert secrets.strip({"apiKey": "${PROXY_KEY}"}) == {"apiKey": "${PROXY_KEY}"}
    assert secrets.strip_text('"api_key": "${AGENT_KEY}"') == '"api_key": "${AGENT_KEY}"'


def test_keys_are_known_by_their_values_wherever_they_stand() -> None:
    secrets = Secrets([CANARY], environment={"HUB_TOKEN": "hf_0123456789", "HOME": "/home/someone"})

    told = secrets.strip({CANARY: f"{CANARY}hf_0123456789", "home": "/home/someone"})

    assert told == {"[secret]": "[secret][secret]", "home": "/home/someone"}


@pytest.mark.parametrize("placeholder", ["EMPTY", "unused", "abc"])
def test_placeholders_and_short_words_are_no_keys(placeholder: str) -> None:
    secrets = Secrets([placeholder], environment={})

    assert secrets.strip_text(f"{placeholder} abc") == f"{placeholder} abc"


def test_a_folder_is_stripped_and_other_files_stay_as_they_are(tmp_path: Path) -> None:
    plain, binary = '{ "kept":  "as it is" }', b"\0\xff\xfe weights"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/results.json").write_text(json.dumps({"info": {"api_key": "other-key"}, "said": CANARY}))
    (tmp_path / "models.yaml").write_text(f'headers: {{Authorization: "Bearer {CANARY}"}}')
    (tmp_path / "run.log").write_text(f"asked with {CANARY}")
    (tmp_path / "cut.json").write_text(f'{{"said": "{CANARY}')
    (tmp_path / "plain.json").write_text(plain)
    (tmp_path / "weights.bin").write_bytes(binary)

    Secrets([CANARY], environment={}).strip_folder(tmp_path)

    texts = [file.read_text() for file in tmp_path.rglob("*") if file.suffix in (".json", ".yaml", ".log")]
    assert not any(CANARY in text or "other-key" in text for text in texts)
    assert json.loads((tmp_path / "deep/results.json").read_text())["said"] == "[secret]"
    assert (tmp_path / "plain.json").read_text() == plain
    assert (tmp_path / "weights.bin").read_bytes() == binary


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("run.log", b"cut off \xe2\x82 after " + CANARY.encode(), id="a byte that is no text"),
        pytest.param("state.db", b"SQLite\0\xff" + CANARY.encode() + b"\0", id="no text"),
        pytest.param("lone.json", b'{"said": "\\ud800", "api_key": "' + CANARY.encode() + b'"}', id="half a character"),
        pytest.param("rows.jsonl", b'{"a": 1}\n{"password": "' + CANARY.encode() + b'"}\n', id="lines"),
    ],
)
def test_no_kind_of_file_keeps_a_key(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)

    Secrets([CANARY], environment={}).strip_folder(tmp_path)

    left = (tmp_path / name).read_bytes()
    assert CANARY.encode() not in left
    assert left.count(b"\n") == content.count(b"\n") or name.endswith(".json")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    if name == "state.db":
        assert len(left) == len(content)


@pytest.mark.parametrize("form", [CANARY, base64.b64encode(f"user:{CANARY}".encode()).decode()])
def test_source_loses_known_values_and_nothing_else(tmp_path: Path, form: str) -> None:
    code = 'api_key = os.environ["X"]; password = "hunter2-hunter2"'
    (tmp_path / "ask.py").write_text(f"{code}\n{form}")

    Secrets([CANARY], environment={}).strip_folder(tmp_path, lambda _: True)

    first, last = (tmp_path / "ask.py").read_text().split("\n")
    assert first == code
    assert "[secret]" in last
    assert form not in last


@pytest.mark.parametrize("name", ["API_KEY_2", "GITHUB_PAT", "DB_PASS", "MYSQL_PASSWD", "SERVICE_KEYS"])
def test_variables_are_known_by_their_names(name: str) -> None:
    assert is_secret_variable(name)
    assert not is_secret_variable("PATH")
    assert not is_secret_variable("MAX_TOKENS")


def test_keys_are_found_where_documents_name_them(tmp_path: Path) -> None:
    document = {"llm_args": {"api_key": CANARY, "headers": {"Authorization": "Bearer another-key"}}}
    (tmp_path / "results.json").write_text(json.dumps(document, indent=2))

    assert secrets_in(tmp_path) == {CANARY, "another-key"}
