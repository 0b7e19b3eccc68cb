"""Plans the conversion of one snapshot: the data files to search, in slices of one commit each (MT-13 to MT-16).

data files in order of their paths    f1 f2 f3 | f4 f5 | f6 f7        slices, one commit each
keyed deletes                         removed with the last slice that has a data file which they may match
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.expressions import BooleanExpression

from tableformat.commit.change import KEYED_KINDS, FileKey, file_key, is_keyed
from tableformat.commit.table_diff import live_files
from tableformat.maintenance.conversion.conversion_record import (
    ConversionRecord,
    arrival,
    conversion_records,
    converted_until,
)
from tableformat.merge_on_read.delete_index import KeyDeleteIndex, PositionDeleteIndex
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.named_twice import named_twice_error, paths_named_twice
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT, positive_int
from tableformat.scan.planner import file_filter, match_deletes


@dataclass(frozen=True, slots=True)
class FileToConvert:
    """A data file that keyed deletes may match."""

    task: FileScanTask
    """The task, with the keyed deletes to search for; without keyed deletes if the file is covered."""
    is_covered: bool
    """Whether range deletes delete every row, known without reading the file."""

    @property
    def data_file(self) -> DataFile:
        return self.task.data_file

    @property
    def weight(self) -> int:
        """The work, in bytes."""
        return 0 if self.is_covered else self.data_file.file_size_bytes


@dataclass(frozen=True, slots=True)
class ConversionSlice:
    """The files and deletes of one commit."""

    files: tuple[FileToConvert, ...]
    """In the order of their paths, which come after the paths of earlier slices."""
    leaving: tuple[DeleteFile, ...]
    """Keyed deletes that have no effect once this slice and all earlier ones are converted."""
    record: ConversionRecord | None
    """MT-14: the record for the next run, in case this one ends here."""


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """The plan for converting one snapshot."""

    view: SnapshotView
    data_files: tuple[DataFile, ...] = ()
    """All live data files."""
    deletes: tuple[DeleteFile, ...] = ()
    """All live delete files, of all kinds."""
    slices: tuple[ConversionSlice, ...] = ()
    resumed_data_files_count: int = 0
    """The number of data files covered by a record (MT-14), so that at least some deletes need no search."""

    @property
    def file_count(self) -> int:
        return sum(len(each.files) for each in self.slices)


def plan_conversion(
    view: SnapshotView,
    context: MergeContext,
    where: BooleanExpression | None,
    max_slices: int,
    kinds: Collection[DeleteKind] = KEYED_KINDS,
    only_paths: frozenset[str] | None = None,
) -> ConversionPlan:
    """Plan the conversion. Reads the manifests, and range delete files within the span budget, but no data file.

    Keyed deletes of other `kinds` are left out. With `only_paths`, data files at other locations are left out.

    MT-16: without all files, no record is written, because the selected files have gaps between their paths. MT-89:
    without all kinds, no record is written either, because the others were not searched. Raises UnsupportedFeatureError
    for a data file that keyed deletes may match and that is in the snapshot more than once (MT-64).
    """
    manifests = manifests_of(view)
    live = [
        list(live_files(view.io, view.metadata, manifests, content))
        for content in (ManifestContent.DATA, ManifestContent.DELETES)
    ]
    data_files = tuple(file for file in live[0] if isinstance(file, DataFile))
    deletes = tuple(file for file in live[1] if isinstance(file, DeleteFile))
    if not deletes:
        return ConversionPlan(view, data_files)
    keyed = tuple(delete for delete in deletes if delete.kind in kinds)
    looked_for = [delete for delete in deletes if delete.kind in kinds or not is_keyed(delete)]
    records = conversion_records(view, keyed)
    by_proof: defaultdict[int, list[DataFile]] = defaultdict(list)
    for data in data_files:
        by_proof[converted_until(records, data)].append(data)
    met = [file for until, members in by_proof.items() for file in _met(view, context, members, looked_for, until)]
    named_twice = paths_named_twice(data_files)
    for file in met if named_twice else ():
        if file.data_file.file_path in named_twice:
            raise named_twice_error(file.data_file.file_path, "its equality and range deletes cannot be converted")
    may_match: Callable[[DataFile], bool] = (lambda _data: True) if where is None else file_filter(view, where)
    in_reach = met if only_paths is None else [file for file in met if file.data_file.file_path in only_paths]
    chosen = sorted((file for file in in_reach if may_match(file.data_file)), key=lambda file: file.data_file.file_path)
    parts = _cut(chosen, max_slices, least_slice_weight(view))
    data_indexes = {file.data_file.file_path: data_index for data_index, part in enumerate(parts) for file in part}
    leaving: Mapping[int, Sequence[DeleteFile]] = {0: keyed}
    if len(parts) > 1 or len(chosen) < len(met):
        leaving = _leaving(by_proof, met, keyed, data_indexes, _column_index(view, context))
    has_records = where is None and only_paths is None and set(kinds) >= KEYED_KINDS
    slices = tuple(
        ConversionSlice(
            tuple(part),
            tuple(leaving.get(data_index, ())),
            ConversionRecord(view.sequence_number, part[-1].data_file.file_path)
            if has_records and data_index < len(parts) - 1
            else None,
        )
        for data_index, part in enumerate(parts)
    )
    return ConversionPlan(
        view, data_files, deletes, slices, sum(len(by_proof[until]) for until in by_proof if until >= 0)
    )


def needing_search(tasks: Iterable[FileScanTask]) -> list[FileScanTask]:
    """CP-11: every data file for which bounds do not rule out all keyed deletes."""
    return [task for task in tasks if task.equality_deletes or task.range_deletes or task.range_delete_files]


def _met(
    view: SnapshotView,
    context: MergeContext,
    data_files: Sequence[DataFile],
    deletes: Sequence[DeleteFile],
    until: int,
) -> Iterator[FileToConvert]:
    """MT-14: the files that may match keyed deletes newer than the record."""
    unproved = [delete for delete in deletes if not is_keyed(delete) or arrival(delete) > until]
    tasks, covered = match_deletes(view, data_files, unproved, context)
    for task in needing_search(tasks):
        yield FileToConvert(task, is_covered=False)
    row_deletes = PositionDeleteIndex(delete for delete in unproved if not is_keyed(delete))
    for data in covered:
        task = FileScanTask(
            data_file=data,
            position_deletes=row_deletes.position_deletes_of(data),
            deletion_vector=row_deletes.vector_of(data),
        )
        yield FileToConvert(task, is_covered=True)


def least_slice_weight(view: SnapshotView) -> int:
    """The least bytes of a slice. A snapshot with less data than one file costs more than the progress is worth."""
    return positive_int(view.metadata.properties, TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT)


def _cut(files: Sequence[FileToConvert], max_slices: int, least_weight: int) -> list[list[FileToConvert]]:
    """MT-13: adjacent files in slices of nearly equal weight; one empty slice without files."""
    limit = max(-(-sum(file.weight for file in files) // max_slices), least_weight)
    parts: list[list[FileToConvert]] = [[]]
    weight = 0
    for file in files:
        if weight >= limit and len(parts) < max_slices:
            parts.append([])
            weight = 0
        parts[-1].append(file)
        weight += file.weight
    return parts


def _column_index(view: SnapshotView, context: MergeContext) -> Callable[[Iterable[DeleteFile]], KeyDeleteIndex]:
    specs = dict(view.metadata.specs())
    return lambda deletes: KeyDeleteIndex(deletes, specs, context.column_types)


def _leaving(
    by_proof: Mapping[int, Sequence[DataFile]],
    met: Sequence[FileToConvert],
    keyed: Sequence[DeleteFile],
    data_indexes: Mapping[str, int],
    index_of: Callable[[Iterable[DeleteFile]], KeyDeleteIndex],
) -> Mapping[int, Sequence[DeleteFile]]:
    """MT-15: by slice, the keyed deletes whose last data file is in it. Deletes that are still needed after all slices
    are not included."""
    met_paths = {file.data_file.file_path for file in met}
    never = max(data_indexes.values(), default=0) + 1
    last: dict[FileKey, int] = {}
    for until, data_files in by_proof.items():
        index = index_of(delete for delete in keyed if arrival(delete) > until)
        for data in data_files:
            if data.file_path not in met_paths:
                continue
            data_index = data_indexes.get(data.file_path, never)
            for delete in index.deletes_of(data):
                key = file_key(delete)
                last[key] = max(last.get(key, 0), data_index)
    leaving: defaultdict[int, list[DeleteFile]] = defaultdict(list)
    for delete in keyed:
        leaving[last.get(file_key(delete), 0)].append(delete)
    return leaving
