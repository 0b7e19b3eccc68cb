"""Merges sorted runs of rows in bounded memory: reads a window of each run and returns merged rows.

    run a    . . . . |a a a a|         windows in memory; the cut is the smallest of their last keys
    run b    . . |b b b b b b|
    run c    . . . . . |c c c|         rows at or below the cut are sorted together and returned; a run whose window
                    cut ^              is used up reads its next one

A run is opened when the cut reaches its lower bound, so adjacent runs that do not overlap take the memory of one run.
If too many overlap, some are merged into temporary files first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.keys.arrow_columns import as_key_array
from tableformat.keys.encoding import encode_rows
from tableformat.keys.key_columns import KeyColumns
from tableformat.write.rows.sorting import sorting_order

WINDOW_BYTES_MIN: Final = 64 * 1024
"""The least size of a run's window in memory. Smaller windows would cost more to search than to read."""
_COPIES: Final = 4
"""A round holds the windows, the concatenated rows at or below the cut, the same rows in order, and the memory for
decoding and sorting."""
_SPILL_CODEC: Final = "lz4"

KeyValues: TypeAlias = tuple[tuple[Any, ...], ...]
"""The key of one row: for each column (0,) for null, or 1 and the value."""


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Rows in key order that can be read once."""

    bounds: KeyBounds
    """Encoded cuts that enclose all keys of the run."""
    batches: Callable[[], Iterator[pa.RecordBatch]]
    """Opens the run."""


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """The key by which rows are merged."""

    key: KeyColumns

    def encoded(self, rows: pa.RecordBatch, row: int) -> bytes:
        """The key of one row as bytes that compare like keys."""
        one = rows.slice(row, 1)
        columns = [
            as_key_array(one.column(name), key_type, name=name)
            for name, key_type in zip(self.key.names, self.key.types, strict=True)
        ]
        key: bytes = encode_rows(columns, self.key.types)[0].as_py()
        return key

    def count_up_to(self, rows: pa.RecordBatch, cut: KeyValues) -> int:
        """The number of sorted rows with a key at or below the cut.

        A binary search over Python values. For a single cut it is far cheaper than a vectorized search.
        """
        columns = [_comparable(rows.column(name)) for name in self.key.names]
        return bisect_right(range(rows.num_rows), cut, key=lambda row: _values(columns, row))

    def values(self, rows: pa.RecordBatch, row: int) -> KeyValues:
        """The key of one row in the form that `count_up_to` uses."""
        return _values([_comparable(rows.column(name)) for name in self.key.names], row)

    def sorted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in key order. Rows with equal keys keep their order."""
        order = sorting_order([rows.column(name) for name in self.key.names])
        return rows if order is None else rows.take(order)


class _Window:
    """The rows of one run in memory."""

    def __init__(self, run: SortedRun, order: MergeOrder, size_bytes: int) -> None:
        self._source = run.batches()
        self._order = order
        self._size_bytes = size_bytes
        self._rows: list[pa.RecordBatch] = []
        self.last_values: KeyValues = ()
        self.last_key = b""

    def fill(self) -> bool:
        """Read the next window; False at the end of the run."""
        size = 0
        for batch in self._source:
            if batch.num_rows:
                self._rows.append(batch)
                size += batch.nbytes
                # Another batch of that size would not fit.
                if size + batch.nbytes > self._size_bytes:
                    break
        if not self._rows:
            return False
        newest = self._rows[-1]
        self.last_values = self._order.values(newest, newest.num_rows - 1)
        self.last_key = self._order.encoded(newest, newest.num_rows - 1)
        return True

    def close(self) -> None:
        """Stop reading before the end."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def take_up_to(self, cut: KeyValues, cut_key: bytes) -> list[pa.RecordBatch]:
        """The rows at or below the cut. They are removed from the window."""
        if self.last_key <= cut_key:
            taken, self._rows = self._rows, []
            return taken
        taken = []
        while self._rows:
            first = self._rows[0]
            count = self._order.count_up_to(first, cut)
            if count:
                taken.append(first.slice(0, count))
            if count < first.num_rows:
                self._rows[0] = first.slice(count)
                break
            del self._rows[0]
        return taken


def merged(
    runs: Sequence[SortedRun], order: MergeOrder, memory_bytes: int, spill_directory: Path, *, fan_in: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all runs in key order. Rows with equal keys are in the order of their runs, window by window.

    Holds about `memory_bytes` of rows. At most `fan_in` runs are open at a time. If more overlap, runs are merged into
    files in `spill_directory` first; their disk use is the size of the rows.
    """
    waiting = sorted(runs, key=lambda run: run.bounds.lower)
    while overlap_depth([run.bounds for run in waiting]) > fan_in:
        parts = [waiting[start : start + fan_in] for start in range(0, len(waiting), fan_in)]
        waiting = [
            spilled(_enclosing_bounds(part), _merged(part, order, memory_bytes), spill_directory)
            if len(part) > 1
            else part[0]
            for part in parts
        ]
    yield from _merged(waiting, order, memory_bytes)


