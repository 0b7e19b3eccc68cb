"""Range partitions as text."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.definition_text import range_partitions_of_text
from tableformat.range_partitions.range_text import parse_range

SCHEMA = Schema(
    NestedField(1, "year", LongType(), required=True),
    NestedField(2, "region", StringType(), required=True),
    NestedField(3, "ts", TimestamptzType(), required=True),
)


def of(**texts: str) -> tf.RangePartitions:
    named = {name.replace("_", "-"): text for name, text in texts.items()}
    return range_partitions_of_text(named, SCHEMA, where="here")


def test_all_that_can_be_said() -> None:
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
    assert (windowed.bounds, windowed.step, windowed.on_demand, windowed.max_new_per_commit) == ((), "1 day", True, 7)
    assert of(on="year", bounds="").bounds == []


def test_listed_ranges_are_read_again() -> None:
    """RP-23: also of columns with a zone, which are listed in UTC."""
    ends = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, 5, tzinfo=UTC))
    given = tf.RangePartitions(on=["ts"], bounds=[ends])
    defined = define(given, SCHEMA)
    text = defined.text(defined.bounds[0])
    assert text == "[2024-01-01, 2024-01-02T05:00:00)"
    assert parse_range(text, ["ts"], SCHEMA) == tf.bound(*ends)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ({"bounds": "[1, 2)"}, InvalidArgumentError, "lists the range columns"),
        ({"on": "yaer"}, UnknownColumnError, "year"),
        ({"on": "year", "bound": "[1, 2)"}, UnknownOptionError, "bounds"),
        ({"on": "year", "bounds": "1, 2"}, InvalidArgumentError, "no range"),
        ({"on": "year", "default": "yes"}, InvalidArgumentError, "neither true nor false"),
        ({"on": "year", "ahead": "soon"}, InvalidArgumentError, "no whole number"),
        ({"on": "year", "splits": "(1, 2)"}, InvalidArgumentError, "year"),
    ],
)
def test_what_cannot_be_read(texts: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        of(**texts)
