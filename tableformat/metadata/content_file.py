"""Data files and delete files in manifest entries.

Source: Iceberg table specification, "Manifests", `data_file` struct (field ids 100 to 149).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final

RANGE_DELETES_PARQUET: Final = "RANGE_DELETES_PARQUET"
"""`file_format` of a range delete file (RD-6). Its content is Parquet; other readers refuse the unknown name."""
PARQUET_MAGIC: Final = b"PAR1"
RANGE_DELETES_MAGIC: Final = b"RDP1"
"""RD-6: the last bytes of a range delete file, in place of Parquet's. A reader that treats it as Parquet fails."""

PARQUET: Final = "PARQUET"
PUFFIN: Final = "PUFFIN"


class FileContent(IntEnum):
    """Field 134 of the specification."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class DeleteKind(Enum):
    """The effect of a delete file. Range deletes and deletion vectors share a `content` number with another kind."""

    POSITION = "position"
    DELETION_VECTOR = "deletion-vector"
    EQUALITY = "equality"
    RANGE = "range"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentFile:
    """Common fields of data files and delete files."""

    file_path: str
    """Full location with scheme, exactly as in the manifest."""
    file_format: str
    """Upper case: PARQUET, PUFFIN, ORC, AVRO or RANGE_DELETES_PARQUET."""
    spec_id: int
    """Partition spec that the file was written under."""
    partition: tuple[Any, ...] = ()
    """Partition values in the order of the spec's fields, in Iceberg's internal representation (dates as days,
    timestamps as microseconds, decimals as Decimal, UUIDs as UUID, binary as bytes)."""
    record_count: int
    file_size_bytes: int
    sequence_number: int | None = None
    """Data sequence number; None until the commit assigns one (DA-9)."""
    file_sequence_number: int | None = None
    """Sequence number of the snapshot that added the file; None until it is committed."""
    column_sizes: Mapping[int, int] | None = field(default=None, hash=False)
    value_counts: Mapping[int, int] | None = field(default=None, hash=False)
    null_value_counts: Mapping[int, int] | None = field(default=None, hash=False)
    nan_value_counts: Mapping[int, int] | None = field(default=None, hash=False)
    lower_bounds: Mapping[int, bytes] | None = field(default=None, hash=False)
    """Field id to the bound in Iceberg's single-value binary form. For a delete file, the bounds of the deleted
    values."""
    upper_bounds: Mapping[int, bytes] | None = field(default=None, hash=False)
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    sort_order_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile(ContentFile):
    """A file of rows."""

    first_row_id: int | None = None
    """v3 row lineage: `_row_id` of the first row; None before v3 or if it is not assigned."""

    @property
    def content(self) -> FileContent:
        return FileContent.DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile(ContentFile):
    """A file that deletes rows of data files."""

    content: FileContent
    """POSITION_DELETES or EQUALITY_DELETES; range deletes are stored as EQUALITY_DELETES (RD-6)."""
    equality_ids: tuple[int, ...] | None = None
    """Field ids of the delete columns; for a range delete in key order. None for position deletes."""
    referenced_data_file: str | None = None
    """The only data file to which the position deletes or the deletion vector apply, if stated."""
    content_offset: int | None = None
    """Offset of the deletion vector's blob in its Puffin file, in bytes."""
    content_size_bytes: int | None = None
    """Length of the deletion vector's blob in bytes."""
    range_spans: bytes | None = field(default=None, hash=False)
    """RD-13: the spans of a small range delete file (`deletes/codecs/inline_spans.py`); None if only the file has
    them."""

    @property
    def kind(self) -> DeleteKind:
        """FM-9: derived from content and file format."""
        if self.content is FileContent.POSITION_DELETES:
            return DeleteKind.DELETION_VECTOR if self.file_format == PUFFIN else DeleteKind.POSITION
        return DeleteKind.RANGE if self.file_format == RANGE_DELETES_PARQUET else DeleteKind.EQUALITY


def value_count(file: ContentFile, field_id: int) -> int | None:
    """FM-8: the number of values in a column outside lists and maps, including nulls; None if the entry does not state
    it."""
    stated = (file.value_counts or {}).get(field_id)
    return None if stated is None else max(stated, file.record_count)


def null_count(file: ContentFile, field_id: int) -> int | None:
    """FM-8: the number of rows in which a column outside lists and maps is null; None if the entry does not state it.

    For a float or double in a struct, Iceberg's Java library counts neither values nor nulls of rows in which the
    struct is null.
    """
    stated, values = (file.null_value_counts or {}).get(field_id), (file.value_counts or {}).get(field_id)
    return stated if stated is None or values is None else stated + max(file.record_count - values, 0)
