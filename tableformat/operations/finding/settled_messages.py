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
from tableformat.operations.drafts.covered_positions import covered_by, in_threads
from tableformat.operations.drafts.draft import Draft
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.context import WriteContext
from tableformat.write.rows.distinct import distinct_rows, row_codes
from tableformat.write.rows.last_per_key import newest_of_groups, order_ranks
from tableformat.write.rows.unique_keys import with_unique_keys
from tableformat.write.staged import StagedMessages


def settle_messages(
    draft: Draft, context: WriteContext, parts: Sequence[StagedMessages], files: Iterable[DataFile]
) -> None:
    """CP-68: delete by position the rows of a prefix that another part has newer ones of, and raise DuplicateKeyError
    where two parts have one key of it. Reads nothing where each prefix is of one part.

    `context`: that the rows were written in. `files` are adopted by the draft, and hold the rows of the parts.
    """
    if len(parts) < 2:
        return
    prefixes = pa.concat_tables([part.prefixes for part in parts]).combine_chunks()
    codes = row_codes(prefixes)
    if int(codes.max(initial=-1)) + 1 == len(prefixes):
        return
    part_of = np.repeat(np.arange(len(parts)), [part.prefixes.num_rows for part in parts])
    is_newest = _are_newest(parts, prefixes)
    by_path = {data.file_path: data for data in files}
    rows = _StagedRows(draft, context, by_path)
    for number in np.unique(part_of[~is_newest]):
        older = prefixes.filter(pa.array(~is_newest & (part_of == number)))
        draft.delete_positions_in(rows.of(parts[number].file_paths, older))
    is_shared = is_newest & (np.bincount(codes[is_newest], minlength=len(prefixes))[codes] > 1)
    if is_shared.any():
        paths = dict.fromkeys(path for number in np.unique(part_of[is_shared]) for path in parts[number].file_paths)
        rows.check_unique(paths, distinct_rows(prefixes.filter(pa.array(is_shared))))


def _are_newest(parts: Sequence[StagedMessages], prefixes: pa.Table) -> npt.NDArray[np.bool_]:
    orders = [part.orders for part in parts if part.orders is not None]
    if not orders:
        return np.ones(len(prefixes), np.bool_)
    return newest_of_groups(prefixes, order_ranks(pa.concat_tables(orders, promote_options="permissive")))


class _StagedRows:
    """Rows of files that no snapshot names yet."""

    def __init__(self, draft: Draft, context: WriteContext, by_path: Mapping[str, DataFile]) -> None:
        self._draft = draft
        self._context = context
        self._by_path = by_path
        self._key = KeyColumns.of(context.schema, context.key_field_ids)

    def of(self, paths: Iterable[str], prefixes: pa.Table) -> Iterator[tuple[FileScanTask, PositionSet]]:
        """The positions of rows that begin with one of the prefixes, in the files that have some."""
        # Files of no snapshot have no number yet; the prefixes reach them all.
        newest = sort_and_merge(spans_of_prefixes(self._key, prefixes)).with_sequence_number(2)
        tasks = [FileScanTask(data_file=replace(self._by_path[path], sequence_number=1)) for path in paths]
        for task, (_, positions) in in_threads(tasks, covered_by(newest, self._draft.merge_context)):
            if positions:
                yield FileScanTask(data_file=self._by_path[task.data_file.file_path]), positions

    def check_unique(self, paths: Iterable[str], prefixes: pa.Table) -> None:
        names = key_names(self._context.schema, self._context.key_field_ids)
        view = replace(self._draft.view, schema=self._context.schema, snapshot=None)
        tasks = [
            only_rows(replace(task, data_file=replace(task.data_file, sequence_number=1)), positions)
            for task, positions in self.of(paths, prefixes)
        ]
        found = read_tables(tasks, ReadContext.of(view, names))
        batches = (batch for table in found for batch in table.select(list(names)).to_batches())
        for _ in with_unique_keys(batches, names, table=self._draft.name, memory_bytes=self._context.key_memory_bytes):
            pass
