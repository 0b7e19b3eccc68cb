"""`DataFile` objects of rows of `DataColumns`: made for files that a plan keeps, metrics when they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tableformat.metadata.columns.data_columns import DataColumns, Indices
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


class RowMetrics(Mapping[int, Any]):
    """A metric of one file by column id; equal to the dict of the same content, and pickled as one."""

    __slots__ = ("_column", "_held", "_row")

    def __init__(self, column: _MetricColumn, row: int) -> None:
        self._column = column
        self._row = row
        self._held: dict[int, Any] | None = None

    @property
    def _dict(self) -> dict[int, Any]:
        held = self._held
        if held is None:
            held = self._held = self._column.of(self._row)
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


def data_files(columns: DataColumns, rows: Indices | None = None) -> list[DataFile]:
    """The files at the given indexes, or all of them. Objects that were there before are given as they are."""
    if columns.files is not None:
        return list(columns.files) if rows is None else [columns.files[row] for row in rows.tolist()]
    chosen = columns if rows is None else columns.take(rows)
    if len(chosen) == 0:
        return []
    batch = chosen.batch
    partitions = [chosen.partitions[index] for index in chosen.partition_ids.tolist()]
    offsets = batch["split_offsets"].to_pylist()
    metrics = [_metrics(batch[name]) for name in METRICS]
    formats = batch["file_format"].dictionary_encode()
    return [
        DataFile(
            file_path=path,
            file_format=file_format,
            spec_id=partition[0],
            partition=partition[1],
            record_count=record_count,
            file_size_bytes=size,
            sequence_number=number,
            file_sequence_number=file_number,
            column_sizes=sizes,
            value_counts=values,
            null_value_counts=nulls,
            nan_value_counts=nans,
            lower_bounds=lower,
            upper_bounds=upper,
            key_metadata=key_metadata,
            split_offsets=None if split is None else tuple(split),
            sort_order_id=order,
            first_row_id=row_id,
        )
        for (
            path, file_format, partition, record_count, size, number, file_number,
            sizes, values, nulls, nans, lower, upper, key_metadata, split, order, row_id,
        ) in zip(
            batch["file_path"].to_pylist(),
            formats.to_pylist(),
            partitions,
            batch["record_count"].to_pylist(),
            batch["file_size_in_bytes"].to_pylist(),
            batch["sequence_number"].to_pylist(),
            batch["file_sequence_number"].to_pylist(),
            *metrics,
            batch["key_metadata"].to_pylist(),
            offsets,
            batch["sort_order_id"].to_pylist(),
            batch["first_row_id"].to_pylist(),
            strict=True,
        )
    ]  # fmt: skip


def _metrics(column: pa.ListArray) -> list[RowMetrics | None]:
    of_column = _MetricColumn(column)
    if column.null_count == 0:
        return [RowMetrics(of_column, row) for row in range(len(column))]
    return [
        RowMetrics(of_column, row) if is_stated else None
        for row, is_stated in enumerate(np.asarray(column.is_valid()).tolist())
    ]
