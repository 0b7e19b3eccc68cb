"""`RowOrder`: the order of rows in rewritten files of a table without a key, as chosen by the caller (MT-93, MT-94).

    sort      a ascending, b descending    key(a) | ~key(b)           bytes that compare like the rows
    z-order   (a, b)                       bits of a and b in turn    near in both columns: near in the file

Both orders are represented as one byte string for each row. Rows are merged by these strings as by a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import BinaryType, NestedField, PrimitiveType, StringType

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError, UnsupportedFeatureError
from tableformat.keys.arrow_columns import as_key_array
from tableformat.keys.encoding import VALUE_MARKER, encode_column, join_pieces
from tableformat.keys.families import family_of
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, null_count

ORDER_COLUMN: Final = "__tableformat_order"
_PLACE_BYTES: Final = 8
_Z_ROWS: Final = 8_192
"""The number of rows whose bits are unpacked at a time. Each row takes 64 bytes for each column in the process."""
_FIELD: Final = re.compile(
    r"(?P<name>`(?:[^`]|``)+`|[^\s`,()]+)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE,
)
_Z_ORDER: Final = re.compile(r"\s*zorder\s*\((?P<columns>.*)\)\s*", re.IGNORECASE | re.DOTALL)

Places: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class OrderedBy:
    """One column of a sort."""

    field_id: int
    is_descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Columns to sort by, or to arrange in z-order. Plain data."""

    columns: tuple[OrderedBy, ...]
    is_z_order: bool = False

    def __post_init__(self) -> None:
        field_ids = [each.field_id for each in self.columns]
        if len(set(field_ids)) != len(field_ids):
            raise InvalidArgumentError("an order must contain each column only once.")
        if self.is_z_order and len(field_ids) < 2:
            raise InvalidArgumentError("a z-order needs two or more columns; sort by a single one with sort_by.")


def row_order(
    schema: Schema, *, sort_by: Sequence[str] | None = None, z_order: Sequence[str] | None = None
) -> RowOrder | None:
    """The order that the arguments describe: `sort_by` of texts such as "a", "a DESC" and "a DESC NULLS LAST",
    `z_order` of names. None without arguments.

    Nulls come first among ascending and last among descending values, as in Iceberg, unless the text states otherwise.
    Raises UnknownColumnError; raises InvalidArgumentError if both arguments are given, if one is empty, and for a
    column whose type has no order.
    """
    for name, given in (("sort_by", sort_by), ("z_order", z_order)):
        if isinstance(given, str) or (given is not None and not given):
            raise InvalidArgumentError(f'{name} must be a list of columns, such as {name}=["a", "b"], not {given!r}.')
    if sort_by is not None and z_order is not None:
        raise InvalidArgumentError("pass either sort_by or z_order: rows have only one order.")
    if z_order is not None:
        return RowOrder(tuple(OrderedBy(_column(schema, name).field_id) for name in z_order), is_z_order=True)
    if sort_by is None:
        return None
    return RowOrder(tuple(_ordered_by(schema, text) for text in sort_by))


def parsed_order(text: str) -> dict[str, list[str]]:
    """The order as the argument of `compact`: `a, b DESC NULLS LAST` or `zorder(a, b)`."""
    z_order = _Z_ORDER.fullmatch(text)
    listed = text if z_order is None else z_order["columns"]
    parts = [part.strip() for part in re.findall(r"(?:`[^`]*`|[^,`])+", listed)]
    return {"sort_by": parts} if z_order is None else {"z_order": list(map(_plain_name, parts))}


def text_of(by: OrderedBy, schema: Schema) -> str:
    """The column in the form of `sort_by`."""
    name = schema.find_field(by.field_id).name.replace("`", "``")
    return f"`{name}` {'DESC' if by.is_descending else 'ASC'} NULLS {'FIRST' if by.nulls_first else 'LAST'}"


def order_of_table(metadata: TableMetadata) -> RowOrder | None:
    """The table's sort order; None if it has none. Raises UnsupportedFeatureError for an order by transforms."""
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    if order is None or not order.fields:
        return None
    for field in order.fields:
        if not isinstance(field.transform, IdentityTransform):
            name = metadata.schema().find_column_name(field.source_id)
            raise UnsupportedFeatureError(
                f"the sort order of the table uses {field.transform} of {name!r}, but rows can be sorted only by "
                "columns. Pass the columns."
            )
    return RowOrder(
        tuple(
            OrderedBy(field.source_id, field.direction is SortDirection.DESC, field.null_order is NullOrder.NULLS_FIRST)
            for field in order.fields
        )
    )


