"""The partitions of a snapshot and their contents, from manifests alone (RP-14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.keys.encoding import AFTER_MARKER
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.single_value import encode_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestEntry
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_choice import view_of_tag
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.cuts import Cut, Range
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.files import FilePlaces
from tableformat.range_partitions.retired import RetiredRange, retired_from

_KINDS: Final = {
    DeleteKind.POSITION: "position_delete_file_count",
    DeleteKind.DELETION_VECTOR: "deletion_vector_count",
    DeleteKind.EQUALITY: "equality_delete_file_count",
    DeleteKind.RANGE: "range_delete_file_count",
}
_MOMENT: Final = pa.timestamp("ms", tz="UTC")


@dataclass(slots=True)
class _Contents:
    """The contents of one partition."""

    file_count: int = 0
    record_count: int = 0
    is_exact: bool = True
    """True if no file crosses a border and no delete applies to the partition."""
    total_bytes: int = 0
    straddling_file_count: int = 0
    deletes: dict[DeleteKind, int] = field(default_factory=lambda: dict.fromkeys(DeleteKind, 0))
    last_updated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """The possible locations of a file's rows."""

    touched: range
    outside: bool

    @property
    def count(self) -> int:
        return len(self.touched) + self.outside


@dataclass(frozen=True, slots=True)
class PartitionContents:
    """The partitions in order, their contents, and rows outside of all partitions."""

    defined: DefinedPartitions
    partitions: list[Range]
    contents: list[_Contents]
    elsewhere: _Contents
    """Files, or parts of files, that no bound covers."""
    straddling_file_count: int = 0
    """Each file is counted once."""

    def at(self, place: _Place) -> list[_Contents]:
        """The contents of each partition that the location touches, and of the rows outside."""
        inside = [self.contents[index] for index in place.touched]
        return [*inside, self.elsewhere] if place.outside else inside

    def rows(self) -> list[_Row]:
        """RP-14: one row for each partition. The default partition, or uncovered rows, come last."""
        rows = [
            _Row(each, "live" if inside.file_count else "empty", inside)
            for each, inside in zip(self.partitions, self.contents, strict=True)
        ]
        if self.defined.has_default or self.elsewhere.file_count:
            rows.append(_Row(None, "default" if self.defined.has_default else "uncovered", self.elsewhere))
        return rows


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of the list."""

    partition: Range | None
    state: str
    contents: _Contents
    retired: RetiredRange | None = None


def partition_list(view: SnapshotView, defined: DefinedPartitions) -> pa.Table:
    """RP-14, RP-30: the partitions of a snapshot in order, and the retired ranges that it lacks, with their contents.
    Only manifests are read."""
    rows = partition_contents(view, defined).rows()
    rows += [row for each in retired_from(view) if each.key == defined.key for row in _retired_rows(view, each)]
    return _to_arrow(defined, sorted(rows, key=_order))


def _order(row: _Row) -> tuple[bool, bytes, bool]:
    return row.partition is None, b"" if row.partition is None else row.partition.lower.encoded, row.state == "retired"


def _retired_rows(view: SnapshotView, retired: RetiredRange) -> list[_Row]:
    """The contents of each retired range, which the tag keeps."""
    kept = view_of_tag(view.metadata, view.io, retired.tag)
    found = partition_contents(kept, DefinedPartitions(key=retired.key, bounds=retired.ranges))
    return [
        _Row(each, "retired", inside, retired) for each, inside in zip(found.partitions, found.contents, strict=True)
    ]


def _to_arrow(defined: DefinedPartitions, rows: Sequence[_Row]) -> pa.Table:
    key, contents = defined.key, [row.contents for row in rows]
    return pa.table(
        {
            "partition": pa.array(
                [defined.text(row.partition) if row.partition else row.state for row in rows], pa.large_string()
            ),
            "lower": range_ends(key, [None if row.partition is None else row.partition.lower for row in rows]),
            "upper": range_ends(key, [None if row.partition is None else row.partition.upper for row in rows]),
            "state": pa.array([row.state for row in rows], pa.string()),
            "file_count": pa.array([each.file_count for each in contents], pa.int64()),
            "record_count": pa.array([each.record_count for each in contents], pa.int64()),
            "is_record_count_exact": pa.array([each.is_exact for each in contents], pa.bool_()),
            "total_bytes": pa.array([each.total_bytes for each in contents], pa.int64()),
            "straddling_file_count": pa.array([each.straddling_file_count for each in contents], pa.int64()),
            **{name: pa.array([each.deletes[kind] for each in contents], pa.int64()) for kind, name in _KINDS.items()},
            "last_updated_at": pa.array([_moment(each.last_updated_ms) for each in contents], _MOMENT),
            "tag": pa.array([row.retired.tag if row.retired else None for row in rows], pa.string()),
            "retired_at": pa.array([row.retired.retired_at if row.retired else None for row in rows], _MOMENT),
        }
    )


def _moment(moment_ms: int | None) -> datetime | None:
    return None if moment_ms is None else datetime.fromtimestamp(moment_ms / 1000, UTC)


def partition_contents(view: SnapshotView, defined: DefinedPartitions) -> PartitionContents:
    """RP-14: the partitions and their contents. Only manifests are read."""
    partitions = list(defined.partitions())
    found = PartitionContents(defined, partitions, [_Contents() for _ in partitions], _Contents())
    places = FilePlaces.of(partitions)
    moments = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in view.metadata.snapshots}
    entries = [
        entry
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]
    data: dict[str, _Place] = {}
    for entry in entries:
        if isinstance(entry.file, DataFile):
            place = _place_of(places, key_bounds(entry.file, defined.key))
            data[entry.file.file_path] = place
            for contents in found.at(place):
                _add_file(contents, entry, moments, straddles=place.count > 1)
    for entry in entries:
        if isinstance(entry.file, DeleteFile):
            for contents in found.at(
                data.get(entry.file.referenced_data_file or "", _reach(places, defined, entry.file))
            ):
                if contents.file_count:
                    contents.deletes[entry.file.kind] += 1
                    contents.is_exact = False
    return replace(found, straddling_file_count=sum(place.count > 1 for place in data.values()))


def listing_schema(defined: DefinedPartitions) -> pa.Schema:
    """The schema of the list. It does not depend on the contents."""
    return _to_arrow(defined, []).schema


def _place_of(places: FilePlaces, bounds: KeyBounds) -> _Place:
    """The partitions that a file touches, judged by its bounds, and whether a row may be outside of all of them."""
    touched = places.touched(bounds)
    ranges = [places.ranges[index] for index in touched]
    if not ranges:
        return _Place(touched, True)
    is_closed = all(one.upper == other.lower for one, other in pairwise(ranges))
    holds = ranges[0].lower.encoded <= bounds.lower and bounds.upper <= ranges[-1].upper.encoded
    return _Place(touched, not (is_closed and holds))


def _reach(places: FilePlaces, defined: DefinedPartitions, delete: DeleteFile) -> _Place:
    """The partitions to which a delete may apply, by its bounds of the first range column. All without bounds."""
    field_id, column_type = defined.key.field_ids[0], defined.key.types[0]
    lower, upper = (delete.lower_bounds or {}).get(field_id), (delete.upper_bounds or {}).get(field_id)
    first = None if lower is None else encode_bound(lower, column_type, is_upper=False)
    last = None if upper is None else encode_bound(upper, column_type, is_upper=True)
    return _place_of(places, KeyBounds(first or b"", (last or b"") + AFTER_MARKER))


def _add_file(contents: _Contents, entry: ManifestEntry, moments: dict[int, int], *, straddles: bool) -> None:
    contents.file_count += 1
    contents.record_count += entry.file.record_count
    contents.total_bytes += entry.file.file_size_bytes
    contents.straddling_file_count += straddles
    contents.is_exact &= not straddles
    moment = moments.get(entry.snapshot_id)
    if moment is not None:
        contents.last_updated_ms = max(contents.last_updated_ms or moment, moment)


def range_ends(key: KeyColumns, cuts: Sequence[Cut | None]) -> pa.Array:
    """One value for a single range column, otherwise a struct. Null is an open end."""
    columns = []
    for position, key_type in enumerate(key.types):
        values: list[Any] = [
            cut.values[position] if cut is not None and position < len(cut.values) else None for cut in cuts
        ]
        known = any(value is not None for value in values)
        columns.append(
            array_of_internal_values(values, key_type) if known else pa.nulls(len(values), arrow_type_of(key_type))
        )
    if len(key) == 1:
        return columns[0]
    is_open = pa.array([cut is None or cut.is_open for cut in cuts], pa.bool_())
    return pa.StructArray.from_arrays(columns, names=list(key.names), mask=is_open)
