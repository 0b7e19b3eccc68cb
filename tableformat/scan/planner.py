"""Plans a scan: reads manifests once, excludes files, and matches deletes with data files (decision 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.rules import position_delete_is_new_enough
from tableformat.deletes.spans.coverage import touched_files
from tableformat.deletes.spans.fragment_range import FragmentRange
from tableformat.deletes.spans.spans import SpanArray
from tableformat.filters.bound_filter import FALSE, TRUE, bind_filter, to_expression
from tableformat.filters.file_pruning import FilePruning, KeptFiles, residual_by_bounds
from tableformat.markup.figures import counted
from tableformat.merge_on_read.delete_index import KeyDeleteIndex, PositionDeleteIndex, with_shared_deletes
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.range_coverage import range_coverage
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.columns.data_columns import DataColumns, columns_of_files
from tableformat.metadata.columns.data_file_rows import data_files
from tableformat.metadata.columns.many_objects import no_collection, objects_of
from tableformat.metadata.columns.raw_manifest import REMOTE_READERS
from tableformat.metadata.columns.read_columns import read_data_columns
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT, positive_int
from tableformat.scan.bloom_pruning import without_ruled_out
from tableformat.scan.context import merge_context
from tableformat.scan.plan import PruningCounts, ScanPlan
from tableformat.storage.location import local_path

_NO_DELETES: Final = ("no delete applies",)


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Data files of one chunk of columns that the filter does not exclude."""

    files: DataColumns
    data_files: Sequence[DataFile]
    kept: KeptFiles

    @staticmethod
    def of(chunk: DataColumns, kept: KeptFiles) -> _Candidates:
        if len(kept.rows) == len(chunk):
            return _Candidates(chunk, data_files(chunk), kept)
        files = chunk.take(kept.rows)
        return _Candidates(files, data_files(files), kept)


@dataclass(frozen=True, slots=True)
class StagedFilesOnTop:
    """Files of an uncommitted change, planned as if they were committed. Each has the sequence number of its position
    in the order of the change, above all numbers of the snapshot."""

    data_files: tuple[DataFile, ...] = ()
    delete_files: tuple[DeleteFile, ...] = ()


def plan_scan(
    view: SnapshotView,
    where: BooleanExpression | None = None,
    *,
    context: MergeContext | None = None,
    staged: StagedFilesOnTop | None = None,
    data_files: Sequence[DataFile] | None = None,
    touching: SpanArray | None = None,
    keeps_deletes: bool = False,
    data_manifests: Sequence[ManifestFile] | None = None,
) -> ScanPlan:
    """Plan the tasks that return the matching rows of the snapshot, in the order of the manifest list.

    With `data_files`, some of the snapshot's live files, only those are planned, in the given order. With
    `data_manifests`, some of the snapshot's manifests, only their files are planned. With `touching`,
    sorted and disjoint spans of the key space, only files whose bounds meet one of the spans are planned; rows are not
    compared with the spans. A task has the deletes that can reach rows which pass the filter. With `keeps_deletes` it
    has all deletes of its file, for callers that also read other rows of the file (SP-71).

    Reads the manifest list and the manifests that partition summaries do not exclude. Also reads range delete files
    within the span budget, and position delete files if many of them may name many data files (DA-10). Never opens a
    data file.

    Raises UnknownColumnError and InvalidPredicateError for a filter that does not fit the view's schema, and
    CorruptFileError with the name of a manifest or delete file that cannot be read.
    """
    expression = AlwaysTrue() if where is None else where
    planning = _Planning(
        view, expression, context or merge_context(view), staged or StagedFilesOnTop(), touching, keeps_deletes
    )
    return planning.plan(data_files, data_manifests)


