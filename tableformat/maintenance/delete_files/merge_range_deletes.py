"""Merges range delete files of many commits into one for each scope and list of delete columns (MT-11, MT-12).

    file #5   [a ======= g)             merged, entry #8   [a, c) 5  [c, e) 8  [e, g) 5
    file #8       [c == e)              as before, [c, e) is the only span that reaches a data file #6

Every span keeps its sequence number, or takes a larger one if no data file has a number between the two. The merged
file therefore deletes from each data file the same rows as the original files together. Equality deletes of several
commits have one number for each file, so they are never merged.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, TableChange, file_keys
from tableformat.commit.metadata_commit import refresh
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.needed_spans import joined_fragments, needed_fragments
from tableformat.deletes.spans.neighbours import joined_neighbours
from tableformat.deletes.spans.spans import SpanArray
from tableformat.maintenance.delete_files.dead_deletes import FilesInScope
from tableformat.maintenance.running.head_jobs import HeadState, commit_deletes_on_head, head_state
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.markup.results import HtmlResult
from tableformat.merge_on_read.delete_index import by_scope_and_columns
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.snapshot_choice import ancestors, head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT, positive_int
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.range_deletes import write_range_delete_file


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRangeDeletesResult(HtmlResult):
    """The merged files. With `dry_run`: the expected result."""

    snapshot_id: int | None
    """The snapshot of the merged files. If there was nothing to merge, or with `dry_run`: the head of the branch."""
    removed_range_delete_files_count: int = 0
    added_range_delete_files_count: int = 0
    removed_spans_count: int = 0
    """Spans in the removed files."""
    added_spans_count: int = 0
    """Spans in the merged files. If spans overlapped, only the newest is kept. Spans over which no older data file has
    keys are dropped. Spans that touch are joined if no data file has a sequence number between theirs."""
    rewritten_bytes: int = 0
    """Size of the merged files; 0 with `dry_run`."""
    duration_seconds: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Merge:
    """Files of one scope and column list, and the spans that replace them."""

    files: tuple[DeleteFile, ...]
    spans: SpanArray


def merge_range_deletes(
    iceberg: IcebergTable,
    branch: str,
    *,
    only_paths: frozenset[str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> MergeRangeDeletesResult:
    """Merge the range delete files of the branch's head, and move the handle to the result.

    `only_paths` limits the job to these files; the others remain unchanged. Reads range delete files, but no data file.
    Groups of files with more spans than the table's span budget remain unchanged, because readers do not load them
    either. The plan is made on the head on which it is committed.
    """
    started = time.perf_counter()
    refresh(iceberg)
    merges: tuple[_Merge, ...] = ()
    written: list[DeleteFile] = []
    tell = progress or silent

    def plan(state: HeadState) -> TableChange:
        nonlocal merges
        merges = tuple(_merges(state, only_paths))
        total, done = sum(len(merge.files) for merge in merges), 0
        context = WriteContext.of(state.view.metadata, state.view.io)
        added: list[DeleteFile] = []
        tell(0, total, "range delete files")
        for merge in merges:
            if len(merge.spans):
                added.append(_write(context, merge))
                written.append(added[-1])
            done += len(merge.files)
            tell(done, total, "range delete files")
        return _change(state, merges, added)

    if dry_run:
        state = head_state(head_view(iceberg.metadata, iceberg.io, branch), branch)
        merges = tuple(_merges(state, only_paths))
        snapshot_id = state.view.snapshot.snapshot_id if state.view.snapshot else None
    else:
        snapshot_id = commit_deletes_on_head(iceberg, branch, plan, written, job="merge_range_deletes")
    return MergeRangeDeletesResult(
        snapshot_id=snapshot_id,
        removed_range_delete_files_count=sum(len(merge.files) for merge in merges),
        added_range_delete_files_count=sum(len(merge.spans) > 0 for merge in merges),
        removed_spans_count=sum(file.record_count for merge in merges for file in merge.files),
        added_spans_count=sum(len(merge.spans) for merge in merges),
        rewritten_bytes=sum(file.file_size_bytes for file in written),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )


def _merges(state: HeadState, only_paths: frozenset[str] | None) -> Iterator[_Merge]:
    """MT-11: every group of two or more files, and every file that has unneeded spans."""
    view, context = state.view, state.context
    budget = positive_int(view.metadata.properties, RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT)
    ranges = [
        file
        for file in state.delete_files
        if file.kind is DeleteKind.RANGE and (only_paths is None or file.file_path in only_paths)
    ]
    scope = FilesInScope.of(state.files_in_reach)
    for (where, _), members in by_scope_and_columns(ranges, dict(view.metadata.specs())).items():
        span_count = sum(file.record_count for file in members)
        if span_count > budget:
            continue
        fragments = context.loader.range_fragments(members)
        in_scope = scope.within(where)
        spans = fragments.take(np.flatnonzero(needed_fragments(fragments, in_scope)))
        if _is_one_line(view, members):
            spans = joined_fragments(spans, in_scope)
        spans = joined_neighbours(spans)
        if len(members) > 1 or len(spans) < span_count:
            yield _Merge(tuple(members), spans)


def _is_one_line(view: SnapshotView, members: Sequence[DeleteFile]) -> bool:
    """MT-19: whether every snapshot since the oldest of these deletes is an ancestor of the head.

    If not, a data file from another branch, newer than a delete and older than the merged file, might be carried here.
    """
    oldest = min(committed_sequence_number(file) for file in members)
    line = {snapshot.snapshot_id for snapshot in ancestors(view.metadata, view.snapshot)}
    return all(
        snapshot.snapshot_id in line
        for snapshot in view.metadata.snapshots
        if (snapshot.sequence_number or 0) >= oldest
    )


def _write(context: WriteContext, merge: _Merge) -> DeleteFile:
    """MT-12, RD-8: spans with their own sequence numbers, under the spec and partition of their original files."""
    first = merge.files[0]
    return write_range_delete_file(context, merge.spans, spec_id=first.spec_id, partition=first.partition)


def _change(state: HeadState, merges: Sequence[_Merge], added: Sequence[DeleteFile]) -> TableChange:
    snapshot = state.view.snapshot
    removed = tuple(file for merge in merges for file in merge.files)
    assert len(file_keys(removed)) == len(removed), "a file belongs to one scope and column list"
    return TableChange(
        operation=Operation.REPLACE,
        kind=ChangeKind.DELETE_REWRITE,
        added_delete_files=tuple(added),
        removed_delete_files=removed,
        planned_snapshot_id=snapshot.snapshot_id if snapshot else None,
        planned_sequence_number=state.view.sequence_number,
    )
