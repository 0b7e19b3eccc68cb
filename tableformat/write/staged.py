"""`StagedFiles`: written files that no snapshot names yet, for the commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.io import FileIO

from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.storage.storage import delete_if_present
from tableformat.write.rows.distinct import distinct_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedMessages:
    """Messages of a replacement, and the files that contain their rows, for CP-68."""

    file_paths: tuple[str, ...]
    """Empty if the messages have no rows."""
    prefixes: pa.Table = field(compare=False, repr=False)
    """Prefixes of the messages, in the types of the table's schema."""
    orders: pa.Table | None = field(compare=False, repr=False)
    """The values of the order columns for each of the prefixes; None without `order_by`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """Written files before the commit. Picklable: executors return it, and the driver commits all of them merged."""

    data_files: tuple[DataFile, ...] = ()
    delete_files: tuple[DeleteFile, ...] = ()
    row_count: int = 0
    """Rows in the data files."""
    written_bytes: int = 0
    """Bytes of data and delete files."""
    refused: pa.Table | None = field(default=None, compare=False, repr=False)
    """With `on_refused="divert"`: the refused rows as the caller passed them, with `_row_index`, `_refused_column` and
    `_refused_reason`; None if every row fits. Row indexes count within one writer's input."""
    prefixes: pa.Table | None = field(default=None, compare=False, repr=False)
    """For a replacement: the distinct prefixes of the rows, in the types of the table's schema."""

    covered: pa.Table | None = field(default=None, compare=False, repr=False)
    """For a replacement: prefixes that are always deleted."""

    refused_prefixes: pa.Table | None = field(default=None, compare=False, repr=False)
    """For a replacement: the prefixes of diverted rows. No row with such a prefix may be stored (CP-24)."""

    messages: tuple[StagedMessages, ...] = field(default=(), compare=False, repr=False)
    """For a replacement: the messages of the files."""

    @staticmethod
    def merge(parts: Iterable[StagedFiles]) -> StagedFiles:
        """The files of several writers as one; prefixes are made distinct again."""
        staged = list(parts)
        return StagedFiles(
            data_files=tuple(file for part in staged for file in part.data_files),
            delete_files=tuple(file for part in staged for file in part.delete_files),
            row_count=sum(part.row_count for part in staged),
            written_bytes=sum(part.written_bytes for part in staged),
            refused=_concatenated(part.refused for part in staged),
            prefixes=_distinct(_concatenated(part.prefixes for part in staged)),
            covered=_distinct(_concatenated(part.covered for part in staged)),
            messages=tuple(message for part in staged for message in part.messages),
            refused_prefixes=_distinct(_concatenated(part.refused_prefixes for part in staged)),
        )

    @property
    def file_paths(self) -> tuple[str, ...]:
        return (*(file.file_path for file in self.data_files), *(file.file_path for file in self.delete_files))

    def delete_all(self, io: FileIO) -> None:
        """Remove the files of a change that will certainly not be committed."""
        for path in self.file_paths:
            delete_if_present(io, path)


def _concatenated(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    present = [table for table in tables if table is not None]
    # Executors may see input with different columns of the same table, so one of them may lack a refused column.
    return pa.concat_tables(present, promote_options="permissive") if present else None


def _distinct(table: pa.Table | None) -> pa.Table | None:
    return None if table is None else distinct_rows(table)
