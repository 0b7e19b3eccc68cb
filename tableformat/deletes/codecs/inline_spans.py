"""The spans of small range delete files, which are also stored in their manifest entries (RD-13).

Between two maintenance jobs, a stream leaves thousands of delete files with one or a few spans. Their entries are read
in any case. Opening the files as well would take most of the time of a first plan, and one request for each file in an
object store. One to four spans are an Avro record, more of them are `packed_spans`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, PrimitiveType

from tableformat.deletes.codecs.packed_spans import MARK, pack_spans, unpack_spans
from tableformat.deletes.codecs.range_file import check_span_order, key_in_schema
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import INHERITED, SpanArray
from tableformat.errors import CorruptFileError, InvalidKeyError
from tableformat.keys.families import KeyFamily, arrow_type_of, family_of
from tableformat.keys.internal_values import array_of_internal_values, internal_values_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import from_bound, to_bound
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.manifests.avro_container import RecordCodec, decode_block

MAX_SPANS: Final = 4
MAX_BYTES: Final = 512
"""Above this number of spans, Arrow's form is smaller (`packed_spans`)."""

_VALUES: Final = {"type": "array", "items": ["null", "bytes"]}
_SPAN: Final = {
    "type": "record",
    "name": "span",
    "fields": [
        {"name": "lower", "type": _VALUES},
        {"name": "lower_after", "type": "boolean"},
        {"name": "upper", "type": _VALUES},
        {"name": "upper_after", "type": "boolean"},
    ],
}
_SCHEMA: Final = {
    "type": "record",
    "name": "range_spans",
    "fields": [
        {"name": "key_types", "type": {"type": "array", "items": "string"}},
        {"name": "spans", "type": {"type": "array", "items": _SPAN}},
    ],
}
_RECORD: Final = fastavro.parse_schema(_SCHEMA)
_CODEC: Final = RecordCodec.of(_SCHEMA)

_Stored = dict[str, Any]
"""The spans of one file as an Avro record."""


def encode_spans(spans: SpanArray, table: pa.Table) -> bytes | None:
    """RD-13: the bytes that the manifest entry of a range delete file carries. None if the spans are many, are long, or
    have their own sequence numbers. `table` has the same spans in the form of the file (`spans_to_parquet_table`)."""
    numbers = spans.sequence_numbers
    states_numbers = numbers is not None and not bool((numbers == INHERITED).all())
    if states_numbers:
        return None
    return (_encode_few(spans) if len(spans) <= MAX_SPANS else None) or pack_spans(table)


def _encode_few(spans: SpanArray) -> bytes | None:
    lower, upper = _bound_values(spans.lower), _bound_values(spans.upper)
    rows = zip(lower, spans.lower.after.tolist(), upper, spans.upper.after.tolist(), strict=True)
    names = [field["name"] for field in _SPAN["fields"]]  # type: ignore[index]
    sink = io.BytesIO()
    stored = {
        "key_types": [str(key_type) for key_type in spans.key.types],
        "spans": [dict(zip(names, row, strict=True)) for row in rows],
    }
    fastavro.schemaless_writer(sink, _RECORD, stored)
    return sink.getvalue() if sink.tell() <= MAX_BYTES else None


def decode_spans(deletes: Sequence[DeleteFile], schema: Schema | None) -> list[SpanArray]:
    """RD-13, RD-8: the numbered spans of files whose entries carry them. All files have the same list of delete
    columns.

    The result has one array for all packed files of one key, and one for each list of types of the other files. Key
    columns have names and types as in `spans_from_parquet`. Raises CorruptFileError, which names the delete file with
    invalid spans.
    """
    return [spans for _, spans in _decode(deletes, schema)]


def decode_spans_of_files(deletes: Sequence[DeleteFile], schema: Schema | None) -> list[SpanArray]:
    """The spans of `decode_spans`, one array for each file, in the given order."""
    found: dict[int, SpanArray] = {}
    for numbers, spans in _decode(deletes, schema):
        starts = np.cumsum([0, *(deletes[number].record_count for number in numbers)]).tolist()
        found.update(
            (number, spans.slice(start, end)) for number, (start, end) in zip(numbers, pairwise(starts), strict=True)
        )
    return [found[number] for number in range(len(deletes))]


_Decoded = list[tuple[list[int], SpanArray]]
"""Arrays of spans, each with the indexes of its files, whose spans are concatenated in this order."""


def _decode(deletes: Sequence[DeleteFile], schema: Schema | None) -> _Decoded:
    is_packed = [(delete.range_spans or b"").startswith(MARK) for delete in deletes]
    packed = [number for number, is_one in enumerate(is_packed) if is_one]
    few = [number for number, is_one in enumerate(is_packed) if not is_one]
    found: _Decoded = []
    if packed:
        unpacked = unpack_spans([deletes[number] for number in packed], schema)
        found += (([packed[index] for index in indexes], spans) for indexes, spans in unpacked)
    if few:
        try:
            found += _decode_few(deletes, few, schema)
        except CorruptFileError:
            for number in few:  # One of them is not right: decoded alone it raises the error that names it.
                _decode_few(deletes, [number], schema)
            raise
    return found


