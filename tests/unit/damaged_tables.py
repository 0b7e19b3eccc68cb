"""Tables whose files or metadata are damaged by hand: one thing at a time, with everything else kept valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tableformat as tf
from tableformat.commit.snapshot_summary import count_totals
from tableformat.maintenance.verification.findings import FindingKind, VerifyResult
from tableformat.metadata.content_file import ContentFile
from tableformat.metadata.manifests.manifest_entry import ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import decode_manifest_list, write_manifest_list
from tableformat.metadata.manifests.manifest_reader import decode_manifest, live_entries
from tableformat.metadata.manifests.manifest_writer import write_manifest
from tableformat.parquet.parquet_file import plain_parquet

ChangeFile = Callable[[Any], Any]


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def kinds(result: VerifyResult) -> list[str]:
    """The kinds of the findings, in order."""
    return [str(each.kind) for each in result.findings]


def the_finding(result: VerifyResult, kind: FindingKind) -> Any:
    """The only finding, which must be of that kind."""
    assert kinds(result) == [str(kind)], result
    return result.findings[0]


def alter_entries(table: tf.Table, change: Callable[[ManifestEntry], Iterable[ManifestEntry]]) -> None:
    """Rewrite the manifests of the head: `change` replaces each entry, and the manifest list is rewritten to match."""
    alter_manifests(table, lambda manifest: [manifest], change)


def alter_files(table: tf.Table, change: ChangeFile) -> None:
    """The same as `alter_entries`, but `change` replaces the file of each entry."""
    alter_entries(table, lambda entry: [replace(entry, file=change(entry.file))])


def alter_manifests(
    table: tf.Table,
    change: Callable[[ManifestFile], Iterable[ManifestFile]],
    change_entry: Callable[[ManifestEntry], Iterable[ManifestEntry]] = lambda entry: [entry],
    *,
    list_version: int | None = None,
) -> None:
    """Overwrite the manifest list of the head, with the manifests that `change` returns for each current manifest."""
    view = table.view
    assert view.snapshot is not None
    location = view.snapshot.manifest_list
    manifests = []
    live: list[Any] = []
    for manifest in decode_manifest_list(view.io, location):
        entries = [each for entry in decode_manifest(view.io, manifest, view.metadata) for each in change_entry(entry)]
        live += [each.file for each in live_entries(entries)]
        path_of(manifest.manifest_path).unlink()
        written = write_manifest(
            view.io,
            manifest.manifest_path,
            entries=entries,
            content=manifest.content,
            spec=view.spec(manifest.partition_spec_id),
            schema=view.schema,
            format_version=view.metadata.format_version,
            snapshot_id=manifest.added_snapshot_id,
            older_schemas=view.metadata.schemas,
        )
        numbered = replace(
            written,
            sequence_number=manifest.sequence_number,
            min_sequence_number=manifest.min_sequence_number,
            first_row_id=manifest.first_row_id,
        )
        manifests += change(numbered)
    assert view.snapshot.summary is not None
    for name, total in count_totals(live).items():
        view.snapshot.summary.additional_properties[name] = str(total)
    path_of(location).unlink()
    write_manifest_list(
        view.io,
        location,
        manifests=manifests,
        snapshot_id=view.snapshot.snapshot_id,
        parent_snapshot_id=view.snapshot.parent_snapshot_id,
        sequence_number=view.sequence_number,
        format_version=list_version or view.metadata.format_version,
        first_row_id=view.snapshot.first_row_id,
    )


def rewrite_rows(table: tf.Table, file: ContentFile, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Other rows in the Parquet file, its footer's statements kept; the entry states the new size and nothing else."""
    path = path_of(file.file_path)
    with pq.ParquetFile(pa.BufferReader(plain_parquet(path.read_bytes()))) as old:
        rows = old.read()
        statements = {name: value for name, value in (old.metadata.metadata or {}).items() if name != b"ARROW:schema"}
    rows = change(rows)
    with pq.ParquetWriter(path, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows, row_group_size=options.get("row_group_size") or max(len(rows), 1))
        writer.add_key_value_metadata(statements)
    size = path.stat().st_size
    alter_files(table, lambda each: replace(each, file_size_bytes=size) if each.file_path == file.file_path else each)


def flip(location: str, needle: bytes) -> None:
    """Flip one bit in the first byte of the only occurrence of the bytes."""
    path = path_of(location)
    data = bytearray(path.read_bytes())
    at = data.index(needle)
    data[at] ^= 1
    path.write_bytes(bytes(data))
