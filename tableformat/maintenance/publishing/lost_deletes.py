"""Finds keyed deletes that were removed from a branch before it got the rows of its publish target that they delete
(MT-32).

    target   m1 (row r, number 2)
    branch   b1 (delete r, number 3)    b2 (the delete is removed)    r is carried: nothing deletes it

Conversions and jobs on a branch with a publish target include the target's rows. The error therefore occurs only if the
target was set later, or if another program changed the branch. The check uses manifests, because a summary is optional
and other writers omit counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyiceberg.table.snapshots import Operation, Snapshot

from tableformat.commit.change import file_key, file_keys, is_keyed
from tableformat.commit.table_diff import live_files, manifests_of_snapshot
from tableformat.deletes.rules import committed_sequence_number, keyed_delete_is_new_enough
from tableformat.deletes.spans.needed_spans import needed_fragments
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import PublishRefusedError
from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes
from tableformat.merge_on_read.delete_index import EVERYWHERE, by_scope_and_columns
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import PUBLISH_TARGET_PREFIX
from tableformat.scan.context import merge_context


@dataclass(frozen=True, slots=True)
class _Left:
    """Keyed deletes that a snapshot removed, each newer than some row to be carried."""

    snapshot: Snapshot
    deletes: tuple[DeleteFile, ...]

    @property
    def keeps_rows(self) -> bool:
        """Whether a job merged or dropped the deletes. Any other snapshot converted them."""
        return self.snapshot.summary is not None and self.snapshot.summary.operation is Operation.REPLACE


def refuse_rows_that_deletes_missed(view: SnapshotView, branch: str, carried: Sequence[DataFile]) -> None:
    """MT-32: raises PublishRefusedError if a delete that was removed from the branch would have deleted rows that are
    carried now."""
    oldest = min(map(committed_sequence_number, carried), default=None)
    if oldest is None:
        return
    for left in _deletes_that_left(view, oldest):
        if (
            not left.keeps_rows
            or _equality_delete_is_missed(view, left, carried)
            or _span_is_missed(view, left, carried)
        ):
            raise PublishRefusedError(
                f"branch {branch!r} cannot be published: snapshot {left.snapshot.snapshot_id} "
                f"{'dropped' if left.keeps_rows else 'converted'} deletes without applying them to "
                f"{carried[0].file_path}, which the target already had. Nothing was moved. Start a new branch at the "
                f"target, and set the table property {PUBLISH_TARGET_PREFIX}{branch} immediately."
            )


def _deletes_that_left(view: SnapshotView, oldest: int) -> Iterator[_Left]:
    """The removed deletes, newest snapshot first. If the parent snapshot has expired, only the summary is used."""
    for snapshot in ancestors(view.metadata, view.snapshot):
        if not keyed_delete_is_new_enough(snapshot.sequence_number or 0, oldest):
            return
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else snapshot_by_id(view.metadata, parent_id)
        if parent is None:
            left = _Left(snapshot, ())
            if _states_removed_keyed_deletes(snapshot) and not left.keeps_rows:
                yield left
            continue
        kept = file_keys(_keyed_deletes(view, snapshot, besides=parent))
        gone = tuple(
            delete
            for delete in _keyed_deletes(view, parent, besides=snapshot)
            if file_key(delete) not in kept and keyed_delete_is_new_enough(committed_sequence_number(delete), oldest)
        )
        if gone:
            yield _Left(snapshot, gone)


def _equality_delete_is_missed(view: SnapshotView, left: _Left, carried: Sequence[DataFile]) -> bool:
    """MT-10: whether a dropped delete reaches a carried file. A delete that a job dropped is dead for every file that
    the job knew."""
    dropped = [delete for delete in left.deletes if delete.kind is DeleteKind.EQUALITY]
    applicable = ApplicableDeletes(view.metadata, dropped)
    return bool(dropped) and any(applicable.of(data) for data in carried)


def _span_is_missed(view: SnapshotView, left: _Left, carried: Sequence[DataFile]) -> bool:
    """MT-10, MT-11: whether a range that a job dropped, or left out of a merged file, may hold rows of the files.

    A range is still deleted if a span with the same or a newer sequence number is live after the job. If two spans
    cover an interval, the skyline keeps the larger number. The numbers are therefore doubled, and those after the job
    are odd.
    """
    specs, loader = dict(view.metadata.specs()), merge_context(view).loader
    dropped = by_scope_and_columns([each for each in left.deletes if each.kind is DeleteKind.RANGE], specs)
    after: Mapping[Any, Sequence[DeleteFile]] = {}
    if dropped:
        live = _keyed_deletes(view, left.snapshot)
        after = by_scope_and_columns([each for each in live if each.kind is DeleteKind.RANGE], specs)
    for (where, columns), members in dropped.items():
        spans = [_numbered(loader.range_fragments(members), odd=False)]
        if (where, columns) in after:
            spans.append(_numbered(loader.range_fragments(after[where, columns]), odd=True))
        fragments = skyline(SpanArray.concat(spans))
        numbers = fragments.sequence_numbers
        assert numbers is not None, "a skyline has sequence numbers"
        only_before = fragments.take(np.flatnonzero(numbers % 2 == 0))
        lost = replace(only_before, sequence_numbers=numbers[numbers % 2 == 0] // 2)
        in_scope = [data for data in carried if where is EVERYWHERE or partition_of(data) == where]
        if needed_fragments(lost, in_scope).any():
            return True
    return False


def _numbered(fragments: SpanArray, *, odd: bool) -> SpanArray:
    assert fragments.sequence_numbers is not None, "a skyline has sequence numbers"
    return replace(fragments, sequence_numbers=fragments.sequence_numbers * 2 + odd)


def _states_removed_keyed_deletes(snapshot: Snapshot) -> bool:
    properties = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return properties.get("removed-equality-deletes", "0") != "0"


def _keyed_deletes(view: SnapshotView, snapshot: Snapshot | None, besides: Snapshot | None = None) -> list[DeleteFile]:
    """The keyed deletes in the manifests of a snapshot that are not in the list of the other snapshot."""
    shared = {manifest.manifest_path for manifest in manifests_of_snapshot(view.io, besides)}
    manifests = [each for each in manifests_of_snapshot(view.io, snapshot) if each.manifest_path not in shared]
    files = live_files(view.io, view.metadata, manifests, ManifestContent.DELETES)
    return [file for file in files if isinstance(file, DeleteFile) and is_keyed(file)]
