"""Finds keys that more than one live row of a snapshot has (MT-120)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.errors import InvalidKeyError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.maintenance.running.progress import Progress
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.row_lookup.streamed_input import streamed_input
from tableformat.properties import WRITE_MEMORY_BYTES, WRITE_MEMORY_BYTES_DEFAULT, positive_int
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.last_per_key import comparable_column

EXAMPLES: Final = 5
"""The number of keys that a finding shows."""
_MEMORY_BYTES_MIN: Final = 128 * 1024 * 1024
_COUNT: Final = "row_count"
_TEXT_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """The keys that more than one live row has."""

    key_count: int
    row_count: int
    """All rows with one of these keys."""
    examples: tuple[str, ...] = ()
    """The keys with the most rows, as text with the number of rows."""

    def __str__(self) -> str:
        keys = "1 key has" if self.key_count == 1 else f"{self.key_count:,} keys have"
        are = ":" if self.key_count == len(self.examples) else ", such as"
        return f"{keys} more than one live row, {self.row_count:,} rows in all{are} {'; '.join(self.examples)}"


def key_of_view(view: SnapshotView, name: str) -> tuple[str, ...]:
    """The names of the key columns in the view. Raises InvalidKeyError for a table without a key, and for a snapshot
    whose schema lacks a column of the key."""
    ids = key_field_ids(view.metadata.schema(), view.metadata.properties)
    if not ids:
        raise InvalidKeyError(
            f"table {name} has no key, so no rows have the same one. Name its columns with table.set_key([...]), or "
            "leave keys=True out."
        )
    return key_names(view.schema, ids)


def find_repeated_keys(view: SnapshotView, key: Sequence[str], tell: Progress) -> RepeatedKeys:
    """MT-120: count the keys that more than one row of a scan of the view has.

    Only the key columns are read. DuckDB groups them and spills to a temporary directory, so memory is about
    `tableformat.write.memory-bytes`, regardless of the number of rows.
    """
    context = ReadContext.of(view, key)
    schema = pa.schema(
        [
            pa.field(f"key_{place}", comparable_column(pa.array([], context.arrow_schema.field(name).type)).type)
            for place, name in enumerate(key)
        ]
    )
    memory_bytes = positive_int(view.metadata.properties, WRITE_MEMORY_BYTES, WRITE_MEMORY_BYTES_DEFAULT)
    columns = ", ".join(schema.names)
    with (
        tempfile.TemporaryDirectory(prefix="tableformat-repeated-keys-") as directory,
        duckdb_connection(
            {
                "memory_limit": f"{max(memory_bytes, _MEMORY_BYTES_MIN) // 2**20}MiB",
                "temp_directory": directory,
                "preserve_insertion_order": False,
            }
        ) as connection,
    ):
        with streamed_input(connection, "present", schema, _keys(view, context, key, schema, tell)):
            connection.execute(
                f"CREATE TABLE repeated AS SELECT {columns}, count(*) AS {_COUNT} FROM present "
                f"GROUP BY {columns} HAVING count(*) > 1"
            )
        sums = f"SELECT count(*), coalesce(sum({_COUNT}), 0) FROM repeated"
        ((key_count, row_count),) = connection.sql(sums).fetchall()
        first = f"SELECT * FROM repeated ORDER BY {_COUNT} DESC, {columns} LIMIT {EXAMPLES}"
        examples = connection.sql(first).to_arrow_table()
    return RepeatedKeys(key_count, int(row_count), _texts(examples, context.selected, key))


def _keys(
    view: SnapshotView, context: ReadContext, key: Sequence[str], schema: pa.Schema, tell: Progress
) -> Iterator[pa.RecordBatch]:
    """The key columns of all live rows, in a form that DuckDB groups as RD-4 compares them."""
    tasks = plan_scan(view, context=context.merge).tasks
    total = sum(task.data_file.record_count for task in tasks)
    done = 0
    tell(done, total, "rows whose keys are compared")
    for rows in read_tables(tasks, context):
        for batch in rows.select(list(key)).to_batches():
            yield pa.RecordBatch.from_arrays([comparable_column(column) for column in batch.columns], schema=schema)
        done += rows.num_rows
        tell(done, total, "rows whose keys are compared")


def _texts(found: pa.Table, schema: Schema, key: Sequence[str]) -> tuple[str, ...]:
    types = arrow_schema(schema)
    columns = [_values(found.column(place).combine_chunks(), types.field(name).type) for place, name in enumerate(key)]
    counts = found.column(_COUNT).to_pylist()
    return tuple(
        f"({', '.join(f'{name}={value}' for name, value in zip(key, values, strict=True))}) {count:,} rows"
        for *values, count in zip(*columns, counts, strict=True)
    )


def _values(column: pa.Array, kind: pa.DataType) -> list[str]:
    """The values as text. `comparable_column` turned them into another type before."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_string(kind):
        return [repr(_clipped(value)) for value in column.cast(kind).to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [_clipped(value.hex()) for value in column.to_pylist()]
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    texts: list[str] = column.cast(kind).cast(pa.string()).to_pylist()
    return texts


def _clipped(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
