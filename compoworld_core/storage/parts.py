"""Parquet parts: equal rows make equal bytes, and memory never holds more than one row group.

Every option that decides bytes is fixed here. A row group ends by rows or by size, whichever comes first: a thousand
specs and a thousand long trajectories differ by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Generic

from compoworld_core.errors import StorageError
from compoworld_core.storage.dataset import DatasetType, Row

ROW_GROUP_ROWS = 10_000
ROW_GROUP_BYTES = 16 * 2**20
"""Size of the rows as JSON text; what they take in memory is a small multiple."""


class PartWriter(Generic[Row]):
    """Writes rows of one dataset type into one open file."""

    def __init__(self, file: BinaryIO, type: DatasetType[Row]) -> None:
        import pyarrow.parquet as pq

        self.rows = 0
        self.size = 0
        self._type = type
        self._group: list[dict[str, Any]] = []
        self._group_size = 0
        self._parquet = pq.ParquetWriter(
            file,
            type.arrow_schema,
            version="2.6",
            data_page_version="1.0",
            compression="zstd",
            compression_level=3,
            use_dictionary=True,
            write_statistics=False,
            store_schema=True,
        )

    def add(self, plain: dict[str, Any], size: int) -> None:
        """Add a row as `DatasetType.plain` gave it, with the size of its JSON text in bytes."""
        self._group.append(plain)
        self._group_size += size
        self.rows += 1
        self.size += size
        if len(self._group) >= ROW_GROUP_ROWS or self._group_size >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left and the footer."""
        if self._group:
            self._flush()
        self._parquet.close()

    def _flush(self) -> None:
        self._parquet.write_table(self._type.table(self._group), row_group_size=len(self._group))
        self._group, self._group_size = [], 0


def read_part(file: BinaryIO, type: DatasetType[Row], place: str) -> Iterator[Row]:
    """The rows of a part, one row group in memory at a time.

    Raises:
        StorageError: The part is no Parquet file of the type's declared columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A thread that reads ahead may let go of the file while the interpreter ends, which aborts the process.
        parquet = pq.ParquetFile(file, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise StorageError(f"{place}: not a Parquet file: {error}") from None
    if not parquet.schema_arrow.equals(type.arrow_schema):
        raise StorageError(
            f"{place}: its columns are not those of {type.name} version {type.version}; "
            f"a changed model needs a new version.\nstored: {_shown(parquet.schema_arrow)}\n"
            f"expected: {_shown(type.arrow_schema)}"
        )
    for index in range(parquet.num_row_groups):
        yield from type.rows(parquet.read_row_group(index, use_threads=False))


def _shown(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}{'?' if field.nullable else ''}" for field in schema)
