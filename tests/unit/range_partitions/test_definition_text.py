"""Range partitions as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.definition_text import range_partitions_of_text, texts_of_range_partitions
from tableformat.range_partitions.range_text import parse_range

SCHEMA = Schema(
    NestedField(1, "year", LongType(), required=True),
    NestedField(2, "region", StringType(), required=True),
    NestedField(3, "ts", TimestamptzType(), required=True),
)


def of(**texts: str) -> tf.RangePartitions:
    named = {name.replace("_", "-"): text for name, text in texts.items()}
    return range_partitions_of_text(named, SCHEMA, where="here")


def test_definition_text_supports_every_option() -> None:
    """RP-23"""
    assert of(
        on="year", bounds="[2011, 2016), VALUE = 2020", splits="2012, 2013", step="1", ahead="2", protect="[2011, 2012)"
    ) == tf.RangePartitions(
        on=["year"],
        bounds=[tf.bound(2011, 2016), tf.bound(2020, 2020, upper_inclusive=True)],
        splits=[2012, 2013],
        step=1,
        ahead=2,
        protect=[tf.bound(2011, 2012)],
    )
    bounds = "[(Asia, 1), ('Eu, [x', 2)), [(z), )"
    by_two = of(on="region, year", bounds=bounds, splits="(Asia, 7), (B)", default="true")
    assert by_two.bounds == [tf.bound(("Asia", 1), ("Eu, [x", 2)), tf.bound(("z",))]
    assert (by_two.splits, by_two.default) == ([("Asia", 7), ("B",)], True)
    windowed = of(on="ts", step="1 day", time_zone="Europe/Berlin", on_demand="True", max_new_per_commit="7")
    assert (windowed.bounds, windowed.step, windowed.on_demand, windowed.max_new_per_commit) == (None, "1 day", True, 7)
    assert of(on="year", bounds="").bounds == []


def test_listed_ranges_round_trip() -> None:
    """RP-23: also of columns with a zone, which are listed in UTC."""
    ends = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, 5, tzinfo=UTC))
    given = tf.RangePartitions(on=["ts"], bounds=[ends])
    defined = define(given, SCHEMA)
    text = defined.text(defined.bounds[0])
    assert text == "[2024-01-01, 2024-01-02T05:00:00)"
    assert parse_range(text, ["ts"], SCHEMA) == tf.bound(*ends)


TYPES = Schema(
    NestedField(1, "n", LongType(), required=True),
    NestedField(2, "a, 'b'", StringType(), required=True),
    NestedField(3, "ts", TimestamptzType(), required=True),
    NestedField(4, "d", DateType(), required=True),
    NestedField(5, "x", DecimalType(9, 2), required=True),
    NestedField(6, "bytes", BinaryType(), required=True),
    NestedField(7, "u", UUIDType(), required=True),
    NestedField(8, "flag", BooleanType(), required=True),
    NestedField(9, "time", TimeType(), required=True),
    NestedField(10, "moment", TimestampType(), required=True),
)
NOON = datetime(2024, 3, 30, 12, 0, 0, 5, tzinfo=UTC)
WHOLE: dict[str, tf.RangePartitions] = {
    "several columns": tf.RangePartitions(
        on=["a, 'b'", "n"],
        bounds=[(None, ("", 5)), (("it's",), ("z, '", 2))],
        splits=[("j",), ("k", 7)],
        default=True,
    ),
    "behind values": tf.RangePartitions(
        on=["n"], bounds=[tf.bound(1, 5, upper_inclusive=True), tf.bound(5, 9, lower_inclusive=False)], splits=[7]
    ),
    "a list": tf.list_partitions("a, 'b'", ["Asia", "inf", "", " x ", "VALUE = 1", "\\N"]),
    "steps of numbers": tf.RangePartitions(
        on=["n"], bounds=[(-5, 20)], step=10, origin=3, retain=50, ahead=3, keep_latest=1, max_drops=2, protect=[(0, 9)]
    ),
    "steps of a zone": tf.RangePartitions(
        on=["ts"],
        bounds=[(NOON, NOON.replace(month=6))],
        splits=[NOON.replace(month=5, second=7)],
        step="2 days",
        time_zone="America/Sao_Paulo",
        on_demand=True,
        on_demand_limits=(NOON.replace(year=2000), None),
        max_new_per_commit=7,
        retain="3 months",
    ),
    "unbounded": tf.RangePartitions(on=["d"]),
    "unbounded, cut": tf.RangePartitions(on=["d"], splits=[date(2024, 1, 1)]),
    "no range": tf.RangePartitions(on=["d"], bounds=[]),
    "dates": tf.RangePartitions(on=["d"], bounds=[(date(2024, 1, 1), None)], splits=[date(2024, 2, 1)]),
    "decimals": tf.RangePartitions(on=["x"], bounds=[(Decimal("-0.50"), Decimal(0))]),
    "bytes": tf.RangePartitions(on=["bytes"], bounds=[tf.bound(b"", b"\x00\xff", lower_inclusive=False)]),
    "uuids": tf.RangePartitions(on=["u"], bounds=[(UUID(int=7), None)]),
    "truth": tf.list_partitions("flag", [True]),
    "times": tf.RangePartitions(on=["time"], bounds=[(time(1, 2, 3, 4), time(12))]),
    "moments": tf.RangePartitions(on=["moment"], bounds=[(datetime(2024, 1, 1), datetime(2024, 1, 1, 1))]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_definition_text_round_trips(name: str) -> None:
    """RP-23: for every kind of definition."""
    defined = define(WHOLE[name], TYPES)
    texts = texts_of_range_partitions(defined)
    assert define(range_partitions_of_text(texts, TYPES, where="here"), TYPES) == defined, texts


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ({"bounds": "[1, 2)"}, InvalidArgumentError, "must list the range columns"),
        ({"on": "yaer"}, UnknownColumnError, "year"),
        ({"on": "year", "bound": "[1, 2)"}, UnknownOptionError, "bounds"),
        ({"on": "year", "bounds": "1, 2"}, InvalidArgumentError, "not a range"),
        ({"on": "year", "default": "yes"}, InvalidArgumentError, "neither true nor false"),
        ({"on": "year", "ahead": "soon"}, InvalidArgumentError, "not a whole number"),
        ({"on": "year", "bounds": "VALUE = \\N"}, InvalidArgumentError, "no nulls"),
        ({"on": "year", "splits": "(1, 2)"}, InvalidArgumentError, "year"),
    ],
)
def test_invalid_definition_text_is_rejected(texts: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        of(**texts)
