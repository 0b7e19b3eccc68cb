"""Creates `DataFile` objects from rows of `DataColumns`: for the files that a plan keeps. Metrics are created on
access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from tableformat.metadata.columns.data_columns import ATTRIBUTES, LIVE_COLUMNS, DataColumns, Indices
from tableformat.metadata.columns.many_objects import no_collection, objects_of
from tableformat.metadata.columns.raw_manifest import METRICS
from tableformat.metadata.content_file import DataFile


class _MetricColumn:
    """One metric of many files."""

    __slots__ = ("_keys", "_offsets", "_values")

    def __init__(self, column: pa.ListArray) -> None:
        self._offsets = np.asarray(column.offsets)
        self._keys = np.asarray(column.values.field("key"))
        self._values = column.values.field("value")

    def of(self, row: int) -> dict[int, Any]:
        start, stop = int(self._offsets[row]), int(self._offsets[row + 1])
        keys: list[int] = self._keys[start:stop].tolist()
        return dict(zip(keys, self._values.slice(start, stop - start).to_pylist(), strict=True))


@dataclass(slots=True, eq=False, repr=False)
class RowMetrics(Mapping[int, Any]):
    """A metric of one file by column id; equal to the dict of the same content, and pickled as one."""

    column: _MetricColumn
    row: int
    held: dict[int, Any] | None
    """The dict, after the first access."""

    @property
    def _dict(self) -> dict[int, Any]:
        held = self.held
        if held is None:
            held = self.held = self.column.of(self.row)
        return held

    def __getitem__(self, field_id: int) -> Any:
        return self._dict[field_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __contains__(self, field_id: object) -> bool:
        return field_id in self._dict

    def get(self, field_id: int, default: Any = None) -> Any:
        return self._dict.get(field_id, default)

    def __eq__(self, other: object) -> bool:
        return self._dict == (other._dict if isinstance(other, RowMetrics) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._dict,)


def data_files(columns: DataColumns, rows: Indices | None = None) -> Sequence[DataFile]:
    """The files at the given indexes, or all files. Existing objects are reused; the objects of all files are
    cached."""
    if rows is not None and columns.files is None:
        return data_files(columns.take(rows))
    files = columns.files
    if files is None:
        files = columns.held_files.get()
    if files is None:
        with no_collection(len(columns)):
            files = tuple(_made(columns))
        columns.held_files.set(files)
    return files if rows is None else [files[row] for row in rows.tolist()]


def _made(chosen: DataColumns) -> list[DataFile]:
    batch, count = chosen.batch, len(chosen)
    partitions = [chosen.partitions[index] for index in chosen.partition_ids.tolist()]
    columns: dict[str, Iterable[Any]] = {
        ATTRIBUTES.get(name, name): batch[name].to_pylist()
        for name in LIVE_COLUMNS
        if name not in (*METRICS, "split_offsets")
    }
    columns |= {name: _metrics(batch[name]) for name in METRICS}
    columns["file_format"] = batch["file_format"].dictionary_encode().to_pylist()
    columns["split_offsets"] = _tuples(batch["split_offsets"])
    columns["spec_id"] = [partition[0] for partition in partitions]
    columns["partition"] = [partition[1] for partition in partitions]
    return objects_of(DataFile, count, columns)


def _tuples(column: pa.ListArray) -> list[tuple[int, ...] | None]:
    """Lists of numbers. If all have one length, as in most files, one loop in C creates them."""
    counts = np.diff(np.asarray(column.offsets))
    length = int(counts[0]) if len(counts) else 0
    if length == 0 or column.null_count or (counts != length).any():
        return [None if each is None else tuple(each) for each in column.to_pylist()]
    numbers = iter(column.flatten().to_pylist())
    return list(zip(*[numbers] * length, strict=True))


def _metrics(column: pa.ListArray) -> list[RowMetrics | None]:
    count = len(column)
    slots: dict[str, Iterable[Any]] = {
        "column": repeat(_MetricColumn(column)),
        "row": range(count),
        "held": repeat(None),
    }
    metrics: list[RowMetrics | None] = [*objects_of(RowMetrics, count, slots)]
    if column.null_count:
        for row in np.flatnonzero(np.asarray(column.is_null())).tolist():
            metrics[row] = None
    return metrics
