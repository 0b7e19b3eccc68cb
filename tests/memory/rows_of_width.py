"""Rows of any width, made as they are read: the tables of the memory tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import tableformat as tf

MIB = 1024 * 1024
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("payload", pa.binary()),
    ]
)
_BATCH_BYTES = MIB
_SCATTER = 0.618
"""A step through the ids that puts neighbours far apart."""


@dataclass(frozen=True)
class WideRows:
    """`total_bytes` of rows of one width, each payload other random bytes unless it `repeats`."""

    row_bytes: int
    total_bytes: int
    is_sorted: bool = True
    repeats: bool = False
    first_id: int = 0
    id_step: int = 1

    @property
    def row_count(self) -> int:
        return max(self.total_bytes // self.row_bytes, 1)

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(SCHEMA, self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        per_batch = max(_BATCH_BYTES // self.row_bytes, 1)
        stride = next(step for step in range(int(self.row_count * _SCATTER) | 1, 10**9, 2) if self._visits_all(step))
        for start in range(0, self.row_count, per_batch):
            numbers = np.arange(start, min(start + per_batch, self.row_count))
            if not self.is_sorted:
                numbers = numbers * stride % self.row_count
            yield self._batch(self.first_id + numbers * self.id_step)

    def _visits_all(self, step: int) -> bool:
        return bool(np.gcd(step, self.row_count) == 1)

    def _batch(self, ids: np.ndarray) -> pa.RecordBatch:
        width = max(self.row_bytes - 12, 2)
        random = np.random.default_rng(0 if self.repeats else int(ids[0]))
        offsets = (np.arange(len(ids) + 1) * width).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(random.bytes(len(ids) * width))]
        payload = pa.Array.from_buffers(pa.binary(), len(ids), buffers)
        columns = [pa.array(ids), pa.array((ids % 50).astype(np.int32)), payload]
        return pa.record_batch(columns, schema=SCHEMA)


def new_table(directory: Path, memory_bytes: int, *, partition_by: tuple[str, ...] = ()) -> tf.Table:
    """An empty table `db.t` whose jobs may hold so much."""
    catalog = tf.open_catalog(f"{directory}/")
    catalog.create_namespace("db", exist_ok=True)
    properties = {"tableformat.write.memory-bytes": str(memory_bytes)}
    return catalog.create_table("db.t", SCHEMA, key=["id", "part"], partition_by=partition_by, properties=properties)


def loaded(directory: Path) -> tf.Table:
    """The table by a handle that has read nothing yet."""
    return tf.open_catalog(f"{directory}/").load_table("db.t")
