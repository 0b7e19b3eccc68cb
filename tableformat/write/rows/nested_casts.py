"""Casts for whole columns: decoding, nested types and required fields, based on the casts of primitives.

Built once for an Arrow type and a field of the table, then run on every batch. Nested columns are split, and their
children are cast and joined again. A misfit deep inside refuses the row and is reported with its dotted name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    DateType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tableformat.errors import SchemaMismatchError, UnknownColumnError
from tableformat.parquet.array_forms import elements, is_list, list_lengths, null_column, offsets, without_nulls
from tableformat.write.rows.column_casts import ArrayCast, Cast, Misfits, primitive_cast

_NULL_REASON = "is null in a required column"


def field_cast(source: pa.DataType, field: NestedField, target: pa.Field, path: str) -> ArrayCast:
    """The cast of one column, including decoding. Nulls of a required column are misfits.

    Raises SchemaMismatchError if no value of the source type could be one of the column's.
    """
    decode = _decoder(source)
    cast = _type_cast(_decoded_type(source), field, target.type, path)

    def run(array: pa.Array, column: str) -> Cast:
        plain = array if decode is None else decode(array)
        result = cast(plain, column)
        return _with_missing(result, plain, column) if field.required and plain.null_count else result

    return run


def default_column(field: NestedField, target: pa.Field, row_count: int) -> pa.Array:
    """The values of a column that the rows do not have: the field's write default (v3), or nulls."""
    if field.write_default is None:
        return null_column(row_count, target.type)
    value = field.write_default
    if isinstance(value, int) and pa.types.is_temporal(target.type):
        scalar = pa.scalar(value, pa.int32() if target.type.bit_width == 32 else pa.int64()).cast(target.type)
    else:
        scalar = pa.scalar(value, target.type)
    return pa.repeat(scalar, row_count)


def matched_columns(
    source: Sequence[pa.Field], fields: Sequence[NestedField], prefix: str
) -> tuple[tuple[int | None, NestedField], ...]:
    """For every field of the table or struct, the position of the source column with its name; None if it is missing.

    Raises UnknownColumnError. Raises SchemaMismatchError for a name that occurs twice, or if a required column is
    missing.
    """
    names = [column.name for column in source]
    known = [field.name for field in fields]
    for name in names:
        if name not in known:
            raise UnknownColumnError(prefix + name, [prefix + other for other in known], where="the rows to write")
        if names.count(name) > 1:
            raise SchemaMismatchError(f"the rows to write have the column {prefix + name!r} twice.")
    matched: list[tuple[int | None, NestedField]] = []
    for field in fields:
        if field.name in names:
            matched.append((names.index(field.name), field))
            continue
        if field.required and field.write_default is None:
            raise SchemaMismatchError(
                f"the rows to write lack the required column {prefix + field.name!r} ({field.field_type})."
            )
        matched.append((None, field))
    return tuple(matched)


def decoded(array: pa.Array) -> pa.Array:
    """The array as a plain one: without dictionary, run ends or extension type, except uuid."""
    decode = _decoder(array.type)
    return array if decode is None else decode(array)


def _how(source: pa.DataType, kind: IcebergType) -> str:
    """A hint for types that data frames often have instead of dates, nullable integers and timestamps."""
    if isinstance(kind, DateType) and pa.types.is_timestamp(source):
        return ", in pandas with .dt.date"
    if isinstance(kind, IntegerType | LongType) and pa.types.is_floating(source):
        return ", in pandas with .astype('Int64')"
    if isinstance(kind, TimestamptzType | TimestamptzNanoType) and pa.types.is_timestamp(source):
        return ": add a time zone, in pandas with .dt.tz_localize('UTC')"
    if isinstance(kind, TimestampType | TimestampNanoType) and pa.types.is_timestamp(source):
        return ": remove its time zone, in pandas with .dt.tz_convert('UTC').dt.tz_localize(None)"
    return ""


def _type_cast(source: pa.DataType, field: NestedField, target: pa.DataType, path: str) -> ArrayCast:
    kind = field.field_type
    if pa.types.is_null(source):
        return lambda array, _: Cast(null_column(len(array), target))
    if kind.is_primitive:
        cast = primitive_cast(source, target)
    elif isinstance(kind, StructType) and pa.types.is_struct(source):
        cast = _struct_cast(source, kind, target, path)
    elif isinstance(kind, ListType) and is_list(source):
        cast = _list_cast(source, kind, target, path)
    elif isinstance(kind, MapType) and pa.types.is_map(source):
        cast = _map_cast(source, kind, target, path)
    else:
        cast = None
    if cast is None:
        raise SchemaMismatchError(
            f"column {path!r} is a {kind}, but the rows to write have {source} in it. Nothing was written; cast the "
            f"column first{_how(source, kind)}."
        )
    if not kind.is_primitive and source == target and not _has_required(kind):
        return lambda array, _: Cast(array)
    return cast


def _struct_cast(source: pa.DataType, kind: StructType, target: pa.DataType, path: str) -> ArrayCast:
    matched = matched_columns(list(source), kind.fields, f"{path}.")
    casts = [
        None if index is None else field_cast(source.field(index).type, field, target.field(i), f"{path}.{field.name}")
        for i, (index, field) in enumerate(matched)
    ]

    def run(array: pa.Array, column: str) -> Cast:
        children: list[pa.Array] = []
        misfits: list[Misfits] = []
        absent = pc.is_null(array)
        # flatten() applies the nulls of the struct to its children, so values under a null struct are ignored.
        flattened = array.flatten()
        for i, (index, field) in enumerate(matched):
            cast = casts[i]
            if index is None or cast is None:
                child = default_column(field, target.field(i), len(array))
            else:
                result = cast(flattened[index], f"{column}.{field.name}")
                child = result.array
                misfits += _where_present(result.misfits, absent)
            children.append(without_nulls(child) if field.required else child)
        mask = absent if array.null_count else None
        return Cast(pa.StructArray.from_arrays(children, fields=list(target), mask=mask), tuple(misfits))

    return run


