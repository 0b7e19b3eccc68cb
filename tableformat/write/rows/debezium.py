"""Turns events in Debezium's envelope into rows with an operation (CF-14).

before {id 1, a 2} | after {id 3, a 2} | op u | source {lsn 7}      an update that changes the key
debezium.op UPDATE_BEFORE | id 1 | a 2 | debezium.source.lsn 7      two events
debezium.op UPSERT        | id 3 | a 2 | debezium.source.lsn 7
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import InvalidArgumentError, UnknownColumnError

ENVELOPE_OP: Final = "op"
_PREFIX: Final = "debezium."
"""Prefix for the names of columns that are not columns of the row."""
_POSITIONS: Final = (("lsn",), ("file", "pos", "row"), ("pos",), ("commit_lsn", "event_serial_no"))
"""Fields of `source` by which a connector orders its events: PostgreSQL, MySQL, others, and SQL Server."""
_FILE: Final = "source.file"
"""A MySQL log file such as `bin.999999`, followed by `bin.1000000`."""
_NUMBER_DIGITS: Final = 20
_AFTER: Final = ("c", "r", "u")
_BEFORE: Final = ("u", "d")


def position_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The fields of `source` that order the events. Raises InvalidArgumentError if no such field is known."""
    schema = _unwrapped_schema(schema)
    source = schema.field("source").type if "source" in schema.names else pa.null()
    known = [field.name for field in source] if pa.types.is_struct(source) else []
    for names in _POSITIONS:
        found = [name for name in names if name in known]
        if found and found[0] == names[0]:
            return tuple(f"source.{name}" for name in found)
    raise InvalidArgumentError(
        "the events have no column source with lsn or pos to order them. Nothing was written. Pass the columns with "
        "order_by=['source.ts_ms', ...], or order_by=None for events in input order."
    )


def flat_reader(
    reader: pa.RecordBatchReader, *, op: str, order_by: Sequence[str], whole_images: bool
) -> tuple[pa.RecordBatchReader, tuple[str, ...]]:
    """CF-14: the events with one column for each column of the row, and the names of the order columns.

    The operation is the first column, and the order columns are the last ones. `source.file` is in a form whose text
    has the order of the files. With `whole_images`, an update also needs `before`. Raises InvalidArgumentError for an
    event without an image that it needs.
    """
    schema = _unwrapped_schema(reader.schema)
    if op not in schema.names:
        raise UnknownColumnError(op, schema.names, where="the changes (envelope='debezium')")
    row = pa.unify_schemas([_fields(schema, "after"), _fields(schema, "before")], promote_options="permissive")
    names = tuple(f"{_PREFIX}{name}" for name in order_by)
    order = [pa.field(name, _type_at(schema, path)) for name, path in zip(names, order_by, strict=True)]
    flat = pa.schema([pa.field(f"{_PREFIX}{op}", pa.string()), *row, *order])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield _flat(_unwrapped(batch), op, order_by, row, flat, whole_images)

    return pa.RecordBatchReader.from_batches(flat, batches()), names


def _flat(
    batch: pa.RecordBatch, op: str, order_by: Sequence[str], row: pa.Schema, flat: pa.Schema, whole_images: bool
) -> pa.RecordBatch:
    codes = pc.utf8_lower(batch.column(op).cast(pa.string()))
    before, after = (_image(batch, name) for name in ("before", "after"))
    needs_after, needs_before = (_is_in(codes, known) for known in (_AFTER, _BEFORE if whole_images else ("d",)))
    has_before, has_after = (np.asarray(pc.is_valid(image)) for image in (before, after))
    _refuse_missing(codes, needs_after & ~has_after, "after")
    _refuse_missing(codes, needs_before & ~has_before, "before")
    is_update = _is_in(codes, ("u",))
    deletes, upserts = has_before & _is_in(codes, _BEFORE), needs_after
    # A tombstone, which follows a delete in a topic, has neither a code nor an image.
    others = ~_is_in(codes, (*_AFTER, *_BEFORE)) & ~(np.asarray(pc.is_null(codes)) & ~has_before & ~has_after)
    parts = [np.flatnonzero(each) for each in (deletes, upserts, others)]
    events = np.concatenate(parts)
    images = [_rows(before, parts[0], row), _rows(after, parts[1], row), _rows(after, parts[2], row)]
    operations = pa.chunked_array(
        [
            pa.array(np.where(is_update[parts[0]], "UPDATE_BEFORE", "DELETE"), pa.string()),
            pa.array(np.full(len(parts[1]), "UPSERT"), pa.string()),
            codes.take(pa.array(parts[2])),
        ]
    )
    order = [_order_column(batch, path).take(pa.array(events)) for path in order_by]
    columns = [operations, *pa.concat_tables(images).columns, *order]
    table = pa.table(columns, schema=flat)
    # The images before updates come first in the parts, so the stable sort keeps them before the images after updates.
    return table.take(pa.array(np.argsort(events, kind="stable"))).combine_chunks().to_batches(max_chunksize=None)[0]


