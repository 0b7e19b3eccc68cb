"""Turns any carrier of Arrow data into a stream of record batches, which is never materialised here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from tableformat.errors import InvalidArgumentError
from tableformat.parquet.array_forms import batch_as, plain_type, storage_of


class BatchStream(Protocol):
    """Batches of one schema, read once: a RecordBatchReader, or ConformedRows."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


ACCEPTED: Final = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or polars DataFrame, an iterable of "
    "RecordBatches, Tables or DataFrames, a polars LazyFrame, a DuckDB relation, any object with __arrow_c_stream__ "
    "or __arrow_c_array__, a list of dicts, or a dict (one row)"
)


def as_reader(rows: Any, *, schema: pa.Schema | None = None, what: str = "rows") -> pa.RecordBatchReader:
    """A reader over the rows. A reader as argument is returned unchanged and can be read once.

    `schema` is the table's schema: a list of dicts takes its column types from it if the values fit, and an empty list
    or iterable has no other schema. `what` names the argument in errors. Raises InvalidArgumentError for any other
    argument. Views of text and bytes, which Polars exports, and run ends become plain values.
    """
    reader = _reader(rows, schema, what)
    plain = pa.schema([each.with_type(plain_type(each.type)) for each in reader.schema], reader.schema.metadata)
    if plain.equals(reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(plain, (batch_as(batch, plain) for batch in reader))


def _reader(  # noqa: PLR0911, PLR0912 - one case for each kind of argument
    rows: Any, schema: pa.Schema | None, what: str
) -> pa.RecordBatchReader:
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(rows.schema, [rows])
    if isinstance(rows, pa.Table):
        return rows.to_reader()
    if isinstance(rows, ds.Dataset):
        return rows.scanner().to_reader()
    if isinstance(rows, ds.Scanner):
        return rows.to_reader()
    if _is_pandas_frame(rows):
        return _from_pandas_frame(rows, schema, what)
    if hasattr(rows, "__arrow_c_stream__"):
        with _no_rows_refused(rows, what):
            return pa.RecordBatchReader.from_stream(rows)
    if hasattr(rows, "__arrow_c_array__"):
        with _no_rows_refused(rows, what):
            batch = pa.record_batch(rows)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if _is_lazy_frame(rows):
        return _from_lazy_frame(rows)
    if isinstance(rows, Mapping) and not _is_of_columns(rows, schema):
        return _from_dicts([rows], schema, what)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes | bytearray | memoryview):
        if all(isinstance(row, Mapping) for row in rows):
            return _from_dicts(rows, schema, what)
        if all(isinstance(row, pa.RecordBatch) or _is_frame(row) for row in rows):
            return _from_batches(iter(rows), schema, what)
    elif isinstance(rows, Iterator):
        return _from_batches(rows, schema, what)
    elif isinstance(rows, Iterable) and not isinstance(rows, str | bytes | bytearray | memoryview | Mapping):
        return _from_batches(iter(rows), schema, what)
    raise InvalidArgumentError(
        f"{what} of type {_type_name(rows)} cannot be read as rows; accepted are {ACCEPTED}.{_hint(rows)}"
    )


def _hint(rows: Any) -> str:
    """A hint for arguments that other libraries accept, or that are almost right."""
    if isinstance(rows, Mapping):
        return " Pass columns of values as pa.table(...)."
    if isinstance(rows, str | os.PathLike):
        return (
            " To read files, pass pyarrow.dataset.dataset(path); table.add_files([path]) adds Parquet files unchanged."
        )
    if type(rows).__name__ == "DuckDBPyConnection":
        return " Pass connection.sql(...), which returns a relation."
    if isinstance(rows, Sequence) and rows and isinstance(rows[0], Sequence):
        return " Pass the column names: a list of dicts, or pa.Table.from_arrays(columns, names)."
    return ""


@contextlib.contextmanager
def _no_rows_refused(rows: Any, what: str) -> Iterator[None]:
    """Reject single columns and schemas, which Arrow exports by the same protocols as rows."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{what} of type {_type_name(rows)} cannot be read as rows ({error}); accepted are {ACCEPTED}."
        ) from error


def _is_pandas_frame(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")


def _is_frame(rows: Any) -> bool:
    """Whether the argument has rows in memory, which can be read twice."""
    is_polars = type(rows).__module__.partition(".")[0] == "polars" and hasattr(rows, "columns")
    return isinstance(rows, pa.Table) or _is_pandas_frame(rows) or (is_polars and not _is_lazy_frame(rows))


def _from_pandas_frame(frame: Any, schema: pa.Schema | None, what: str) -> pa.RecordBatchReader:
    """Named index levels become columns, others are ignored.

    pandas' own export would also turn an unnamed index that is not the default one into a column, and would keep NaN.
    """
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named:
        frame = frame.reset_index(level=named)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        if not frame.columns.is_unique:
            raise InvalidArgumentError(f"{what} is a DataFrame with two columns of the same name: {error}.") from error
    names = [str(name) for name in frame.columns]
    columns = [_column(name, frame.iloc[:, place], schema, what, from_pandas=True) for place, name in enumerate(names)]
    return pa.table(columns, names=names).to_reader()


def _is_lazy_frame(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "polars" and hasattr(rows, "collect_batches")


def _from_lazy_frame(rows: Any) -> pa.RecordBatchReader:
    """Computed by Polars' streaming engine during reading. Errors of its sources are passed on unchanged."""
    schema = pa.RecordBatchReader.from_stream(rows.collect_schema().to_frame()).schema
    frames = rows.collect_batches(maintain_order=True)
    batches = (batch for frame in frames for batch in pa.RecordBatchReader.from_stream(frame))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _is_of_columns(row: Mapping[str, Any], schema: pa.Schema | None) -> bool:
    """Whether a dict looks like columns of values, not like one row. `pa.table` turns such a dict into rows."""
    nested = {field.name for field in schema or () if pa.types.is_nested(field.type)}
    return any(
        (isinstance(value, list | tuple | pa.Array | pa.ChunkedArray) or getattr(value, "ndim", 0))
        and name not in nested
        for name, value in row.items()
    )


