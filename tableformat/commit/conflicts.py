"""Conflict rules: which concurrent commits invalidate a change, and which do not (`specs/commit-protocol.md`).

                          what others did to the branch since the change was planned
    our change      | data added      data removed  positions added  positions removed  keyed added   keyed removed
    ----------------+------------------------------------------------------------------------------------------------
    blind           | retry           retry         retry            retry              retry         retry
    row delta       | retry           CP-4          CP-10            CP-4               retry         retry
    scan based      | CP-5, SP-20     CP-4, CP-38   CP-6, 10, 38     CP-4               CP-6, CP-38   retry
    rewrite         | retry           CP-4          CP-8             retry              retry         CP-9
    delete rewrite  | retry           CP-4          CP-10            CP-4               retry         CP-4
    conversion      | CP-11           CP-4          CP-10            CP-4, CP-21        retry         CP-4

"Positions" are position deletes and deletion vectors; "keyed" are equality and range deletes. If no rule finds a
conflict, the change is retried on the new head. This table applies to a head that descends from the snapshot on which
the change was planned. Any other head aborts every kind except blind (CP-22). A change that was planned on the current
head needs no rule, except that a conversion always proves CP-11 and CP-21: deletes that are removed too early cannot be
brought back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import ChangeKind, TableChange, file_key, file_keys, is_keyed
from tableformat.commit.history_change import ERASED
from tableformat.commit.table_diff import (
    TableDiff,
    delete_files_removed_along,
    diff_snapshots,
    lineage,
    live_files,
)
from tableformat.deletes.rules import (
    committed_sequence_number,
    equality_delete_is_new_enough,
    is_global,
    position_delete_is_new_enough,
    range_delete_is_new_enough,
    shares_partition,
)
from tableformat.errors import CommitConflictError
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView


class Theirs(Enum):
    """Events on the branch between the planned snapshot and the head."""

    DATA_ADDED = "data files were added"
    DATA_REMOVED = "data files were removed"
    POSITIONS_ADDED = "position deletes were added"
    POSITIONS_REMOVED = "position deletes were removed"
    KEYED_ADDED = "equality or range deletes were added"
    KEYED_REMOVED = "equality or range deletes were removed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Our change, the new head, and the difference between the head and the snapshot on which the change was
    planned."""

    change: TableChange
    head: SnapshotView
    planned: Snapshot | None
    diff: TableDiff

    def happened(self) -> frozenset[Theirs]:
        """The columns of the conflict table that the difference of live files shows."""
        diff = self.diff
        happenings: dict[Theirs, bool] = {
            Theirs.DATA_ADDED: bool(diff.added_data_files),
            Theirs.DATA_REMOVED: bool(diff.removed_data_files),
            Theirs.POSITIONS_ADDED: not all(map(is_keyed, diff.added_delete_files)),
            Theirs.POSITIONS_REMOVED: not all(map(is_keyed, diff.removed_delete_files)),
            Theirs.KEYED_ADDED: any(map(is_keyed, diff.added_delete_files)),
            Theirs.KEYED_REMOVED: any(map(is_keyed, diff.removed_delete_files)),
        }
        return frozenset(event for event, happened in happenings.items() if happened)


Rule: TypeAlias = Callable[[Evidence], Iterable[str]]
"""Yields one sentence for each conflict that it finds. If it yields nothing, the change may be retried."""


def files_named_are_live(evidence: Evidence) -> Iterator[str]:
    """CP-4: every file that the change removes, and every data file that its position deletes name, is still live."""
    change, diff = evidence.change, evidence.diff
    needed = {data.file_path for data in change.removed_data_files} | change.data_files_named_by_deletes
    gone = [data.file_path for data in diff.removed_data_files if data.file_path in needed]
    if gone:
        yield f"{_some(gone)} was removed from the table"
    replaced = file_keys(change.removed_delete_files)
    gone = [delete.file_path for delete in diff.removed_delete_files if file_key(delete) in replaced]
    if gone:
        yield f"delete files were removed from the table: {_some(gone)}"


def rows_read_are_unchanged(evidence: Evidence) -> Iterator[str]:
    """CP-5: a change whose decision depends on rows that it read is serializable: no other commit added a data file
    that it should have read."""
    may_match = evidence.change.may_match
    unseen = [data.file_path for data in evidence.diff.added_data_files if may_match is None or may_match(data)]
    if unseen:
        yield f"{_some(unseen)} was added and may hold rows that the decision depends on"


