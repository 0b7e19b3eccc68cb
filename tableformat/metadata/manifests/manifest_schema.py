"""The fields of manifests and manifest lists: our Avro schemas, and how the fields of any writer are found by field id.

Source: Iceberg table specification, "Manifests" (ids 0 to 4 and 100 to 145), "Manifest Lists" (ids 500 to 520) and
"Avro" (logical types, array-backed maps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, make_compatible_name, visit
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import DecimalType, NestedField, PrimitiveType, UnknownType, UUIDType
from pyiceberg.utils.decimal import bytes_to_decimal, decimal_required_bytes, decimal_to_bytes
from pyiceberg.utils.schema_conversion import ConvertSchemaToAvro

from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.column_bounds import exact_decimal

AvroSchema = Any
"""An Avro schema as JSON: a name, a list for a union, otherwise a mapping."""
Converter = Callable[[Any], Any]

PARTITION_FIELD_ID: Final = 102
RANGE_SPANS_FIELD_ID: Final = 2_147_483_533
"""RD-13: our own field id, next to those of the columns of range delete files."""
COLUMN_SUMMARIES_FIELD_ID: Final = 2_147_483_534
"""FM-26: our own field of manifest lists."""

FIELD_NAMES: Final[Mapping[int, str]] = {
    0: "status",
    1: "snapshot_id",
    2: "data_file",
    3: "sequence_number",
    4: "file_sequence_number",
    100: "file_path",
    101: "file_format",
    PARTITION_FIELD_ID: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    134: "content",
    135: "equality_ids",
    137: "nan_value_counts",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
    **dict.fromkeys((117, 119, 121, 126, 129, 138), "key"),
    **dict.fromkeys((118, 120, 122, 127, 130, 139), "value"),
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    507: "partitions",
    509: "contains_null",
    510: "lower_bound",
    511: "upper_bound",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    515: "sequence_number",
    516: "min_sequence_number",
    517: "content",
    518: "contains_nan",
    519: "key_metadata",
    520: "first_row_id",
    RANGE_SPANS_FIELD_ID: "range_spans",
    COLUMN_SUMMARIES_FIELD_ID: "column_summaries",
}
"""Our name of a field, for any name that its writer used."""

_MAPS: Final[Mapping[int, tuple[int, int, str]]] = {
    108: (117, 118, "long"),
    109: (119, 120, "long"),
    110: (121, 122, "long"),
    137: (138, 139, "long"),
    125: (126, 127, "bytes"),
    128: (129, 130, "bytes"),
}
"""Field id of a map to the ids of its key and value and the value's type. The keys are column ids."""


# Writing ------------------------------------------------------------------------------------------------------------


