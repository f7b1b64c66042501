"""Secrets leave nothing that is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.evaluation.secrets import Secrets, secrets_in

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
    ],
)
def test_keys_are_known_by_the_names_around_them(value: Any) -> None:
    stripped = Secrets(environment={}).strip(value)

    assert CANARY not in json.dumps(stripped)
    assert "[secret]" in json.dumps(stripped)


def test_what_only_sounds_like_a_secret_stays() -> None:
    value = {"prompt_tokens": 5, "max_tokens": 10, "api_key": None, "token_type": "word", "text": "a bearer of news"}

    assert Secrets(environment={}).strip(value) == {**value, "text": "a bearer of news"}


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
    plain, binary = '{ "kept":  "as it is" }', b"\xff\xfe" + CANARY.encode()
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


def test_keys_are_found_where_documents_name_them(tmp_path: Path) -> None:
    document = {"llm_args": {"api_key": CANARY, "headers": {"Authorization": "Bearer another-key"}}}
    (tmp_path / "results.json").write_text(json.dumps(document, indent=2))

    assert secrets_in(tmp_path) == {CANARY, "another-key"}
