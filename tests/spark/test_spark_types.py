"""Values of every type that Python wrote, read by Spark."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from session_settings import settings

from tableformat import Catalog

pytestmark = pytest.mark.usefixtures("generated_code")


_ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


_CASES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "boolean": (pa.bool_(), [True, False], []),
    "int": (pa.int32(), [-(2**31), 2**31 - 1], []),
    "long": (pa.int64(), [-(2**63), 2**63 - 1], []),
    "float": (pa.float32(), [1.5, float("inf")], []),
    "double": (pa.float64(), [0.1, -float("inf")], []),
    "small_decimal": (pa.decimal128(9, 2), [Decimal("-1.25"), Decimal("9999999.99")], []),
    "large_decimal": (pa.decimal128(38, 10), [Decimal("1.0000000001"), Decimal("-12345678901234567890.5")], []),
    "string": (pa.string(), ["", "ünï☃"], []),
    "binary": (pa.binary(), [b"", b"\x00\xff"], [bytearray(), bytearray(b"\x00\xff")]),
    "fixed": (pa.binary(3), [b"abc", b"\x00\x00\x00"], [bytearray(b"abc"), bytearray(3)]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], []),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 4)],
        [],
    ),
    "timestamptz": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 1, UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC)],
        [datetime(1969, 12, 31, 23, 59, 59, 1), datetime(2024, 2, 29, 1, 2, 3, 4)],
    ),
    "list": (pa.list_(pa.int64()), [[1, None], []], []),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", 1.0), ("b", None)], []], [{"a": 1.0, "b": None}, {}]),
    "struct": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))]),
        [{"x": 1, "y": [{"z": "a"}, None]}, {"x": None, "y": None}],
        [],
    ),
    "time": (pa.time64("us"), [time(1, 2, 3, 4), time(23, 59, 59, 999999)], []),
    "uuid": (pa.uuid(), [_ID, uuid.UUID(int=0)], [str(_ID), str(uuid.UUID(int=0))]),
}


def has_times(spark: SparkSession) -> bool:
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 1)


def test_values_of_all_types_are_read(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Also past deleted rows, which a selection of the batch leaves out."""
    cases = {name: case for name, case in _CASES.items() if name != "time" or has_times(spark)}
    columns = {"id": pa.array([1, 2, 3, 4], pa.int64())}
    for name, (arrow_type, values, _) in cases.items():
        columns[f"v_{name}"] = columns[f"w_{name}"] = pa.array([*values, None, values[0]], arrow_type)
    schema = pa.schema([pa.field(name, column.type, nullable=name != "id") for name, column in columns.items()])
    table = lake.create_table((namespace, "t"), schema, key=["id"])
    table.append(pa.table(columns, schema=schema))
    found = [row.asDict(True) for row in spark.table(f"lake.{namespace}.t").orderBy("id").collect()]
    table.delete_prefix({"id": 1})
    left = [row.asDict(True) for row in spark.table(f"lake.{namespace}.t").orderBy("id").collect()]
    for name, (_, values, seen) in cases.items():
        expected = [*(seen or values), None, (seen or values)[0]]
        assert [row[f"v_{name}"] for row in found] == expected, name
        assert [row[f"w_{name}"] for row in left] == expected[1:], name


