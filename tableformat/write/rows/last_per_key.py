"""The last row of every key, or the newest rows of every prefix, in a stream of any length.

Arrow finds them if the rows fit into the memory budget. Otherwise the rows are written to a temporary file as they
arrive. DuckDB, which spills too, chooses the winners from the keys and row numbers alone. A second pass over the file
yields them.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.properties import WRITE_MEMORY_BYTES_DEFAULT
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.distinct import heads_of_runs, row_codes, with_fixed_width
from tableformat.write.rows.nested_casts import decoded
from tableformat.write.rows.rows import BatchStream

_DUCKDB_MEMORY_MIN: Final = 128 * 1024 * 1024
_WINNERS_PER_BATCH: Final = 1 << 20
_IPC_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_ORDINAL: Final = "ordinal"
_KEY: Final = "key_"
_ORDER: Final = "order_"
_RESET: Final = "reset_"
_IS_NUMBER: Final = "number_"
"""The column before the order column of floats, which makes NaN smaller than all numbers."""

Rows = npt.NDArray[np.int64]
"""Row numbers in the input."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The rule that decides which rows stay."""

    key_names: tuple[str, ...]
    order_by: tuple[str, ...]
    keeps_ties: bool
    """Whether all rows with the greatest order stay; otherwise only the last of them."""
    resets: str | None = None
    """A column of booleans: rows before one with the value true do not stay."""


def last_row_per_key(
    reader: BatchStream,
    key_names: Sequence[str],
    order_by: str | Sequence[str] | None = None,
    *,
    resets: str | None = None,
    memory_bytes: int = WRITE_MEMORY_BYTES_DEFAULT,
) -> pa.RecordBatchReader:
    """One row for every distinct key, in the order of the input: the last one, or the one with the largest `order_by`.

    If `order_by` is equal, the later row stays. Null is the smallest value, followed by NaN. Null keys equal each other
    (DA-4). About `memory_bytes` of rows are held. Raises UnknownColumnError, or InvalidKeyError for nested columns.

    `resets`: a column of booleans. The last row with the value true also stays, and no row before it does (CF-13).
    """
    order = () if order_by is None else (order_by,) if isinstance(order_by, str) else tuple(order_by)
    return _chosen(reader, _Choice(tuple(key_names), order, keeps_ties=False, resets=resets), memory_bytes)


def newest_rows(
    reader: BatchStream,
    prefix: Sequence[str],
    order_by: Sequence[str],
    *,
    memory_bytes: int = WRITE_MEMORY_BYTES_DEFAULT,
) -> pa.RecordBatchReader:
    """CP-66: for every distinct prefix, all rows with the greatest values in the columns `order_by`, in the order of
    the input.

    Values are compared column by column. Null is the smallest value, followed by NaN. Null prefixes equal each other
    (DA-4). About `memory_bytes` of rows are held. Raises UnknownColumnError, or InvalidKeyError for nested columns.
    """
    return _chosen(reader, _Choice(tuple(prefix), tuple(order_by), keeps_ties=True), memory_bytes)


def refuse_incomparable(schema: pa.Schema, names: Iterable[str]) -> None:
    """Raise UnknownColumnError for a name that the rows do not have, and InvalidKeyError for a nested column."""
    for name in names:
        if name not in schema.names:
            raise UnknownColumnError(name, schema.names, where="the rows")
        if pa.types.is_nested(schema.field(name).type):
            raise InvalidKeyError(f"column {name!r} is nested: rows cannot be distinguished or ordered by it.")


def _chosen(reader: BatchStream, choice: _Choice, memory_bytes: int) -> pa.RecordBatchReader:
    refuse_incomparable(reader.schema, (*choice.key_names, *choice.order_by))
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    stream = iter(reader)
    for batch in stream:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > memory_bytes:
            batches = itertools.chain(held, stream)
            return pa.RecordBatchReader.from_batches(
                reader.schema, _spilled(batches, reader.schema, choice, memory_bytes)
            )
    return pa.RecordBatchReader.from_batches(reader.schema, _in_memory(held, choice))


