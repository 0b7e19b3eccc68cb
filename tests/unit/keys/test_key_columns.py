"""The columns that can be in a key."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType, UnknownType

from tableformat.errors import InvalidKeyError
from tableformat.keys.key_columns import KeyColumns

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "place", StructType(NestedField(4, "city", StringType()))),
    NestedField(5, "nothing", UnknownType()),
)


def test_key_keeps_the_order_of_its_field_ids_and_finds_nested_names() -> None:
    key = KeyColumns.of(SCHEMA, [4, 1])
    assert key == KeyColumns((4, 1), ("place.city", "id"), (StringType(), LongType()))
    assert len(key) == 2
    assert str(key) == "(place.city, id)"


@pytest.mark.parametrize(
    ("field_ids", "message"),
    [
        ([9], "field id 9 of the key is not a column"),
        ([3], "'place' of type .* cannot be part of a key: it is nested"),
        ([5], "unknown cannot be part of a key, because it has no order"),
        ([1, 1], r"key \(id, id\) contains a column twice"),
        ([], "a key needs at least one column"),
    ],
)
def test_invalid_key_column_error_names_the_column(field_ids: list[int], message: str) -> None:
    """RD-4."""
    with pytest.raises(InvalidKeyError, match=message):
        KeyColumns.of(SCHEMA, field_ids)