def entry_schema(
    format_version: int, partition_fields: list[AvroSchema], *, has_range_spans: bool = False
) -> AvroSchema:
    """FM-9: the Avro schema of manifest entries. Documentation of fields would be half of a small manifest."""
    data_file = [
        _required(134, "int"),
        _required(100, "string"),
        _required(101, "string"),
        _required(PARTITION_FIELD_ID, {"type": "record", "name": "r102", "fields": partition_fields}),
        _required(103, "long"),
        _required(104, "long"),
        *(_optional(field_id, _map_schema(field_id)) for field_id in _MAPS),
        _optional(131, "bytes"),
        _optional(132, {"type": "array", "element-id": 133, "items": "long"}),
        # Elements are ints: Java casts them unchecked, and a long would fail every scan.
        _optional(135, {"type": "array", "element-id": 136, "items": "int"}),
        _optional(140, "int"),
    ]
    if format_version >= 3:
        data_file += [_optional(142, "long"), _optional(143, "string"), _optional(144, "long"), _optional(145, "long")]
    else:
        data_file.append(_optional(143, "string"))
    if has_range_spans:
        # A primitive type, because PyIceberg cannot skip an unknown record.
        data_file.append(_optional(RANGE_SPANS_FIELD_ID, "bytes"))
    fields = [
        _required(0, "int"),
        _optional(1, "long"),
        _optional(3, "long"),
        _optional(4, "long"),
        _required(2, {"type": "record", "name": "r2", "fields": data_file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def manifest_list_schema(format_version: int, *, has_column_summaries: bool = False) -> AvroSchema:
    """The Avro schema of a manifest list."""
    summary = [_required(509, "boolean"), _optional(518, "boolean"), _optional(510, "bytes"), _optional(511, "bytes")]
    summaries = {"type": "array", "element-id": 508, "items": {"type": "record", "name": "r508", "fields": summary}}
    ints, longs = (502, 517, 504, 505, 506), (501, 515, 516, 503, 512, 513, 514)
    order = (500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514)
    types = {500: "string", **dict.fromkeys(ints, "int"), **dict.fromkeys(longs, "long")}
    fields = [_required(field_id, types[field_id]) for field_id in order]
    fields += [_optional(507, summaries), _optional(519, "bytes")]
    if format_version >= 3:
        fields.append(_optional(520, "long"))
    if has_column_summaries:
        # A primitive type, because PyIceberg cannot skip an unknown record.
        fields.append(_optional(COLUMN_SUMMARIES_FIELD_ID, "bytes"))
    return {"type": "record", "name": "manifest_file", "fields": fields}


def partition_types(spec: PartitionSpec, schemas: Iterable[Schema]) -> tuple[PrimitiveType, ...]:
    """The type of each partition field (FM-30).

    The source column is looked up in `schemas`, in order. So a spec whose column was dropped keeps its types as long as
    an older schema has the column. Raises UnsupportedFeatureError if no schema has it.
    """
    candidates = tuple(schemas)
    return tuple(_partition_type(field, candidates) for field in spec.fields)


def field_of(schema: Schema, field_id: int) -> NestedField | None:
    """The column with that id at any depth; None if the schema has none."""
    return None if schema.find_column_name(field_id) is None else schema.find_field(field_id)


def partition_avro_fields(spec: PartitionSpec, types: tuple[PrimitiveType, ...]) -> list[AvroSchema]:
    """Avro fields of the partition record. A named type is defined once and then referenced, as Avro requires."""
    seen: set[str] = set()
    fields = []
    for field, field_type in zip(spec.fields, types, strict=True):
        avro_type = visit(field_type, ConvertSchemaToAvro(None))
        if isinstance(avro_type, dict) and avro_type["type"] == "fixed":
            name = avro_type["name"]
            avro_type = name if name in seen else avro_type
            seen.add(name)
        union = ["null"] if avro_type == "null" else ["null", avro_type]
        avro_field = {"name": make_compatible_name(field.name), "type": union, "default": None}
        if avro_field["name"] != field.name:
            avro_field["iceberg-field-name"] = field.name
        fields.append({**avro_field, "field-id": field.field_id})
    return fields


def to_avro_value(field_type: PrimitiveType) -> Converter | None:
    """Converts a partition value to its stored form; None if it is stored unchanged."""
    if isinstance(field_type, DecimalType):
        size, decimal_type = decimal_required_bytes(field_type.precision), field_type
        return lambda value: decimal_to_bytes(exact_decimal(value, decimal_type), size)
    if isinstance(field_type, UUIDType):
        return lambda value: value.bytes
    return None


# Reading ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RenamedSchema:
    """A writer's schema with our field names and without logical types, for decoding a file."""

    schema: AvroSchema
    partition: Mapping[int | str, tuple[str, Converter | None]]
    """Partition fields by field id, and by name for writers without ids: name in a decoded record, conversion."""


def rename_by_field_id(record_schema: AvroSchema) -> RenamedSchema:
    """FM-16: names differ among writers, field ids do not. A field without an id keeps its name."""
    partition: dict[int | str, tuple[str, Converter | None]] = {}
    named: dict[str, AvroSchema] = {}
    return RenamedSchema(_rename(record_schema, None, partition, named), partition)


def from_avro_value(avro_type: AvroSchema) -> Converter | None:
    """Converts a stored partition value to Iceberg's internal form; None if both are equal (dates as days...)."""
    if isinstance(avro_type, list):
        branches = [branch for branch in avro_type if branch != "null"]
        return from_avro_value(branches[0]) if branches else None
    if not isinstance(avro_type, dict):
        return None
    logical = avro_type.get("logicalType")
    if logical == "decimal":
        scale = int(avro_type.get("scale", 0))
        return lambda stored: bytes_to_decimal(stored, scale)
    if logical == "uuid":
        return lambda stored: UUID(bytes=stored) if isinstance(stored, bytes) else UUID(stored)
    if logical in ("timestamp-millis", "local-timestamp-millis", "time-millis"):
        return lambda stored: stored * 1000
    return None


def _rename(
    schema: AvroSchema,
    parent_id: int | None,
    partition: dict[int | str, tuple[str, Converter | None]],
    named: dict[str, AvroSchema],
) -> AvroSchema:
    if isinstance(schema, list):
        return [_rename(branch, parent_id, partition, named) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema:
        named[schema["name"]] = schema
    plain = {key: value for key, value in schema.items() if key != "logicalType"}
    if schema["type"] == "record":
        plain["fields"] = [_rename_field(field, parent_id, partition, named) for field in schema["fields"]]
    elif schema["type"] == "array":
        plain["items"] = _rename(schema["items"], None, partition, named)
    elif schema["type"] == "map":
        plain["values"] = _rename(schema["values"], None, partition, named)
    elif isinstance(schema["type"], (dict, list)):
        plain["type"] = _rename(schema["type"], parent_id, partition, named)
    return plain


def _rename_field(
    field: AvroSchema,
    parent_id: int | None,
    partition: dict[int | str, tuple[str, Converter | None]],
    named: dict[str, AvroSchema],
) -> AvroSchema:
    field_id, name = field.get("field-id"), field["name"]
    if parent_id == PARTITION_FIELD_ID:
        label = f"partition_{field_id}" if field_id is not None else name
        target = (label, from_avro_value(_spelled_out(field["type"], named)))
        partition[field.get("iceberg-field-name", name)] = target
        if field_id is not None:
            partition[field_id] = target
    elif field_id is None:
        label = name
    else:
        label = FIELD_NAMES.get(field_id, f"unknown_{field_id}")
    is_partition = field_id == PARTITION_FIELD_ID or (field_id is None and name == "partition")
    inner = _rename(field["type"], PARTITION_FIELD_ID if is_partition else None, partition, named)
    return {"name": label, "type": inner}


def _spelled_out(avro_type: AvroSchema, named: Mapping[str, AvroSchema]) -> AvroSchema:
    """The type with references to named types replaced by their definitions."""
    if isinstance(avro_type, list):
        return [_spelled_out(branch, named) for branch in avro_type]
    return named.get(avro_type, avro_type) if isinstance(avro_type, str) else avro_type


# Parts --------------------------------------------------------------------------------------------------------------


def _required(field_id: int, avro_type: AvroSchema) -> AvroSchema:
    return {"name": FIELD_NAMES[field_id], "type": avro_type, "field-id": field_id}


def _optional(field_id: int, avro_type: AvroSchema) -> AvroSchema:
    return {"name": FIELD_NAMES[field_id], "type": ["null", avro_type], "default": None, "field-id": field_id}


def _map_schema(field_id: int) -> AvroSchema:
    key_id, value_id, value_type = _MAPS[field_id]
    pair = [_required(key_id, "int"), _required(value_id, value_type)]
    record = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": pair}
    return {"type": "array", "logicalType": "map", "items": record}


def _partition_type(field: PartitionField, schemas: tuple[Schema, ...]) -> PrimitiveType:
    for schema in schemas:
        source = field_of(schema, field.source_id)
        if source is not None:
            result = field.transform.result_type(source.field_type)
            assert isinstance(result, PrimitiveType), "partition values are primitive"
            return result
    if isinstance(field.transform, VoidTransform):
        return UnknownType()
    raise UnsupportedFeatureError(
        f"partition field {field.name!r}: no schema of the table has its source column {field.source_id}, so the "
        "type of its values is unknown."
    )