def rows_deleted_were_not_changed(evidence: Evidence) -> Iterator[str]:
    """SP-20: at snapshot isolation, rows that others add do not matter. The exception are new versions of rows that
    this change deletes: the first commit wins."""
    change, may_hold = evidence.change, evidence.change.may_hold_moved_rows
    if may_hold is None:
        return
    moved = [data.file_path for data in evidence.diff.added_data_files if may_hold(data)]
    touched = (*change.removed_data_files, *change.narrowed_data_files)
    for deletes, hit in _met_rows(evidence, touched) if moved else ():
        yield f"{deletes} rows of {hit}, whose new versions may be in {_some(moved)}"


def removed_data_met_no_new_delete(evidence: Evidence) -> Iterator[str]:
    """CP-6: rows are written again with the sequence number of the commit, so a concurrent delete would miss them."""
    replaced = (*evidence.change.removed_data_files, *evidence.change.updated_data_files)
    for deletes, hit in _met_rows(evidence, replaced):
        yield f"{deletes} rows of {hit}, which this change replaces"


def rows_relied_on_are_there(evidence: Evidence) -> Iterator[str]:
    """CP-38: a row is not added because a matching one exists. After a delete of the existing row there would be
    neither."""
    change, diff = evidence.change, evidence.diff
    relied = {data.file_path: data for data in (change.relied_data_files or tuple)()}
    gone = [data.file_path for data in diff.removed_data_files if relied.pop(data.file_path, None) is not None]
    if gone:
        yield f"{_some(gone)} was removed, with existing rows that made this change skip an insert"
    left = list(relied.values())
    applying = [each for each in diff.added_delete_files if any(_applies(evidence, each, data) for data in left)]
    if not applying:
        return
    reached = change.relied_reached
    met = sorted(data.file_path for data in left) if reached is None else sorted(reached(applying, left))
    if met:
        paths = [delete.file_path for delete in applying]
        verb = "deletes" if len(paths) == 1 else "delete"
        yield f"{_some(paths)} {verb} existing rows in {_some(met)} that made this change skip an insert"


def rewritten_data_met_no_new_position_delete(evidence: Evidence) -> Iterator[str]:
    """CP-8: position deletes name rows of the replaced file and are not carried over to the new one."""
    for delete in evidence.diff.added_delete_files:
        if is_keyed(delete):
            continue
        hit = [data.file_path for data in evidence.change.removed_data_files if _applies(evidence, delete, data)]
        if hit:
            yield f"{delete.file_path} deletes rows of {_some(hit)} by position"


def no_newer_delete_of_rewritten_data_left(evidence: Evidence) -> Iterator[str]:
    """CP-9: a delete newer than the planned snapshot that applied to an input must still apply to the output.

    It may have been added and removed in the meantime. The difference of live files does not show this, so the history
    is read.
    """
    change, head = evidence.change, evidence.head
    if evidence.planned is None or head.snapshot is None:
        return
    path = lineage(head.metadata, head.snapshot, evidence.planned.snapshot_id)
    assert path is not None, "checked earlier (CP-22)"
    for delete in delete_files_removed_along(head.io, head.metadata, evidence.planned, path):
        if not is_keyed(delete) or committed_sequence_number(delete) <= change.planned_sequence_number:
            continue
        hit = [data.file_path for data in change.removed_data_files if _applies(evidence, delete, data)]
        if hit:
            yield f"{delete.file_path}, which deletes rows of {_some(hit)}, was added and removed again"


def vector_has_the_last_word(evidence: Evidence) -> Iterator[str]:
    """CP-10: a deletion vector replaces all position deletes of its file (DA-7), including those added concurrently."""
    change = evidence.change
    vectors = {
        delete.referenced_data_file for delete in change.added_delete_files if delete.kind is DeleteKind.DELETION_VECTOR
    }
    if not vectors:
        return
    for delete in evidence.diff.added_delete_files:
        if not is_keyed(delete) and named_data_file(delete) in {None, *vectors}:
            yield f"{delete.file_path} deletes rows by position that the new deletion vectors do not contain"


