"""Assigning rows and files to range partitions, compared with a plain search of every row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType, TimestamptzType

import tableformat as tf
from tableformat.range_partitions.cuts import Range, internal_cut
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.layout import is_aligned, partition_field_of
from tableformat.range_partitions.rows import covered, partitions_of_rows, refusals
from tableformat.range_partitions.steps import Duration, Steps

SCHEMA = Schema(
    NestedField(1, "n", LongType(), required=True),
    NestedField(2, "s", StringType(), required=True),
    NestedField(3, "ts", TimestampType(), required=True),
)
NUMBERS = pa.array([-1, 0, 4, 5, 6, 9, 10, 19, 20, 29, 30, 2**63 - 1, -(2**63)])
TEXTS = pa.array(["", "A", "Asia", "Asia\0", "Asia\0x", "B", "Europe", "Europf", "\U0001f600"], pa.large_string())


def place(defined: DefinedPartitions, values: tuple[Any, ...]) -> str | None:
    """The partition of one row, looked for among all of them."""
    row = internal_cut(defined.key, values, after=False)
    found = [each for each in defined.partitions() if each.lower <= row < each.upper]
    assert len(found) < 2
    return defined.text(found[0]) if found else None


CASES: list[tuple[tf.RangePartitions, list[pa.Array]]] = [
    (tf.RangePartitions(on=["n"], bounds=[(0, 10), (20, 30)], splits=[5]), [NUMBERS]),
    (tf.RangePartitions(on=["n"], bounds=[(0, 30)], step=7), [NUMBERS]),
    (
        tf.RangePartitions(on=["n"], bounds=[(None, 5), tf.bound(9, 20, lower_inclusive=False, upper_inclusive=True)]),
        [NUMBERS],
    ),
    (tf.RangePartitions(on=["n"]), [NUMBERS]),
    (tf.list_partitions("s", ["Asia", "Europe"]), [TEXTS]),
    (tf.RangePartitions(on=["s"], bounds=[("A", "B"), ("Europe", None)], splits=["Asia\0"]), [TEXTS]),
    (
        tf.RangePartitions(
            on=["s", "n"], bounds=[(("A",), ("Asia", 5)), (("Asia", 7), ("Europe",))], splits=[("A", 3)]
        ),
        [
            pa.array([s for s in TEXTS.to_pylist() for _ in range(4)], pa.large_string()),
            pa.array([2, 3, 5, 7] * len(TEXTS)),
        ],
    ),
]


@pytest.mark.parametrize(("given", "columns"), CASES)
def test_row_coverage_agrees_with_brute_force(given: tf.RangePartitions, columns: list[pa.Array]) -> None:
    """RP-5, RP-7: the upper bound is exclusive; equal positions are the same partition."""
    defined = define(given, SCHEMA)
    wanted = [place(defined, row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]
    mask = covered(defined, columns)
    assert (np.ones(len(wanted), bool) if mask is None else mask).tolist() == [each is not None for each in wanted]
    places, codes = partitions_of_rows(defined, columns)
    found: dict[tuple[int, int], set[str | None]] = {}
    for code, each in zip(codes.tolist(), wanted, strict=True):
        found.setdefault(places[code], set()).add(each)
    assert all(len(each) == 1 for each in found.values()), found


def test_partition_positions_are_stable_across_batches() -> None:
    """RP-7: rows of two batches share a file only if they are in the same partition."""
    defined = define(tf.RangePartitions(on=["n"], bounds=[(0, 1000)], step=10), SCHEMA)
    first, _ = partitions_of_rows(defined, [pa.array([5])])
    second, _ = partitions_of_rows(defined, [pa.array([15])])
    again, _ = partitions_of_rows(defined, [pa.array([500, 7])])
    assert first != second
    assert first[0] in again


def test_nulls_are_never_covered() -> None:
    """RP-5: also if a range has no lower bound, and everything else is covered."""
    defined = define(tf.RangePartitions(on=["n"], bounds=[(None, 5)]), SCHEMA)
    mask = covered(defined, [pa.array([1, None], pa.int64())])
    assert mask is not None
    assert mask.tolist() == [True, False]


def test_uncovered_row_error_names_value_and_nearest_range() -> None:
    """RP-5"""
    quarter = tf.RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1), datetime(2024, 4, 1))])
    defined = define(quarter, SCHEMA)
    rows = pa.array([datetime(2031, 1, 1), datetime(2023, 12, 31, 23, 59, 59, 500)], pa.timestamp("us"))
    assert refusals(defined, [rows], defined.bounds).to_pylist() == [
        "no range partition covers ts = 2031-01-01; the nearest is [2024-01-01, 2024-04-01)",
        "no range partition covers ts = 2023-12-31T23:59:59.0005; the nearest is [2024-01-01, 2024-04-01)",
    ]
    two = define(tf.RangePartitions(on=["n"], bounds=[(0, 10), (100, 110)]), SCHEMA)
    assert [text.rpartition(" is ")[2] for text in refusals(two, [pa.array([20, 90])], two.bounds).to_pylist()] == [
        "[0, 10)",
        "[100, 110)",
    ]


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "America/St_Johns"]
)
@pytest.mark.parametrize(
    "duration",
    [Duration(1, "day"), Duration(1, "week"), Duration(1, "month"), Duration(1, "year"), Duration(6, "hour")],
)
def test_every_timestamp_is_in_its_step(zone: str, duration: Duration) -> None:
    """RP-4: across every change of clocks, and before 1970."""
    steps = Steps(TimestamptzType(), duration, 0, "UTC")
    origin = (
        0
        if zone == "UTC" or duration.unit == "hour"
        else int(Steps(TimestamptzType(), duration, 0, zone)._from_wall(np.zeros(1, np.int64))[0])
    )
    steps = Steps(TimestamptzType(), duration, origin, zone)
    begin = int(datetime(1965, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    hours = begin + np.arange(0, 60 * 366 * 24, 5, np.int64) * 3_600_000_000 + 1_800_000_000
    ordinals = steps.ordinals(hours)
    assert (np.diff(ordinals) >= 0).all()
    assert (steps.starts(ordinals) <= hours).all()
    assert (hours < steps.starts(ordinals + 1)).all()


def test_new_table_gets_a_partition_field() -> None:
    """RP-7"""
    none, given = PartitionSpec(), PartitionSpec(PartitionField(3, 1000, MonthTransform(), "m"))
    year = (datetime(2024, 1, 1), datetime(2025, 1, 1))

    def field(spec: PartitionSpec = none, **options: Any) -> str | None:
        return partition_field_of(define(tf.RangePartitions(**options), SCHEMA), spec)

    assert field(on=["ts"], bounds=[year], step="1 day") == 'day("ts")'
    assert field(on=["ts"], bounds=[year], step="7 days") is None
    assert field(given, on=["ts"], bounds=[year], step="1 day") is None
    assert field(on=["n"], bounds=[(0, 100)], step=10) == 'truncate(10, "n")'
    assert field(on=["n"], bounds=[(0, 100)], step=1) == '"n"'
    assert field(on=["n"], bounds=[(5, 105)], step=10, origin=5) is None
    assert partition_field_of(define(tf.list_partitions("s", ["a"]), SCHEMA), none) == '"s"'


def test_files_align_if_range_bounds_match_the_transform() -> None:
    """RP-7"""
    day = PartitionSpec(PartitionField(3, 1000, DayTransform(), "d"))
    hour = PartitionSpec(PartitionField(3, 1000, HourTransform(), "h"))
    noon = tf.RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1, 12), datetime(2024, 2, 1))], step="1 day")
    months = tf.RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1), datetime(2024, 2, 1))], step="1 month")
    assert not is_aligned(define(noon, SCHEMA), day)
    assert is_aligned(define(noon, SCHEMA), hour)
    assert is_aligned(define(months, SCHEMA), day)
    assert not is_aligned(define(months, SCHEMA), PartitionSpec())
    assert is_aligned(define(tf.RangePartitions(on=["n", "s"], bounds=[((1,), (2,))]), SCHEMA), PartitionSpec())
    rest = tf.RangePartitions(on=["n"], bounds=[(1, 2)], default=True)
    assert not is_aligned(define(rest, SCHEMA), PartitionSpec())
    tens = define(tf.RangePartitions(on=["n"], bounds=[(0, 100)], step=20), SCHEMA)
    assert is_aligned(tens, PartitionSpec(PartitionField(1, 1000, TruncateTransform(10), "t")))
    assert not is_aligned(tens, PartitionSpec(PartitionField(1, 1000, TruncateTransform(15), "t")))
    assert is_aligned(tens, PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "t")))


def test_ranges_are_compared_by_their_cuts() -> None:
    """RP-2"""
    defined = define(tf.RangePartitions(on=["n"], bounds=[(0, 10), (20, 30)]), SCHEMA)
    one, other = defined.bounds
    assert not one.meets(other)
    assert not one.meets(Range(one.upper, other.lower))
    assert one.holds(one)
