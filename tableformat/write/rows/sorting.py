"""The order of rows in a file: nulls first, then values in key order (RD-4). Rows with equal keys keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.write.rows.distinct import heads_of_runs
from tableformat.write.rows.one_batch import one_array

_PEEK_ROWS: Final = 64
"""Number of rows that are checked first: unsorted input nearly always shows in them."""
_RANKED_FROM_ROWS: Final = 4_096
"""From this number of rows on, sorting a string column by the rank of its distinct values may be worth its cost."""
_SAMPLE_SHARE: Final = 8
_REPEATED_BELOW: Final = 0.85
"""If the first eighth of the rows has a smaller share of distinct values, ranking is faster than comparing strings.
Values that occur four times each in random order are just below it."""
_WORD_BITS: Final = 64
_RUN_ROWS: Final = 2
"""Runs are used if they have at least this number of rows on average."""
_LARGE_BATCH_ROWS: Final = 4_096
"""Batches with at least this number of rows on average are checked one by one; smaller ones are concatenated first."""
Words = npt.NDArray[np.uint64]


def order_of_batches(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> pa.Array | None:
    """FM-6: `sorting_order` of the rows of all batches by the columns of these names. Large batches whose rows are in
    order are not copied for the check."""
    table = pa.Table.from_batches(batches)
    if table.num_rows >= _LARGE_BATCH_ROWS * len(batches) and _follow_each_other(batches, names):
        return None
    return sorting_order([one_array(table[name]) for name in names])


def _follow_each_other(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> bool:
    last: list[pa.Scalar] | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        columns = [batch.column(name) for name in names]
        if not is_sorted([_plain(column) for column in columns]):
            return False
        if last is not None and not follows(last, [column[0] for column in columns]):
            return False
        last = [column[batch.num_rows - 1] for column in columns]
    return True


def sorting_order(columns: Sequence[pa.Array]) -> pa.Array | None:
    """FM-6: row numbers in key order, stable; None if the rows are already in order.

    Arrow orders strings and binaries by unsigned bytes, which is the key order. Floating point columns cannot be keys.
    """
    plain = [_plain(column) for column in columns]
    if is_sorted(plain):
        return None
    packed = _packed_order(plain)
    if packed is not None:
        return packed
    sortable = [_ranked(column) if len(plain) > 1 else column for column in plain]
    names = [str(position) for position in range(len(sortable))]
    keys = [(name, "ascending", "at_start") for name in names]
    return pc.sort_indices(pa.RecordBatch.from_arrays(sortable, names=names), sort_keys=keys)


def _packed_order(columns: Sequence[pa.Array]) -> pa.Array | None:
    """The order computed with one number for each row; None if 64 bits are not enough.

    The number has the columns' values in sequence and the row number last, so that rows with equal keys keep their
    order. Sorting numbers takes a tenth of the time of comparing rows.

        key (B, 7), (A, 2), (A, 9)      ranks and differences 1 5, 0 0, 0 7      numbers 1 101 00, 0 000 01, 0 111 10
    """
    row_count = len(columns[0])
    row_bits = (row_count - 1).bit_length()
    packed = _packed(columns, _WORD_BITS - row_bits)
    if packed is None:
        return None
    packed = packed << np.uint64(row_bits) | np.arange(row_count, dtype=np.uint64)
    packed.sort()
    return pa.array(packed & np.uint64((1 << row_bits) - 1))


def are_distinct(columns: Sequence[pa.Array]) -> bool | None:
    """Whether all rows are distinct, with null equal to null; None if 64 bits are not enough for one number for each
    row. Floating point columns cannot be keys."""
    plain = [_plain(column) for column in columns]
    heads = _heads_of_rising_runs(plain)
    if heads is not None:
        return are_distinct([column.take(heads) for column in plain[:-1]])
    packed = _packed(plain, _WORD_BITS)
    if packed is None:
        return None
    packed.sort()
    return bool((packed[1:] != packed[:-1]).all())


def _heads_of_rising_runs(columns: Sequence[pa.Array]) -> pa.Array | None:
    """The first rows of runs whose rows differ only in the last column, which increases, as the lines of a message do.

    All equal rows are then in one run. None if the column does not increase in each run, or if there are no such runs.
    """
    row_count = len(columns[0])
    if len(columns) == 1:
        return None
    names = [str(position) for position in range(len(columns) - 1)]
    heads = heads_of_runs(pa.table(list(columns[:-1]), names=names))
    if len(heads) * _RUN_ROWS > row_count:
        return None
    rises = np.asarray(pc.greater(columns[-1][1:], columns[-1][:-1]).fill_null(False))
    rises[heads[1:] - 1] = True
    return pa.array(heads) if rises.all() else None


def _packed(columns: Sequence[pa.Array], bits_max: int) -> Words | None:
    """A number for each row with the columns' values in sequence; None if the bits are not enough."""
    packed, bits = np.zeros(len(columns[0]), np.uint64), 0
    for column in columns:
        found = _codes(column)
        if found is None or bits + found[1] > bits_max:
            return None
        codes, width = found
        # A shift by a whole word is undefined. It is not needed here, because the earlier columns have no bits.
        packed = codes if bits == 0 else packed << np.uint64(width) | codes
        bits += width
    return packed


