"""Stores as the tests of storage have them: a directory always, a real S3 server under `-m components`."""

from __future__ import annotations

from tests.storage.conftest import store_uri
from tests.storage.seaweedfs import seaweedfs

__all__ = ["seaweedfs", "store_uri"]