def unexcluded_data_manifests(view: SnapshotView, where: BooleanExpression | None) -> list[ManifestFile]:
    """The data manifests whose summaries do not exclude a matching row, in the order of the manifest list."""
    bound = bind_filter(AlwaysTrue() if where is None else where, view.schema)
    pruning = FilePruning(bound, dict(view.metadata.specs()), view.schema)
    data = (manifest for manifest in manifests_of(view) if manifest.content is ManifestContent.DATA)
    return [manifest for manifest in data if pruning.manifest_may_match(manifest)]


def file_filter(view: SnapshotView, where: BooleanExpression | None) -> Callable[[DataFile], bool]:
    """A function that decides, by partition and column bounds, whether a data file may contain a matching row."""
    expression = AlwaysTrue() if where is None else where
    bound = bind_filter(expression, view.schema)
    return FilePruning(bound, dict(view.metadata.specs()), view.schema).may_hold_match


def match_deletes(
    view: SnapshotView,
    data_files: Sequence[DataFile],
    deletes: Sequence[DeleteFile],
    context: MergeContext,
    where: BooleanExpression | None = None,
) -> tuple[tuple[FileScanTask, ...], tuple[DataFile, ...]]:
    """Plan tasks for the given data files of the snapshot that the filter does not exclude, with the given deletes
    only. Also returns the files that range deletes cover completely (RD-10), as `plan_scan` does."""
    planning = _Planning(view, AlwaysTrue() if where is None else where, context, StagedFilesOnTop())
    return planning.match(data_files, deletes)