def _in_memory(batches: list[pa.RecordBatch], choice: _Choice) -> Iterator[pa.RecordBatch]:
    if not batches:
        return
    keys = pa.Table.from_batches([_comparable(batch, choice) for batch in batches])
    winners = _newest(keys) if choice.keeps_ties else _last(keys)
    yield from _let_through(iter(batches), iter([winners]))


def _last(keys: pa.Table) -> Rows:
    # The index of each row in the order of `order_by`, with later rows last among equal ones. The largest index of a
    # key wins.
    by_place = _rows_by_place(keys)
    indexes = np.empty(len(keys), dtype=np.int64)
    indexes[by_place] = np.arange(len(keys))
    groups = with_fixed_width(keys.select(_columns(keys, _KEY)))
    names = groups.column_names
    grouped = groups.append_column(_ORDINAL, pa.array(indexes)).group_by(names, use_threads=False)
    best = np.asarray(grouped.aggregate([(_ORDINAL, "max")]).column(f"{_ORDINAL}_max"))
    if _RESET in keys.column_names:
        last_reset = indexes[np.asarray(keys.column(_RESET))].max(initial=-1)
        best = np.union1d(best[best > last_reset], last_reset if last_reset >= 0 else best[:0])
    return np.sort(by_place[best])


def _newest(keys: pa.Table) -> Rows:
    """The newest rows of each key. The rows of a message are adjacent, so runs of equal rows are compared instead of
    rows."""
    if not len(keys):
        return np.empty(0, np.int64)
    heads = heads_of_runs(keys)
    runs = keys.take(pa.array(heads))
    is_newest = newest_of_groups(runs.select(_columns(keys, _KEY)), _ranks(runs))
    return np.flatnonzero(np.repeat(is_newest, np.diff(heads, append=len(keys))))