def sort_order_id(order: RowOrder, metadata: TableMetadata) -> int | None:
    """MT-93: the id of the table's sort order if files in this order satisfy it; otherwise None."""
    current = metadata.sort_order_by_id(metadata.default_sort_order_id)
    if order.is_z_order or current is None or not current.fields:
        return None
    if not all(isinstance(field.transform, IdentityTransform) for field in current.fields):
        return None
    wanted = order_of_table(metadata)
    assert wanted is not None, "it has fields"
    return current.order_id if order.columns[: len(wanted.columns)] == wanted.columns else None


class OrderBytes:
    """MT-93, MT-94: adds the position of each row in an order, as bytes."""

    def __init__(self, order: RowOrder, schema: Schema, data_files: Sequence[DataFile]) -> None:
        """`data_files` are all source files of the rows. Their bounds determine which bits of a z-order distinguish
        rows."""
        self._order = order
        self._fields = [schema.find_field(each.field_id) for each in order.columns]
        self._types = [_ordered_type(field) for field in self._fields]
        self._scales = [_Scale.of(field, data_files) for field in self._fields] if order.is_z_order else []

    def with_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the additional column `ORDER_COLUMN`."""
        return rows.append_column(ORDER_COLUMN, self._of(rows).cast(pa.binary()))

    def _of(self, rows: pa.RecordBatch) -> pa.Array:
        arrays = [
            as_key_array(rows.column(field.name), value_type, name=field.name)
            for field, value_type in zip(self._fields, self._types, strict=True)
        ]
        if self._order.is_z_order:
            places = [scale.places(array) for scale, array in zip(self._scales, arrays, strict=True)]
            return _binary(interleaved(np.column_stack(places)))
        pieces = [
            _sorting_bytes(array, value_type, each)
            for array, value_type, each in zip(arrays, self._types, self._order.columns, strict=True)
        ]
        return join_pieces(pieces)


def interleaved(places: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """MT-94: interleaves the bits of k numbers for each of n rows, most significant first: (n, k) to (n, 8 k) bytes."""
    row_count, column_count = places.shape
    woven = np.empty((row_count, _PLACE_BYTES * column_count), np.uint8)
    for start in range(0, row_count, _Z_ROWS):
        part = np.ascontiguousarray(places[start : start + _Z_ROWS].astype(">u8"))
        bits = np.unpackbits(part.view(np.uint8).reshape(len(part), column_count, _PLACE_BYTES), axis=2)
        woven[start : start + _Z_ROWS] = np.packbits(bits.transpose(0, 2, 1).reshape(len(part), -1), axis=1)
    return woven


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps the values of one column to 64 bits, so that the first bits distinguish the rows of the given files."""

    value_type: PrimitiveType
    skipped_bytes: int
    """The length of the common prefix of all values, in bytes."""
    lowest: int
    shift: int

    @staticmethod
    def of(field: NestedField, data_files: Sequence[DataFile]) -> _Scale:
        """The scale from the bounds of the files, if every file that has a value has bounds."""
        value_type = _ordered_type(field)
        plain = _Scale(value_type, 0, 0, 0)
        bounds = [_bounds(data, field) for data in data_files if not _has_only_nulls(data, field.field_id)]
        known = [each for each in bounds if each is not None]
        if not known or len(known) < len(bounds):
            return plain
        edges = pa.concat_arrays([array for each in known for array in each])
        payloads = sorted(_payload(edges, value_type).to_pylist())
        skipped_bytes = _common_length(payloads[0], payloads[-1])
        places = _first_bytes(edges, value_type, skipped_bytes)
        least, most = int(places.min()), int(places.max())
        return _Scale(value_type, skipped_bytes, least, 64 - (most - least).bit_length())

    def places(self, array: pa.Array) -> Places:
        """The position of each value. Nulls are with the smallest value."""
        first = _first_bytes(array, self.value_type, self.skipped_bytes)
        # A value outside the bounds, which no file should have, is moved to the nearest bound.
        reach = np.uint64((1 << (64 - self.shift)) - 1) if self.shift < 64 else np.uint64(0)
        above = np.where(first > np.uint64(self.lowest), first - np.uint64(self.lowest), np.uint64(0))
        scaled = np.minimum(above, reach)
        return scaled << np.uint64(self.shift) if self.shift < 64 else scaled


