"""A store in an S3 bucket: conditional PUTs are the commits.

Uploads become visible only when they are complete, `If-None-Match: *` lets one creator win, `If-Match` swaps a pointer
only against the ETag that was read. Every failure of the service is sorted into what a job can act on: retry later
(endpoint down, throttling), fix the configuration (bucket, credentials), or look at the data.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
)

from compoworld_core.errors import CompoWorldError, InputError, StorageError, TransientError
from compoworld_core.storage.files import GuardedFile
from compoworld_core.storage.store import checked_name, is_below

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_TRANSFER = TransferConfig(max_concurrency=4)
_MISSING = {"NoSuchKey", "404", "NotFound"}
_TAKEN = {"PreconditionFailed", "412"}
_CONFLICT = {"ConditionalRequestConflict", "409"}
_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestTimeout"}
_DENIED = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied"}
_CONFLICT_TRIES = 8


def open_s3(bucket: str, prefix: str) -> S3Store:
    """Connect by the standard AWS environment and check that the bucket answers; see `open_store`."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    config = Config(
        # 4 tries of 2 s plus backoff: a dead endpoint fails within some 15 s, and the orchestrator retries the job.
        connect_timeout=2,
        read_timeout=15,
        retries={"total_max_attempts": 4, "mode": "standard"},
        max_pool_connections=64,
        tcp_keepalive=True,
        # Stores other than AWS rarely resolve bucket.host names or accept checksum trailers; parts carry a sha256.
        s3={"addressing_style": "path" if endpoint else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    host = urlsplit(endpoint).netloc.rpartition("@")[2] if endpoint else "AWS"
    place = f"s3://{bucket} at {host}"
    try:
        # Not `boto3.client`: its shared default keeps old credentials and is not safe to use from several threads.
        connect = partial(boto3.Session().client, "s3", endpoint_url=endpoint, region_name=_region(endpoint))
        # An endpoint that accepts connections and never answers must not hold up a job that has done no work yet.
        impatient = connect(config=config.merge(Config(read_timeout=5, retries={"total_max_attempts": 2})))
        client = connect(config=config)
    except (BotoCoreError, ValueError) as error:
        raise InputError(f"{place}: {error}; check AWS_ENDPOINT_URL, AWS_REGION and AWS_PROFILE") from error
    S3Store(impatient, bucket, prefix, place).check_bucket()
    return S3Store(client, bucket, prefix, place)


def _region(endpoint: str | None) -> str | None:
    """Stores behind an own endpoint want some region in the signature and do not care which."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return named or ("us-east-1" if endpoint else None)


class S3Store:
    """A store below a prefix of one bucket; the client may be shared by threads."""

    def __init__(self, client: S3Client, bucket: str, prefix: str, place: str) -> None:
        self.uri = f"s3://{bucket}/{prefix}" if prefix else f"s3://{bucket}"
        self._client = client
        self._bucket = bucket
        self._prefix = f"{checked_name(prefix)}/" if prefix else ""
        self._place = place

    def check_bucket(self) -> None:
        """Fail now, with the reason, where the bucket cannot be used."""
        try:
            with self._explained():
                self._client.head_bucket(Bucket=self._bucket)
        except _Missing:  # a HEAD has no body that could say NoSuchBucket
            raise self._no_bucket() from None

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        return self._read(name)[0]

    def open(self, name: str) -> BinaryIO:
        """See `Store.open`: the blob is downloaded to an unnamed temporary file."""
        with ExitStack() as on_error:
            file = on_error.enter_context(_scratch())
            try:
                with self._explained():
                    self._client.download_fileobj(self._bucket, self._key(name), file, Config=_TRANSFER)
            except _Missing:
                raise StorageError(f"{self.uri}/{name}: missing") from None
            file.seek(0)
            on_error.pop_all()
        return file

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        """See `Store.write`: the blob is gathered in an unnamed temporary file and uploaded at the end."""
        key = self._key(name)
        with _scratch() as file:
            yield file
            file.seek(0)
            with self._explained():
                self._client.upload_fileobj(file, self._bucket, key, Config=_TRANSFER)

    def create(self, name: str, data: bytes) -> bool:
        """See `Store.create`."""
        for _ in range(_CONFLICT_TRIES):
            code = self._put(name, data, IfNoneMatch="*")
            if code is None:
                return True
            if code in _TAKEN:
                return False
        raise TransientError(f"{self.uri}/{name}: other writers kept the store from deciding who creates it")

    def replace_if(self, name: str, data: bytes, expected: bytes | None) -> bool:
        """See `Store.replace_if`."""
        current, etag = self._read(name)
        if current != expected:
            return False
        condition = {"IfMatch": etag} if etag else {"IfNoneMatch": "*"}
        return self._put(name, data, **condition) is None

    def exists(self, name: str) -> bool:
        """See `Store.exists`."""
        try:
            with self._explained():
                self._client.head_object(Bucket=self._bucket, Key=self._key(name))
        except _Missing:
            return False
        return True

    def names(self, prefix: str = "") -> Iterator[str]:
        """See `Store.names`."""
        for keys in self._pages(prefix):
            yield from (key.removeprefix(self._prefix) for key in keys)

    def delete(self, prefix: str, keep: Collection[str] = ()) -> int:
        """See `Store.delete`; uploads that never ended are left to the bucket's lifecycle rule."""
        removed = 0
        if prefix not in keep and self.exists(prefix):
            with self._explained():
                self._client.delete_object(Bucket=self._bucket, Key=self._key(prefix))
            removed = 1
        for keys in self._pages(prefix):
            doomed = [key for key in keys if not is_below(key.removeprefix(self._prefix), keep)]
            if doomed:
                objects: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in doomed]
                with self._explained():
                    self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
                removed += len(doomed)
        return removed

    def _key(self, name: str) -> str:
        return self._prefix + checked_name(name)

    def _pages(self, prefix: str) -> Iterator[list[str]]:
        """The keys below a directory, by up to 1,000."""
        start = self._key(prefix) + "/" if prefix else self._prefix
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start)
        with self._explained():
            for page in pages:
                if "Contents" in page:
                    yield [item["Key"] for item in page["Contents"]]

    def _read(self, name: str) -> tuple[bytes | None, str | None]:
        try:
            with self._explained():
                answer = self._client.get_object(Bucket=self._bucket, Key=self._key(name))
                with answer["Body"] as body:
                    return body.read(), answer["ETag"]
        except _Missing:
            return None, None

    def _put(self, name: str, data: bytes, **condition: Any) -> str | None:
        """Put under a condition; the code with which the store refused, or None when it stored."""
        try:
            with self._explained():
                self._client.put_object(Bucket=self._bucket, Key=self._key(name), Body=data, **condition)
        except _Refused as refused:
            return refused.code
        except _Missing:  # If-Match on a pointer that was deleted meanwhile
            return "404"
        return None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise self._sorted(error) from error
        except (ConnectionError, HTTPClientError, IncompleteReadError) as error:
            raise TransientError(f"{self._place}: no answer ({type(error).__name__}); is the endpoint up?") from error
        except BotoCoreError as error:  # no or half credentials, bad profile, bad region
            raise InputError(f"{self._place}: {error}; check the AWS_* environment variables") from error

    def _no_bucket(self) -> InputError:
        return InputError(f"{self._place}: no such bucket; create it or correct the URI")

    def _sorted(self, error: ClientError) -> CompoWorldError:
        """The error that names place and code, and nothing that the service may have echoed."""
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code == "NoSuchBucket":
            return self._no_bucket()
        if code in _MISSING:
            return _Missing(f"{self._place}: no such blob")
        if code in _TAKEN | _CONFLICT:
            return _Refused(code)
        if status == 507:
            return StorageError(f"{self._place}: no room to write ({code}); free space there, then run again")
        if code in _THROTTLED or status == 429 or status >= 500:
            return TransientError(f"{self._place}: {code or status}; the store is overloaded or restarting")
        if code in _DENIED or status in (401, 403):
            return InputError(f"{self._place}: access denied ({code}); check the credentials and the bucket's policy")
        return StorageError(f"{self._place}: {error.operation_name} failed with {code or status}")


class _Missing(StorageError):
    """There is no such blob."""


class _Refused(StorageError):
    """A condition did not hold."""

    def __init__(self, code: str) -> None:
        super().__init__(f"refused ({code})")
        self.code = code


def _scratch() -> BinaryIO:
    """An unnamed temporary file; gone with the process, however that ends."""
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return io.BufferedRandom(GuardedFile(descriptor, "r+b", f"{tempfile.gettempdir()} (set TMPDIR to use another)"))