def _from_batches(batches: Iterator[Any], schema: pa.Schema | None, what: str) -> pa.RecordBatchReader:
    """A reader over batches, tables or frames, such as the portions that pandas reads from a file. Reads only the first
    one; later ones are checked when they arrive."""
    first = next(batches, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(schema if schema is not None else pa.schema([]), [])
    if isinstance(first, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    if not _is_frame(first):
        hint = " Pass dicts as a list: list(rows)." if isinstance(first, Mapping) else ""
        raise InvalidArgumentError(
            f"{what} is an iterable of {_type_name(first)}, not of RecordBatches; accepted are {ACCEPTED}.{hint}"
        )
    reader = as_reader(first, schema=schema, what=what)
    rest = _batches_of(batches, reader.schema, schema, what)
    return pa.RecordBatchReader.from_batches(reader.schema, chain(reader, rest))


def _batches_of(
    portions: Iterator[Any], expected: pa.Schema, schema: pa.Schema | None, what: str
) -> Iterator[pa.RecordBatch]:
    """The batches of the portions after the first one, which must have the same columns."""
    for number, portion in enumerate(portions, start=1):
        reader = as_reader(portion, schema=schema, what=f"portion {number} of {what}")
        if not reader.schema.equals(expected):
            raise InvalidArgumentError(
                f"portion {number} of {what} has the columns ({_columns(reader.schema)}), but earlier portions have "
                f"({_columns(expected)}). Nothing was written. Use the same types in all portions."
            )
        yield from reader


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None, what: str) -> pa.RecordBatchReader:
    """One column for every name that occurs in any row; a row without it has a null there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        if rows:
            raise InvalidArgumentError(f"{what} is a list of dicts without any column.")
        return pa.RecordBatchReader.from_batches(schema if schema is not None else pa.schema([]), [])
    for name in names:
        if not isinstance(name, str) or any("\ud800" <= character <= "\udfff" for character in name):
            raise InvalidArgumentError(f"{what} is a list of dicts; its keys must be column names, not {name!r}.")
    columns = [_column(name, [row.get(name) for row in rows], schema, what) for name in names]
    return pa.table(columns, names=names).to_reader()


def _column(name: str, values: Any, schema: pa.Schema | None, what: str, *, from_pandas: bool = False) -> pa.Array:
    """The column in the type that Arrow infers. The schema check then decides for each row whether it fits.

    If Arrow is given a type to build, it silently drops time zones and times of day. So the table's type is only used
    if inference cannot be right: for nested columns (a map looks like a list of pairs), and for values without an
    inferred type.
    """
    known = schema.field(name).type if schema is not None and name in schema.names else None
    if known is not None and pa.types.is_nested(known) and (stored := storage_of(known)) != known:
        # PyArrow cannot build a nested column that contains UUIDs.
        known, values = stored, [_with_uuids_as_bytes(value) for value in values]
    inferred: tuple[pa.DataType | None, ...] = (None,) if known is None else (None, known)
    types = reversed(inferred) if known is not None and pa.types.is_nested(known) else iter(inferred)
    problems = []
    for data_type in types:
        try:
            array = pa.array(values, data_type, from_pandas=from_pandas)
            return array if data_type is not None else _with_nanoseconds(values, array)
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            problems.append(str(error))
    if "too large to convert to C long" in problems[0]:
        raise InvalidArgumentError(
            f"column {name!r} of {what} has an integer of more than 64 bits; use a column of decimal(38, 0)."
        )
    raise InvalidArgumentError(
        f"column {name!r} of {what} has values without a common type: {problems[0].rstrip('.')}."
    )


def _with_uuids_as_bytes(value: Any) -> Any:
    """A value of a nested column, with UUIDs replaced by bytes."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, Mapping):
        return {key: _with_uuids_as_bytes(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return (
            [*map(_with_uuids_as_bytes, value)] if isinstance(value, list) else tuple(map(_with_uuids_as_bytes, value))
        )
    return value


def _with_nanoseconds(values: list[Any], inferred: pa.Array) -> pa.Array:
    """Arrow infers microseconds for datetimes, including pandas' own, and silently drops nanoseconds."""
    if not pa.types.is_timestamp(inferred.type) or not any(getattr(value, "nanosecond", 0) for value in values):
        return inferred
    return pa.array(values, pa.timestamp("ns", inferred.type.tz))


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