def removed_deletes_were_converted(evidence: Evidence) -> Iterator[str]:
    """CP-11: a delete is removed only if every live data file that it reaches was searched for its rows.

    The whole head is checked, not only the new files. A rewrite that was planned earlier commits data files with old
    sequence numbers. A rollback makes data files live again that hold rows of the delete.
    """
    change, head = evidence.change, evidence.head
    removed = change.removed_delete_files
    if not removed:
        return
    manifests = manifests_of(head)
    leaving = file_keys(change.removed_data_files)
    unseen: list[str] = []
    for data in live_files(head.io, head.metadata, manifests, ManifestContent.DATA):
        if data.file_path in change.resolved_data_files or file_key(data) in leaving:
            continue
        assert isinstance(data, DataFile)
        if any(_applies(evidence, delete, data) for delete in removed):
            unseen.append(data.file_path)
    if unseen:
        yield f"{_some(unseen)} was not searched and may hold rows that the removed deletes match"


def positions_relied_on_are_there(evidence: Evidence) -> Iterator[str]:
    """CP-21: rows that an earlier snapshot of the same conversion deleted by position are still deleted, if the head is
    a descendant of it. Otherwise a rollback may have removed the position deletes, and only the keyed delete removes
    the rows."""
    yield from _not_in_history(evidence.head, evidence.change.relied_on_snapshot_id)


CONFLICT_TABLE: Final[Mapping[ChangeKind, Mapping[Theirs, tuple[Rule, ...]]]] = {
    ChangeKind.BLIND: {},
    ChangeKind.ROW_DELTA: {
        Theirs.DATA_REMOVED: (files_named_are_live,),
        Theirs.POSITIONS_ADDED: (vector_has_the_last_word,),
        Theirs.POSITIONS_REMOVED: (files_named_are_live,),
    },
    ChangeKind.SCAN_BASED: {
        Theirs.DATA_ADDED: (rows_read_are_unchanged, rows_deleted_were_not_changed),
        Theirs.DATA_REMOVED: (files_named_are_live, rows_relied_on_are_there),
        Theirs.POSITIONS_ADDED: (removed_data_met_no_new_delete, vector_has_the_last_word, rows_relied_on_are_there),
        Theirs.POSITIONS_REMOVED: (files_named_are_live,),
        Theirs.KEYED_ADDED: (removed_data_met_no_new_delete, rows_relied_on_are_there),
    },
    ChangeKind.REWRITE: {
        Theirs.DATA_REMOVED: (files_named_are_live,),
        Theirs.POSITIONS_ADDED: (rewritten_data_met_no_new_position_delete,),
        Theirs.KEYED_REMOVED: (no_newer_delete_of_rewritten_data_left,),
    },
    ChangeKind.DELETE_REWRITE: {
        Theirs.DATA_REMOVED: (files_named_are_live,),
        Theirs.POSITIONS_ADDED: (vector_has_the_last_word,),
        Theirs.POSITIONS_REMOVED: (files_named_are_live,),
        Theirs.KEYED_REMOVED: (files_named_are_live,),
    },
    ChangeKind.CONVERSION: {
        Theirs.DATA_ADDED: (removed_deletes_were_converted,),
        Theirs.DATA_REMOVED: (files_named_are_live,),
        Theirs.POSITIONS_ADDED: (vector_has_the_last_word,),
        Theirs.POSITIONS_REMOVED: (files_named_are_live, positions_relied_on_are_there),
        Theirs.KEYED_REMOVED: (files_named_are_live,),
    },
}
"""Our kind x their event -> the rules that can abort. A missing cell means retry."""


def check_conflicts(change: TableChange, head: SnapshotView, subject: str) -> None:
    """CP-3, CP-22: raise CommitConflictError if concurrent commits made the change invalid.

    `subject` names the table and branch for the message.
    """
    rules = CONFLICT_TABLE[change.kind]
    head_id = head.snapshot.snapshot_id if head.snapshot is not None else None
    if not rules:
        return
    if head_id == change.planned_snapshot_id and change.kind is not ChangeKind.CONVERSION:
        return
    found = [*_not_in_history(head, change.planned_snapshot_id), *_written_again(head, change.planned_snapshot_id)]
    if not found:
        evidence = _collect_evidence(change, head)
        asked = dict.fromkeys(_rules_to_ask(rules, evidence))
        found = list(dict.fromkeys(sentence for rule in asked for sentence in rule(evidence)))
    if found:
        raise CommitConflictError(
            f"{change.kind.value} change of {subject} cannot commit. It was planned on snapshot "
            f"{change.planned_snapshot_id}; since then: {'; '.join(found)}. Nothing was changed. Run the operation "
            "again."
        )


