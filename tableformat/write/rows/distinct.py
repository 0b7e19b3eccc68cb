"""Distinct rows of a few columns, in the order of their first occurrence. Nulls equal each other (DA-4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.keys.arrow_columns import single_array

_ROW: Final = "row"
_RUN_ROWS: Final = 2
"""If runs of equal rows have at least this length on average, each run is reduced to one row first."""
_GROUPED_FROM_ROWS: Final = 4_096
"""Grouping fewer rows takes longer than sorting them twice."""
_COMPACT_AT_LEAST_ROWS: Final = 65_536
"""Collected rows are made distinct again when their number has doubled, but not below this number."""


def distinct_rows(table: pa.Table) -> pa.Table:
    """The distinct rows of a table, with its schema. Not for floating point columns: NaN and -0.0 differ by bits."""
    return _grouped(_without_runs(table))


def _grouped(table: pa.Table) -> pa.Table:
    if len(table) < 2:
        return table
    groups = with_fixed_width(table).append_column(_ROW, pa.array(np.arange(len(table))))
    keys = groups.column_names[:-1]
    # With one thread, groups are in the order of their first rows, and it is not slower.
    first = groups.group_by(keys, use_threads=False).aggregate([(_ROW, "min")]).column(f"{_ROW}_min")
    return table if len(first) == len(table) else table.take(first)


def _without_runs(table: pa.Table) -> pa.Table:
    """Reduce each run of equal rows to one row, if most rows are in runs.

    The rows of a message are usually adjacent, and comparing adjacent rows takes a tenth of the time of grouping. Rows
    next to a null count as different.
    """
    if len(table) < 2:
        return table
    heads = heads_of_runs(table)
    return table.take(pa.array(heads)) if len(heads) * _RUN_ROWS <= len(table) else table


def heads_of_runs(table: pa.Table) -> npt.NDArray[np.int64]:
    """The first row of each run of equal rows. Rows next to a null or a NaN count as different."""
    is_head = np.zeros(len(table), np.bool_)
    is_head[:1] = True
    for column in table.columns:
        if pa.types.is_null(column.type):
            return np.arange(len(table))
        array = single_array(column)
        values = array.storage if isinstance(array, pa.ExtensionArray) else array
        is_head[1:] |= pc.not_equal(values[1:], values[:-1]).fill_null(True).to_numpy(zero_copy_only=False)
    return np.flatnonzero(is_head)


def rows_among(table: pa.Table, wanted: pa.Table) -> npt.NDArray[np.bool_]:
    """For each row of the table, whether `wanted` (with the same columns) contains it. Null equals null (DA-4)."""
    codes = row_codes(pa.concat_tables([wanted, table]))
    return np.isin(codes[len(wanted) :], codes[: len(wanted)])


def row_codes(table: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each row, from 0, that is equal for equal rows. Null equals null (DA-4)."""
    codes = np.zeros(len(table), np.int64)
    for column in with_fixed_width(table).columns:
        encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        values = np.asarray(encoded.dictionary_encode(null_encoding="encode").indices, np.int64)
        # Numbered again for each column, so that the product stays below the square of the number of rows.
        codes = np.unique(codes * (len(table) + 1) + values, return_inverse=True)[1]
    return codes


def with_fixed_width(table: pa.Table) -> pa.Table:
    """Columns named by position, with types of fixed width. Values are equal exactly if the values in the table are
    equal, null included (DA-4).

    Arrow's hash aggregation of strings takes ten times as long as encoding them as numbers first (1.5 M rows of string,
    long and int: 3.2 s against 0.4 s).
    """
    return pa.table(
        [_fixed_width(column) for column in table.columns], names=[f"c{i}" for i in range(table.num_columns)]
    )


def _fixed_width(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        storage = column.type.storage_type
        return pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
    if any(check(column.type) for check in (pa.types.is_large_string, pa.types.is_large_binary)):
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        return array.dictionary_encode(null_encoding="encode").indices
    return column


class PrefixCollector:
    """Passes batches through, and collects the values of some of their columns, each at least once.

    Keeps little more than the distinct prefixes in memory, and no rows. The deletes by these prefixes sort them anyway.
    """

    def __init__(self, schema: pa.Schema, names: Sequence[str]) -> None:
        self._schema = pa.schema([schema.field(name) for name in names])
        self._distinct = self._schema.empty_table()
        self._pending: list[pa.Table] = []
        self._pending_rows = 0

    def observe(self, batch: pa.RecordBatch) -> None:
        prefixes = _without_runs(pa.Table.from_batches([batch.select(self._schema.names)]))
        if len(prefixes) > _GROUPED_FROM_ROWS:
            prefixes = _grouped(prefixes)
        self._pending.append(prefixes)
        self._pending_rows += len(prefixes)
        if self._pending_rows > max(len(self._distinct), _COMPACT_AT_LEAST_ROWS):
            self._compact()

    def through(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches. When they are exhausted, `prefixes` is complete."""
        for batch in batches:
            self.observe(batch)
            yield batch

    @property
    def prefixes(self) -> pa.Table:
        """The prefixes so far, in the order of their first occurrence. A prefix may occur more than once."""
        self._compact()
        return self._distinct

    def _compact(self) -> None:
        if self._pending:
            is_first = len(self._pending) == 1 and not len(self._distinct)
            self._distinct = (
                self._pending[0] if is_first else distinct_rows(pa.concat_tables([self._distinct, *self._pending]))
            )
            self._pending = []
            self._pending_rows = 0
