"""Range delete files: spans as a flat Parquet table (`specs/format.md`, FM-13).

    lower_0, upper_0, lower_1, ...    the bound values of each key column, in its own type; null from the depth on
    lower_depth, upper_depth          int8, how many columns the cut binds
    lower_after, upper_after          boolean, on which side of the bound values the cut lies (RD-1)
    sequence_number                   int64; null inherits the manifest entry's (RD-8)

The file is a Parquet file except for its last four bytes, which are `RDP1` (RD-6). It has one row for each span, and
the spans are sorted and disjoint (RD-7). The footer has the key columns and their types, so the file can be read after
its columns were renamed, promoted or dropped. Columns have their own field ids, at the low end of the range that
Iceberg reserves for metadata columns. Iceberg uses its high end.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, PrimitiveType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import INHERITED, SpanArray
from tableformat.errors import CorruptFileError, InvalidKeyError
from tableformat.keys.encoding import ENCODING_VERSION
from tableformat.keys.families import arrow_type_of, can_promote
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import PARQUET_MAGIC, RANGE_DELETES_MAGIC

FORMAT_VERSION: Final = 1
FOOTER_KEY: Final = b"tableformat.range-deletes"
MAX_KEY_COLUMNS: Final = 40

_FIRST_FIELD_ID: Final = 2_147_483_448
_FIXED_COLUMNS: Final = {
    "lower_depth": pa.int8(),
    "upper_depth": pa.int8(),
    "lower_after": pa.bool_(),
    "upper_after": pa.bool_(),
    "sequence_number": pa.int64(),
}
_FIRST_KEY_FIELD_ID: Final = _FIRST_FIELD_ID + len(_FIXED_COLUMNS)

_WRITE_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_index": False,
    "write_page_checksum": True,
    "store_schema": False,
    "data_page_version": "2.0",
}
"""Options for small files: the manifest entry has the bounds of the columns, and the footer describes them."""


def write_span_table(table: pa.Table, sink: Any) -> pq.FileMetaData:
    """RD-6, RD-7: write the table of `spans_to_parquet_table` to an open binary file as a range delete file.

    One prefix of a key of three columns takes about 1.5 KB, most of it the Parquet footer.
    """
    written = pa.BufferOutputStream()
    # Without the Arrow schema (2 KB of repetition), pyarrow would also leave out the schema's metadata.
    with pq.ParquetWriter(written, table.schema, **_WRITE_OPTIONS) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(table.schema.metadata)
    data = written.getvalue()
    sink.write(data.slice(0, data.size - len(PARQUET_MAGIC)))
    sink.write(RANGE_DELETES_MAGIC)
    return writer.writer.metadata


def spans_to_parquet_table(spans: SpanArray) -> pa.Table:
    """FM-13, RD-7: the table of a range delete file. `spans` are sorted and disjoint (`sort_and_merge`, `skyline`)."""
    key = spans.key
    if len(key) > MAX_KEY_COLUMNS:
        raise InvalidKeyError(
            f"key {key} has {len(key)} columns, but a range delete file stores at most {MAX_KEY_COLUMNS}."
        )
    arrays, fields = [], []
    for position in range(len(key)):
        for side, cuts in enumerate((spans.lower, spans.upper)):
            bound = pa.array(cuts.depth > position)
            arrays.append(pc.if_else(bound, cuts.columns[position], pa.scalar(None, cuts.columns[position].type)))
            name = f"{'upper' if side else 'lower'}_{position}"
            fields.append(_field(name, cuts.columns[position].type, _FIRST_KEY_FIELD_ID + 2 * position + side))
    numbers = spans.sequence_numbers
    inherits = np.ones(len(spans), np.bool_) if numbers is None else numbers == INHERITED
    arrays += [pa.array(cut) for cut in (spans.lower.depth, spans.upper.depth, spans.lower.after, spans.upper.after)]
    arrays.append(pa.array(np.zeros(len(spans), np.int64) if numbers is None else numbers, pa.int64(), mask=inherits))
    fields += [
        _field(name, arrow_type, _FIRST_FIELD_ID + position)
        for position, (name, arrow_type) in enumerate(_FIXED_COLUMNS.items())
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={FOOTER_KEY: _footer(key)}))


def spans_from_parquet(table: pa.Table, location: str, schema: Schema | None = None) -> SpanArray:
    """The spans of a range delete file that was read by `pyarrow.parquet`.

    With a schema, key columns have the names and (promoted) types of the schema. A column that the schema lacks keeps
    the name and type of the file (DA-6). Raises CorruptFileError, which names `location`, for an unknown version,
    missing columns, columns of a wrong type, and spans that are unsorted or overlap (RD-7).
    """
    return _decoded(table, location, schema, np.zeros(1, np.int64))


def spans_from_parquets(
    tables: Sequence[pa.Table], locations: Sequence[str], schema: Schema | None = None
) -> list[SpanArray]:
    """The result of `spans_from_parquet` for each file. Files of one key are decoded together, because streaming
    writers leave thousands of files with a few spans."""
    if len({(table.schema.metadata or {}).get(FOOTER_KEY) for table in tables}) == 1:
        counts = [len(table) for table in tables]
        try:
            together = spans_of_files(pa.concat_tables(tables), counts, schema)
        except (CorruptFileError, pa.ArrowInvalid):
            pass  # One of the files is not right: decoded alone it raises the error that names it.
        else:
            bounds = pairwise(np.cumsum([0, *counts]).tolist())
            return [together.slice(start, end) for start, end in bounds]
    return [spans_from_parquet(table, location, schema) for table, location in zip(tables, locations, strict=True)]


def spans_of_files(rows: pa.Table, counts: Sequence[int], schema: Schema | None = None) -> SpanArray:
    """The spans of several files of one key, whose tables are concatenated. `counts` are the numbers of spans of the
    files.

    Raises CorruptFileError or ArrowInvalid, which do not name the file, if one of the files is invalid.
    """
    return _decoded(rows.combine_chunks(), "", schema, np.cumsum([0, *counts[:-1]]))


def _decoded(table: pa.Table, location: str, schema: Schema | None, first_spans: npt.NDArray[np.int64]) -> SpanArray:
    """`first_spans`: the first row of each file. The order is only checked within a file."""
    stored = _stored_key(table, location)
    key = key_in_schema(stored, schema, location)
    lower = _cuts(table, "lower", stored, key, location)
    upper = _cuts(table, "upper", stored, key, location)
    check_span_order(lower, upper, location, first_spans)
    numbers = _single_column(table, "sequence_number", _FIXED_COLUMNS["sequence_number"], location)
    if numbers.null_count == len(numbers):
        return SpanArray(key, lower, upper, None)
    return SpanArray(key, lower, upper, np.asarray(numbers.fill_null(INHERITED)))


def _field(name: str, arrow_type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, arrow_type, metadata={b"PARQUET:field_id": str(field_id).encode()})


def _footer(key: KeyColumns) -> bytes:
    statement = {
        "version": FORMAT_VERSION,
        "encoding-version": ENCODING_VERSION,
        "key-field-ids": list(key.field_ids),
        "key-types": [str(key_type) for key_type in key.types],
    }
    return json.dumps(statement, separators=(",", ":")).encode()


def _stored_key(table: pa.Table, location: str) -> KeyColumns:
    """FM-14, FM-24: the key columns that the footer states, named after their field ids."""
    stored = (table.schema.metadata or {}).get(FOOTER_KEY)
    if stored is None:
        raise CorruptFileError(location, f"no {FOOTER_KEY.decode()!r} in the Parquet footer of a range delete file.")
    try:
        statement = json.loads(stored)
        versions = statement["version"], statement["encoding-version"]
        field_ids, type_names = tuple(statement["key-field-ids"]), statement["key-types"]
        types = tuple(IcebergType.model_validate(name) for name in type_names)
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
        raise CorruptFileError(location, f"its {FOOTER_KEY.decode()!r} statement cannot be read: {error!r}") from error
    if versions != (FORMAT_VERSION, ENCODING_VERSION):
        known = (FORMAT_VERSION, ENCODING_VERSION)
        raise CorruptFileError(
            location,
            f"versions {versions} of format and encoding are unknown; known versions: {known}. Upgrade the library.",
        )
    if len(types) != len(field_ids) or not all(isinstance(key_type, PrimitiveType) for key_type in types):
        raise CorruptFileError(location, f"{len(field_ids)} key columns of types {type_names} are not a valid key.")
    try:
        return KeyColumns(field_ids, tuple(f"field_{field_id}" for field_id in field_ids), types)  # type: ignore[arg-type]
    except InvalidKeyError as error:
        raise CorruptFileError(location, str(error)) from error


def key_in_schema(stored: KeyColumns, schema: Schema | None, location: str) -> KeyColumns:
    """The names of the schema, and the wider of two types, because either one may be the promoted type."""
    if schema is None:
        return stored
    names, types = list(stored.names), list(stored.types)
    for position, field_id in enumerate(stored.field_ids):
        name = schema.find_column_name(field_id)
        if name is None:
            continue
        current = schema.find_type(field_id)
        names[position] = name
        if isinstance(current, PrimitiveType) and can_promote(types[position], current):
            types[position] = current
        elif not isinstance(current, PrimitiveType) or not can_promote(current, types[position]):
            raise CorruptFileError(
                location, f"key column {name!r} is {types[position]} in the file and {current} in the table."
            )
    return KeyColumns(stored.field_ids, tuple(names), tuple(types))


def _cuts(table: pa.Table, side: str, stored: KeyColumns, key: KeyColumns, location: str) -> CutArray:
    columns = []
    for position, (stored_type, key_type) in enumerate(zip(stored.types, key.types, strict=True)):
        column = _single_column(table, f"{side}_{position}", arrow_type_of(stored_type), location)
        columns.append(column.cast(arrow_type_of(key_type)))
    depth = _without_nulls(table, f"{side}_depth", location)
    after = _without_nulls(table, f"{side}_after", location)
    depths = np.asarray(depth)
    if len(depths) and not (depths.min() >= 0 and depths.max() <= len(key)):
        raise CorruptFileError(location, f"a {side}_depth is outside 0 to {len(key)}.")
    return CutArray(key, tuple(columns), depths, after.to_numpy(zero_copy_only=False))


def _without_nulls(table: pa.Table, name: str, location: str) -> pa.Array:
    column = _single_column(table, name, _FIXED_COLUMNS[name], location)
    if column.null_count:
        raise CorruptFileError(location, f"column {name!r} of a range delete file is null in {column.null_count} rows.")
    return column


def _single_column(table: pa.Table, name: str, arrow_type: pa.DataType, location: str) -> pa.Array:
    if (count := table.column_names.count(name)) != 1:
        raise CorruptFileError(location, f"a range delete file with {count} columns {name!r}.")
    try:
        column = table.column(name).cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        given = table.column(name).type
        raise CorruptFileError(
            location, f"column {name!r} of Arrow type {given} is not {arrow_type}: {error}"
        ) from error
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], arrow_type)


def check_span_order(lower: CutArray, upper: CutArray, location: str, first_spans: npt.NDArray[np.int64]) -> None:
    """RD-7: check that every span has its lower cut below its upper cut, and begins at or after the end of the previous
    span."""
    begins, ends = lower.encoded, upper.encoded
    if not pc.all(pc.less(begins, ends), min_count=0).as_py():
        raise CorruptFileError(location, "a span ends at or below its beginning.")
    in_order = np.ones(len(begins) + 1, np.bool_)
    in_order[1:-1] = pc.less_equal(ends[:-1], begins[1:]).to_numpy(zero_copy_only=False)
    in_order[first_spans] = True
    if not in_order.all():
        raise CorruptFileError(location, "spans are not sorted or overlap.")