ASKED_ALWAYS: Final = frozenset(
    {no_newer_delete_of_rewritten_data_left, removed_deletes_were_converted, positions_relied_on_are_there}
)
"""Rules that are always checked, because the difference of live files does not show their evidence."""


def _rules_to_ask(rules: Mapping[Theirs, tuple[Rule, ...]], evidence: Evidence) -> Iterator[Rule]:
    happened = evidence.happened()
    for event, candidates in rules.items():
        yield from (rule for rule in candidates if event in happened or rule in ASKED_ALWAYS)


def _not_in_history(head: SnapshotView, snapshot_id: int | None) -> Iterator[str]:
    """CP-22: rows read in a snapshot prove nothing about a head that does not descend from that snapshot.

    A rollback makes rows live again that were deleted when the change looked for them. The difference of live files
    would only show that a delete file was removed, which conversions do every day. None, the state before the first
    snapshot, is in every history.
    """
    if snapshot_id is None or lineage(head.metadata, head.snapshot, snapshot_id) is not None:
        return
    if snapshot_by_id(head.metadata, snapshot_id) is None:
        yield f"snapshot {snapshot_id} has expired, so the changes after it are unknown"
    else:
        yield f"the branch was moved and {snapshot_id} is not in its history, or snapshots in between have expired"


def _written_again(head: SnapshotView, snapshot_id: int | None) -> Iterator[str]:
    """CP-91: an erasure gives data files new names and positions, in all snapshots. A change that was planned before
    names the former ones, which the difference of live files does not show."""
    path = None if snapshot_id is None else lineage(head.metadata, head.snapshot, snapshot_id)
    for snapshot in path or ():
        if snapshot.summary is not None and ERASED in snapshot.summary.additional_properties:
            yield f"rows were erased from all snapshots (by snapshot {snapshot.snapshot_id}), which rewrote files"


def _collect_evidence(change: TableChange, head: SnapshotView) -> Evidence:
    planned_id = change.planned_snapshot_id
    planned = None if planned_id is None else snapshot_by_id(head.metadata, planned_id)
    return Evidence(change, head, planned, diff_snapshots(head.io, head.metadata, planned, head.snapshot))


def _met_rows(evidence: Evidence, touched: Sequence[DataFile]) -> Iterator[tuple[str, str]]:
    """Deletes of others and the data files in which they match rows of the change, as words: "d deletes" and "a, b"."""
    suspected: dict[str, DataFile] = {}
    asked: list[DeleteFile] = []
    for delete in evidence.diff.added_delete_files:
        hit = {data.file_path: data for data in touched if _applies(evidence, delete, data)}
        if hit and not is_keyed(delete):
            yield f"{delete.file_path} deletes", _some(list(hit))
        elif hit:
            asked.append(delete)
            suspected.update(hit)
    reached = evidence.change.reached
    met = list(suspected) if reached is None or not asked else sorted(reached(asked, list(suspected.values())))
    if met:
        keyed = [delete.file_path for delete in asked]
        yield f"{_some(keyed)} {'deletes' if len(keyed) == 1 else 'delete'}", _some(met)


def _applies(evidence: Evidence, delete: DeleteFile, data: DataFile) -> bool:
    """Whether a committed delete can delete rows of a committed data file, according to the manifests."""
    delete_number, data_number = committed_sequence_number(delete), committed_sequence_number(data)
    match delete.kind:
        case DeleteKind.POSITION | DeleteKind.DELETION_VECTOR:
            if not position_delete_is_new_enough(delete_number, data_number):
                return False
            named = named_data_file(delete)
            return shares_partition(delete, data) if named is None else named == data.file_path
        case DeleteKind.EQUALITY:
            new_enough = equality_delete_is_new_enough(delete_number, data_number)
        case DeleteKind.RANGE:
            new_enough = range_delete_is_new_enough(delete_number, data_number)
    return new_enough and (is_global(delete, evidence.head.spec(delete.spec_id)) or shares_partition(delete, data))


def _some(paths: list[str]) -> str:
    """Up to three paths of a list that may have thousands."""
    shown = ", ".join(paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more files"
