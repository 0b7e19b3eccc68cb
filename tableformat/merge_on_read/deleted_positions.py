"""The positions of the rows of one data file that any delete reaches (decision 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import NestedField

from tableformat.cached_property import cached_property
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.fragment_range import FragmentRange, RangeDeletes, spans_of
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.delete_columns import (
    delete_column_types,
    field_history,
    struct_history,
    value_where_missing,
)
from tableformat.merge_on_read.delete_index import ColumnTypes
from tableformat.merge_on_read.delete_loader import DeleteCaches, DeleteLoader
from tableformat.merge_on_read.equality_positions import equality_positions
from tableformat.merge_on_read.newer_deletes import DeleteIdentity, NewerDeletes, SharedDeletes
from tableformat.merge_on_read.span_positions import span_positions
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask, scan_of
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.parquet.bloom_filters.held_filters import HeldFilters
from tableformat.parquet.key_reader import KeyReader
from tableformat.parquet.missing_column import MissingColumn
from tableformat.parquet.parquet_columns import NAME_MAPPING_PROPERTY
from tableformat.parquet.parquet_file import FooterCache, OpenedFile, footer_size_bytes, open_parquet, read_parquet
from tableformat.properties import (
    PAGE_CHECKSUM_VERIFICATION,
    PAGE_CHECKSUM_VERIFICATIONS,
    name_mapping,
    property_one_of,
)
from tableformat.storage.loading_cache import LoadingCache

POSITIONS_CACHE_BYTES: Final = 128 * 1024 * 1024
EQUALITY_CACHE_BYTES: Final = 64 * 1024 * 1024
FOOTER_CACHE_BYTES: Final = 64 * 1024 * 1024
_ENTRY_BYTES: Final = 500
_DELETE_BYTES: Final = 300
"""The cost of the identity of a delete file."""
_NOTHING: Final[frozenset[Any]] = frozenset()
_SHARED_BYTES: Final = 16
"""The cost if it is shared."""


def _positions_size_bytes(positions: PositionSet) -> int:
    return positions.size_bytes + _ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class EqualityDeleted:
    """The rows of one data file that some equality deletes match."""

    deletes: frozenset[tuple[object, ...]] | SharedIdentities
    """The identity of each delete."""
    positions: PositionSet

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry."""
        each = _DELETE_BYTES if isinstance(self.deletes, frozenset) else _SHARED_BYTES
        return self.positions.size_bytes + each * len(self.deletes) + _ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class SharedIdentities:
    """Ordered identities of deletes, shared by data files, and the current types of their columns."""

    identities: tuple[DeleteIdentity, ...]
    columns: str

    def __len__(self) -> int:
        return len(self.identities)

    def begins_with(self, earlier: SharedIdentities) -> bool:
        return self.columns == earlier.columns and self.identities[: len(earlier)] == earlier.identities


@dataclass(frozen=True, slots=True)
class MergeCaches:
    """Results that depend only on immutable files. Thread-safe; may be shared by all scans of a process."""

    deletes: DeleteCaches = field(default_factory=DeleteCaches)
    footers: FooterCache = field(default_factory=lambda: LoadingCache(FOOTER_CACHE_BYTES, footer_size_bytes))
    bloom_filters: HeldFilters = field(default_factory=HeldFilters)
    positions: LoadingCache[tuple[object, ...], PositionSet] = field(
        default_factory=lambda: LoadingCache(POSITIONS_CACHE_BYTES, _positions_size_bytes)
    )
    equality: LoadingCache[tuple[object, ...], EqualityDeleted] = field(
        default_factory=lambda: LoadingCache(EQUALITY_CACHE_BYTES, attrgetter("size_bytes"))
    )
    """The last result for each data file: a stream adds delete files one by one, and each is looked up once."""


