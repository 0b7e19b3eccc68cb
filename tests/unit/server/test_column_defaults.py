"""Default values of the columns of a new table."""

from __future__ import annotations

from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType

from tableformat.server.column_defaults import with_defaults_of


def with_default(field_id: int, name: str) -> NestedField:
    return NestedField(field_id, name, LongType(), required=False, initial_default=5, write_default=6)


def test_defaults_of_nested_columns_are_kept() -> None:
    given = Schema(
        NestedField(9, "key", IntegerType(), required=True),
        with_default(8, "a"),
        NestedField(7, "s", StructType(with_default(6, "b")), required=False),
        NestedField(
            5,
            "l",
            ListType(element_id=4, element_type=StructType(with_default(3, "c")), element_required=True),
            required=False,
        ),
        NestedField(
            2,
            "m",
            MapType(key_id=1, key_type=StringType(), value_id=20, value_type=StructType(with_default(21, "d"))),
            required=False,
        ),
        identifier_field_ids=[9],
    )
    fresh = assign_fresh_schema_ids(given)
    kept = with_defaults_of(given, fresh)
    for name in ("a", "s.b", "l.element.c", "m.value.d"):
        field = kept.find_field(name)
        assert (field.initial_default, field.write_default) == (5, 6), name
        assert field.field_id == fresh.find_field(name).field_id
    assert kept.identifier_field_ids == [1]
    assert kept.find_field("key").initial_default is None
