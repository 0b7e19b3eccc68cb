"""The metrics of columns in manifest entries, from the table's properties.

Source of names, modes and the order in which columns are counted: `MetricsModes.java` and `MetricsConfig.java` of
Apache Iceberg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, PrimitiveType, StructType

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.iceberg_properties import METRICS_MODE, ValueKind
from tableformat.metadata.column_bounds import BOUND_WIDTH
from tableformat.metadata.row_lineage import ROW_LINEAGE_FIELDS
from tableformat.properties import non_negative_int

METRICS: Final = "write.metadata.metrics."
"""The common prefix of all metrics properties."""
COLUMN: Final = "write.metadata.metrics.column."
DEFAULT: Final = "write.metadata.metrics.default"
MOST_COLUMNS: Final = "write.metadata.metrics.max-inferred-column-defaults"
KEY_BOUND_WIDTH: Final = 64
"""The number of code points or bytes in bounds of key columns; Iceberg's default is 16. Identifiers often share a long
prefix, and precise bounds let a plan exclude deletes without opening the file."""


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """The metrics of a column in a manifest entry, besides its size."""

    has_counts: bool = True
    """Counts of values, nulls and NaNs."""
    has_bounds: bool = True
    width: int | None = BOUND_WIDTH
    """The number of code points of a string, or bytes of a binary, in a bound; None for all."""


_NONE: Final = MetricsMode(has_counts=False, has_bounds=False)
_COUNTS: Final = MetricsMode(has_bounds=False)
_TRUNCATE: Final = MetricsMode()
_FULL: Final = MetricsMode(width=None)
_NAMED: Final = {"none": _NONE, "counts": _COUNTS, "full": _FULL}


def metrics_modes(
    properties: Mapping[str, str], schema: Schema, key_field_ids: Sequence[int], range_field_ids: Sequence[int]
) -> Mapping[int, MetricsMode]:
    """FM-8: the modes, by field id, of columns that differ from the default, 16 code points or bytes.

    `range_field_ids` are the columns of the range partitions. Raises InvalidArgumentError for an unknown mode.
    """
    default = _mode(properties, DEFAULT, _TRUNCATE)
    known = _first_columns(properties, schema)
    modes = {
        field_id: default if known is None or field_id in known else _NONE for field_id, _ in _columns(schema.fields)
    }
    modes |= {field.field_id: _TRUNCATE for field in ROW_LINEAGE_FIELDS if field.field_id in modes}
    modes |= {field_id: _of_key(modes[field_id]) for field_id in key_field_ids}
    for name in properties:
        field = _field_of(name, schema)
        if field is not None and field.field_id in modes:
            modes[field.field_id] = _mode(properties, name, _TRUNCATE)
    modes |= dict.fromkeys(range_field_ids, _FULL)
    return {field_id: mode for field_id, mode in modes.items() if mode != _TRUNCATE}


def only_counted(counts: Mapping[int, int], modes: Mapping[int, MetricsMode]) -> dict[int, int]:
    """The counts of an entry, from counts by field id."""
    return {field_id: each for field_id, each in counts.items() if modes.get(field_id, _TRUNCATE).has_counts}


def check_metrics_columns(given: Mapping[str, str], schema: Schema) -> None:
    """FM-8: check metrics properties that a caller sets. Raise UnknownColumnError for a column that does not exist."""
    for name in given:
        if name.startswith(COLUMN) and _field_of(name, schema) is None:
            raise UnknownColumnError(name.removeprefix(COLUMN), schema.column_names, where=f"table property {name}")


def refuse_lost_bounds(properties: Mapping[str, str], schema: Schema, range_field_ids: Sequence[int]) -> None:
    """RP-7: raise InvalidArgumentError if a property would remove the bounds of a range partition column."""
    for name in properties:
        field = _field_of(name, schema)
        if field is not None and field.field_id in range_field_ids and _mode(properties, name, _FULL) != _FULL:
            raise InvalidArgumentError(
                f"table property {name}: range partitions use the bounds of {field.name!r}, which must be stored in "
                "full. Nothing was changed. Remove the property, or set it to 'full'."
            )


def _of_key(mode: MetricsMode) -> MetricsMode:
    """Deletes use the bounds of the key. Only a property of the column itself removes them."""
    if not mode.has_bounds:
        return replace(_TRUNCATE, width=KEY_BOUND_WIDTH)
    return mode if mode.width is None else replace(mode, width=max(mode.width, KEY_BOUND_WIDTH))


def _first_columns(properties: Mapping[str, str], schema: Schema) -> set[int] | None:
    """The columns with metrics if the table limits their number; None if all have metrics. As in Iceberg, an explicit
    default applies to every column."""
    if MOST_COLUMNS not in properties or DEFAULT in properties:
        return None
    return set(islice(_in_turn(schema.as_struct()), non_negative_int(properties, MOST_COLUMNS, 0)))


def _mode(properties: Mapping[str, str], name: str, otherwise: MetricsMode) -> MetricsMode:
    text = properties.get(name)
    if text is None:
        return otherwise
    word = text.strip().lower()
    parsed = METRICS_MODE.fullmatch(word)
    if parsed is None:
        kind = ValueKind.METRICS_MODE.value
        raise InvalidArgumentError(f"table property {name} must be {kind}, not {text!r}.")
    return MetricsMode(width=int(parsed["width"])) if parsed["width"] else _NAMED[word]


def _field_of(name: str, schema: Schema) -> NestedField | None:
    """The column of a property; None for other properties, and for a column that does not exist."""
    column = name.removeprefix(COLUMN)
    return schema.find_field(column) if name.startswith(COLUMN) and column in schema.column_names else None


def _columns(fields: Sequence[NestedField]) -> Iterator[tuple[int, IcebergType]]:
    """Columns with one value for each row. Other columns only have a size."""
    for field in fields:
        if isinstance(field.field_type, StructType):
            yield from _columns(field.field_type.fields)
        elif isinstance(field.field_type, PrimitiveType):
            yield field.field_id, field.field_type


def _in_turn(field_type: IcebergType) -> Iterator[int]:
    """Ids of all primitive columns in Iceberg's order: first the direct fields of a struct, then the contents of its
    other fields."""
    inside = _inside(field_type)
    for field_id, child in inside:
        if isinstance(child, PrimitiveType):
            yield field_id
    for _, child in inside:
        yield from _in_turn(child)


def _inside(field_type: IcebergType) -> list[tuple[int, IcebergType]]:
    match field_type:
        case StructType():
            return [(field.field_id, field.field_type) for field in field_type.fields]
        case ListType():
            return [(field_type.element_id, field_type.element_type)]
        case MapType():
            return [(field_type.key_id, field_type.key_type), (field_type.value_id, field_type.value_type)]
    return []