def overlap_depth(bounds: Sequence[KeyBounds]) -> int:
    """The largest number of ranges that have a key in common; 0 without ranges."""
    events = sorted([*((each.lower, 1) for each in bounds), *((each.upper, -1) for each in bounds)])
    # At equal cuts a range ends before the next begins (-1 sorts first), because a key is on one side of a cut only.
    return max(accumulate(step for _, step in events), default=0)


def _enclosing_bounds(runs: Sequence[SortedRun]) -> KeyBounds:
    return KeyBounds(min(run.bounds.lower for run in runs), max(run.bounds.upper for run in runs))


def _merged(runs: Sequence[SortedRun], order: MergeOrder, memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """`runs` are sorted by their lower bounds."""
    waiting = list(reversed(runs))
    depth = max(overlap_depth([run.bounds for run in runs]), 1)
    window_bytes = max(memory_bytes // (_COPIES * depth), WINDOW_BYTES_MIN)
    open_windows: list[_Window] = []

    def open_next() -> None:
        window = _Window(waiting.pop(), order, window_bytes)
        open_windows.append(window)
        if not window.fill():
            open_windows.remove(window)

    try:
        while waiting or open_windows:
            if not open_windows:
                open_next()
                continue
            lowest = min(open_windows, key=lambda window: window.last_key)
            if waiting and waiting[-1].bounds.lower <= lowest.last_key:
                open_next()
                continue
            cut, cut_key = lowest.last_values, lowest.last_key
            parts = [part for window in open_windows for part in window.take_up_to(cut, cut_key)]
            yield from _in_order(parts, order, is_sorted=len(open_windows) == 1)
            del parts
            open_windows = [window for window in open_windows if not window.is_empty or window.fill()]
    finally:
        for window in open_windows:
            window.close()


def _in_order(parts: list[pa.RecordBatch], order: MergeOrder, *, is_sorted: bool) -> Iterator[pa.RecordBatch]:
    if is_sorted or len(parts) == 1:
        yield from parts
        return
    together = pa.concat_batches(parts)
    parts.clear()
    yield order.sorted(together)


def _comparable(column: pa.Array) -> pa.Array:
    """A key column whose Python values compare like keys. Python has no nanoseconds, so times become numbers. Python
    has no text that is invalid UTF-8, which Spark writes, so text becomes its bytes."""
    plain = column.storage if isinstance(column, pa.ExtensionArray) else column
    if pa.types.is_string(plain.type):
        return plain.view(pa.binary())
    if pa.types.is_large_string(plain.type):
        return plain.view(pa.large_binary())
    if pa.types.is_temporal(plain.type):
        return plain.view(pa.int32() if plain.type.bit_width == 32 else pa.int64())
    return plain


def _values(columns: Sequence[pa.Array], row: int) -> KeyValues:
    """The values of the row, nulls first. Text and binary compare by unsigned bytes, like keys (RD-4)."""
    values = (column[row].as_py() for column in columns)
    return tuple((0,) if value is None else (1, value) for value in values)


def spilled(bounds: KeyBounds, batches: Iterable[pa.RecordBatch], directory: Path) -> SortedRun:
    """The sorted batches as a run on disk. The file is removed with the directory."""
    path = directory / f"{len(list(directory.iterdir())):06}.arrow"
    writer: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                options = pa.ipc.IpcWriteOptions(compression=_SPILL_CODEC)
                writer = pa.ipc.new_file(str(path), batch.schema, options=options)
            for piece in _pieces(batch):
                writer.write_batch(piece)
    finally:
        if writer is not None:
            writer.close()

    def read() -> Iterator[pa.RecordBatch]:
        if writer is None:
            return
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)

    return SortedRun(bounds, read)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Batches small enough for the smallest window."""
    row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
    row_count = max(WINDOW_BYTES_MIN // row_bytes, 1)
    for start in range(0, batch.num_rows, row_count):
        yield batch.slice(start, row_count)