class _Planning:
    """One planning run: the filter, the specs and the counts that its stages share."""

    def __init__(
        self,
        view: SnapshotView,
        where: BooleanExpression,
        context: MergeContext,
        staged: StagedFilesOnTop,
        touching: SpanArray | None = None,
        keeps_deletes: bool = False,
    ) -> None:
        self._view = view
        self._where = where
        self._bound = bound = bind_filter(where, view.schema)
        self._context = context
        self._staged = staged
        self._touching = touching
        self._keeps_deletes = keeps_deletes
        self._specs: dict[int, PartitionSpec] = dict(view.metadata.specs())
        self.pruning = FilePruning(bound, self._specs, view.schema)
        self._counts = PruningCounts()

    def plan(self, data_files: Sequence[DataFile] | None, data_manifests: Sequence[ManifestFile] | None) -> ScanPlan:
        manifests = manifests_of(self._view)
        data = data_manifests
        if data is None:
            data = [manifest for manifest in manifests if manifest.content is ManifestContent.DATA]
        deletes = [manifest for manifest in manifests if manifest.content is ManifestContent.DELETES]
        chunks = self._live_data_files(data) if data_files is None else iter([columns_of_files(data_files)])
        with no_collection(sum(manifest.added_files_count + manifest.existing_files_count for manifest in data)):
            candidates = self._candidates(chunks)
            delete_files = self._delete_files(deletes, candidates)
            tasks, covered = self._tasks(candidates, delete_files)
        return ScanPlan(
            snapshot_id=None if self._view.snapshot is None else self._view.snapshot.snapshot_id,
            where=self._where,
            tasks=tasks,
            covered=covered,
            pruning=self._counts,
        )

    def match(
        self, data_files: Sequence[DataFile], deletes: Sequence[DeleteFile]
    ) -> tuple[tuple[FileScanTask, ...], tuple[DataFile, ...]]:
        columns = columns_of_files(data_files)
        return self._tasks([_Candidates.of(columns, self.pruning.keep(columns))], deletes)

    def _live_data_files(self, manifests: Sequence[ManifestFile]) -> Iterator[DataColumns]:
        """Live data files of the manifests that may have a matching row."""
        kept = [manifest for manifest in manifests if self.pruning.manifest_may_match(manifest)]
        self._counts = replace(
            self._counts,
            data_manifest_count=len(manifests),
            skipped_data_manifest_count=len(manifests) - len(kept),
        )
        staged = [columns_of_files(self._staged.data_files)] if self._staged.data_files else []
        return chain(read_data_columns(self._view.io, kept, self._view.metadata), staged)

    def _candidates(self, chunks: Iterator[DataColumns]) -> list[_Candidates]:
        """The data files that the filter does not exclude by partition, column bounds or Bloom filters. Each chunk is
        released before the next one is read."""
        candidates = []
        for chunk in chunks:
            by_bounds = self._touched(chunk, self.pruning.keep(chunk))
            kept = without_ruled_out(self._bound, chunk, by_bounds, self._context.caches.bloom_filters)
            self._counts = replace(
                self._counts,
                data_file_count=self._counts.data_file_count + len(chunk),
                skipped_by_partition_count=self._counts.skipped_by_partition_count + kept.skipped_by_partition_count,
                skipped_by_bounds_count=self._counts.skipped_by_bounds_count + kept.skipped_by_bounds_count,
                skipped_by_bloom_filter_count=self._counts.skipped_by_bloom_filter_count
                + kept.skipped_by_bloom_filter_count,
            )
            if len(kept.rows):
                candidates.append(_Candidates.of(chunk, kept))
        return candidates

    def _touched(self, chunk: DataColumns, kept: KeptFiles) -> KeptFiles:
        """RD-10: remove the files that no span touches."""
        if self._touching is None or not len(kept.rows):
            return kept
        files = chunk if len(kept.rows) == len(chunk) else chunk.take(kept.rows)
        is_touched = touched_files(self._touching, files)
        return replace(
            kept,
            rows=kept.rows[is_touched],
            residual_ids=kept.residual_ids[is_touched],
            skipped_by_bounds_count=kept.skipped_by_bounds_count + int(np.count_nonzero(~is_touched)),
        )

    def _delete_files(self, manifests: Sequence[ManifestFile], candidates: Sequence[_Candidates]) -> list[DeleteFile]:
        """Live delete files that may apply to some candidate."""
        if not candidates:
            self._counts = replace(
                self._counts, delete_manifest_count=len(manifests), skipped_delete_manifest_count=len(manifests)
            )
            return []
        oldest = min(int(part.files.sequence_numbers.min()) for part in candidates)
        reached = [manifest for manifest in manifests if _reaches(manifest.sequence_number, oldest)]
        live = [*self._live_delete_files(reached), *self._staged.delete_files]
        files = [file for file in live if isinstance(file, DeleteFile)]
        reaching = [file for file in files if _reaches(file.sequence_number, oldest)]
        relevant = [file for file in reaching if not self._is_irrelevant(file)]
        relevant = with_shared_deletes(relevant, reaching)
        self._counts = replace(
            self._counts,
            delete_manifest_count=len(manifests),
            skipped_delete_manifest_count=len(manifests) - len(reached),
            delete_file_count=len(files),
            skipped_delete_file_count=len(files) - len(relevant),
        )
        return relevant

    def _tasks(
        self, candidates: Sequence[_Candidates], deletes: Sequence[DeleteFile]
    ) -> tuple[tuple[FileScanTask, ...], tuple[DataFile, ...]]:
        by_kind: dict[DeleteKind, list[DeleteFile]] = {kind: [] for kind in DeleteKind}
        for delete in deletes:
            by_kind[delete.kind].append(delete)
        column_types = self._context.column_types
        positional = [*by_kind[DeleteKind.POSITION], *by_kind[DeleteKind.DELETION_VECTOR]]
        positions = PositionDeleteIndex(positional)
        positions.look_inside([part.files for part in candidates], self._context.loader)
        equality = KeyDeleteIndex(by_kind[DeleteKind.EQUALITY], self._specs, column_types)
        tasks: list[FileScanTask] = []
        covered: list[DataFile] = []
        for part in candidates:
            ranges = range_coverage(
                by_kind[DeleteKind.RANGE],
                part.files,
                specs=self._specs,
                column_types=column_types,
                loader=self._context.loader,
                span_budget=positive_int(self._view.metadata.properties, RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT),
            )
            found = self._clean_tasks(part)
            by_key = equality.shared_deletes_of_all(part.files, part.data_files)
            named = np.flatnonzero(positions.may_reach(part.files)).tolist()
            for index in sorted({*ranges.spans, *ranges.files, *by_key, *named} - ranges.covered):
                task = found[index]
                data = task.data_file
                with_deletes = FileScanTask(
                    data_file=data,
                    deletion_vector=positions.vector_of(data) if positional else None,
                    position_deletes=positions.position_deletes_of(data) if positional else (),
                    equality_deletes=by_key.get(index, ()),
                    range_deletes=tuple(ranges.spans.get(index, ())),
                    range_delete_files=ranges.files.get(index, ()),
                    residual=task.residual,
                )
                if with_deletes.has_deletes:
                    found[index] = replace(with_deletes, reasons=_reasons(with_deletes))
            covered += (found[index].data_file for index in sorted(ranges.covered))
            tasks += (
                [task for index, task in enumerate(found) if index not in ranges.covered] if ranges.covered else found
            )
        return tuple(tasks), tuple(covered)

    def _clean_tasks(self, part: _Candidates) -> list[FileScanTask]:
        """A task without deletes for each candidate."""
        expressions = [self._where if left is self._bound else to_expression(left) for left in part.kept.residuals]
        nothing: Iterable[Any] = repeat(())
        columns = {
            "data_file": part.data_files,
            "position_deletes": nothing,
            "deletion_vector": repeat(None),
            "equality_deletes": nothing,
            "range_deletes": nothing,
            "range_delete_files": nothing,
            "residual": map(expressions.__getitem__, part.kept.residual_ids.tolist()),
            "reasons": repeat(_NO_DELETES),
        }
        return objects_of(FileScanTask, len(part.data_files), columns)

    def _live_delete_files(self, manifests: Sequence[ManifestFile]) -> list[DataFile | DeleteFile]:
        io, metadata = self._view.io, self._view.metadata
        if len(manifests) > 1 and local_path(manifests[0].manifest_path) is None:
            with ThreadPoolExecutor(REMOTE_READERS) as pool:
                read = list(pool.map(lambda manifest: read_manifest(io, manifest, metadata), manifests))
        else:
            read = [read_manifest(io, manifest, metadata) for manifest in manifests]
        return [entry.file for entries in read for entry in entries if entry.status is not EntryStatus.DELETED]

    def _is_irrelevant(self, delete: DeleteFile) -> bool:
        """Whether no row deleted by an equality or range delete file can pass the filter, by the file's bounds."""
        field_ids = delete.equality_ids
        if field_ids is None or self._bound is TRUE or self._keeps_deletes:
            return False
        return residual_by_bounds(self._bound, delete, among=field_ids) is FALSE


def _reaches(delete_sequence_number: int | None, oldest_data: int) -> bool:
    """Whether a delete of that age can apply to any data at all, by the widest rule (DA-1)."""
    return position_delete_is_new_enough(delete_sequence_number or 0, oldest_data)


def _reasons(task: FileScanTask) -> tuple[str, ...]:
    """The reasons why rows of the file may be deleted, for reports."""
    reasons = []
    if task.deletion_vector is not None:
        reasons.append("a deletion vector names rows of it")
    if task.position_deletes:
        reasons.append(f"{counted(len(task.position_deletes), 'position delete file')} may name rows of it")
    if task.equality_deletes:
        reasons.append(_overlapping(len(task.equality_deletes), "newer equality delete file"))
    if task.range_deletes:
        spans = sum(len(each) for each in task.range_deletes)
        at_most = "up to " if any(isinstance(each, FragmentRange) for each in task.range_deletes) else ""
        reasons.append(at_most + _overlapping(spans, "newer deleted key range"))
    if task.range_delete_files:
        reasons.append(_overlapping(len(task.range_delete_files), "newer range delete file"))
    return tuple(reasons)


def _overlapping(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'overlaps' if number == 1 else 'overlap'} its bounds"