def _decode_few(deletes: Sequence[DeleteFile], numbers: Sequence[int], schema: Schema | None) -> _Decoded:
    block = b"".join(deletes[number].range_spans or b"" for number in numbers)
    stored = decode_block(len(numbers), block, _CODEC, deletes[numbers[0]].file_path)
    numbered = sorted(zip(numbers, stored, strict=True), key=lambda pair: tuple(pair[1]["key_types"]))
    found: _Decoded = []
    for _, of_one_key in groupby(numbered, key=lambda pair: pair[1]["key_types"]):
        alike = list(of_one_key)
        spans = _of_one_key([(deletes[number], record) for number, record in alike], schema)
        found.append(([number for number, _ in alike], spans))
    return found


def _of_one_key(pairs: Sequence[tuple[DeleteFile, _Stored]], schema: Schema | None) -> SpanArray:
    delete, stored = pairs[0]
    location = delete.file_path
    stored_key = _stored_key(delete.equality_ids or (), stored["key_types"], location)
    key = key_in_schema(stored_key, schema, location)
    counts = [len(stored["spans"]) for _, stored in pairs]
    if counts != [delete.record_count for delete, _ in pairs]:
        stated = delete.record_count
        raise CorruptFileError(location, f"its manifest entry states {stated} spans and carries {counts[0]}.")
    spans = [span for _, stored in pairs for span in stored["spans"]]
    lower, upper = (_cuts(spans, side, stored_key, key, location) for side in ("lower", "upper"))
    check_span_order(lower, upper, location, np.cumsum([0, *counts[:-1]]))
    numbers = np.repeat([committed_sequence_number(delete) for delete, _ in pairs], counts)
    return SpanArray(key, lower, upper, numbers.astype(np.int64))


def _stored_key(field_ids: tuple[int, ...], type_names: Sequence[str], location: str) -> KeyColumns:
    """The delete columns at the time when the file was written, named after their field ids."""
    try:
        types = tuple(IcebergType.model_validate(name) for name in type_names)
        if len(types) != len(field_ids) or not all(isinstance(key_type, PrimitiveType) for key_type in types):
            raise InvalidKeyError(f"delete columns {list(field_ids)} of types {list(type_names)} are not a valid key.")
        return KeyColumns(field_ids, tuple(f"field_{field_id}" for field_id in field_ids), types)  # type: ignore[arg-type]
    except (ValidationError, ValueError, InvalidKeyError) as error:
        raise CorruptFileError(location, f"its manifest entry carries spans that cannot be read: {error}") from error


def _cuts(spans: Sequence[_Stored], side: str, stored: KeyColumns, key: KeyColumns, location: str) -> CutArray:
    values = [span[side] for span in spans]
    depths = [len(bound) for bound in values]
    if max(depths, default=0) > len(key):
        raise CorruptFileError(location, f"a cut binds {max(depths)} columns, but there are {len(key)} delete columns.")
    columns = []
    for position, (stored_type, key_type) in enumerate(zip(stored.types, key.types, strict=True)):
        bounds = [bound[position] if depth > position else None for bound, depth in zip(values, depths, strict=True)]
        columns.append(_column(bounds, stored_type, location).cast(arrow_type_of(key_type)))
    after = np.array([span[f"{side}_after"] for span in spans], np.bool_)
    return CutArray(key, tuple(columns), np.array(depths, np.int8), after)


def _column(bounds: Sequence[bytes | None], key_type: PrimitiveType, location: str) -> pa.Array:
    arrow_type = arrow_type_of(key_type)
    widths = {len(bound) for bound in bounds if bound is not None}
    if family_of(key_type) is KeyFamily.INTEGER and widths == {arrow_type.bit_width // 8}:
        return _integers(bounds, arrow_type)
    values = [None if bound is None else from_bound(bound, key_type, location=location) for bound in bounds]
    try:
        return array_of_internal_values(values, key_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise CorruptFileError(
            location, f"its manifest entry carries values that are not of type {key_type}: {error}"
        ) from error


def _integers(bounds: Sequence[bytes | None], arrow_type: pa.DataType) -> pa.Array:
    """Little-endian numbers of one width. Decoding them one by one would take ten times as long."""
    width = arrow_type.bit_width // 8
    zero = bytes(width)
    numbers = np.frombuffer(b"".join(zero if bound is None else bound for bound in bounds), f"<i{width}")
    return pa.array(numbers, mask=np.array([bound is None for bound in bounds], np.bool_)).view(arrow_type)


def _bound_values(cuts: CutArray) -> list[list[bytes | None]]:
    """For each cut, the values that it binds, in Iceberg's single-value form. None is the null value."""
    types = cuts.key.types
    columns = [
        [None if value is None else to_bound(value, key_type) for value in internal_values_of(column, key_type)]
        for column, key_type in zip(cuts.columns[: int(cuts.depth.max(initial=0))], types, strict=False)
    ]
    return [[column[index] for column in columns[:depth]] for index, depth in enumerate(cuts.depth.tolist())]