def _is_in(codes: pa.Array, known: Sequence[str]) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_in(codes, pa.array(known)))


def _refuse_missing(codes: pa.Array, lacks: npt.NDArray[np.bool_], image: str) -> None:
    if lacks.any():
        code = codes[int(np.flatnonzero(lacks)[0])].as_py()
        hint = " In PostgreSQL, REPLICA IDENTITY determines the columns of `before`." if image == "before" else ""
        raise InvalidArgumentError(
            f"an event with op {code!r} has no {image!r}, which identifies its row. Nothing was written.{hint}"
        )


def _rows(image: pa.StructArray | pa.NullArray, chosen: npt.NDArray[np.int64], row: pa.Schema) -> pa.Table:
    """The chosen rows with the columns of both images; null if this image lacks one."""
    taken = image.take(pa.array(chosen))
    is_struct = pa.types.is_struct(taken.type)
    own = dict(zip((field.name for field in taken.type), taken.flatten(), strict=True)) if is_struct else {}
    columns = [own[f.name].cast(f.type) if f.name in own else pa.nulls(len(chosen), f.type) for f in row]
    return pa.table(columns, schema=row) if columns else pa.table({})


def _image(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


def _fields(schema: pa.Schema, image: str) -> pa.Schema:
    """The columns of an image, all nullable. Raises InvalidArgumentError if the image is not a struct."""
    kind = schema.field(image).type if image in schema.names else pa.null()
    if pa.types.is_null(kind):
        return pa.schema([])
    if not pa.types.is_struct(kind):
        raise InvalidArgumentError(
            f"column {image!r} of the events is {kind}, but a row image must be a struct with a field for each "
            "column. Nothing was written. Parse the JSON text first."
        )
    return pa.schema([pa.field(field.name, field.type) for field in kind])


def _unwrapped_schema(schema: pa.Schema) -> pa.Schema:
    """Converters that include schemas put the envelope into `payload`."""
    if ENVELOPE_OP in schema.names or "payload" not in schema.names:
        return schema
    payload = schema.field("payload").type
    return pa.schema(list(payload)) if pa.types.is_struct(payload) else schema


def _unwrapped(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = _unwrapped_schema(batch.schema)
    if schema is batch.schema:
        return batch
    return pa.RecordBatch.from_arrays(batch.column("payload").flatten(), names=schema.names)


def _order_column(batch: pa.RecordBatch, path: str) -> pa.Array:
    column = _column_at(batch, path)
    return _with_wide_number(column) if path == _FILE and _is_text(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _with_wide_number(files: pa.Array) -> pa.Array:
    """Names with the number after the last dot in equal width. Names without a number are unchanged."""
    parts = pc.extract_regex(files, r"^(?P<base>.*\.)(?P<number>[0-9]+)$")
    number = pc.utf8_lpad(pc.struct_field(parts, "number"), _NUMBER_DIGITS, padding="0")
    wide = pc.binary_join_element_wise(pc.struct_field(parts, "base"), number, pa.scalar("", files.type))
    return pc.coalesce(wide, files)


def _type_at(schema: pa.Schema, path: str) -> pa.DataType:
    if path in schema.names:
        return schema.field(path).type
    name, _, rest = path.partition(".")
    kind = schema.field(name).type if name in schema.names else None
    known = [field.name for field in kind] if kind is not None and pa.types.is_struct(kind) else []
    if kind is None or rest not in known:
        raise UnknownColumnError(
            path, [*schema.names, *(f"{name}.{each}" for each in known)], where="the changes (order_by=)"
        )
    return kind.field(rest).type


def _column_at(batch: pa.RecordBatch, path: str) -> pa.Array:
    if path in batch.schema.names:
        return batch.column(path)
    name, _, rest = path.partition(".")
    column = batch.column(name)
    return column.flatten()[column.type.get_field_index(rest)]
