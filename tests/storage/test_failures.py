"""What the outside does to a store, and what the person or job that runs it is told."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from compoworld_core.errors import CompoWorldError, InputError, StorageError, TransientError
from compoworld_core.storage import open_store, read_dataset, shard_commit, write_shard
from tests.storage.rows import HERE, NOTES, Note, notes
from tests.storage.seaweedfs import SeaweedFS

SECRET = "very-secret-4711"

FILL_THE_DISK = """
import random, sys
from compoworld_core.errors import StorageError
from compoworld_core.storage import DatasetLocation, DatasetWriter, merge, open_store, read_dataset, write_shard
from tests.storage.rows import HERE, NOTES, Note, notes

store, before = open_store(sys.argv[1]), DatasetLocation(dataset="notes", key="before")
write_shard(store, before, NOTES, 0, notes(2), deterministic=True)
merge(store, before, NOTES, 1)
noise = (Note(id=f"{n:09}", body=random.Random(n).randbytes(20_000).hex()) for n in range(1_000))
with DatasetWriter(store, HERE, NOTES, 0, deterministic=True) as writer:
    try:
        for note in noise:
            writer.add(note)
    except StorageError as error:
        print(error)
    try:
        writer.commit()
    except StorageError as error:
        print(error)
assert list(read_dataset(store, before, NOTES)) == notes(2)
assert list(store.names(HERE.path)) == []
"""


def test_full_disk_says_what_to_do_and_keeps_what_is_committed(tmp_path: Path) -> None:
    if not shutil.which("unshare"):
        pytest.skip("no unshare to mount a small disk with")
    mount = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"', str(tmp_path)]
    if subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let users mount a small disk")

    done = subprocess.run([*mount, sys.executable, "-c", FILL_THE_DISK, str(tmp_path)], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "no room to write (No space left on device)" in done.stdout
    assert "free space" in done.stdout
    assert "this attempt cannot commit" in done.stdout
    assert done.stderr == ""


def test_file_size_limit_is_reported_as_no_room(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))

    command = [sys.executable, "-c", FILL_THE_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)

    assert done.returncode == 0, done.stderr
    assert "no room to write (File too large)" in done.stdout
    assert done.stderr == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_directory_is_a_configuration_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(InputError, match="refused"):
        open_store(tmp_path).create("x", b"")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "some-access-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return monkeypatch


def check_keeps_secrets(error: BaseException) -> None:
    assert SECRET not in str(error)
    assert "some-access-key" not in str(error)


def test_unreachable_endpoint_is_transient_and_named(aws: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        endpoint = f"127.0.0.1:{unused.getsockname()[1]}"
        aws.setenv("AWS_ENDPOINT_URL", f"http://some-access-key:{SECRET}@{endpoint}")

        with pytest.raises(TransientError, match=f"s3://some-bucket at {endpoint}: no answer") as caught:
            open_store("s3://some-bucket/runs")

    assert caught.value.exit_code == 75
    check_keeps_secrets(caught.value)


def test_missing_credentials_are_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(InputError, match=r"Unable to locate credentials; check the AWS_\* environment"):
        open_store("s3://some-bucket")


def test_bad_endpoint_is_a_configuration_error(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_ENDPOINT_URL", "no-scheme")

    with pytest.raises(InputError, match="check AWS_ENDPOINT_URL"):
        open_store("s3://some-bucket")


@pytest.mark.components
def test_missing_bucket_is_a_configuration_error(seaweedfs: SeaweedFS, aws: pytest.MonkeyPatch) -> None:
    for name, value in seaweedfs.environment.items():
        aws.setenv(name, value)

    with pytest.raises(
        InputError, match=r"s3://no-such-bucket at 127\.0\.0\.1:\d+: no such bucket; create it"
    ) as caught:
        open_store("s3://no-such-bucket/x")

    assert caught.value.exit_code == 2


@pytest.mark.components
@pytest.mark.parametrize("wrong", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_denied_credentials_are_a_configuration_error(
    seaweedfs: SeaweedFS, aws: pytest.MonkeyPatch, wrong: str
) -> None:
    for name, value in seaweedfs.environment.items():
        if name != wrong:
            aws.setenv(name, value)

    with pytest.raises(InputError, match=f"s3://{seaweedfs.bucket} at .*: access denied") as caught:
        open_store(f"s3://{seaweedfs.bucket}/x")

    check_keeps_secrets(caught.value)


@pytest.mark.components
def test_bucket_that_vanishes_under_a_writer_is_reported(seaweedfs: SeaweedFS, aws: pytest.MonkeyPatch) -> None:
    for name, value in seaweedfs.environment.items():
        aws.setenv(name, value)
    client = boto3.Session().client("s3")
    client.create_bucket(Bucket="short-lived")
    store = open_store("s3://short-lived/x")
    client.delete_bucket(Bucket="short-lived")

    with pytest.raises(CompoWorldError, match=r"s3://short-lived at .*: no such bucket"):
        write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True)


def test_sweeping_under_a_writer_is_reported(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    def rows_during_which_the_dataset_is_deleted() -> Iterator[Note]:
        yield from notes(2)
        store.delete(HERE.path)

    with pytest.raises(StorageError, match="its directory was removed while it was written"):
        write_shard(store, HERE, NOTES, 0, rows_during_which_the_dataset_is_deleted(), deterministic=True)

    assert shard_commit(store, HERE, 0) is None
    with pytest.raises(StorageError, match="not committed"):
        read_dataset(store, HERE, NOTES)