def _list_cast(source: pa.DataType, kind: ListType, target: pa.DataType, path: str) -> ArrayCast:
    cast = field_cast(source.value_type, kind.element_field, target.value_field, f"{path}.element")

    def run(array: pa.Array, column: str) -> Cast:
        lengths = list_lengths(array)
        found = cast(elements(array), f"{column}.element")
        values = without_nulls(found.array) if kind.element_required else found.array
        mask = pc.is_null(array) if array.null_count else None
        built = pa.LargeListArray.from_arrays(offsets(lengths), values, type=target, mask=mask)
        return Cast(built, _of_parents(found.misfits, lengths))

    return run


def _map_cast(source: pa.DataType, kind: MapType, target: pa.DataType, path: str) -> ArrayCast:
    key_cast = field_cast(source.key_type, kind.key_field, target.key_field, f"{path}.key")
    value_cast = field_cast(source.item_type, kind.value_field, target.item_field, f"{path}.value")

    def run(array: pa.Array, column: str) -> Cast:
        # A null map may span entries, and a slice shares the entries of its parent. Taking every row removes both.
        array = array.take(pa.array(np.arange(len(array))))
        lengths = np.diff(array.offsets.to_numpy())
        keys = key_cast(array.keys, f"{column}.key")
        values = value_cast(array.items, f"{column}.value")
        items = without_nulls(values.array) if kind.value_required else values.array
        ends = pa.array(offsets(lengths).to_numpy().astype(np.int32))
        mask = pc.is_null(array) if array.null_count else None
        built = pa.MapArray.from_arrays(ends, without_nulls(keys.array), items, type=target, mask=mask)
        return Cast(built, _of_parents((*keys.misfits, *values.misfits), lengths))

    return run


def _with_missing(result: Cast, source: pa.Array, column: str) -> Cast:
    """Add the nulls of the source as misfits, because the column is required."""
    positions = np.flatnonzero(pc.is_null(source).to_numpy(zero_copy_only=False)).astype(np.int64)
    text = pa.large_string()
    misfits = Misfits(
        positions,
        pa.repeat(pa.scalar(column, text), len(positions)),
        pa.repeat(pa.scalar(_NULL_REASON, text), len(positions)),
    )
    return Cast(result.array, (*result.misfits, misfits))


def _where_present(misfits: Sequence[Misfits], absent: pa.Array) -> list[Misfits]:
    """The misfits of a struct's child, except those under a null struct."""
    missing = absent.to_numpy(zero_copy_only=False)
    kept = []
    for found in misfits:
        present = pa.array(~missing[found.positions])
        positions = found.positions[present.to_numpy(zero_copy_only=False)]
        if len(positions):
            kept.append(Misfits(positions, found.columns.filter(present), found.reasons.filter(present)))
    return kept


def _of_parents(misfits: Sequence[Misfits], lengths: npt.NDArray[np.int64]) -> tuple[Misfits, ...]:
    """Misfits of elements as misfits of the lists that contain them; the first one of each list."""
    if not misfits:
        return ()
    parents = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    lifted = []
    for found in misfits:
        positions, first = np.unique(parents[found.positions], return_index=True)
        chosen = pa.array(first)
        lifted.append(Misfits(positions, found.columns.take(chosen), found.reasons.take(chosen)))
    return tuple(lifted)


def _has_required(kind: IcebergType) -> bool:
    """Whether any nested value must not be null. Keys of a map are not considered: Arrow itself rejects null keys."""
    match kind:
        case StructType():
            fields = list(kind.fields)
        case ListType():
            fields = [kind.element_field]
        case MapType():
            if _has_required(kind.key_field.field_type):
                return True
            fields = [kind.value_field]
        case _:
            return False
    return any(field.required or _has_required(field.field_type) for field in fields)


def _decoder(source: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    """The function that turns an encoded array into a plain one; None for a plain one."""
    if pa.types.is_dictionary(source):
        inner = _decoder(source.value_type)

        def decode(array: pa.Array) -> pa.Array:
            dictionary = array.dictionary if inner is None else inner(array.dictionary)
            if pa.types.is_string_view(dictionary.type):
                dictionary = dictionary.cast(pa.large_string())
            elif pa.types.is_binary_view(dictionary.type):
                dictionary = dictionary.cast(pa.large_binary())
            return dictionary.take(array.indices)

        return decode
    if pa.types.is_run_end_encoded(source):
        return _then(pc.run_end_decode, _decoder(source.value_type))
    if source == pa.bool8():
        return lambda array: array.storage.cast(pa.bool_())
    if isinstance(source, pa.BaseExtensionType) and source != pa.uuid():
        return _then(lambda array: array.storage, _decoder(source.storage_type))
    return None


def _then(
    first: Callable[[pa.Array], pa.Array], second: Callable[[pa.Array], pa.Array] | None
) -> Callable[[pa.Array], pa.Array]:
    return first if second is None else lambda array: second(first(array))


def _decoded_type(source: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(source):
        value = _decoded_type(source.value_type)
        if pa.types.is_string_view(value):
            return pa.large_string()
        return pa.large_binary() if pa.types.is_binary_view(value) else value
    if pa.types.is_run_end_encoded(source):
        return _decoded_type(source.value_type)
    if source == pa.bool8():
        return pa.bool_()
    if isinstance(source, pa.BaseExtensionType) and source != pa.uuid():
        return _decoded_type(source.storage_type)
    return source