@dataclass(frozen=True)
class MergeContext:
    """A table whose deletes are merged into reads. A pickled copy starts with empty caches in the other process."""

    metadata: TableMetadata
    io: FileIO
    caches: MergeCaches = field(default_factory=MergeCaches)

    @cached_property
    def name_mapping(self) -> NameMapping | None:
        """The table's name mapping, for data files without field ids; None if it has none."""
        return name_mapping(self.metadata.properties)

    @cached_property
    def specs(self) -> dict[int, PartitionSpec]:
        """Every partition spec of the table, by id."""
        return dict(self.metadata.specs())

    @cached_property
    def verify_checksums(self) -> bool:
        """Whether pages of data files are compared with their checksums (DA-11)."""
        return (
            property_one_of(self.metadata.properties, PAGE_CHECKSUM_VERIFICATION, PAGE_CHECKSUM_VERIFICATIONS) == "true"
        )

    def open_data_file(self, file: ContentFile) -> AbstractContextManager[OpenedFile]:
        """Open a data file as every reader of the table does. Its footer is cached."""
        return open_parquet(
            self.io,
            file,
            name_mapping=self.name_mapping,
            footers=self.caches.footers,
            verify_checksums=self.verify_checksums,
        )

    def read_data_file(self, file: ContentFile) -> OpenedFile:
        """Open a small data file in memory, as every reader of the table does."""
        return read_parquet(
            self.io,
            file,
            name_mapping=self.name_mapping,
            verify_checksums=self.verify_checksums,
        )

    @cached_property
    def loader(self) -> DeleteLoader:
        """Reads the table's delete files through the shared cache."""
        return DeleteLoader.of(self.metadata, self.io, self.caches.deletes)

    @cached_property
    def fields(self) -> dict[int, NestedField]:
        """DA-6: every field in the history of the table, by id."""
        return field_history(self.metadata)

    @cached_property
    def structs(self) -> dict[int, int]:
        """DA-6: field id to the id of the struct that contains the field."""
        return struct_history(self.metadata)

    @cached_property
    def column_types(self) -> ColumnTypes:
        """DA-6: the type of every field in the history of the table, by id."""
        return ColumnTypes.of_fields(self.fields)


def deleted_positions(task: RowTask, context: MergeContext) -> PositionSet:
    """The positions of all rows that the task leaves out. For a scan task these are the deleted rows of its data file.

    Reads delete files, and from the data file the footer and the row groups of delete columns that statistics cannot
    decide. Other columns are never read. Raises CorruptFileError for a file that cannot be read (DA-8), and
    UnsupportedFeatureError for a file in another format than Parquet.
    """
    if not task.has_deletes:
        return PositionSet.empty()
    scan = scan_of(task)
    identity = deletes_identity(scan, context, is_exact=True)
    found = context.caches.positions.get_or_load(identity, lambda: _find(scan, context))
    return found if scan is task else found.union(_narrowed(task, context))


def _narrowed(task: RowTask, context: MergeContext) -> PositionSet:
    """CF-3: the rows that the task leaves out in addition to the deleted rows of its own snapshot."""
    assert isinstance(task, NarrowedTask), "every other task is its own scan"
    known = PositionSet.empty() if task.known_positions is None else task.known_positions
    return known if task.dead_in is None else known.union(_alive(task.dead_in, context))


def _alive(task: FileScanTask, context: MergeContext) -> PositionSet:
    return PositionSet.every(task.data_file.record_count).minus(deleted_positions(task, context))


def _find(task: FileScanTask, context: MergeContext) -> PositionSet:
    found = [row_positions(task, context.loader)]
    if task.equality_deletes or task.range_deletes or task.range_delete_files:
        found.append(_value_positions(task, context))
    return PositionSet.union_of(found)


def row_positions(task: FileScanTask, loader: DeleteLoader) -> PositionSet:
    """DA-1, DA-7: the rows that position deletes name. A deletion vector replaces all position delete files of its data
    file."""
    if task.deletion_vector is not None:
        return loader.vector(task.deletion_vector)
    return PositionSet.union_of(
        [loader.positions(delete, task.data_file.file_path) for delete in task.position_deletes]
    )


