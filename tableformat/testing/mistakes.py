"""Known mistakes of table formats, each injected into one function. Tests have to detect them.

A test suite that stays green with one of these mistakes proves nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.commit import conflicts
from tableformat.commit.snapshot_producer import SnapshotProducer
from tableformat.deletes import rules
from tableformat.deletes.matching.key_hashes import KeyWords
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans import spans
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys import encoding
from tableformat.maintenance.conversion import conversion_plan
from tableformat.merge_on_read import alive_rows, delete_loader, deleted_positions, span_positions
from tableformat.merge_on_read.small_files import batches
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests import manifest_list
from tableformat.operations.staging.staged_change import StagedChange
from tableformat.scan import row_lineage_columns
from tableformat.testing.replacing import replaced, replaced_method


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake."""

    name: str
    rule_ids: tuple[str, ...]
    """The rules of the specification that it violates."""
    made: Callable[[], AbstractContextManager[None]]
    """While the context is open, the library makes the mistake."""


def _same_number_is_new_enough(delete_sequence_number: Any, data_sequence_number: Any) -> Any:
    """`<=` instead of `<`: rows disappear with the range delete of their own commit."""
    return data_sequence_number <= delete_sequence_number


def _span_with_its_upper_bound(
    original: Callable[..., SpanArray], key: Any, lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None
) -> SpanArray:
    """The span ends after the upper bound, so rows at the bound are deleted too."""
    span = original(key, lower, upper)
    return replace(span, upper=replace(span.upper, after=np.ones(len(span), np.bool_)))


def _equal_but_for_nulls(original: Callable[..., Any], words: KeyWords, rows: Any, keys: KeyWords, among: Any) -> Any:
    """Null does not match null, as in `=` and joins."""
    equal = original(words, rows, keys, among)
    for column in words.columns:
        equal = equal if column.valid is None else equal & column.valid[rows]
    return equal


