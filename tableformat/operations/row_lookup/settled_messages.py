"""Rows of one replacement that several writers staged: the newest message of each prefix stays (CP-68).

writer 1      a: offset 7 | b: offset 8          writer 2      a: offset 9 | b: offset 8
deleted       its rows of a                      looked at     rows of b: no key twice
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.table_key import key_names
from tableformat.merge_on_read.task import FileScanTask, only_rows
from tableformat.metadata.content_file import DataFile
from tableformat.operations.row_lookup.duplicates import new_keys
from tableformat.operations.staging.covered_positions import covered_by, in_threads
from tableformat.operations.staging.draft import Draft
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.context import WriteContext
from tableformat.write.rows.distinct import row_codes
from tableformat.write.rows.last_per_key import newest_of_groups, order_ranks
from tableformat.write.rows.unique_keys import with_unique_keys
from tableformat.write.staged import StagedMessages


def settle_messages(
    draft: Draft,
    context: WriteContext,
    parts: Sequence[StagedMessages],
    files: Iterable[DataFile],
    *,
    after: pa.Table | None = None,
) -> None:
    """CP-68: delete by position the rows of a prefix if another part has newer rows of it. Raises DuplicateKeyError if
    two parts have the same key of a prefix, or if one part has a key twice and repeats the prefix for it. Reads nothing
    if every prefix is reported once.

    `context`: the context that the rows were written in. `files` contain the rows of the parts, and the draft has
    adopted them. `after`: values of the order columns; rows that do not exceed them are deleted (CF-13).
    """
    if not parts:
        return
    prefixes = pa.concat_tables([part.prefixes for part in parts]).combine_chunks()
    codes = row_codes(prefixes)
    if after is None and int(codes.max(initial=-1)) + 1 == len(prefixes):
        return
    is_newest = are_newest(parts, prefixes, after)
    rows = StagedRows(draft, context, {data.file_path: data for data in files})
    rows.delete(parts, prefixes, ~is_newest)
    is_shared = is_newest & (np.bincount(codes[is_newest], minlength=len(prefixes))[codes] > 1)
    if is_shared.any():
        rows.check_unique(parts, prefixes, is_shared)


def known_keys(draft: Draft, parts: Sequence[StagedMessages], *, fail: bool) -> npt.NDArray[np.bool_]:
    """SP-109: for each message of the parts, whether its key is in the table or in a message of another part that
    stays. The prefixes of the messages are whole keys. With `fail`, raises DuplicateKeyError for such a key.

    Call it before the draft adopts the rows. It reads the keys of the files that may contain them.
    """
    keys = pa.concat_tables([part.prefixes for part in parts]).combine_chunks()
    stays = are_newest(parts, keys)
    newest = keys.filter(pa.array(stays)).rename_columns(list(draft.key_names))
    stays[stays] = new_keys(draft, newest, fail=fail)
    return ~stays


def drop_messages(
    draft: Draft,
    context: WriteContext,
    parts: Sequence[StagedMessages],
    files: Iterable[DataFile],
    dropped: npt.NDArray[np.bool_],
) -> None:
    """Delete by position the rows of messages that do not stay."""
    rows = StagedRows(draft, context, {data.file_path: data for data in files})
    prefixes = pa.concat_tables([part.prefixes for part in parts]).combine_chunks()
    rows.delete(parts, prefixes, dropped)


def are_newest(
    parts: Sequence[StagedMessages], prefixes: pa.Table, after: pa.Table | None = None
) -> npt.NDArray[np.bool_]:
    """CP-68: for each prefix of each part, whether no other part has a newer message of it and it is newer than the
    orders in `after`."""
    orders = [part.orders for part in parts if part.orders is not None]
    if not orders:
        return np.ones(len(prefixes), np.bool_)
    ranks = order_ranks(pa.concat_tables([*orders, *([] if after is None else [after])], promote_options="permissive"))
    own, limits = np.split(ranks, [len(prefixes)])
    newest: npt.NDArray[np.bool_] = newest_of_groups(prefixes, own) & (own > limits.max(initial=-1))
    return newest


class StagedRows:
    """Rows of staged files, which are not in any snapshot yet."""

    def __init__(self, draft: Draft, context: WriteContext, by_path: Mapping[str, DataFile]) -> None:
        self._draft = draft
        self._context = context
        self._by_path = by_path
        self._key = KeyColumns.of(context.schema, context.key_field_ids)

    def delete(self, parts: Sequence[StagedMessages], prefixes: pa.Table, loses: npt.NDArray[np.bool_]) -> None:
        """Delete the rows of the losing messages."""
        for found in self._of_messages(parts, prefixes, loses):
            self._draft.delete_positions_in(found)

    def check_unique(
        self, parts: Sequence[StagedMessages], prefixes: pa.Table, are_compared: npt.NDArray[np.bool_]
    ) -> None:
        """Raise DuplicateKeyError if two rows of the compared messages have the same key."""
        names = key_names(self._context.schema, self._context.key_field_ids)
        found = self._of_messages(parts, prefixes, are_compared)
        tables = (table for of_part in found for table in self.read(of_part, names))
        batches = (batch for table in tables for batch in table.select(list(names)).to_batches())
        for _ in with_unique_keys(batches, names, table=self._draft.name, memory_bytes=self._context.key_memory_bytes):
            pass

    def _of_messages(
        self, parts: Sequence[StagedMessages], prefixes: pa.Table, are_chosen: npt.NDArray[np.bool_]
    ) -> Iterator[Iterator[tuple[FileScanTask, PositionSet]]]:
        """For each part, the positions of the rows of its chosen messages. Each message is looked up only in the files
        of its part, because another part may have older rows of the prefix.

        `prefixes`: the prefixes of all messages, part after part.
        """
        part_of = np.repeat(np.arange(len(parts)), [part.prefixes.num_rows for part in parts])
        for number in np.unique(part_of[are_chosen]):
            chosen = prefixes.filter(pa.array(are_chosen & (part_of == number)))
            yield self.of(parts[number].file_paths, chosen)

    def of(self, paths: Iterable[str], prefixes: pa.Table) -> Iterator[tuple[FileScanTask, PositionSet]]:
        """For each file with rows that begin with one of the prefixes, the positions of these rows."""
        # Staged files have no sequence number yet. The prefixes must reach all of them, so they get the greater number.
        newest = sort_and_merge(spans_of_prefixes(self._key, prefixes)).with_sequence_number(2)
        tasks = [FileScanTask(data_file=replace(self._by_path[path], sequence_number=1)) for path in paths]
        for task, (_, positions) in in_threads(tasks, covered_by(newest, self._draft.merge_context)):
            if positions:
                yield FileScanTask(data_file=self._by_path[task.data_file.file_path]), positions

    def read(
        self, found: Iterable[tuple[FileScanTask, PositionSet]], names: Sequence[str] | None
    ) -> Iterator[pa.Table]:
        """The columns `names` of the rows at these positions, as written; all columns if `names` is None."""
        view = replace(self._draft.view, schema=self._context.schema, snapshot=None)
        tasks = [
            only_rows(replace(task, data_file=replace(task.data_file, sequence_number=1)), positions)
            for task, positions in found
        ]
        return read_tables(tasks, ReadContext.of(view, names))
