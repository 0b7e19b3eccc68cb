"""Earlier metadata files of a table, as far as its log and the store still have them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import MetadataLogEntry

from tableformat.errors import CorruptFileError
from tableformat.metadata.table_file import metadata_document, parse_table_metadata
from tableformat.properties import inflated_bytes_max
from tableformat.storage.storage import read_bytes

_CLOCKS_DIFFER_MS: Final = 60_000
"""How far clocks of writers may be apart for Iceberg."""


def logged_since(
    metadata: TableMetadata, io: FileIO, since_ms: int
) -> Iterator[tuple[MetadataLogEntry, TableMetadata | None]]:
    """The metadata files of the log that were written at a time or later, oldest first; None for one that cannot be
    read. Clocks of writers may differ by a minute."""
    earliest = since_ms - _CLOCKS_DIFFER_MS
    for entry in dropwhile(lambda entry: entry.timestamp_ms < earliest, metadata.metadata_log):
        try:
            data = read_bytes(io, entry.metadata_file)
            yield entry, parse_table_metadata(data, entry.metadata_file, inflated_bytes_max(io.properties))
        except CorruptFileError:
            yield entry, None


def logged_documents(metadata: TableMetadata, io: FileIO) -> list[dict[str, Any]]:
    """The JSON of the metadata files of the log, oldest first. Begins after the newest one that cannot be read."""
    found: list[dict[str, Any]] = []
    for entry in reversed(metadata.metadata_log):
        try:
            data = read_bytes(io, entry.metadata_file)
            found.append(metadata_document(data, entry.metadata_file, inflated_bytes_max(io.properties)))
        except CorruptFileError:
            break
    return found[::-1]
