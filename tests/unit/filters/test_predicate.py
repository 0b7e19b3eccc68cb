"""SQL text as filters: the accepted syntax, and the error for everything else. The property tests compare rows."""

from __future__ import annotations

import pytest
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, EqualTo
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import InvalidPredicateError, UnknownColumnError
from tableformat.filters.bound_filter import Comparison, bind_filter
from tableformat.filters.predicate import parse_where

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
    NestedField(4, "Mixed Case", IntegerType(), required=False),
    NestedField(
        5,
        "address",
        StructType(
            NestedField(6, "zip", StringType(), required=False),
            NestedField(7, "geo", StructType(NestedField(8, "lat", FloatType(), required=True)), required=True),
        ),
        required=False,
    ),
    NestedField(9, "tags", ListType(10, StringType(), element_required=False), required=False),
    NestedField(11, "at", TimestamptzType(), required=False),
    NestedField(12, "at_ns", TimestampNanoType(), required=False),
    NestedField(13, "u", UUIDType(), required=False),
    NestedField(14, "blob", BinaryType(), required=False),
    NestedField(15, "price", DecimalType(6, 2), required=False),
    NestedField(16, "t", TimeType(), required=False),
)


def leaf(text: str) -> Comparison:
    bound = bind_filter(parse_where(text, SCHEMA), SCHEMA)
    assert isinstance(bound, Comparison)
    return bound


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("id = -3", ("id",), (-3,)),
        ('"Mixed Case" = 4', ("Mixed Case",), (4,)),
        ("address.zip = '8000'", ("address", "zip"), ("8000",)),
        ("address.geo.lat = 1.5", ("address", "geo", "lat"), (1.5,)),
        ("day = DATE '1970-01-11'", ("day",), (10,)),
        ("day = '1969-12-31'", ("day",), (-1,)),
        ("at = TIMESTAMPTZ '1970-01-01 01:00:00+01:00'", ("at",), (0,)),
        ("at = TIMESTAMP '1970-01-01 00:00:01'", ("at",), (1_000_000,)),
        ("at = DATE '1970-01-02'", ("at",), (86_400_000_000,)),
        ("at_ns = TIMESTAMP_NS '1970-01-01 00:00:00.000000007'", ("at_ns",), (7,)),
        ("u = '00000000-0000-0000-0000-0000000000ff'", ("u",), (bytes(15) + b"\xff",)),
        ("blob = '\\x00a'::BLOB", ("blob",), (b"\x00a",)),
        ("t = TIME '00:00:01.5'", ("t",), (1_500_000,)),
        ("id IN (3, 1, 2, 1)", ("id",), (1, 2, 3)),
        ("name LIKE 'a$%b%' ESCAPE '$'", ("name",), ("a%b",)),
        ("id = 5::BIGINT", ("id",), (5,)),
        ("id = 1e3", ("id",), (1000,)),
    ],
)
def test_literals_are_converted_to_the_column_type(
    text: str, path: tuple[str, ...], values: tuple[object, ...]
) -> None:
    found = leaf(text)
    assert (found.path, found.values) == (path, values)


@pytest.mark.parametrize(
    ("text", "equivalent"),
    [
        ("id > 1.5", "id > 1"),
        ("id < 1.5", "id <= 1"),
        ("price = 1.5", "price = 1.50"),
        ("day > TIMESTAMP '1970-01-02 12:00:00'", "day > DATE '1970-01-02'"),
        ("NOT (id < 1 OR name = 'x')", "id >= 1 AND name <> 'x'"),
        ("3 > id", "id < 3"),
        ("id NOT BETWEEN 1 AND 2", "id < 1 OR id > 2"),
        ("name LIKE 'abc'", "name = 'abc'"),
        ("id == 1", "id = 1"),
        ("id != 1", "id <> 1"),
        ("id = 1 -- a comment", "id = 1"),
        ("at_ns < TIMESTAMP '9999-01-01'", "at_ns <= TIMESTAMP '2262-04-11 23:47:16.854775807'"),
        ("at_ns >= TIMESTAMP '0001-01-01'", "at_ns IS NOT NULL"),
        ("at_ns <> TIMESTAMP '9999-01-01'", "at_ns IS NOT NULL"),
        ("at_ns IN (DATE '9999-01-01', DATE '1970-01-01')", "at_ns = TIMESTAMP '1970-01-01'"),
        ("at_ns NOT IN (DATE '0001-01-01', DATE '1970-01-01')", "at_ns <> TIMESTAMP '1970-01-01'"),
        ("at_ns > TIMESTAMP '9999-01-01'", "at_ns > TIMESTAMP '2262-04-11 23:47:16.854775807'"),
    ],
)
def test_equivalent_filter_texts_are_equal(text: str, equivalent: str) -> None:
    assert bind_filter(parse_where(text, SCHEMA), SCHEMA) == bind_filter(parse_where(equivalent, SCHEMA), SCHEMA)


