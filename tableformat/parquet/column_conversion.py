"""Converts a column of a data file to its type in the table's current schema.

Fields are matched by id at every level, including renamed, reordered, dropped, added and promoted fields of structs,
elements of lists and values of maps. Buffers are reused if the type allows it. PyIceberg's own projection rebuilds
lists from their offsets, and loses null lists and slices.

Reading is lenient: stored values are promoted and not checked. Writing is strict and separate
(`write/rows/column_casts.py`): it reports every value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.types import ListType, MapType, NestedField, StructType

from tableformat.errors import CorruptFileError
from tableformat.keys.microseconds import without_finer_digits
from tableformat.parquet.array_forms import as_type, is_list
from tableformat.parquet.parquet_columns import field_id_of

Conversion = Callable[[pa.Array], pa.Array]
"""Converts an array of the file's type to one of the same length in the wanted type."""
SAME: Final[Conversion | None] = None
"""No conversion: the file has the wanted type and fields."""


def conversion(
    source: pa.Field, target: NestedField, target_type: pa.DataType, missing: MissingValues
) -> Conversion | None:
    """The conversion of a column of the file to the target; SAME if nothing changes.

    `source` has field ids at every level in its metadata. Raises CorruptFileError if the file's type cannot become the
    target's.
    """
    source_type = _storage(source.type)
    match target.field_type:
        case StructType(fields=fields) if pat.is_struct(source_type):
            return _struct_conversion(source_type, fields, target_type, missing)
        case ListType(element_field=element) if is_list(source_type):
            values = conversion(source_type.value_field, element, target_type.value_type, missing)
            return _list_conversion(source_type, target_type, values)
        case MapType() as map_type if pat.is_map(source_type):
            return _map_conversion(source_type, map_type, target_type, missing)
        case _ if _is_nested(source_type) or not target.field_type.is_primitive:
            raise CorruptFileError(
                missing.location,
                f"column {target.name!r} is of type {target.field_type}, but the file has {source.type}.",
            )
    return SAME if source.type == target_type else _Cast(source.type, target_type, target.name, missing.location)


class MissingValues:
    """The value of a field that a data file lacks."""

    def __init__(self, location: str, constants: Mapping[int, Any]) -> None:
        """`constants` are the values of identity partition fields by source field id, in Iceberg's internal
        representation."""
        self.location = location
        self._constants = constants

    def scalar(self, field: NestedField, arrow_type: pa.DataType) -> pa.Scalar:
        """FM-21: the partition's value, otherwise the field's initial default, otherwise null.

        Source: Iceberg table specification, "Column Projection". Raises CorruptFileError for a required field without a
        value.
        """
        if field.field_id in self._constants:
            return scalar_of(self._constants[field.field_id], arrow_type)
        if field.initial_default is not None:
            return scalar_of(field.initial_default, arrow_type)
        if field.required:
            raise CorruptFileError(
                self.location, f"the file lacks the required column {field.name!r} ({field.field_id})."
            )
        # `pa.scalar(None, ...)` does not support nested types that contain a UUID.
        return pa.nulls(1, arrow_type)[0]


