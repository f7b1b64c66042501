"""One suite, two stores: a directory always, a real S3 server under `-m components`."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from compoworld_core.storage import Store, open_store
from tests.storage.seaweedfs import seaweedfs

__all__ = ["seaweedfs"]


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.components)])
def store_uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "file":
        return (tmp_path / "store with space").as_uri()
    server = request.getfixturevalue("seaweedfs")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{server.bucket}/{uuid.uuid4().hex}"


@pytest.fixture
def store(store_uri: str) -> Store:
    return open_store(store_uri)