def _payload(array: pa.Array, value_type: PrimitiveType) -> pa.Array:
    """Bytes that compare like the values: the bytes of text and binary values, and the encoding of RD-4 for other
    types. Nulls are empty."""
    if isinstance(value_type, StringType | BinaryType):
        return array.cast(pa.binary()).fill_null(b"")
    encoded = encode_column(array, value_type).cast(pa.binary())
    # Arrow allocates as many bytes as a slice could have, so a slice without an end is too large.
    longest = pc.max(pc.binary_length(encoded)).as_py() or 0
    return pc.binary_slice(encoded, len(VALUE_MARKER), max(longest, len(VALUE_MARKER)))


def _first_bytes(array: pa.Array, value_type: PrimitiveType, skipped_bytes: int) -> Places:
    """The first eight bytes of each value, as numbers that compare like these bytes; 0 for null."""
    values = pc.binary_slice(_payload(array, value_type), skipped_bytes, skipped_bytes + _PLACE_BYTES)
    padded = pc.binary_join_element_wise(values, pa.scalar(bytes(_PLACE_BYTES)), pa.scalar(b""))
    matrix = _matrix(pc.binary_slice(padded, 0, _PLACE_BYTES), _PLACE_BYTES)
    places: Places = np.ascontiguousarray(matrix).view(">u8").reshape(-1).astype(np.uint64)
    return places


def _matrix(array: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of values of the same width, as an array of shape (n, width)."""
    if len(array) == 0:
        return np.zeros((0, width), np.uint8)
    return np.frombuffer(array.buffers()[2], np.uint8)[: len(array) * width].reshape(len(array), width)


def _sorting_bytes(array: pa.Array, value_type: PrimitiveType, by: OrderedBy) -> pa.LargeBinaryArray:
    """The bytes of RD-4, complemented for descending values. Nulls are first or last, as requested."""
    encoded = encode_column(array, value_type)
    if by.is_descending:
        encoded = _turned_over(encoded)
    if not array.null_count:
        return encoded
    marker = pa.scalar(b"\x00" if by.nulls_first else b"\xff", pa.large_binary())
    return pc.if_else(array.is_valid(), encoded, marker)


def _turned_over(encoded: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The complement of every byte. No encoded value is a prefix of another, so the order is reversed."""
    offsets = np.frombuffer(encoded.buffers()[1], np.int64)[encoded.offset : encoded.offset + len(encoded) + 1]
    values = ~np.frombuffer(encoded.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets - offsets[0])), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_binary(), len(encoded), buffers)


def _binary(matrix: npt.NDArray[np.uint8]) -> pa.Array:
    width = matrix.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(matrix), [None, pa.py_buffer(matrix)])


def _bounds(data: DataFile, field: NestedField) -> tuple[pa.Array, pa.Array] | None:
    lower, upper = (data.lower_bounds or {}).get(field.field_id), (data.upper_bounds or {}).get(field.field_id)
    if lower is None or upper is None:
        return None
    value_type = _ordered_type(field)
    values = [from_bound(bound, value_type, location=data.file_path) for bound in (lower, upper)]
    array = array_of_internal_values(values, value_type)
    return array[:1], array[1:]


def _ordered_type(field: NestedField) -> PrimitiveType:
    assert isinstance(field.field_type, PrimitiveType), "checked when the order was created"
    return field.field_type


def _has_only_nulls(data: DataFile, field_id: int) -> bool:
    return null_count(data, field_id) == data.record_count


def _common_length(lowest: bytes, highest: bytes) -> int:
    differing = (place for place, (one, other) in enumerate(zip(lowest, highest, strict=False)) if one != other)
    return next(differing, min(len(lowest), len(highest)))


def _ordered_by(schema: Schema, text: str) -> OrderedBy:
    found = _FIELD.fullmatch(text.strip())
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is not a sort column. Write NAME, NAME DESC or NAME ASC NULLS LAST; rows are sorted only by "
            "columns, not by computed values."
        )
    name = found["name"]
    column = _column(schema, _plain_name(name))
    descending = (found["direction"] or "asc").lower() == "desc"
    nulls_first = not descending if found["nulls"] is None else found["nulls"].lower() == "first"
    return OrderedBy(column.field_id, descending, nulls_first)


def _plain_name(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _column(schema: Schema, name: str) -> NestedField:
    names = {field.name: field for field in schema.fields}
    if name not in names:
        raise UnknownColumnError(name, names, where="the order of rows")
    field = names[name]
    try:
        if not isinstance(field.field_type, PrimitiveType):
            raise InvalidKeyError("nested")
        family_of(field.field_type)
    except InvalidKeyError as error:
        raise InvalidArgumentError(f"rows cannot be sorted by {name!r}: a {field.field_type} has no order.") from error
    return field
