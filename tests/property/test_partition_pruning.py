"""A filter never rules out the partition or the manifest of a matching row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from new_lakes import new_lake
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
)

from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, Comparison, Operator, all_of, any_of
from tableformat.filters.partition_pruning import PartitionPruning
from tableformat.filters.row_filter import filter_rows
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile, PartitionFieldSummary

CASES: list[tuple[PrimitiveType, list[Any], list[Transform[Any, Any]]]] = [
    (
        IntegerType(),
        [-11, -10, -1, 0, 1, 9, 10, 11],
        [IdentityTransform(), BucketTransform(4), TruncateTransform(10), VoidTransform()],
    ),
    (
        StringType(),
        ["", "a", "ab", "abc", "abd", "b", "é", "\U00010000"],
        [IdentityTransform(), BucketTransform(4), TruncateTransform(2)],
    ),
    (
        DecimalType(6, 2),
        [Decimal("-10.05"), Decimal("-0.01"), Decimal("0.00"), Decimal("9.99"), Decimal("10.00")],
        [IdentityTransform(), BucketTransform(4), TruncateTransform(1000)],
    ),
    (
        DateType(),
        [-366, -365, -1, 0, 1, 30, 31, 365],
        [IdentityTransform(), BucketTransform(4), DayTransform(), MonthTransform(), YearTransform()],
    ),
    (
        TimestampType(),
        [-86_400_000_001, -86_400_000_000, -3_600_000_001, -1, 0, 1, 3_599_999_999, 3_600_000_000, 86_400_000_000],
        [BucketTransform(4), HourTransform(), DayTransform(), MonthTransform(), YearTransform()],
    ),
    (DoubleType(), [-1.5, -0.0, 0.0, 2.5], [IdentityTransform()]),
]
ONE_VALUE = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, PartitionSpec, BoundFilter, list[Any]]:
    column_type, values, transforms = draw(st.sampled_from(CASES))
    field = NestedField(1, "x", column_type, required=False)
    chosen = draw(st.lists(st.sampled_from(transforms), min_size=1, max_size=2, unique_by=str))
    spec = PartitionSpec(
        *(PartitionField(1, 1000 + index, transform, f"p{index}") for index, transform in enumerate(chosen))
    )

    def leaf() -> BoundFilter:
        kind = draw(st.sampled_from(["one", "set", "null", "prefix"]))
        if kind == "set":
            members = draw(st.lists(st.sampled_from(values), min_size=2, max_size=4, unique=True))
            operator = draw(st.sampled_from([Operator.IN, Operator.NOT_IN]))
            return Comparison(field, ("x",), operator, tuple(sorted(members)), True)
        if kind == "null":
            return Comparison(field, ("x",), draw(st.sampled_from([Operator.IS_NULL, Operator.NOT_NULL])), (), True)
        operators = ONE_VALUE
        if kind == "prefix" and isinstance(column_type, StringType):
            operators = [Operator.STARTS_WITH, Operator.NOT_STARTS_WITH]
        return Comparison(field, ("x",), draw(st.sampled_from(operators)), (draw(st.sampled_from(values)),), True)

    terms = [leaf() for _ in range(draw(st.integers(1, 3)))]
    bound = all_of(terms) if draw(st.booleans()) else any_of(terms)
    rows = draw(st.lists(st.sampled_from([None, *values]), min_size=1, max_size=4))
    return Schema(field), spec, bound, rows


def matches(schema: Schema, bound: BoundFilter, value: Any) -> bool:
    arrow = arrow_schema(schema)
    rows = pa.table({"x": pa.array([value], arrow.field("x").type)}, schema=arrow)
    return filter_rows(bound, rows).num_rows == 1


def transformed(spec: PartitionSpec, schema: Schema, value: Any) -> tuple[Any, ...]:
    column_type = schema.find_field(1).field_type
    return tuple(field.transform.transform(column_type)(value) for field in spec.fields)


@settings(max_examples=examples(2), deadline=None)
@given(cases())
def test_partition_with_matching_row_is_not_pruned(case: tuple[Schema, PartitionSpec, BoundFilter, list[Any]]) -> None:
    schema, spec, bound, rows = case
    pruning = PartitionPruning(bound, spec, schema)
    for value in rows:
        left = pruning.residual_in(transformed(spec, schema, value))
        assert matches(schema, left, value) == matches(schema, bound, value)


@settings(max_examples=examples(1.5), deadline=None)
@given(cases())
def test_manifest_with_matching_row_is_not_pruned(case: tuple[Schema, PartitionSpec, BoundFilter, list[Any]]) -> None:
    schema, spec, bound, rows = case
    partitions = [transformed(spec, schema, value) for value in rows]
    kept = PartitionPruning(bound, spec, schema).manifest_may_match(manifest_of(schema, spec, partitions))
    assert kept or not any(matches(schema, bound, value) for value in rows)


def manifest_of(schema: Schema, spec: PartitionSpec, partitions: list[tuple[Any, ...]]) -> ManifestFile:
    summaries = []
    for index, field in enumerate(spec.fields):
        result_type = field.transform.result_type(schema.find_field(1).field_type)
        known = [partition[index] for partition in partitions if partition[index] is not None]
        summaries.append(
            PartitionFieldSummary(
                contains_null=len(known) < len(partitions),
                contains_nan=False,
                lower_bound=to_bytes(result_type, min(known)) if known else None,
                upper_bound=to_bytes(result_type, max(known)) if known else None,
            )
        )
    return ManifestFile(
        manifest_path="m.avro",
        manifest_length_bytes=1,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=tuple(summaries),
    )


SCHEMA = Schema(NestedField(1, "x", IntegerType(), required=False), NestedField(2, "day", DateType(), required=False))


def test_identity_partition_resolves_the_filter_for_all_rows() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "x"))
    bound = Comparison(SCHEMA.find_field(1), ("x",), Operator.EQUAL, (3,), True)
    pruning = PartitionPruning(bound, spec, SCHEMA)
    assert [pruning.residual_in((value,)) for value in (3, 4, None)] == [TRUE, FALSE, FALSE]


@pytest.mark.parametrize(("day", "kept"), [(dt.date(2024, 1, 15), True), (dt.date(2024, 2, 1), False)])
def test_month_partition_prunes_other_months(day: dt.date, kept: bool) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, MonthTransform(), "day_month"))
    days = (day - dt.date(1970, 1, 1)).days
    bound = Comparison(SCHEMA.find_field(2), ("day",), Operator.EQUAL, (days,), True)
    january_2024 = (2024 - 1970) * 12
    assert (PartitionPruning(bound, spec, SCHEMA).residual_in((january_2024,)) is not FALSE) is kept


@pytest.mark.parametrize(("column", "bits", "width"), [("i", 32, 10), ("l", 64, 10), ("i", 32, 7), ("l", 64, 8)])
def test_truncate_pruning_keeps_lowest_integers_that_wrap_around(
    tmp_path: Path, column: str, bits: int, width: int
) -> None:
    """No integer is the multiple of 10 below the lowest integer: the partition value is at the other end of the
    range."""
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    arrow = pa.schema([(column, pa.int32() if bits == 32 else pa.int64())])
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", arrow, partition_by=[f"truncate({width}, {column})"])
        numbers = [lowest, lowest + 1, 5, highest]
        table.append(pa.table({column: numbers}, schema=arrow))
        for where, expected in {
            f"{column} = {lowest}": 1,
            f"{column} <= {lowest + 1}": 2,
            f"{column} IN ({lowest}, 5)": 2,
            f"{column} < 0": 2,
            f"{column} > 0": 2,
            f"{column} >= {lowest + 1}": 3,
        }.items():
            assert table.scan(where).count() == expected, where
