"""Cached filters of files that were opened before, in one array, so that a plan can query those of all files at once.

Only files with one row group are cached: if such a filter excludes a value, the file does not have it. If the memory is
full, the oldest filters are removed.

    blocks   | filter of a | filter of b    | filter of c | ...        one array, written in a circle
    entries    a: 0, 2       b: 2, 4          c: 6, 2                   first block, number of blocks
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.metadata.columns.data_columns import DataColumns, Indices
from tableformat.parquet.bloom_filters.probe import BLOCK_BYTES, WORDS, Blocks, Probe
from tableformat.parquet.bloom_filters.stored_form import StoredForm
from tableformat.storage.forks import remade_in_children

FILTERS_BYTES: Final = 128 * 1024 * 1024
_FEW: Final = 256
"""The number of files up to which each is looked up individually. Beyond it, the positions of all files of a column are
cached."""
_Entry = tuple[int, int]
_Places = npt.NDArray[np.int64]
"""First block and number of blocks for each file, shape (n, 2); no blocks if no filter is cached."""
_Column = tuple[int, StoredForm]


class HeldFilters:
    """Filters by column and file path. Thread-safe. A copy that is sent to another process is empty."""

    def __init__(self, capacity_bytes: int = FILTERS_BYTES) -> None:
        self._capacity_bytes = capacity_bytes
        self._capacity = capacity_bytes // BLOCK_BYTES
        self._clear()
        remade_in_children(self)

    def _clear(self) -> None:
        self._blocks: Blocks = np.empty((0, WORDS), np.uint32)
        self._entries: dict[_Column, dict[str, _Entry]] = {}
        self._oldest: deque[tuple[_Column, str, _Entry]] = deque()
        self._next = 0
        self._version = 0
        self._places: WeakKeyDictionary[DataColumns, dict[_Column, tuple[int, _Places]]] = WeakKeyDictionary()
        self._lock = Lock()

    def remake_in_child(self) -> None:
        if self._lock.locked():
            self._clear()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._capacity_bytes,)

    def hold(self, field_id: int, form: StoredForm, file_path: str, blocks: Blocks) -> None:
        """Cache the only filter that the file has for the column."""
        column = field_id, form
        with self._lock:
            held = self._entries.setdefault(column, {})
            if file_path in held or len(blocks) > self._capacity:
                return
            if not len(self._blocks):
                # Pages that are not written use no memory.
                self._blocks = np.empty((self._capacity, WORDS), np.uint32)
            start = self._room_for(len(blocks))
            self._blocks[start : start + len(blocks)] = blocks
            held[file_path] = start, len(blocks)
            self._version += 1
            self._oldest.append((column, file_path, held[file_path]))

    def holds(self, field_id: int, form: StoredForm, file_path: str) -> bool:
        """Whether the filter of the file is cached, so that plans use it."""
        with self._lock:
            return file_path in self._entries.get((field_id, form), {})

    def forms_of(self, field_id: int) -> list[StoredForm]:
        """The stored forms of the column in the cached filters."""
        with self._lock:
            return [form for (of, form), held in self._entries.items() if of == field_id and held]

    def may_hold(
        self, field_id: int, form: StoredForm, files: DataColumns, rows: Indices, probes: Sequence[Probe]
    ) -> npt.NDArray[np.bool_]:
        """For each file at the given indexes whether one of the values may be in it; True without a cached filter."""
        with self._lock:
            places = self._places_of((field_id, form), files, rows)
            known = np.flatnonzero(places[:, 1])
            starts, counts = (places if len(known) == len(places) else places[known]).T
            may = np.zeros(len(known), np.bool_)
            for probe in probes:
                may |= probe.is_in(self._blocks, starts + probe.block_of(counts))
        answer = np.ones(len(rows), np.bool_)
        answer[known] = may
        return answer

    def _places_of(self, column: _Column, files: DataColumns, rows: Indices) -> _Places:
        if len(rows) <= _FEW:
            return self._found(column, files.batch["file_path"].take(pa.array(rows)).to_pylist())
        of_columns = self._places.setdefault(files, {})
        version, places = of_columns.get(column, (-1, None))
        if places is None or version != self._version:
            places = self._found(column, files.batch["file_path"].to_pylist())
            of_columns[column] = self._version, places
        return places if len(rows) == len(places) else places[rows]

    def _found(self, column: _Column, file_paths: Sequence[str]) -> _Places:
        held = self._entries.get(column, {})
        return np.array([held.get(path, (0, 0)) for path in file_paths], np.int64).reshape(-1, 2)

    def _room_for(self, count: int) -> int:
        """The first of this many free blocks."""
        if self._next + count > self._capacity:
            self._forget(self._next, self._capacity)
            self._next = 0
        start, self._next = self._next, self._next + count
        self._forget(start, self._next)
        return start

    def _forget(self, start: int, end: int) -> None:
        """Remove the oldest filters while they occupy the blocks."""
        while self._oldest:
            column, file_path, (first, count) = self._oldest[0]
            if first >= end or first + count <= start:
                return
            self._oldest.popleft()
            self._version += 1
            del self._entries[column][file_path]
