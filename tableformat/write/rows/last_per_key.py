"""The last row of every key in a stream of any length.

What fits into the memory budget is done by Arrow. Beyond it, rows go to a temporary file as they come, DuckDB decides
over the keys and row numbers alone (it spills too), and a second pass over the file lets the winners through.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.properties import WRITE_MEMORY_BYTES_DEFAULT
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.distinct import with_fixed_width
from tableformat.write.rows.nested_casts import decoded
from tableformat.write.rows.rows import BatchStream

_DUCKDB_MEMORY_MIN: Final = 128 * 1024 * 1024
_WINNERS_PER_BATCH: Final = 1 << 20
_IPC_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_ORDINAL: Final = "ordinal"
_ORDER: Final = "order_value"
_IS_NUMBER: Final = "order_is_number"

Rows = npt.NDArray[np.int64]
"""Row numbers in the input."""


def last_row_per_key(
    reader: BatchStream,
    key_names: Sequence[str],
    order_by: str | None = None,
    *,
    memory_bytes: int = WRITE_MEMORY_BYTES_DEFAULT,
) -> pa.RecordBatchReader:
    """One row for every distinct key, in the order of the input: the last one, or the one with the largest `order_by`.

    Equal `order_by` leave the later row; null is the smallest, then NaN. Null keys equal each other (DA-4). Holds about
    `memory_bytes` of rows. Raises UnknownColumnError, or InvalidKeyError for nested columns.
    """
    names = [*key_names, *([] if order_by is None else [order_by])]
    for name in names:
        if name not in reader.schema.names:
            raise UnknownColumnError(name, reader.schema.names, where="the rows")
        if pa.types.is_nested(reader.schema.field(name).type):
            raise InvalidKeyError(f"column {name!r} is nested: rows cannot be told apart or ordered by it.")
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    stream = iter(reader)
    for batch in stream:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > memory_bytes:
            batches = itertools.chain(held, stream)
            return pa.RecordBatchReader.from_batches(
                reader.schema, _spilled(batches, reader.schema, key_names, order_by, memory_bytes)
            )
    return pa.RecordBatchReader.from_batches(reader.schema, _in_memory(held, key_names, order_by))


def _in_memory(
    batches: list[pa.RecordBatch], key_names: Sequence[str], order_by: str | None
) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    keys = pa.Table.from_batches([_comparable(batch, key_names, order_by) for batch in batches])
    # A row's index when rows are ordered by `order_by`, later rows last among equals: the largest index of a key wins.
    by_place = _rows_by_place(keys)
    indexes = np.empty(len(keys), dtype=np.int64)
    indexes[by_place] = np.arange(len(keys))
    groups = with_fixed_width(keys.select(_key_columns(keys.schema)))
    names = groups.column_names
    grouped = groups.append_column(_ORDINAL, pa.array(indexes)).group_by(names, use_threads=False)
    best = grouped.aggregate([(_ORDINAL, "max")]).column(f"{_ORDINAL}_max")
    winners = np.sort(by_place[np.asarray(best)])
    yield from _let_through(iter(batches), iter([winners]))


def _spilled(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    key_names: Sequence[str],
    order_by: str | None,
    memory_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The temporary files live as long as this generator."""

    with tempfile.TemporaryDirectory(prefix="tableformat-last-row-") as directory:
        rows, keys = Path(directory, "rows.arrow"), Path(directory, "keys.arrow")
        _spill(batches, schema, key_names, order_by, rows=rows, keys=keys)
        limit = max(memory_bytes, _DUCKDB_MEMORY_MIN)
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{limit // 2**20}MiB",
            "temp_directory": directory,
            "threads": 2,
        }
        with (
            pa.ipc.open_stream(pa.OSFile(str(keys))) as key_reader,
            pa.ipc.open_stream(pa.OSFile(str(rows))) as row_reader,
            duckdb_connection(settings) as connection,
        ):
            connection.register("keys", key_reader)
            winners = connection.sql(_winners_query(key_reader.schema)).to_arrow_reader(_WINNERS_PER_BATCH)
            yield from _let_through(iter(row_reader), (batch.column(0).to_numpy() for batch in winners))