def _value_positions(task: FileScanTask, context: MergeContext) -> PositionSet:
    """Rows that equality and range deletes match by their values."""
    data = task.data_file
    spans, is_covered = _spans(task, context.loader)
    if is_covered:
        return PositionSet.every(data.record_count)
    known, new_deletes = _known_equality(task, context)
    keys = _equality_keys(new_deletes, context)
    if not (spans or keys):
        return known.positions

    with context.open_data_file(data) as file:
        reader = KeyReader(file, missing_values(data, context))
        number = committed_sequence_number(data)
        equality = [equality_positions(reader, one_column_set, number) for one_column_set in keys]
        found = [span_positions(reader, one_column_list) for one_column_list in spans]
    by_equality = PositionSet.union_of([known.positions, *equality])
    context.caches.equality.hold(_equality_key(task, context), EqualityDeleted(known.deletes, by_equality))
    return PositionSet.union_of([by_equality, *found])


def missing_values(data: DataFile, context: MergeContext) -> Callable[[int], MissingColumn]:
    """DA-6: by field id, the value that rows have if the data file lacks the column."""

    def missing(field_id: int) -> MissingColumn:
        if field_id not in context.fields:
            raise CorruptFileError(
                data.file_path, f"a delete that applies to it names field id {field_id}, which the table never had."
            )
        value = value_where_missing(context.metadata, data, context.fields[field_id])
        return MissingColumn(value, context.structs.get(field_id) if value.is_valid else None)

    return missing


def _known_equality(task: FileScanTask, context: MergeContext) -> tuple[EqualityDeleted, Sequence[DeleteFile]]:
    """The result of earlier scans for some of the equality deletes, with the identity of all; and the other deletes.

    A row is deleted if any delete matches it (DA-2). So the matches of further deletes are added by a union.
    """
    equality = task.equality_deletes
    columns = _columns(equality, context)
    held = context.caches.equality.held(_equality_key(task, context))
    now: frozenset[tuple[object, ...]] | SharedIdentities
    if isinstance(equality, NewerDeletes):
        now = SharedIdentities(equality.identities, columns[equality.shared.field_ids])
        if held is not None and isinstance(held.deletes, SharedIdentities) and now.begins_with(held.deletes):
            return EqualityDeleted(now, held.positions), equality[len(held.deletes) :]
    deletes: dict[tuple[object, ...], DeleteFile] = {
        (each.file_path, each.sequence_number, columns[each.equality_ids or ()]): each for each in equality
    }
    if not isinstance(equality, NewerDeletes):
        now = frozenset(deletes)
    known = frozenset[tuple[object, ...]]() if held is None else _each(held.deletes)
    if held is None or not known <= deletes.keys():
        return EqualityDeleted(now, PositionSet.empty()), equality
    new = [delete for identity, delete in deletes.items() if identity not in known]
    return EqualityDeleted(now, held.positions), new


def _each(deletes: frozenset[tuple[object, ...]] | SharedIdentities) -> frozenset[tuple[object, ...]]:
    if isinstance(deletes, frozenset):
        return deletes
    return frozenset((*identity, deletes.columns) for identity in deletes.identities)


def _equality_key(task: FileScanTask, context: MergeContext) -> tuple[object, ...]:
    mapping = context.metadata.properties.get(NAME_MAPPING_PROPERTY)
    return task.data_file.file_path, task.data_file.sequence_number, mapping


def _columns(deletes: Sequence[DeleteFile], context: MergeContext) -> dict[tuple[int, ...], str]:
    """DA-6: each list of delete columns, with the current types of its columns."""
    if isinstance(deletes, NewerDeletes):
        lists = {deletes.shared.field_ids}
    else:
        lists = {delete.equality_ids or () for delete in deletes}
    return {ids: "; ".join(str(context.fields.get(field_id)) for field_id in ids) for ids in lists}


