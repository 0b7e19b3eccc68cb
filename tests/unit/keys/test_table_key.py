"""The key of a table: the columns that it may have, and where it is stored (FM-4)."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, ListType, LongType, NestedField, StringType

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.keys.table_key import check_key_columns, key_field_ids, key_names
from tableformat.properties import KEY_FIELD_IDS

SCHEMA = Schema(
    NestedField(1, "message", StringType(), required=True),
    NestedField(2, "number", LongType(), required=True),
    NestedField(3, "price", DoubleType()),
    NestedField(4, "tags", ListType(5, IntegerType())),
    identifier_field_ids=[1, 2],
)


def test_key_property_orders_the_identifier_fields() -> None:
    """FM-4."""
    assert key_field_ids(SCHEMA, {KEY_FIELD_IDS: "2,1"}) == (2, 1)
    assert key_names(SCHEMA, (2, 1)) == ("number", "message")


def test_key_without_property_is_in_schema_order() -> None:
    """FM-4: a table of another writer."""
    assert key_field_ids(SCHEMA, {}) == (1, 2)
    assert key_field_ids(Schema(NestedField(1, "a", LongType())), {}) == ()


@pytest.mark.parametrize("ordered", ["1", "1,2,3", ""])
def test_key_changed_by_another_writer_is_rejected(ordered: str) -> None:
    """FM-4: the property and the identifier fields differ as sets."""
    with pytest.raises(InvalidKeyError):
        key_field_ids(SCHEMA, {KEY_FIELD_IDS: ordered})


def test_invalid_key_property_is_rejected() -> None:
    """FM-4."""
    with pytest.raises(InvalidKeyError):
        key_field_ids(SCHEMA, {KEY_FIELD_IDS: "a,b"})


def test_invalid_key_columns_are_rejected() -> None:
    """FM-4, DA-5."""
    with pytest.raises(InvalidKeyError):
        check_key_columns(SCHEMA, ["message", "price"])
    with pytest.raises(InvalidKeyError):
        check_key_columns(SCHEMA, ["tags"])
    with pytest.raises(InvalidKeyError):
        check_key_columns(SCHEMA, ["message", "message"])
    with pytest.raises(UnknownColumnError):
        check_key_columns(SCHEMA, ["nummber"])
    assert check_key_columns(SCHEMA, ["number", "message"]) == (2, 1)
