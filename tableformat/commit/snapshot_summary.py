"""The summary of a snapshot: the added and removed files and rows, and the totals after it.

Source: Iceberg table specification, "Optional Snapshot Summary Fields". Range deletes count as equality deletes
(FM-18), because engines that answer COUNT(*) from the totals stop doing so if `total-equality-deletes` is above zero.
Range deletes are also counted separately, under names of this format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from tableformat.arguments import check_texts
from tableformat.commit.change import TableChange
from tableformat.commit.environment import environment
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.summary_names import DELETED_ROWS

ROWS_UNCHANGED: Final = "tableformat.rows-unchanged"
"""`true`: the snapshot has the same rows as its parent, although its operation is not `replace` (CF-4)."""

_TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""Total -> the field that raises it and the field that lowers it."""

_RESERVED_PREFIXES: Final = ("added-", "removed-", "deleted-", "total-")
_RESERVED_NAMES: Final = frozenset({"operation", "changed-partition-count"})
_OWN_PREFIX: Final = "tableformat."


def changes_no_row(snapshot: Snapshot) -> bool:
    """CF-4: whether the snapshot stores the same rows in other files: compaction, conversion, manifest rewrites, by any
    writer."""
    summary = snapshot.summary
    if summary is None:
        return False
    return summary.operation is Operation.REPLACE or summary.additional_properties.get(ROWS_UNCHANGED) == "true"


def check_snapshot_properties(properties: Mapping[str, str]) -> None:
    """Raise InvalidArgumentError for names that the commit computes itself, and for values that are not text."""
    check_texts(properties, "snapshot_properties")
    for name in properties:
        if name in _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES):
            raise InvalidArgumentError(
                f"snapshot_properties cannot set {name!r}, because the commit computes it. Use another name."
            )


def check_own_names(properties: Mapping[str, str]) -> None:
    """FM-23: raise InvalidArgumentError if a caller adds our own names to a summary. Jobs and readers rely on their
    values, for example that a snapshot changes no row (CF-4), or that files were searched for deletes (MT-14)."""
    for name in properties:
        if isinstance(name, str) and name.startswith(_OWN_PREFIX):
            raise InvalidArgumentError(
                f"snapshot_properties cannot set {name!r}: names that begin with {_OWN_PREFIX!r} are reserved for "
                "this library. Use another name."
            )


def totals_of_parent(parent: Snapshot | None) -> dict[str, int] | None:
    """The totals of the parent; zeros without a parent, None if its summary lacks one or has a value that is not a
    number."""
    if parent is None:
        return dict.fromkeys(_TOTALS, 0)
    if parent.summary is None:
        return None
    texts = {name: parent.summary.additional_properties.get(name) for name in _TOTALS}
    totals = {name: int(text) for name, text in texts.items() if text is not None and text.isdecimal()}
    return totals if len(totals) == len(_TOTALS) else None


def count_totals(live: Iterable[DataFile | DeleteFile]) -> dict[str, int]:
    """The totals from the live files themselves, for a parent whose summary does not state them."""
    added = _count(live, added=True)
    return {total: added[raised_by] for total, (raised_by, _) in _TOTALS.items()}


def build_summary(change: TableChange, parent_totals: Mapping[str, int], properties: Mapping[str, str]) -> Summary:
    """The summary of the snapshot with the change, including the number of rows that it deletes if known (CP-87)."""
    added: tuple[DataFile | DeleteFile, ...] = (*change.added_data_files, *change.added_delete_files)
    removed: tuple[DataFile | DeleteFile, ...] = (*change.removed_data_files, *change.removed_delete_files)
    counts = _count(added, added=True) + _count(removed, added=False)
    partitions = {partition_of(file) for file in (*added, *removed)}
    totals = {
        # A negative total means that the totals of another writer were wrong. Zero is closer to the truth, and readers
        # expect a count.
        total: max(0, parent_totals[total] + counts[raised_by] - counts[lowered_by])
        for total, (raised_by, lowered_by) in _TOTALS.items()
    }
    numbers = (
        {name: count for name, count in counts.items() if count} | {"changed-partition-count": len(partitions)} | totals
    )
    if change.deleted_row_count:
        numbers[DELETED_ROWS] = change.deleted_row_count
    texts = {**environment(), **properties, **(change.coverage.summary if change.coverage is not None else {})}
    return _summary(change.operation, {**texts, **{name: str(number) for name, number in numbers.items()}})


def recounted(
    summary: Summary,
    added: Iterable[DataFile | DeleteFile],
    removed: Iterable[DataFile | DeleteFile],
    totals: Mapping[str, int],
) -> dict[str, str]:
    """The fields of a summary, with the counts of these files in place of the stated ones. No other count is added."""
    counts = {**_count(added, added=True), **_count(removed, added=False), **totals}
    computed = {name for pair in _TOTALS.items() for name in (pair[0], *pair[1])} | counts.keys()
    return {
        name: str(counts.get(name, 0)) if name in computed else text
        for name, text in summary.additional_properties.items()
    }


def _summary(operation: Operation, fields: Mapping[str, str]) -> Summary:
    return Summary(operation, **fields)


def _own_bytes(file: DataFile | DeleteFile) -> int:
    """Bytes of the file. For a deletion vector, which shares its file, the bytes of its blob, as Iceberg counts
    them."""
    if isinstance(file, DeleteFile) and file.content_size_bytes is not None:
        return file.content_size_bytes
    return file.file_size_bytes


def _count(files: Iterable[DataFile | DeleteFile], *, added: bool) -> Counter[str]:
    """FM-18: counts of files, rows and bytes, under the names of the specification."""
    verb = "added" if added else "removed"
    counts: Counter[str] = Counter()
    for file in files:
        counts[f"{verb}-files-size"] += _own_bytes(file)
        if isinstance(file, DataFile):
            counts["added-data-files" if added else "deleted-data-files"] += 1
            counts["added-records" if added else "deleted-records"] += file.record_count
            continue
        counts[f"{verb}-delete-files"] += 1
        match file.kind:
            case DeleteKind.POSITION:
                counts[f"{verb}-position-delete-files"] += 1
                counts[f"{verb}-position-deletes"] += file.record_count
            case DeleteKind.DELETION_VECTOR:
                counts[f"{verb}-dvs"] += 1
                counts[f"{verb}-position-deletes"] += file.record_count
            case DeleteKind.EQUALITY | DeleteKind.RANGE:
                counts[f"{verb}-equality-delete-files"] += 1
                counts[f"{verb}-equality-deletes"] += file.record_count
        if file.kind is DeleteKind.RANGE:
            counts[f"{verb}-range-delete-files"] += 1
            counts[f"{verb}-range-deletes"] += file.record_count
    return counts