def scalar_of(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """A Python or internal value as a scalar of the type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        stored = value.bytes if hasattr(value, "bytes") else value
        return pa.ExtensionScalar.from_storage(arrow_type, pa.scalar(stored, arrow_type.storage_type))
    return pa.scalar(value, arrow_type)


def repeated(scalar: pa.Scalar, length: int) -> pa.Array:
    """An array of one value."""
    if not scalar.is_valid:
        return pa.nulls(length, scalar.type)
    if isinstance(scalar.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(scalar.type, pa.repeat(scalar.value, length))
    return pa.repeat(scalar, length)


def _struct_conversion(
    source_type: pa.StructType, fields: tuple[NestedField, ...], target_type: pa.StructType, missing: MissingValues
) -> Conversion | None:
    by_id = {field_id_of(child): index for index, child in enumerate(source_type)}
    indexes = [by_id.get(field.field_id) for field in fields]
    conversions = [
        SAME
        if index is None
        else conversion(source_type.field(index), field, target_type.field(position).type, missing)
        for position, (index, field) in enumerate(zip(indexes, fields, strict=True))
    ]
    if source_type == target_type and indexes == list(range(len(fields))) and not any(conversions):
        return SAME
    names = [None if index is None else source_type.field(index).name for index in indexes]
    scalars = [
        missing.scalar(field, target_type.field(position).type) if indexes[position] is None else None
        for position, field in enumerate(fields)
    ]

    def convert(array: pa.StructArray) -> pa.Array:
        children = [
            repeated(scalar, len(array)) if name is None else _converted(array.field(name), inner)
            for name, inner, scalar in zip(names, conversions, scalars, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        if not children:
            return pa.array([{}] * len(array), target_type, mask=mask)
        return pa.StructArray.from_arrays(children, fields=list(target_type), mask=mask)

    return convert


def _list_conversion(
    source_type: pa.DataType, target_type: pa.ListType, values: Conversion | None
) -> Conversion | None:
    if source_type == target_type and values is SAME:
        return SAME

    def convert(array: pa.Array) -> pa.Array:
        if not pat.is_list(array.type):
            array = as_type(array, pa.list_(array.type.value_field))
        return _rebuilt(array, target_type, [_converted(array.values, values)])

    return convert


def _map_conversion(
    source_type: pa.MapType, map_type: MapType, target_type: pa.MapType, missing: MissingValues
) -> Conversion | None:
    key = conversion(source_type.key_field, map_type.key_field, target_type.key_type, missing)
    value = conversion(source_type.item_field, map_type.value_field, target_type.item_type, missing)
    if source_type == target_type and key is SAME and value is SAME:
        return SAME
    entry_fields = [target_type.key_field, target_type.item_field]

    def convert(array: pa.MapArray) -> pa.Array:
        children = [_converted(array.keys, key), _converted(array.items, value)]
        return _rebuilt(array, target_type, [pa.StructArray.from_arrays(children, fields=entry_fields)])

    return convert


def _rebuilt(array: pa.Array, target_type: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """The same lists over other elements, with null lists and the offset of a slice."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(target_type, len(array), [validity, offsets], array.null_count, array.offset, children)


def _converted(array: pa.Array, inner: Conversion | None) -> pa.Array:
    return array if inner is None else inner(array)


class _Cast:
    """Type promotion, and the Arrow types that other writers use for the same Iceberg type."""

    def __init__(self, source_type: pa.DataType, target_type: pa.DataType, name: str, location: str) -> None:
        self._target_type = target_type
        self._name = name
        self._location = location
        self._check(source_type)

    def __call__(self, array: pa.Array) -> pa.Array:
        try:
            return self._cast(array)
        except pa.ArrowInvalid as error:
            raise CorruptFileError(
                self._location,
                f"column {self._name!r} contains values that are not of type {self._target_type}: {error}.",
            ) from error

    def _cast(self, array: pa.Array) -> pa.Array:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pat.is_dictionary(array.type):
            array = array.dictionary_decode()
        if isinstance(self._target_type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(self._target_type, array.cast(self._target_type.storage_type))
        # Digits that the table's type cannot hold are rounded down, also before 1970.
        return without_finer_digits(array, self._target_type).cast(self._target_type)

    def _check(self, source_type: pa.DataType) -> None:
        """Only casts that keep the value. Any other type means that the file does not match the metadata."""
        source = _storage(source_type)
        if pat.is_dictionary(source):
            source = source.value_type
        target = _storage(self._target_type)
        is_kept = any(is_kind(source) and is_kind(target) for is_kind in _KINDS) or pat.is_null(source)
        is_promoted_date = pat.is_date(source) and pat.is_timestamp(target)
        if not is_kept and not is_promoted_date:
            raise CorruptFileError(
                self._location,
                f"column {self._name!r} is of type {target} in the table, but the file has {source_type}.",
            )


def _is_text_or_bytes(data_type: pa.DataType) -> bool:
    return any(
        is_kind(data_type)
        for is_kind in (
            pat.is_string,
            pat.is_large_string,
            pat.is_string_view,
            pat.is_binary,
            pat.is_large_binary,
            pat.is_binary_view,
            pat.is_fixed_size_binary,
        )
    )


_KINDS: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pat.is_integer,
    pat.is_floating,
    pat.is_decimal,
    pat.is_boolean,
    pat.is_date,
    pat.is_time,
    pat.is_timestamp,
    _is_text_or_bytes,
)
"""Arrow types between which a cast keeps the value or fails."""


def _is_nested(data_type: pa.DataType) -> bool:
    return bool(pat.is_struct(data_type) or pat.is_map(data_type) or is_list(data_type))


def _storage(data_type: pa.DataType) -> pa.DataType:
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