def _spill(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    key_names: Sequence[str],
    order_by: str | None,
    *,
    rows: Path,
    keys: Path,
) -> None:
    """All rows into one file, what decides between them into another."""
    first = 0
    with contextlib.ExitStack() as files:
        row_file = files.enter_context(pa.ipc.new_stream(str(rows), schema, options=_IPC_OPTIONS))
        key_file = None
        for batch in batches:
            row_file.write_batch(batch)
            columns = _comparable(batch, key_names, order_by).append_column(
                _ORDINAL, pa.array(np.arange(first, first + batch.num_rows))
            )
            if key_file is None:
                key_file = files.enter_context(pa.ipc.new_stream(str(keys), columns.schema, options=_IPC_OPTIONS))
            key_file.write_batch(columns)
            first += batch.num_rows


def _winners_query(schema: pa.Schema) -> str:
    """Row numbers of the winners, ascending. GROUP BY and PARTITION BY take null as a value."""
    keys = ", ".join(_key_columns(schema))
    if _ORDER not in schema.names:
        return f"SELECT max({_ORDINAL}) AS {_ORDINAL} FROM keys GROUP BY {keys} ORDER BY 1"
    terms = [f"{name} DESC NULLS LAST" for name in (_IS_NUMBER, _ORDER) if name in schema.names]
    return (
        f"SELECT {_ORDINAL} FROM keys QUALIFY row_number() OVER "
        f"(PARTITION BY {keys} ORDER BY {', '.join(terms)}, {_ORDINAL} DESC) = 1 ORDER BY 1"
    )


def _let_through(batches: Iterator[pa.RecordBatch], winners: Iterator[Rows]) -> Iterator[pa.RecordBatch]:
    """The rows whose numbers `winners` names, ascending and in portions."""
    first = 0
    portion: Rows = np.empty(0, dtype=np.int64)
    for batch in batches:
        end = first + batch.num_rows
        while len(portion) == 0 or portion[-1] < end:
            more = next(winners, None)
            if more is None:
                break
            portion = np.concatenate((portion, more))
        count = int(np.searchsorted(portion, end))
        if count:
            chosen, portion = portion[:count] - first, portion[count:]
            yield batch if count == batch.num_rows else batch.take(pa.array(chosen))
        first = end


def _comparable(batch: pa.RecordBatch, key_names: Sequence[str], order_by: str | None) -> pa.RecordBatch:
    """The columns that decide, in types that Arrow and DuckDB compare alike: the key first, then what orders rows."""
    columns = {f"key_{position}": _plain(batch.column(name)) for position, name in enumerate(key_names)}
    if order_by is not None:
        order = _plain(batch.column(order_by))
        columns[_ORDER] = order
        if pa.types.is_floating(order.type):
            columns[_IS_NUMBER] = pc.invert(pc.is_nan(order))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _plain(column: pa.Array) -> pa.Array:
    """Texts as their bytes, times and dates as whole units, floats with one zero and one NaN."""
    column = decoded(column)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string()).cast(pa.large_binary())
    if pa.types.is_temporal(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_floating(kind):
        wide = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(wide), float("nan"), pc.add(wide, 0.0))
    return column


def _rows_by_place(keys: pa.Table) -> Rows:
    """Row numbers in the order null, NaN, values; stable."""
    if _ORDER not in keys.column_names:
        return np.arange(len(keys), dtype=np.int64)
    names = [name for name in (_IS_NUMBER, _ORDER) if name in keys.column_names]
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending", "at_start") for name in names])
    return np.asarray(order).astype(np.int64)


def _key_columns(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name not in (_ORDER, _IS_NUMBER, _ORDINAL)]