def _encoded_without_last_zero(original: Callable[..., Any], array: pa.Array, key_type: Any) -> Any:
    """Text that ends with a zero byte is encoded like the text without it."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = pc.utf8_rtrim(array, characters="\x00")
    return original(array, key_type)


def _only_newest_searched(
    original: Callable[..., list[FileScanTask]], tasks: Sequence[FileScanTask]
) -> list[FileScanTask]:
    """Deletes are removed after only the newest data file was searched."""
    newest = max((task.data_file.sequence_number or 0 for task in tasks), default=0)
    return original([task for task in tasks if task.data_file.sequence_number == newest])


def _added_with_new_number(
    original: Callable[..., Any], producer: SnapshotProducer, base: Any, files: Iterable[DataFile]
) -> Any:
    """Rewritten files get the sequence number of the commit, so a concurrent delete misses them."""
    return original(producer, base, [replace(file, sequence_number=None) for file in files])


def _nothing_reaches_back(_change: StagedChange) -> None:
    """A delete does not delete the rows that its own transaction appended before it."""


def _nothing_alive(task: FileScanTask, _context: Any) -> PositionSet:
    """The change feed has every row of a file that a delete reached."""
    del task
    return PositionSet.empty()


def _counted_from_row_group(positions: PositionSet, _start_row: int) -> PositionSet:
    """Rows that were found in a later row group are deleted in the first one."""
    return positions


def _row_groups_end_to_end(_starts: Any, _groups: Any, row_starts: Any, row_ends: Any) -> tuple[Any, Any]:
    """Row groups that were read are assumed to be contiguous from the first row of the file."""
    return row_starts, row_ends


def _rows_of_the_first_row_group(
    original: Callable[..., pa.Table], rows: pa.Table, deleted: PositionSet, _start_row: int
) -> pa.Table:
    """Rows of every row group are dropped by the positions of the first one."""
    return original(rows, deleted, 0)


def _ids_of_the_first_row_group(
    original: Callable[..., pa.Table], rows: pa.Table, names: Sequence[str], data: DataFile, _start_row: int
) -> pa.Table:
    """Rows of every row group inherit the ids of the first one."""
    return original(rows, names, data, 0)


@contextmanager
def _replaced_where_no_file_is_small(original: Callable[..., Any], other: Callable[..., Any]) -> Iterator[None]:
    """Turns off reading whole files, because the files of random tables are small."""
    with (
        mock.patch.object(batches, "SMALL_FILE_BYTES", -1),
        mock.patch.object(delete_loader, "_SMALL_FILE_BYTES", -1),
        replaced(original, other),
    ):
        yield


def _no_ids_were_taken(_before: Any, _assigned: Any, first_row_id: int) -> int:
    """The next commit assigns the ids of this one again."""
    return first_row_id


def _any_history(_head: Any, _snapshot_id: int | None) -> Iterable[str]:
    """A branch may be moved to any snapshot: only the difference of live files is considered."""
    return ()


def _no_conflict(*_arguments: Any) -> None:
    """The commit proceeds despite any concurrent change."""


MISTAKES: Final = (
    Mistake(
        "range-delete-reaches-rows-of-its-own-commit",
        ("RD-2",),
        partial(replaced, rules.range_delete_is_new_enough, _same_number_is_new_enough),
    ),
    Mistake(
        "upper-bound-is-inclusive",
        ("RD-1",),
        partial(replaced, spans.span_of_bounds, partial(_span_with_its_upper_bound, spans.span_of_bounds)),
    ),
    Mistake(
        "null-does-not-match-null",
        ("DA-4",),
        partial(
            replaced_method,
            KeyWords,
            "equal_rows",
            lambda *arguments, original=KeyWords.equal_rows: _equal_but_for_nulls(original, *arguments),
        ),
    ),
    Mistake(
        "trailing-zero-byte-is-stripped",
        ("RD-4",),
        partial(replaced, encoding.encode_column, partial(_encoded_without_last_zero, encoding.encode_column)),
    ),
    Mistake(
        "delete-is-dropped-too-early",
        ("CP-11",),
        partial(
            replaced, conversion_plan.needing_search, partial(_only_newest_searched, conversion_plan.needing_search)
        ),
    ),
    Mistake(
        "rewritten-file-gets-a-new-sequence-number",
        ("CP-7",),
        partial(
            replaced_method,
            SnapshotProducer,
            "_added_data",
            lambda *arguments, original=SnapshotProducer._added_data: _added_with_new_number(original, *arguments),
        ),
    ),
    Mistake(
        "delete-after-append-in-one-transaction-is-missed",
        ("DA-1", "DA-2"),
        partial(replaced_method, StagedChange, "_apply_to_earlier_verbs", _nothing_reaches_back),
    ),
    Mistake(
        "conflicts-are-not-looked-for",
        ("CP-3",),
        partial(replaced, conflicts.check_conflicts, _no_conflict),
    ),
    Mistake(
        "positions-are-counted-from-their-row-group",
        ("DA-1", "DA-7"),
        partial(replaced_method, PositionSet, "shifted", _counted_from_row_group),
    ),
    Mistake(
        "row-groups-left-out-are-not-counted",
        ("RD-1", "DA-2"),
        partial(replaced, span_positions.positions_in_file, _row_groups_end_to_end),
    ),
    Mistake(
        "every-row-group-is-taken-for-the-first",
        ("DA-1",),
        partial(replaced, alive_rows.alive_rows, partial(_rows_of_the_first_row_group, alive_rows.alive_rows)),
    ),
    Mistake(
        "ids-begin-anew-in-each-row-group",
        ("FM-20",),
        partial(
            _replaced_where_no_file_is_small,
            row_lineage_columns.with_inherited_lineage,
            partial(_ids_of_the_first_row_group, row_lineage_columns.with_inherited_lineage),
        ),
    ),
    Mistake(
        "row-ids-are-given-again",
        ("FM-20",),
        partial(replaced, manifest_list.next_row_id, _no_ids_were_taken),
    ),
    Mistake(
        "branch-was-moved-unnoticed",
        ("CP-22",),
        partial(replaced, conflicts._not_in_history, _any_history),
    ),
    Mistake(
        "change-feed-repeats-rows-that-are-alive",
        ("CF-3",),
        partial(replaced, deleted_positions._alive, _nothing_alive),
    ),
)
