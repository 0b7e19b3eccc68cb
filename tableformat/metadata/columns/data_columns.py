"""`DataColumns`: live data files of a snapshot as Arrow columns, with inherited numbers (DA-9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.metadata.columns.raw_manifest import COLUMNS
from tableformat.metadata.content_file import DataFile

Partition: TypeAlias = tuple[int, tuple[Any, ...]]
"""Spec id and partition values in Iceberg's internal representation."""
Indices: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

LIVE_COLUMNS: Final = {name: data_type for name, data_type in COLUMNS.items() if name not in ("status", "content")}
_OBJECT_BYTES: Final = 800
"""The size of a `DataFile` object whose metrics were not read yet."""
ATTRIBUTES: Final = {"file_size_in_bytes": "file_size_bytes"}
"""Columns with another name in `DataFile`."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric of one column, for each file."""

    values: pa.Array
    """int64, or the bounds as binary; null if the file does not state it."""

    @property
    def is_known(self) -> Flags:
        known: Flags = np.asarray(self.values.is_valid())
        return known


class HeldFiles:
    """A cache for the objects of immutable columns. Creating them twice concurrently is harmless."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: Sequence[DataFile] | None = None

    def get(self) -> Sequence[DataFile] | None:
        return self._files

    def set(self, files: Sequence[DataFile]) -> None:
        self._files = files


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DataColumns:
    """n data files, in the order of their manifests."""

    batch: pa.RecordBatch
    """`LIVE_COLUMNS`, n rows."""
    partitions: tuple[Partition, ...]
    """The distinct partitions."""
    partition_ids: Indices
    """For each file the index of its partition."""
    files: Sequence[DataFile] | None = None
    """The files, if they were objects before they became columns."""
    held_files: HeldFiles = field(default_factory=HeldFiles)
    """The files, after objects were created for all of them."""
    _metrics: dict[tuple[str, int], Metric] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def size_bytes(self) -> int:
        """The memory of the columns and of the objects created from them."""
        return int(self.batch.nbytes) + self.partition_ids.nbytes + _OBJECT_BYTES * len(self)

    @property
    def sequence_numbers(self) -> npt.NDArray[np.int64]:
        """Data sequence numbers; -1 if the file has none yet."""
        numbers: npt.NDArray[np.int64] = np.asarray(pc.fill_null(self.batch["sequence_number"], -1))
        return numbers

    @property
    def record_counts(self) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = np.asarray(self.batch["record_count"])
        return counts

    def metric(self, name: str, field_id: int) -> Metric:
        """A metric of a column in all files: `name` is one of `METRICS`. Extracted once for each column."""
        key = (name, field_id)
        found = self._metrics.get(key)
        if found is None:
            found = self._metrics[key] = Metric(_of_field(self.batch[name], field_id))
        return found

    def value_counts(self, field_id: int) -> Metric:
        """FM-8: `content_file.value_count` of each file."""
        stated = self.metric("value_counts", field_id).values
        return Metric(pc.max_element_wise(stated, self.batch["record_count"], skip_nulls=False))

    def null_counts(self, field_id: int) -> Metric:
        """FM-8: `content_file.null_count` of each file."""
        stated, values = self.metric("null_value_counts", field_id).values, self.metric("value_counts", field_id).values
        uncounted = pc.max_element_wise(pc.subtract(self.batch["record_count"], values), pa.scalar(0, pa.int64()))
        return Metric(pc.add(stated, uncounted))

    def take(self, rows: Indices) -> DataColumns:
        """The files at the given indexes."""
        files = None if self.files is None else [self.files[row] for row in rows.tolist()]
        return DataColumns(self.batch.take(pa.array(rows)), self.partitions, self.partition_ids[rows], files)

    def slice(self, start: int, count: int) -> DataColumns:
        """Some adjacent files; the same object for all of them."""
        if start == 0 and count >= len(self):
            return self
        end = start + count
        files = None if self.files is None else self.files[start:end]
        return DataColumns(self.batch.slice(start, count), self.partitions, self.partition_ids[start:end], files)

    @staticmethod
    def concat(parts: Sequence[DataColumns]) -> DataColumns:
        """All files, in the given order."""
        if len(parts) == 1:
            return parts[0]
        indexes: dict[Any, int] = {}
        partitions: list[Partition] = []
        ids = []
        for part in parts:
            places = []
            for partition in part.partitions:
                identity = (partition[0], tuple(map(repr, partition[1])))
                if identity not in indexes:
                    indexes[identity] = len(partitions)
                    partitions.append(partition)
                places.append(indexes[identity])
            ids.append(np.array(places, np.int64)[part.partition_ids])
        files = [file for part in parts for file in part.files or ()]
        batch = pa.concat_batches([part.batch for part in parts]) if parts else _no_rows()
        return DataColumns(
            batch,
            tuple(partitions),
            np.concatenate(ids) if ids else np.zeros(0, np.int64),
            files if parts and all(part.files is not None for part in parts) else None,
        )


def columns_of_files(files: Sequence[DataFile]) -> DataColumns:
    """Files that are objects already: staged or selected files, and files of manifests that only the object reader
    reads."""
    indexes: dict[Any, int] = {}
    partitions: list[Partition] = []
    ids = np.empty(len(files), np.int64)
    for row, data in enumerate(files):
        identity = (data.spec_id, tuple(map(repr, data.partition)))
        if identity not in indexes:
            indexes[identity] = len(partitions)
            partitions.append((data.spec_id, data.partition))
        ids[row] = indexes[identity]
    arrays = {
        name: pa.array([_stored(getattr(data, ATTRIBUTES.get(name, name))) for data in files], data_type)
        for name, data_type in LIVE_COLUMNS.items()
    }
    return DataColumns(pa.RecordBatch.from_pydict(arrays), tuple(partitions), ids, files)


def _stored(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"key": key, "value": each} for key, each in value.items()]
    return value


def _no_rows() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.nulls(0, data_type) for name, data_type in LIVE_COLUMNS.items()})


def _of_field(column: pa.ListArray, field_id: int) -> pa.Array:
    """The value of the field in each map; null if a map lacks it."""
    count = len(column)
    offsets = np.asarray(column.offsets).astype(np.int64)
    pairs = column.values
    keys = np.asarray(pairs.field("key"))[offsets[0] : offsets[-1]] if count else np.zeros(0, np.int32)
    values = pairs.field("value")
    found = np.flatnonzero(keys == field_id)
    if len(found) == count:
        rows = np.searchsorted(offsets - offsets[0], found, side="right") - 1
        if (rows == np.arange(count)).all():
            return values.take(pa.array(found + offsets[0]))
    at = np.full(count, -1, np.int64)
    if len(found):
        rows = np.searchsorted(offsets - offsets[0], found, side="right") - 1
        at[rows] = found + offsets[0]
    return values.take(pa.array(at, mask=at < 0))