def newest_of_groups(groups: pa.Table, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """CP-66: for each row, whether no row of the same group has a greater rank."""
    codes = row_codes(groups)
    best = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    np.maximum.at(best, codes, ranks)
    newest: npt.NDArray[np.bool_] = ranks == best[codes]
    return newest


def order_ranks(table: pa.Table) -> npt.NDArray[np.int64]:
    """Numbers that order the rows of a table as `newest_rows` does. Equal rows have equal numbers."""
    choice = _Choice((), tuple(table.column_names), keeps_ties=True)
    return _ranks(pa.Table.from_batches([_comparable(batch, choice) for batch in table.combine_chunks().to_batches()]))


def _ranks(keys: pa.Table) -> npt.NDArray[np.int64]:
    by_place = _rows_by_place(keys)
    codes = row_codes(keys.select(_columns(keys, _ORDER)))[by_place]
    ranks = np.empty(len(keys), np.int64)
    ranks[by_place] = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
    return ranks


def _spilled(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, choice: _Choice, memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The winners of rows that exceed the memory budget. The temporary files exist as long as this generator."""

    with tempfile.TemporaryDirectory(prefix="tableformat-last-row-") as directory:
        rows, keys = Path(directory, "rows.arrow"), Path(directory, "keys.arrow")
        _spill(batches, schema, choice, rows=rows, keys=keys)
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
            winners = connection.sql(_winners_query(key_reader.schema, choice)).to_arrow_reader(_WINNERS_PER_BATCH)
            yield from _let_through(iter(row_reader), (batch.column(0).to_numpy() for batch in winners))


def _spill(batches: Iterator[pa.RecordBatch], schema: pa.Schema, choice: _Choice, *, rows: Path, keys: Path) -> None:
    """Write all rows to one file, and the columns that decide between them to another."""
    first = 0
    with contextlib.ExitStack() as files:
        row_file = files.enter_context(pa.ipc.new_stream(str(rows), schema, options=_IPC_OPTIONS))
        key_file = None
        for batch in batches:
            row_file.write_batch(batch)
            columns = _comparable(batch, choice).append_column(
                _ORDINAL, pa.array(np.arange(first, first + batch.num_rows))
            )
            if key_file is None:
                key_file = files.enter_context(pa.ipc.new_stream(str(keys), columns.schema, options=_IPC_OPTIONS))
            key_file.write_batch(columns)
            first += batch.num_rows


def _winners_query(schema: pa.Schema, choice: _Choice) -> str:
    """Query the row numbers of the winners, ascending. GROUP BY and PARTITION BY treat null as a value."""
    keys = ", ".join(_columns(schema, _KEY))
    if choice.resets is not None:
        return _query_with_resets(schema, keys)
    if not choice.order_by:
        return f"SELECT max({_ORDINAL}) AS {_ORDINAL} FROM keys GROUP BY {keys} ORDER BY 1"
    terms = [f"{name} DESC NULLS LAST" for name in _columns(schema, _IS_NUMBER, _ORDER)]
    ranking = "rank()" if choice.keeps_ties else "row_number()"
    order = ", ".join(terms if choice.keeps_ties else [*terms, f"{_ORDINAL} DESC"])
    return f"SELECT {_ORDINAL} FROM keys QUALIFY {ranking} OVER (PARTITION BY {keys} ORDER BY {order}) = 1 ORDER BY 1"


def _query_with_resets(schema: pa.Schema, keys: str) -> str:
    """CF-13: `place` is the position of a row in the order of all rows. It shows which rows precede the last reset."""
    terms = [f"{name} ASC NULLS FIRST" for name in _columns(schema, _IS_NUMBER, _ORDER)]
    order = ", ".join([*terms, _ORDINAL])
    return (
        f"WITH placed AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM keys),"
        f" last_reset AS (SELECT coalesce(max(place), 0) AS place FROM placed WHERE {_RESET}),"
        f" newest AS (SELECT {_ORDINAL}, place, max(place) OVER (PARTITION BY {keys}) AS last FROM placed)"
        f" SELECT {_ORDINAL} FROM newest, last_reset WHERE newest.place = last_reset.place"
        f" OR (newest.place = last AND newest.place > last_reset.place) ORDER BY 1"
    )


def _let_through(batches: Iterator[pa.RecordBatch], winners: Iterator[Rows]) -> Iterator[pa.RecordBatch]:
    """The rows with the numbers in `winners`, which are ascending and come in portions."""
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


def _comparable(batch: pa.RecordBatch, choice: _Choice) -> pa.RecordBatch:
    """The columns that decide: key columns, then order columns. Arrow and DuckDB compare their types alike."""
    columns = {
        f"{_KEY}{position}": comparable_column(batch.column(name)) for position, name in enumerate(choice.key_names)
    }
    for position, name in enumerate(choice.order_by):
        order = comparable_column(batch.column(name))
        if pa.types.is_floating(order.type):
            columns[f"{_IS_NUMBER}{position}"] = pc.invert(pc.is_nan(order))
        columns[f"{_ORDER}{position}"] = order
    if choice.resets is not None:
        columns[_RESET] = batch.column(choice.resets)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def comparable_column(column: pa.Array) -> pa.Array:
    """The column in a type that Arrow and DuckDB compare as keys are compared: strings as bytes, times and dates as
    integers of their unit, floats with only one zero and one NaN."""
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
    """Row numbers in the order null, NaN, values. The order is stable."""
    names = _columns(keys, _IS_NUMBER, _ORDER)
    if not names:
        return np.arange(len(keys), dtype=np.int64)
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending", "at_start") for name in names])
    return np.asarray(order).astype(np.int64)


def _columns(keys: pa.Table | pa.Schema, *prefixes: str) -> list[str]:
    names = keys.names if isinstance(keys, pa.Schema) else keys.column_names
    return [name for name in names if name.startswith(prefixes)]
