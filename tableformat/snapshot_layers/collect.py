"""Gathers the contents of the picture: files as spans on the axis, data files that deletes may reach, and
partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.types import PrimitiveType

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.table_key import key_field_ids
from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile, DeleteKind, null_count
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.cuts import Cut
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.past import partitions_at
from tableformat.snapshot_layers.axis import Axis

DATA: Final = "data"
_POSITIONAL: Final = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)
_UNKNOWN: Final = (None, None)
Ends = tuple[Any, Any]
"""The lower and upper value of a file in the column, in Iceberg's internal representation; None if unknown."""


@dataclass(frozen=True, slots=True)
class LayerSpan:
    """A live file."""

    kind: str
    """`data`, or the kind of a delete file: `position`, `deletion-vector`, `equality`, `range`."""
    lower: float
    """The left end on the axis, from 0 to 1."""
    upper: float
    is_bounded: bool
    """Whether metadata has both ends. An unknown end is drawn at the edge of the axis."""
    sequence_number: int
    record_count: int
    """Rows of a data file; positions, keys or spans of a delete file."""
    is_reached: bool
    """For a data file: whether a delete may reach one of its rows by number, partition and bounds."""
    file_path: str


@dataclass(frozen=True, slots=True)
class Ruler:
    """The range partitions of the table on the axis."""

    bounds: tuple[tuple[float, float], ...]
    """The existing ranges from left to right, with gaps between them."""
    borders: tuple[float, ...]
    """The borders of partitions, including the ends of bounds."""
    partition_count: int
    has_default: bool


@dataclass(frozen=True, slots=True)
class Collected:
    """A snapshot as spans."""

    axis: Axis
    spans: tuple[LayerSpan, ...]
    ruler: Ruler | None


def collect(view: SnapshotView, branch: str, column: str | None, *, to_scale: bool) -> Collected:
    """The files of a snapshot over a top-level column: the given one, or the first range column, or the first key
    column, or the first column. Raises UnknownColumnError, and InvalidArgumentError for a column without an order."""
    defined = partitions_at(view, branch)
    field_id, name, value_type = _column(view, column, defined)
    files = list(_live_files(view))
    data = {file.file_path: _ends(file, field_id, value_type) for file in files if isinstance(file, DataFile)}
    ends = [
        data[file.file_path] if isinstance(file, DataFile) else _delete_ends(file, field_id, value_type, data)
        for file in files
    ]
    ranged = defined if defined is not None and defined.key.names[0] == name else None
    occurring = [value for pair in ends for value in pair]
    axis = Axis.of(name, value_type, [*occurring, *_values_of(ranged)], to_scale=to_scale)
    reached = _reached(view, files)
    spans = tuple(_span(file, pair, axis, file.file_path in reached) for file, pair in zip(files, ends, strict=True))
    return Collected(axis, spans, None if ranged is None else _ruler(ranged, axis))


def _column(
    view: SnapshotView, wanted: str | None, defined: DefinedPartitions | None
) -> tuple[int, str, PrimitiveType]:
    schema = view.schema
    names = [field.name for field in schema.fields]
    if wanted is not None and wanted not in names:
        raise UnknownColumnError(wanted, names, where="column")
    key = key_field_ids(view.metadata.schema(), view.metadata.properties)
    orderable = [field for field in schema.fields if isinstance(field.field_type, PrimitiveType)]
    if wanted is not None:
        chosen = [field for field in orderable if field.name == wanted]
    elif defined is not None:
        chosen = [field for field in orderable if field.name == defined.key.names[0]]
    else:
        chosen = [field for field in orderable if key and field.field_id == key[0]] or orderable
    if not chosen:
        raise InvalidArgumentError(
            f"column {wanted!r} cannot be used to draw layers. Choose a column of a primitive type: "
            f"{', '.join(field.name for field in orderable) or 'the table has none'}."
        )
    field = chosen[0]
    assert isinstance(field.field_type, PrimitiveType)
    return field.field_id, field.name, field.field_type


def _live_files(view: SnapshotView) -> Iterator[DataFile | DeleteFile]:
    for manifest in manifests_of(view):
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata)):
            yield entry.file


def _ends(file: ContentFile, field_id: int, value_type: PrimitiveType) -> Ends:
    """The bounds of the column. Null is less than every value, so a file that may have nulls has no lower end."""
    lower, upper = ((bounds or {}).get(field_id) for bounds in (file.lower_bounds, file.upper_bounds))
    has_nulls = (null_count(file, field_id) or 0) > 0
    return (
        None if lower is None or has_nulls else from_bound(lower, value_type, location=file.file_path),
        None if upper is None else from_bound(upper, value_type, location=file.file_path),
    )


def _delete_ends(delete: DeleteFile, field_id: int, value_type: PrimitiveType, data: dict[str, Ends]) -> Ends:
    """The reach of a delete: its data file for positions, its values if they belong to the column."""
    if delete.kind in _POSITIONAL:
        return data.get(delete.referenced_data_file or "", _UNKNOWN)
    is_of_column = field_id in (delete.equality_ids or ())
    return _ends(delete, field_id, value_type) if is_of_column else _UNKNOWN


def _reached(view: SnapshotView, files: Iterable[DataFile | DeleteFile]) -> set[str]:
    """Paths of the data files in which a delete may reach a row (DA-1 to DA-3, DA-7, RD-2, RD-3)."""
    known = list(files)
    applicable = ApplicableDeletes(view.metadata, [file for file in known if isinstance(file, DeleteFile)])
    return {file.file_path for file in known if isinstance(file, DataFile) and applicable.of(file)}


def _span(file: DataFile | DeleteFile, ends: Ends, axis: Axis, is_reached: bool) -> LayerSpan:
    lower, upper = ends
    return LayerSpan(
        kind=DATA if isinstance(file, DataFile) else file.kind.value,
        lower=0.0 if lower is None else axis.place(lower),
        upper=1.0 if upper is None else axis.place(upper),
        is_bounded=lower is not None and upper is not None,
        sequence_number=file.sequence_number or 0,
        record_count=file.record_count,
        is_reached=is_reached,
        file_path=file.file_path,
    )


def _values_of(defined: DefinedPartitions | None) -> list[Any]:
    """The first values of all bounds."""
    bounds: Sequence[Any] = () if defined is None else defined.bounds
    return [cut.values[0] for bound in bounds for cut in (bound.lower, bound.upper) if cut.values]


def _ruler(defined: DefinedPartitions, axis: Axis) -> Ruler:
    def place(cut: Cut, if_open: float) -> float:
        return axis.place(cut.values[0]) if cut.values else if_open

    partitions = list(defined.partitions())
    borders = {place(end, at) for each in partitions for end, at in ((each.lower, 0.0), (each.upper, 1.0))}
    return Ruler(
        bounds=tuple((place(bound.lower, 0.0), place(bound.upper, 1.0)) for bound in defined.bounds),
        borders=tuple(sorted(borders)),
        partition_count=len(partitions),
        has_default=defined.has_default,
    )
