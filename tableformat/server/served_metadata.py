"""The metadata of a table as a client of the server sees it."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry

from tableformat.commit.metadata_file import metadata_parts
from tableformat.metadata.snapshot_view import last_sequence_number

_SUFFIX: Final = ".metadata.json"


@dataclass(frozen=True, slots=True)
class ServedTable:
    """An answer to a client that loads a table."""

    metadata: TableMetadata
    metadata_location: str
    """The location of the catalog's metadata file. While a conversion is served, a name of its own: clients compare it
    to find out whether the table changed (SV-6). No file has that name."""
    text: bytes
    """The metadata as JSON."""

    @property
    def etag(self) -> str:
        """The value of the header `ETag`: equal for equal metadata."""
        return f'"{hashlib.sha256(self.metadata_location.encode()).hexdigest()[:32]}"'


def served_table(table: IcebergTable, staged: Snapshot | None, staged_location: str | None = None) -> ServedTable:
    """The table as the catalog has it; with `staged`, a conversion of its head, with that snapshot as its head.

    `staged_location` is the metadata file that only added the conversion to this state of the table.
    """
    if staged is None:
        metadata, location = table.metadata, table.metadata_location
    else:
        files = [table.metadata_location, *([] if staged_location is None else [staged_location])]
        metadata = converted_metadata(table.metadata, files, staged)
        location = _converted_location(files[-1], staged)
    return ServedTable(metadata, location, b"".join(metadata_parts(metadata, _SUFFIX)))


def converted_metadata(metadata: TableMetadata, files: Sequence[str], staged: Snapshot) -> TableMetadata:
    """SV-5: the metadata with `main` at the staged conversion of its head.

    The log gets an entry with the time of the source, because DuckDB chooses a snapshot by time. The metadata log gets
    the catalog's own metadata files, so that a client that removes orphan files keeps them. No time in the metadata is
    later than the last update, for the same reason.
    """
    main = metadata.refs[MAIN_BRANCH].model_copy(update={"snapshot_id": staged.snapshot_id})
    logged = SnapshotLogEntry.model_validate({"snapshot-id": staged.snapshot_id, "timestamp-ms": staged.timestamp_ms})
    previous = [
        MetadataLogEntry.model_validate({"metadata-file": file, "timestamp-ms": metadata.last_updated_ms})
        for file in files
    ]
    others = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id != staged.snapshot_id]
    changes: dict[str, Any] = {
        "snapshots": [*others, staged],
        "refs": {**metadata.refs, MAIN_BRANCH: main},
        "current_snapshot_id": staged.snapshot_id,
        "snapshot_log": [*metadata.snapshot_log, logged],
        "metadata_log": [*metadata.metadata_log, *previous],
        "last_sequence_number": max(last_sequence_number(metadata), _number(staged.sequence_number)),
    }
    if isinstance(metadata, TableMetadataV3):
        after = _number(staged.first_row_id) + _number(staged.added_rows)
        changes["next_row_id"] = max(_number(metadata.next_row_id), after)
    return metadata.model_copy(update=changes)


def only_refs(metadata: TableMetadata) -> TableMetadata:
    """The metadata with the snapshots that a branch or tag points to (`snapshots=refs`)."""
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    return metadata.model_copy(
        update={"snapshots": [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in named]}
    )


def metadata_text(metadata: TableMetadata) -> bytes:
    """The metadata as JSON."""
    return b"".join(metadata_parts(metadata, _SUFFIX))


def table_result(metadata: bytes, location: str | None, **others: Any) -> bytes:
    """The body of an answer with the metadata of a table, and other fields by name with underscores."""
    head = b"{" if location is None else b'{"metadata-location":' + json.dumps(location).encode() + b","
    tail = [f',"{name.replace("_", "-")}":{json.dumps(value)}'.encode() for name, value in others.items()]
    return head + b'"metadata":' + metadata + b"".join(tail) + b"}"


def _converted_location(location: str, staged: Snapshot) -> str:
    directory, name = posixpath.split(location)
    stem = name.removesuffix(_SUFFIX).removesuffix(".gz")
    return posixpath.join(directory, f"{stem}-{staged.snapshot_id}{_SUFFIX}")


def _number(value: int | None) -> int:
    return value or 0