@pytest.mark.before_spark("4.1", "columns of times are refused")
def test_time_columns_are_rejected_without_spark_support(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    lake.create_table((namespace, "t"), pa.schema([("v", pa.time64("us"))]))
    with pytest.raises(AnalysisException, match=r"'v' has the type time, which needs Spark 4\.1"):
        spark.table(f"lake.{namespace}.t")


def test_dates_skipped_by_the_julian_calendar_are_found(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-49: 10 October 1582 used to be compared with row groups as the 20th, which is in none of them."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("ts", pa.timestamp("us", "UTC"))])
    table = lake.create_table((namespace, "t"), schema)
    days = [date(1500, 2, 3), date(1582, 10, 10)]
    times = [datetime(day.year, day.month, day.day, 1, 2, 3, tzinfo=UTC) for day in days]
    table.append(pa.table({"id": [1, 2], "day": days, "ts": times}, schema))
    for condition in (
        "day = DATE '1582-10-10'",
        "day IN (DATE '1582-10-10', DATE '2024-01-01')",
        "day > DATE '1582-10-09'",
        "ts = TIMESTAMP '1582-10-10 01:02:03'",
        "ts >= TIMESTAMP '1582-10-10 01:02:03' AND id > 0",
    ):
        found = spark.sql(f"SELECT id FROM lake.{table.name} WHERE {condition}").collect()
        assert [row.id for row in found] == [2], condition
    spark.sql(f"DELETE FROM lake.{table.name} WHERE ts = TIMESTAMP '1582-10-10 01:02:03' AND id % 2 = 0")
    assert [row.id for row in spark.table(f"lake.{table.name}").collect()] == [1]


def test_tables_are_read_with_vectorized_reader_disabled(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-66: `enableVectorizedReader` = `false` ended every read with "No value present"."""
    schema = pa.schema(
        [("id", pa.int32()), ("s", pa.struct([("x", pa.list_(pa.int32()))])), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    table = lake.create_table((namespace, "t"), schema)
    rows = [{"id": number, "s": {"x": [number]}, "m": [("k", number)]} for number in range(4)]
    table.append(pa.Table.from_pylist(rows, schema))
    table.delete("id = 1", mode="scan")
    spark.sql(f"ALTER TABLE lake.{table.name} ALTER COLUMN id TYPE BIGINT")
    expected = [(0, [0], 0), (2, [2], 2), (3, [3], 3)]
    for name, value in (
        ("spark.sql.parquet.enableVectorizedReader", "false"),
        ("spark.sql.parquet.enableNestedColumnVectorizedReader", "false"),
        ("spark.sql.parquet.recordLevelFilter.enabled", "true"),
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.sql.columnVector.offheap.enabled", "true"),
        ("spark.sql.parquet.columnarReaderBatchSize", "1"),
    ):
        with settings(spark, {name: value}):
            found = spark.sql(f"SELECT id, s.x, m['k'] FROM lake.{table.name} WHERE id >= 0 ORDER BY id").collect()
            assert [tuple(row) for row in found] == expected, name


def test_unsupported_types_are_stored_or_rejected_with_a_hint(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """SP-37."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id INT, c CHAR(3), v VARCHAR(2)) USING iceberg")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN more VARCHAR(7)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'longer', 'x', 'y')")
    assert [tuple(row) for row in spark.table(name).collect()] == [(1, "longer", "x", "y")]
    assert [field.dataType.simpleString() for field in spark.table(name).schema] == ["int", *["string"] * 3]
    for spark_type, instead in (
        ("INTERVAL DAY", "a number"),
        *([("VARIANT", "to_json")] if spark.version > "4" else []),
    ):
        with pytest.raises(AnalysisException, match=instead):
            spark.sql(f"CREATE TABLE lake.{namespace}.u (id INT, v {spark_type})")
    schema = pa.schema([("id", pa.int32()), ("at", pa.timestamp("ns", "UTC")), ("t", pa.time64("us"))])
    nanos = lake.create_table((namespace, "n"), schema, properties={"format-version": "3"})
    moment = pa.array([1_700_000_000_123_456_789], schema.field("at").type)
    nanos.append(pa.table({"id": pa.array([1], pa.int32()), "at": moment, "t": [time(1, 2, 3)]}, schema=schema))
    with pytest.raises(AnalysisException, match="from Python"):
        spark.sql(f"SELECT id FROM lake.{nanos.name}").collect()
    metrics = "readable_metrics.at.lower_bound, readable_metrics.t.upper_bound"
    assert [tuple(row) for row in spark.sql(f"SELECT {metrics} FROM lake.{nanos.name}.files").collect()] == [
        ("2023-11-14 22:13:20.123456789Z", "01:02:03.000000")
    ]


def test_files_written_before_type_promotion_are_read(spark: SparkSession, namespace: str) -> None:
    """SP-61: at every depth, with nulls, after deleted rows, with a filter, together with files in the new types."""
    name = f"lake.{namespace}.t"
    types = ("INT", "FLOAT", "DECIMAL(7, 2)", "DECIMAL(18, 1)", "STRUCT<x: INT, t: STRING>", "ARRAY<STRUCT<x: FLOAT>>")
    columns = ", ".join(f"c{number} {each}" for number, each in enumerate((*types, "MAP<INT, INT>", "ARRAY<INT>")))
    spark.sql(f"CREATE TABLE {name} (id INT, {columns}) USING iceberg")
    old = """
        SELECT /*+ COALESCE(1) */ CAST(id AS INT), INT(id), FLOAT(id + 0.5), DECIMAL(-id),
            CAST(1e15 + id AS DECIMAL(18, 1)), named_struct('x', INT(-id), 't', 'a'),
            array(null, named_struct('x', FLOAT(id))), map(1, INT(id), 2, null), array(INT(id), null) FROM range(1, 6)
    """
    spark.sql(f"INSERT INTO {name} {old}")
    spark.sql(f"INSERT INTO {name} VALUES (6{', null' * 8})")
    wider = {"c0": "BIGINT", "c1": "DOUBLE", "c2": "DECIMAL(12, 2)", "c3": "DECIMAL(30, 1)", "c4.x": "BIGINT"}
    for path, kind in {**wider, "c5.element.x": "DOUBLE", "c6.value": "BIGINT", "c7.element": "BIGINT"}.items():
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN {path} TYPE {kind}")
    spark.sql(f"DELETE FROM {name} WHERE id IN (2, 3)")
    many = 2**40
    spark.sql(f"""INSERT INTO {name} VALUES (7, {many}, 0.1, 9999999999.25, 1e20, named_struct('x', {many}, 't', null),
        array(named_struct('x', 0.1D)), map(1, {many}), array({many}))""")
    sums = "sum(c0), sum(c1), sum(c2), sum(c3), sum(c4.x), sum(c5[1].x), sum(c6[1]), sum(c7[0])"
    new_row = (7, many, 0.1, Decimal("9999999999.25"), Decimal(10**20), (many, None), [(0.1,)], {1: many}, [many])

    def old_row(n: int) -> tuple[object, ...]:
        numbers = (n, n, n + 0.5, Decimal(-n), Decimal(10**15 + n))
        return (*numbers, (-n, "a"), [None, (n,)], {1: n, 2: None}, [n, None])

    found = [tuple(row) for row in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
    assert found == [old_row(1), old_row(4), old_row(5), (6, *[None] * 8), new_row]
    filtered = f"SELECT id FROM {name} WHERE c0 > 1 AND c1 > 4 AND c2 < -4 AND c3 > 1e15 AND c4.x < -4"
    assert [tuple(row) for row in spark.sql(filtered).collect()] == [(5,)]
    assert tuple(spark.sql(f"SELECT {sums} FROM {name} WHERE id < 6").first()) == (
        *(10, 11.5, Decimal(-10), Decimal(3 * 10**15 + 10), -10, 10.0, 10, 10),
    )


_OF_OTHER_FILES = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.fieldId.write.enabled": "false",
}


def test_parquet_files_follow_iceberg_under_any_session_setting(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """Times are integers with bounds, small decimals are too, and columns have field ids. Spark 3.5 and 4.0 write times
    in another form by default."""
    schema = pa.schema(
        [("ts", pa.timestamp("us", tz="UTC")), ("local", pa.timestamp("us")), ("x", pa.decimal128(9, 2))]
    )
    table = lake.create_table((namespace, "t"), schema)
    before = {name: spark.conf.get(name) for name in _OF_OTHER_FILES}
    for name, value in _OF_OTHER_FILES.items():
        spark.conf.set(name, value)
    try:
        spark.sql(f"INSERT INTO lake.{table.name} SELECT TIMESTAMP '2024-01-01', TIMESTAMP_NTZ '2024-01-01', 1.5")
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    entry = table.refresh().inspect.data_files().to_pylist()[0]
    stored = pq.read_metadata(entry["file_path"].removeprefix("file://")).schema
    assert [stored.column(number).physical_type for number in range(3)] == ["INT64", "INT64", "INT32"]
    assert {number for number, _ in entry["lower_bounds"]} == {1, 2, 3}
    fields = stored.to_arrow_schema()
    assert [fields.field(number).metadata[b"PARQUET:field_id"] for number in range(3)] == [b"1", b"2", b"3"]
