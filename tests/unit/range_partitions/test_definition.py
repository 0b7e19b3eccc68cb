"""Range partitions as users define them: bounds become cuts, and errors name both ranges."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnsupportedFeatureError
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.property_text import range_partitions_of, to_property

SCHEMA = Schema(
    NestedField(1, "ts", TimestampType(), required=True),
    NestedField(2, "region", StringType(), required=True),
    NestedField(3, "n", LongType(), required=True),
    NestedField(4, "at", TimestamptzType(), required=True),
    NestedField(5, "day", DateType(), required=True),
    NestedField(6, "weight", DoubleType(), required=True),
    NestedField(7, "note", StringType(), required=False),
)


def texts(**given: Any) -> list[str]:
    defined = define(tf.RangePartitions(**given), SCHEMA)
    again = range_partitions_of({RANGE_PARTITIONS: to_property(defined)}, SCHEMA)
    assert again == defined, "the property says the same"
    return [defined.text(each) for each in defined.partitions()]


def test_bounds_are_divided_by_splits_and_steps() -> None:
    """RP-3, RP-4"""
    assert texts(on=["n"], bounds=[(1, 30)], step=10, splits=[5]) == ["[1, 5)", "[5, 10)", "[10, 20)", "[20, 30)"]
    assert texts(on=["n"], bounds=[(0, 10), (20, None)], splits=[5]) == ["[0, 5)", "[5, 10)", "[20, inf)"]
    months = texts(on=["ts"], bounds=[(datetime(2023, 12, 15), datetime(2024, 2, 1))], step="month")
    assert months == ["[2023-12-15, 2024-01-01)", "[2024-01-01, 2024-02-01)"]


def test_missing_bounds_define_one_unbounded_range() -> None:
    """RP-2: splits cut it."""
    assert texts(on=["n"]) == ["(-inf, inf)"]
    assert texts(on=["n"], splits=[2012, 2013]) == ["(-inf, 2012)", "[2012, 2013)", "[2013, inf)"]


@pytest.mark.parametrize("added", [{"on_demand": True}, {"ahead": 1}])
def test_steps_that_are_added_later_start_without_a_range(added: dict[str, Any]) -> None:
    """RP-2"""
    assert texts(on=["n"], step=10, **added) == []


def test_empty_bounds_define_no_range() -> None:
    """RP-2"""
    assert texts(on=["n"], bounds=[]) == []
    with pytest.raises(InvalidArgumentError):
        define(tf.RangePartitions(on=["n"], step=10), SCHEMA)


def test_touching_bounds_are_merged_with_a_split() -> None:
    """RP-3"""
    touching = define(tf.RangePartitions(on=["n"], bounds=[(10, 15), (0, 10)]), SCHEMA)
    assert len(touching.bounds) == 1
    assert [split.values for split in touching.splits] == [(10,)]
    assert texts(on=["n"], bounds=[(0, 10), (10, 15)], step=5) == ["[0, 5)", "[5, 10)", "[10, 15)"]


def test_bounds_may_be_inclusive_or_exclusive() -> None:
    """RP-2"""
    ends = tf.bound(lower=("a", 1), upper=("b",), lower_inclusive=False, upper_inclusive=True)
    assert texts(on=["region", "n"], bounds=[ends]) == ["(('a', 1), ('b')]"]


def test_time_zone_days_follow_daylight_saving() -> None:
    """RP-4: on 2024-03-31 clocks in Berlin went forward."""
    found = texts(
        on=["at"],
        bounds=[(datetime(2024, 3, 30, 23, tzinfo=UTC), datetime(2024, 4, 1, 22, tzinfo=UTC))],
        step="1 day",
        time_zone="Europe/Berlin",
    )
    assert found == ["[2024-03-30T23:00:00, 2024-03-31T22:00:00)", "[2024-03-31T22:00:00, 2024-04-01T22:00:00)"]


def test_week_start_follows_the_origin() -> None:
    """RP-4"""
    monday = texts(on=["day"], bounds=[(date(2024, 1, 1), date(2024, 1, 15))], step="week", origin=date(2024, 1, 1))
    assert monday == ["[2024-01-01, 2024-01-08)", "[2024-01-08, 2024-01-15)"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"on": ["n"], "bounds": [(1, 5), (3, 7)]}, ("[1, 5)", "[3, 7)", "overlap")),
        ({"on": ["n"], "bounds": [(5, 5)]}, ("[5, 5)", "empty")),
        ({"on": ["n"], "bounds": [(5, 1)]}, ("[5, 1)", "inverted")),
        ({"on": ["n"], "bounds": [(1, 5)], "splits": [7]}, ("split 7", "[1, 5)")),
        ({"on": ["n"], "bounds": [(1, 5)], "splits": [1]}, ("split 1", "[1, 5)")),
        ({"on": ["n"], "bounds": [(1, None)], "step": 2}, ("[1, inf)", "open")),
        ({"on": ["note"]}, ("note", "nullable")),
        ({"on": ["weight"]}, ("weight", "double")),
        ({"on": ["n"], "step": 1, "default": True, "on_demand": True}, ("default", "on_demand")),
        ({"on": ["n"], "on_demand": True}, ("on_demand", "step")),
        ({"on": ["n"], "bounds": [("x", None)]}, ("lower the text 'x'", "long")),
        ({"on": ["n", "region"], "step": 3}, ("step=3", "n, region")),
        ({"on": ["ts"], "step": 3}, ("step=3", "timestamp")),
        ({"on": ["day"], "step": "1 hour"}, ("1 hour", "date")),
        ({"on": ["ts"], "step": "1 day", "time_zone": "Europe/Berlin"}, ("Europe/Berlin", "no time zone")),
        ({"on": ["at"], "step": "1 day", "time_zone": "Mars"}, ("Mars", "IANA")),
        ({"on": ["ts"], "step": "1 fortnight"}, ("fortnight", "week")),
        ({"on": ["n"], "ahead": 3}, ("ahead=3", "step")),
    ],
)
def test_invalid_definition_error_names_both_ranges(given: dict[str, Any], named: tuple[str, ...]) -> None:
    """RP-2"""
    with pytest.raises(InvalidArgumentError) as caught:
        define(tf.RangePartitions(**given), SCHEMA)
    for part in named:
        assert part in str(caught.value)


def test_unknown_column_error_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumnError):
        define(tf.RangePartitions(on=["regoin"]), SCHEMA)


def test_definition_above_64_kib_is_rejected() -> None:
    """RP-1"""
    many = tf.list_partitions("region", [f"region {number:06}" for number in range(2_000)])
    with pytest.raises(InvalidArgumentError, match="65,536"):
        to_property(define(many, SCHEMA))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"version":2}', "version 2"),
        ('{"version":1,"field-ids":[1],"bounds":[],"holes":[]}', "'holes'"),
        ('{"version":1,"field-ids":[99],"bounds":[]}', "99"),
        ('{"version":1,"field-ids":[7],"bounds":[]}', "nullable"),
        ("[]", "JSON object"),
        ("not JSON", "not JSON"),
    ],
)
def test_unknown_definition_fields_are_rejected(text: str, named: str) -> None:
    """RP-1"""
    with pytest.raises(UnsupportedFeatureError, match=named):
        range_partitions_of({RANGE_PARTITIONS: text}, SCHEMA)


VALUES: list[tuple[PrimitiveType, Any, Any, str]] = [
    (DecimalType(9, 2), Decimal("1.50"), Decimal(2), "[1.50, 2.00)"),
    (UUIDType(), UUID(int=1), UUID(int=2), f"[{UUID(int=1)}, {UUID(int=2)})"),
    (BinaryType(), b"\x00", b"\x00\x00", "[00, 0000)"),
    (TimeType(), time(1, 2, 3), time(23), "[01:02:03, 23:00:00)"),
    (DateType(), date(1, 1, 1), date(9999, 12, 31), "[0001-01-01, 9999-12-31)"),
    (
        TimestampType(),
        datetime(2024, 1, 1, 0, 0, 0, 7),
        datetime(2024, 1, 2),
        "[2024-01-01T00:00:00.000007, 2024-01-02)",
    ),
    (StringType(), "", "\U0001f600", "['', '\U0001f600')"),
]


@pytest.mark.parametrize(("column_type", "lower", "upper", "text"), VALUES)
def test_property_round_trips_values_of_every_type(
    column_type: PrimitiveType, lower: Any, upper: Any, text: str
) -> None:
    """RP-1, RP-2"""
    schema = Schema(NestedField(1, "c", column_type, required=True))
    defined = define(tf.RangePartitions(on=["c"], bounds=[(lower, upper)]), schema)
    again = range_partitions_of({RANGE_PARTITIONS: to_property(defined)}, schema)
    assert again == defined
    assert [defined.text(bound) for bound in defined.bounds] == [text]
