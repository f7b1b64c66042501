"""Stores, typed datasets and the commit protocol that ties them; stands below every room.

Importing it loads neither pyarrow nor boto3: they arrive with the first table and the first S3 URI.
"""

from compoworld_core.storage.commit import (
    DatasetCommit,
    DatasetLocation,
    DatasetWriter,
    PartFile,
    ShardCommit,
    merge,
    read_commit,
    read_dataset,
    read_sidecar,
    read_sidecars,
    shard_commit,
    sweep,
    write_shard,
)
from compoworld_core.storage.dataset import DatasetType
from compoworld_core.storage.digest import canonical_json, digest, digest_bytes
from compoworld_core.storage.refs import move_ref, read_ref
from compoworld_core.storage.store import Store, open_store

__all__ = [
    "DatasetCommit",
    "DatasetLocation",
    "DatasetType",
    "DatasetWriter",
    "PartFile",
    "ShardCommit",
    "Store",
    "canonical_json",
    "digest",
    "digest_bytes",
    "merge",
    "move_ref",
    "open_store",
    "read_commit",
    "read_dataset",
    "read_ref",
    "read_sidecar",
    "read_sidecars",
    "shard_commit",
    "sweep",
    "write_shard",
]