def _spans(task: FileScanTask, loader: DeleteLoader) -> tuple[list[SpanArray], bool]:
    """For each list of delete columns the spans that are newer than the data; True if they cover the whole file
    (RD-10)."""
    late, is_covered = spans_of_files(task, loader)
    return [*map(spans_of, task.range_deletes), *late], is_covered


def spans_of_files(task: FileScanTask, loader: DeleteLoader) -> tuple[list[SpanArray], bool]:
    """The same for the range delete files whose spans were not loaded for planning."""
    spans = []
    for deletes in _grouped(task.range_delete_files):
        coverage, newer = classify(loader.range_fragments(deletes), task.data_file)
        if coverage is Coverage.COVERED:
            return [], True
        spans.append(newer)
    return spans, False


def _equality_keys(equality_deletes: Sequence[DeleteFile], context: MergeContext) -> list[EqualityKeys]:
    """The combined keys for each set of delete columns. The order of columns in a delete file has no meaning."""
    if isinstance(equality_deletes, NewerDeletes):
        return [shared_keys(equality_deletes.shared, context)]
    by_columns: dict[frozenset[int], list[DeleteFile]] = defaultdict(list)
    for delete in equality_deletes:
        by_columns[frozenset(equality_ids(delete))].append(delete)
    return [
        context.loader.equality_keys(deletes, delete_column_types(context.fields, field_ids, deletes[0].file_path))
        for field_ids, deletes in by_columns.items()
    ]


def shared_keys(shared: SharedDeletes, context: MergeContext) -> EqualityKeys:
    """The combined keys of all deletes in a list, for every data file that has a part of it."""
    field_ids = equality_ids(shared.deletes[0])
    types = delete_column_types(context.fields, field_ids, shared.deletes[0].file_path)
    return context.loader.equality_keys(shared.deletes, types, shared.digests[0])


def _grouped(deletes: Sequence[DeleteFile]) -> list[list[DeleteFile]]:
    """Range delete files by their ordered list of columns."""
    by_columns: dict[tuple[int, ...], list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        by_columns[equality_ids(delete)].append(delete)
    return list(by_columns.values())


def equality_ids(delete: DeleteFile) -> tuple[int, ...]:
    if not delete.equality_ids:
        raise CorruptFileError(delete.file_path, "its manifest entry names no delete columns (equality_ids).")
    return delete.equality_ids


def deletes_identity(task: FileScanTask, context: MergeContext, *, is_exact: bool = False) -> tuple[object, ...]:
    """A cache key with everything on which the positions of the task's deletes depend. Files never change, so their
    paths and sequence numbers are enough. A skyline represents each range of its fragments, which is compared quickly
    if many files share it. With `is_exact` the fragments are part of the key, so that others may be added and removed.
    """
    data = task.data_file
    equality = task.equality_deletes
    shared = equality.digest if isinstance(equality, NewerDeletes) else None
    files = task.delete_files if shared is None else replace(task, equality_deletes=()).delete_files
    deletes = frozenset([(each.file_path, each.sequence_number, each.content_offset) for each in files])
    spans = frozenset(_identity(each, is_exact) for each in task.range_deletes)
    columns = frozenset(_columns(equality, context).items()) if equality else _NOTHING
    mapping = context.metadata.properties.get(NAME_MAPPING_PROPERTY)
    return data.file_path, data.sequence_number, deletes, shared, spans, columns, mapping


def _identity(deletes: RangeDeletes, is_exact: bool) -> tuple[object, ...]:
    if isinstance(deletes, FragmentRange):
        skyline, begin, end = deletes.skyline, deletes.begin, deletes.end
        fragments = skyline.digest_of(begin, end) if is_exact else (skyline.digest, begin, end)
        return skyline.fragments.key.field_ids, fragments, deletes.newer_than
    return deletes.key.field_ids, deletes.lower.digest, deletes.upper.digest
