"""Turns whatever carries Arrow data into a stream of record batches, which is never materialised here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from tableformat.errors import InvalidArgumentError


class BatchStream(Protocol):
    """Batches of one schema, read once: a RecordBatchReader, or ConformedRows."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


ACCEPTED: Final = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, an iterable of RecordBatches, a pandas or polars "
    "DataFrame, a polars LazyFrame, a DuckDB relation, anything with __arrow_c_stream__ or __arrow_c_array__, a list "
    "of dicts, or a dict, which is one row"
)


def as_reader(rows: Any, *, schema: pa.Schema | None = None, what: str = "rows") -> pa.RecordBatchReader:
    """A reader over the rows; a reader comes back as it is and can be read once.

    `schema` is the table's: a list of dicts takes the types of its columns from it where they fit, and an empty list or
    iterable has no other. `what` names the argument in errors. Raises InvalidArgumentError for anything else. Views of
    text and bytes, which Polars gives, become plain ones: PyArrow takes and compares no rows of them.
    """
    reader = _reader(rows, schema, what)
    plain = pa.schema([each.with_type(without_views(each.type)) for each in reader.schema], reader.schema.metadata)
    return reader if plain.equals(reader.schema) else reader.cast(plain)


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
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        # Through pandas' own door the index would become a column when it is not the default one, and NaN would stay
        # NaN.
        return pa.Table.from_pandas(rows, preserve_index=False).to_reader()
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
        if all(isinstance(row, pa.RecordBatch) for row in rows):
            return _from_batches(iter(rows), schema, what)
    elif isinstance(rows, Iterator):
        return _from_batches(rows, schema, what)
    elif isinstance(rows, Iterable) and not isinstance(rows, str | bytes | bytearray | memoryview | Mapping):
        return _from_batches(iter(rows), schema, what)
    hint = " Columns of values are rows as pa.table(...)." if isinstance(rows, Mapping) else ""
    raise InvalidArgumentError(
        f"{what} of type {_type_name(rows)} cannot be read as rows; accepted are {ACCEPTED}.{hint}"
    )


def without_views(of: pa.DataType) -> pa.DataType:
    """The type with plain text and bytes in the place of views, also inside of others."""
    types = pa.types
    if types.is_string_view(of):
        return pa.large_string()
    if types.is_binary_view(of):
        return pa.large_binary()
    if types.is_struct(of):
        return pa.struct([each.with_type(without_views(each.type)) for each in of])
    if types.is_map(of):
        return pa.map_(without_views(of.key_type), of.item_field.with_type(without_views(of.item_type)))
    if types.is_list(of) or types.is_large_list(of):
        item = of.value_field.with_type(without_views(of.value_type))
        return pa.list_(item) if types.is_list(of) else pa.large_list(item)
    return of


@contextlib.contextmanager
def _no_rows_refused(rows: Any, what: str) -> Iterator[None]:
    """Arrow hands over single columns, and schemas, by the same protocols as rows."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{what} of type {_type_name(rows)} cannot be read as rows ({error}); accepted are {ACCEPTED}."
        ) from error


def _is_lazy_frame(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "polars" and hasattr(rows, "collect_batches")


def _from_lazy_frame(rows: Any) -> pa.RecordBatchReader:
    """Computed by Polars' streaming engine while it is read; what its sources raise is raised as it is."""
    schema = pa.RecordBatchReader.from_stream(rows.collect_schema().to_frame()).schema
    frames = rows.collect_batches(maintain_order=True)
    batches = (batch for frame in frames for batch in pa.RecordBatchReader.from_stream(frame))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _is_of_columns(row: Mapping[str, Any], schema: pa.Schema | None) -> bool:
    """Whether a dict looks like columns of values, which it might be taken for: `pa.table` makes rows of them."""
    nested = {field.name for field in schema or () if pa.types.is_nested(field.type)}
    return any(isinstance(value, list | tuple) and name not in nested for name, value in row.items())


def _from_batches(batches: Iterator[Any], schema: pa.Schema | None, what: str) -> pa.RecordBatchReader:
    """Reads the first batch only; later ones are checked as they come."""
    first = next(batches, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(schema if schema is not None else pa.schema([]), [])
    if not isinstance(first, pa.RecordBatch):
        raise InvalidArgumentError(
            f"{what} is an iterable of {_type_name(first)}, not of RecordBatches; accepted are {ACCEPTED}."
        )
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None, what: str) -> pa.RecordBatchReader:
    """A column for every name that occurs in any row; a row without it has a null there."""
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


def _column(name: str, values: list[Any], schema: pa.Schema | None, what: str) -> pa.Array:
    """The column in the type that Arrow infers; the schema check then decides row by row what fits.

    Arrow, when it is given a type to build, drops time zones and times of day without an error, so the table's type is
    only taken where inference cannot know better: nested columns (a map looks like a list of pairs) and values that it
    has no type for.
    """
    known = schema.field(name).type if schema is not None and name in schema.names else None
    inferred: tuple[pa.DataType | None, ...] = (None,) if known is None else (None, known)
    types = reversed(inferred) if known is not None and pa.types.is_nested(known) else iter(inferred)
    problems = []
    for data_type in types:
        try:
            array = pa.array(values, data_type)
            return array if data_type is not None else _with_nanoseconds(values, array)
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            problems.append(str(error))
    raise InvalidArgumentError(f"column {name!r} of {what} has values of no common type: {problems[0]}.")


def _with_nanoseconds(values: list[Any], inferred: pa.Array) -> pa.Array:
    """Arrow infers microseconds of datetimes, those of pandas among them, and drops what is below without an error."""
    if not pa.types.is_timestamp(inferred.type) or not any(getattr(value, "nanosecond", 0) for value in values):
        return inferred
    return pa.array(values, pa.timestamp("ns", inferred.type.tz))


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