@pytest.mark.parametrize(
    "text", ["id = 1.5", "id IN (NULL)", "id NOT IN (1, NULL)", "name = NULL", "NOT (name = NULL)", "id IS NULL"]
)
def test_unsatisfiable_conditions_become_always_false(text: str) -> None:
    assert parse_where(text, SCHEMA) == AlwaysFalse()


@pytest.mark.parametrize("text", ["TRUE", "id IS NOT NULL", "id <> 1.5", "1 = 1", "NOT FALSE"])
def test_tautologies_become_always_true(text: str) -> None:
    assert parse_where(text, SCHEMA) == AlwaysTrue()


def test_long_conditions_do_not_exhaust_the_stack() -> None:
    text = " OR ".join(f"id = {number}" for number in range(3_000))
    assert bind_filter(parse_where(text, SCHEMA), SCHEMA) == bind_filter(parse_where(text, SCHEMA), SCHEMA)


@pytest.mark.parametrize(
    ("text", "nearest"), [("nmae = 'x'", "name"), ("ID = 1", "id"), ("address.zpi = 'x'", "address.zip")]
)
def test_unknown_column_names_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(UnknownColumnError, match=f"Did you mean '{nearest}'"):
        parse_where(text, SCHEMA)
    with pytest.raises(UnknownColumnError, match=f"Did you mean '{nearest}'"):
        parse_where(EqualTo(text.split(" ", maxsplit=1)[0], "x"), SCHEMA)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id = 'abc'", ["'id'", "long", "'abc'", "string"]),
        ("id = '5'", ["'id'", "long", "'5'"]),
        ("name = 5", ["'name'", "string", "5", "number"]),
        ("day = 5", ["'day'", "date", "5", "DATE '2024-01-31'"]),
        ("day = 'yesterday'", ["'day'", "date", "'yesterday'"]),
        ("id = TRUE", ["'id'", "long", "TRUE"]),
        ("at_ns = TIMESTAMPTZ '2024-01-01 00:00:00+00:00'", ["'at_ns'", "timestamp_ns"]),
        ("u = 'no-uuid'", ["'u'", "uuid", "'no-uuid'"]),
        ("id IN (1, 'x')", ["'id'", "long", "'x'"]),
        ("id BETWEEN 1 AND 'x'", ["'id'", "'x'"]),
        ("address = 1", ["'address'", "struct"]),
        ("id", ["'id'", "long"]),
    ],
)
def test_wrong_literal_names_column_type_and_literal(text: str, words: list[str]) -> None:
    with pytest.raises(InvalidPredicateError) as refused:
        parse_where(text, SCHEMA)
    assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("id = ", "not a SQL condition"),
        ("id = 1 AND", "AND lacks an operand"),
        ("WHERE id = 1", "Remove the word WHERE"),
        ("Mixed Case = 1", "Write a name with spaces in double quotes"),
        ('name = "x"', "text is written in single quotes"),
        ('name IN ("x", "y")', "text is written in single quotes"),
        ("id = 1; DROP TABLE x", "several statements"),
        ("name LIKE '%x'", "supports only LIKE 'text%'"),
        ("name LIKE 'a_c'", "supports only LIKE 'text%'"),
        ("name ILIKE 'x%'", "a scan cannot filter by"),
        ("id = id", "a scan cannot filter by"),
        ("id + 1 = 2", "a scan cannot filter by"),
        ("id IN (SELECT 1)", "a scan cannot filter by"),
        ("at > now()", "a scan cannot filter by"),
        ("SELECT 1", "a scan cannot filter by"),
        ("tags.element = 'x'", "inside a list or a map"),
        ("isnan(id)", "needs a float or double column"),
        ("CAST(id AS VARCHAR) = '1'", "a scan cannot filter by"),
    ],
)
def test_invalid_filter_error_states_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidPredicateError, match=reason):
        parse_where(text, SCHEMA)


def test_backticks_quote_column_names() -> None:
    """As in Spark, and in the CHECK constraints that a table displays."""
    assert parse_where("`Mixed Case` = 1 AND `id` > 2", SCHEMA) == parse_where('"Mixed Case" = 1 AND id > 2', SCHEMA)
    assert parse_where("name = '`'", SCHEMA) == EqualTo("name", "`")
