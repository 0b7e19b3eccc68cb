from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
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
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UUIDType,
)

from tableformat.errors import InvalidArgumentError
from tableformat.write.data_files.partitions import SpecRouter, split
from tableformat.write.rows.conform import table_arrow_schema

INSTANTS = [-1, 0, None, 1_512_151_975_038_194, -3_600_000_001]
NANOSECONDS = [-1, 0, None, 1_512_151_975_038_194_001, -3_600_000_000_001]
VALUES: list[tuple[IcebergType, list[object]]] = [
    (IntegerType(), [1, -1, None, 34]),
    (LongType(), [1, -1, None, 34]),
    (StringType(), ["iceberg", "", None, "\u00e4\u00f6\u00fc\U0001f600x"]),
    (BinaryType(), [b"\x00\x01\x02\x03", b"", None]),
    (FixedType(4), [b"\x00\x01\x02\x03", None]),
    (UUIDType(), [uuid.UUID(int=5), None]),
    (DecimalType(9, 2), [Decimal("14.20"), Decimal("-0.01"), None, Decimal("-10.65")]),
    (DateType(), [-1, 0, None, 17501, -366]),
    (TimestampType(), INSTANTS),
    (TimestamptzType(), INSTANTS),
    (TimestampNanoType(), NANOSECONDS),
    (TimestamptzNanoType(), NANOSECONDS),
]
TRANSFORMS: list[Transform] = [
    IdentityTransform(),
    BucketTransform(16),
    TruncateTransform(3),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]


def one_column(kind: IcebergType, values: list[object]) -> tuple[Schema, pa.RecordBatch]:
    schema = Schema(NestedField(1, "x", kind, required=False))
    target = table_arrow_schema(schema).field("x").type
    if pa.types.is_temporal(target):
        array = pa.array(values, pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
    else:
        array = pa.array(values, target)
    return schema, pa.RecordBatch.from_arrays([array], schema=table_arrow_schema(schema))


@pytest.mark.parametrize(
    ("kind", "values", "transform"),
    [
        pytest.param(kind, values, transform, id=f"{transform}-{kind}")
        for kind, values in VALUES
        for transform in TRANSFORMS
        if transform.can_transform(kind)
    ],
)
def test_partition_values_match_the_specification(
    kind: IcebergType, values: list[object], transform: Transform
) -> None:
    """FM-31: nanoseconds too, before 1970 as well."""
    schema, batch = one_column(kind, values)
    router = SpecRouter(PartitionSpec(PartitionField(1, 1000, transform, "p"), spec_id=1), schema)
    route = router.route(batch)
    codes = [0] * len(values) if route.codes is None else route.codes.tolist()
    expected = [transform.transform(kind)(value) for value in values]
    assert [route.partitions[code] for code in codes] == [(value,) for value in expected]


FAR = [-(2**63), -62_135_596_800_000_001, -1, None, 253_402_300_800_000_000, 9_223_372_036_825_200_000]
"""Microseconds: the minimum, before the year 1, before 1970, in the year 10000, and Debezium's value for infinity."""


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (YearTransform(), [-292278, -1970, -1, None, 8030, 292277]),
        (MonthTransform(), [-3507325, -23629, -1, None, 96360, 3507324]),
        (DayTransform(), [-106751992, -719163, -1, None, 2932897, 106751991]),
    ],
)
@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()])
def test_timestamps_of_all_years_have_a_partition(
    transform: Transform, expected: list[int | None], kind: IcebergType
) -> None:
    """FM-31: filters left out the files of years that PyArrow's calendar has not got."""
    schema, batch = one_column(kind, FAR)
    route = SpecRouter(PartitionSpec(PartitionField(1, 1000, transform, "p"), spec_id=1), schema).route(batch)
    assert route.codes is not None
    assert [route.partitions[code][0] for code in route.codes.tolist()] == expected


@pytest.mark.parametrize("micros", [FAR[0], FAR[-1]])
def test_timestamps_beyond_the_hour_partition_range_are_rejected(micros: int) -> None:
    """FM-31: in 32 bits they were counted from the other end."""
    schema, batch = one_column(TimestampType(), [0, micros])
    router = SpecRouter(PartitionSpec(PartitionField(1, 1000, HourTransform(), "p"), spec_id=1), schema)
    with pytest.raises(InvalidArgumentError, match=f"no value for {micros} microseconds since 1970: hours"):
        router.route(batch)