def _codes(column: pa.Array) -> tuple[Words, int] | None:
    """For each row a number that orders the column, with null below all values, and the number of bits that it needs.

    None for a type without such numbers, and for values that are too different to be ranked.
    """
    if _is_text(column.type):
        column = _ranked(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if not pa.types.is_integer(column.type):
        return None
    bounds = pc.min_max(column)
    lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
    if lowest is None:
        return np.zeros(len(column), np.uint64), 0
    has_nulls = int(column.null_count > 0)
    width = (highest - lowest + has_nulls).bit_length()
    if width >= _WORD_BITS:
        return None
    values = np.asarray(column.fill_null(lowest) if has_nulls else column).astype(np.int64)
    codes = (values - lowest).view(np.uint64)
    if has_nulls:
        codes = np.where(np.asarray(column.is_valid()), codes + np.uint64(1), np.uint64(0))
    return codes, width


def is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Whether rows are in key order. Columns with nulls count as unsorted: sorting again is correct, only slower."""
    row_count = len(columns[0])
    if row_count < 2:
        return True
    if any(column.null_count for column in columns):
        return False
    if row_count > 2 * _PEEK_ROWS and not is_sorted([column.slice(0, _PEEK_ROWS) for column in columns]):
        return False
    undecided = None
    for column in columns:
        before, after = column.slice(0, row_count - 1), column.slice(1)
        falls = pc.greater(before, after)
        if pc.any(falls if undecided is None else pc.and_(falls, undecided)).as_py():
            return False
        equal = pc.equal(before, after)
        undecided = equal if undecided is None else pc.and_(equal, undecided)
        if not pc.any(undecided).as_py():
            return True
    return True


def follows(previous: Sequence[pa.Scalar], first: Sequence[pa.Scalar]) -> bool:
    """Whether a row with the key `first` may come after a row with the key `previous` in a sorted file."""
    for before, after in zip(previous, first, strict=True):
        if not before.is_valid or not after.is_valid:
            if before.is_valid == after.is_valid:
                continue
            return not before.is_valid
        pair = pa.array([before, after], before.type)
        plain = pair.storage if isinstance(pair, pa.ExtensionArray) else pair
        if pc.less(plain[0], plain[1]).as_py():
            return True
        if pc.greater(plain[0], plain[1]).as_py():
            return False
    return True


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _ranked(column: pa.Array) -> pa.Array:
    """A string column with many repetitions as the ranks of its values; any other column unchanged."""
    if not _is_text(column.type) or len(column) < _RANKED_FROM_ROWS:
        return column
    sample = column.slice(0, max(len(column) // _SAMPLE_SHARE, _RANKED_FROM_ROWS))
    if pc.count_distinct(sample).as_py() > _REPEATED_BELOW * len(sample):
        return column
    encoded = column.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return pa.array(ranks).take(encoded.indices)


def _is_text(arrow_type: pa.DataType) -> bool:
    is_bytes = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_string, pa.types.is_binary)
    return any(check(arrow_type) for check in is_bytes)
