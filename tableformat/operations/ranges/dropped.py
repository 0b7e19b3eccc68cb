"""Compares live files with dropped or replaced ranges, using only their manifest entries (RP-12, RP-19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.named_twice import paths_named_twice
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.cuts import Range, spans_of
from tableformat.range_partitions.defined import DefinedPartitions


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """RP-12: the files that a drop or a replacement affects."""

    inside: tuple[DataFile, ...] = ()
    """Files whose rows are all deleted."""
    straddling: tuple[DataFile, ...] = ()
    """Files with some rows that may be deleted."""
    row_deletes: tuple[DeleteFile, ...] = ()
    """Position delete files that name only files inside; they are removed with them. Vectors are removed with their
    data file (DA-7)."""


def live_data_files(view: SnapshotView) -> list[DataFile]:
    """The live data files of a snapshot."""
    return [file for file in _live(view, ManifestContent.DATA) if isinstance(file, DataFile)]


def live_delete_files(view: SnapshotView) -> list[DeleteFile]:
    """The live delete files of a snapshot."""
    return [file for file in _live(view, ManifestContent.DELETES) if isinstance(file, DeleteFile)]


def dropped_files(view: SnapshotView, defined: DefinedPartitions, dropped: Sequence[Range]) -> DroppedFiles:
    """RP-12: the files whose rows all lie in the dropped ranges, and the files with some such rows. Reads only
    manifests."""
    return files_in_spans(view, spans_of(defined.key, dropped)) if dropped else DroppedFiles()


def files_in_spans(view: SnapshotView, spans: SpanArray) -> DroppedFiles:
    """RP-12, RP-19: the live data files of a snapshot that lie inside spans or straddle their borders. Reads only
    manifests.

    A file that is listed twice counts as straddling: its removal could not mean one entry only (MT-64).
    """
    files = live_data_files(view)
    newest = sort_and_merge(spans).with_sequence_number(view.sequence_number + 1)
    places = [coverage for coverage, _ in classify_many(newest, files)]
    twice = paths_named_twice(files)
    inside = tuple(
        data
        for data, place in zip(files, places, strict=True)
        if place is Coverage.COVERED and data.file_path not in twice
    )
    paths = {data.file_path for data in inside}
    return DroppedFiles(
        inside,
        tuple(
            data
            for data, place in zip(files, places, strict=True)
            if place is not Coverage.CLEAN and data.file_path not in paths
        ),
        tuple(
            delete
            for delete in (live_delete_files(view) if inside else ())
            if delete.kind is DeleteKind.POSITION and named_data_file(delete) in paths
        ),
    )


def _live(view: SnapshotView, content: ManifestContent) -> Iterator[DataFile | DeleteFile]:
    for manifest in manifests_of(view):
        if manifest.content is content:
            yield from (entry.file for entry in live_entries(read_manifest(view.io, manifest, view.metadata)))