@pytest.mark.parametrize("transform", [DayTransform(), HourTransform(), YearTransform(), BucketTransform(4)], ids=str)
def test_smallest_nanosecond_timestamps_are_partitioned(transform: Transform) -> None:
    """FM-31: PyArrow rounds them to the other end."""
    nanos, micros = one_column(TimestampNanoType(), [-(2**63)]), one_column(TimestampType(), [-9_223_372_036_854_776])
    found = [
        SpecRouter(PartitionSpec(PartitionField(1, 1000, transform, "p"), spec_id=1), schema).route(batch).partitions
        for schema, batch in (nanos, micros)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(("precision", "value"), [(4, "-9999"), (38, "-" + "9" * 38)])
def test_truncated_decimal_overflow_error_names_the_field(tmp_path: Path, precision: int, value: str) -> None:
    """The error used to name a value that the caller had not given, and no column."""
    schema = pa.schema([("id", pa.int64()), ("amount", pa.decimal128(precision, 0))])
    catalog = new_lake(tmp_path)
    table = catalog.create_table("db.t", schema, partition_by=["truncate(10, amount)"])
    table.append(pa.table([[1, 2], [Decimal("-99"), None]], schema=schema))
    with pytest.raises(InvalidArgumentError, match="partition field 'amount_trunc' has no value for a row"):
        table.append(pa.table([[3], [Decimal(value)]], schema=schema))
    assert table.scan().count() == 2


def test_rows_are_split_by_partition_in_order() -> None:
    schema = Schema(
        NestedField(1, "a", StringType(), required=False),
        NestedField(2, "b", LongType(), required=False),
        NestedField(3, "n", LongType(), required=True),
    )
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["x", None, "x", None, "x"]).cast(pa.large_string()), pa.array([1, 1, 2, 1, 1]), pa.array(range(5))],
        schema=table_arrow_schema(schema),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "a"), PartitionField(2, 1001, IdentityTransform(), "b"), spec_id=1
    )
    placed = split(batch, SpecRouter(spec, schema).route(batch))
    parts = {place.partition: rows.column("n").to_pylist() for place, rows in placed}
    assert parts == {("x", 1): [0, 4], (None, 1): [1, 3], ("x", 2): [2]}


def test_nan_is_one_partition_across_batches() -> None:
    schema, batch = one_column(DoubleType(), [float("nan"), 1.0])
    router = SpecRouter(PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "x"), spec_id=1), schema)
    first, second = router.route(batch), router.route(batch)
    assert set(first.partitions) == set(second.partitions)


def test_positive_and_negative_zero_are_separate_partitions(tmp_path: Path) -> None:
    """DA-3: if both zeros were in one file, its entry would name one of them, and be wrong about the rows of the
    other."""
    with new_lake(tmp_path / "lake") as catalog:
        schema = pa.schema([("x", pa.float64()), ("n", pa.int64())])
        table = catalog.create_table("db.t", schema, partition_by=["x"])
        table.append(pa.table({"x": [0.0, -0.0, math.nan, 0.0, -0.0, math.nan], "n": range(6)}, schema=schema))
        table.append(pa.table({"x": [-0.0, 0.0], "n": [6, 7]}, schema=schema))
        table.maintenance.compact(rewrite_all=True)
        files = table.refresh().inspect.files()
        assert sorted(str(each["x"]) for each in files["partition"].to_pylist()) == ["-0.0", "0.0", "nan"]
        assert table.verify(deep=True).is_clean


def test_partition_source_in_a_struct_is_found() -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "day", DateType(), required=False)), required=False),
    )
    batch = pa.RecordBatch.from_pylist(
        [{"s": {"day": dt.date(1970, 1, 3)}}, {"s": None}], schema=table_arrow_schema(schema)
    )
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day"), spec_id=1)
    assert SpecRouter(spec, schema).route(batch).partitions == ((2,), (None,))
