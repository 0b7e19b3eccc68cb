"""CALL lake.system.delete_prefix and delete_range, with values as SQL literals."""

from __future__ import annotations

import uuid
from datetime import date, time
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from session_settings import settings

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("weight", pa.float64()),
    ]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Six rows: a1 to a3 and b1 to b3, on the days of January 2024, weighing 0.5 each more."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    rows = [
        {"id1": id1, "id2": id2, "day": date(2024, 1, id2), "weight": id2 / 2}
        for id1 in ("a", "b")
        for id2 in (1, 2, 3)
    ]
    created.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return created


def call(spark: SparkSession, text: str) -> dict[str, Any]:
    [row] = spark.sql(f"CALL lake.system.{text}").collect()
    answer: dict[str, Any] = row.asDict()
    return answer


def failure(spark: SparkSession, text: str) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"CALL lake.system.{text}")
    return str(caught.value)


def left(spark: SparkSession, table: Table) -> str:
    """The rows that are alive, such as "a1 b2"."""
    found = sorted(f"{row.id1}{row.id2}" for row in spark.sql(f"SELECT id1, id2 FROM lake.{table.name}").collect())
    assert found == sorted(f"{row['id1']}{row['id2']}" for row in table.refresh().scan().to_arrow().to_pylist())
    return " ".join(found)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("map('id1', 'a')", "b1 b2 b3"),
        ("named_struct('id1', 'a')", "b1 b2 b3"),
        ("named_struct('id1', 'a', 'id2', 2)", "a1 a3 b1 b2 b3"),
        ("named_struct('id2', 2, 'id1', 'a')", "a1 a3 b1 b2 b3"),
        ("struct('b' AS id1, 3L AS id2)", "a1 a2 a3 b1 b2"),
        ("array(named_struct('id1', 'a', 'id2', 1), named_struct('id1', 'b', 'id2', 1))", "a2 a3 b2 b3"),
        ("array(map('id1', 'a'), map('id1', 'b'))", ""),
        ("named_struct('id1', 'z')", "a1 a2 a3 b1 b2 b3"),
    ],
)
def test_delete_prefix_with_sql_literals(spark: SparkSession, table: Table, prefix: str, expected: str) -> None:
    answer = call(spark, f"delete_prefix('{table.name}', {prefix})")
    assert left(spark, table) == expected
    assert answer["snapshot_id"] == table.snapshot_id
    assert (answer["deleted_rows_count"], answer["added_delete_files_count"]) == (None, 1)


def test_dry_runs_count_the_rows_and_change_nothing(spark: SparkSession, table: Table) -> None:
    before = table.snapshot_id
    prefix = call(spark, f"delete_prefix('{table.name}', map('id1', 'a'), dry_run => true)")
    span = call(spark, f"delete_range('{table.name}', lower => struct('b'), dry_run => true)")
    interval = "on => array('id1'), lower => 'a', upper => 'z', dry_run => true"
    replaced = call(spark, f"replace_interval('{table.name}', source => '{table.name}', {interval})")
    for answer, count in ((prefix, 3), (span, 3), (replaced, 6)):
        assert (answer["snapshot_id"], answer["deleted_rows_count"]) == (before, count)
    assert table.refresh().snapshot_id == before


NO_PREFIXES = [
    ("map('id', 'a')", "unknown column 'id'"),
    ("named_struct('id2', 2)", r"is not a leading part of the key (id1, id2)"),
    ("named_struct('id1', 'a', 'id2', '2')", "column 'id2' is long, not the text '2'"),
    ("named_struct('id1', 'a', 'id2', 2.5)", "column 'id2' is long"),
    ("named_struct('id1', 7)", "column 'id1' is string, not 7 (int)"),
    ("'a'", "prefix must contain leading key columns"),
    ("struct('a', 'b')", "unknown column 'col1'"),
    ("array(map('id1', 'a'), map('id2', 'b'))", "must name the same columns"),
    ("map(1, 'a')", "prefix must contain leading key columns"),
    ("named_struct('id1', INTERVAL '1' DAY)", "not supported as an argument of a procedure"),
    ("array()", "prefix must contain leading key columns"),
]


def test_invalid_prefixes_are_rejected(spark: SparkSession, table: Table) -> None:
    """PR-7."""
    for prefix, message in NO_PREFIXES:
        assert message in failure(spark, f"delete_prefix('{table.name}', {prefix})")
    assert left(spark, table) == "a1 a2 a3 b1 b2 b3"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("lower => struct('a', 2), upper => struct('b', 2)", "a1 b2 b3"),
        ("lower => named_struct('id1', 'a', 'id2', 2), upper => array('b')", "a1 b1 b2 b3"),
        ("upper => 'b'", "b1 b2 b3"),
        ("lower => 'b'", "a1 a2 a3"),
        ("lower => 'b', upper => 'b'", "a1 a2 a3 b1 b2 b3"),
        ("on => array('id2'), lower => 2, upper => 3", "a1 a3 b1 b3"),
        ("on => array('id2', 'id1'), lower => struct(2, 'b')", "a1 a2 b1"),
        ("on => array('day'), upper => DATE'2024-01-02'", "a2 a3 b2 b3"),
        ("on => array('ID2', 'Id1'), lower => named_struct('Id2', 2, 'ID1', 'b')", "a1 a2 b1"),
        ("on => array('weight'), lower => 1.5", "a1 a2 b1 b2"),
        ("on => array('weight'), lower => 0.5D, upper => double('1')", "a2 a3 b2 b3"),
        ("lower => struct('a', 3), mode => 'scan'", "a1 a2"),
    ],
)
def test_delete_range_with_sql_literals(spark: SparkSession, table: Table, arguments: str, expected: str) -> None:
    call(spark, f"delete_range(table => '{table.name}', {arguments})")
    assert left(spark, table) == expected


@pytest.mark.since_spark("4.1", "TIME")
def test_time_of_day_arguments(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """PR-7, PR-8: TIME was no argument of a procedure, and no filter of the planner."""
    schema = pa.schema([pa.field("at", pa.time64("us"), nullable=False), ("v", pa.int64())])
    table = lake.create_table((namespace, "times"), schema, key=["at"])
    table.append(pa.table({"at": [time(hour) for hour in range(6)], "v": list(range(6))}, schema=schema))
    with settings(spark, {"spark.sql.timeType.enabled": "true"}):
        call(spark, f"delete_range('{table.name}', lower => TIME '01:00:00', upper => TIME '02:00:00')")
        call(spark, f"delete_range('{table.name}', lower => struct(TIME '04:59:59.999999'))")
        call(spark, f"delete_prefix('{table.name}', map('at', TIME '03:00:00'))")
        assert [row.v for row in spark.sql(f"SELECT v FROM lake.{table.name} ORDER BY v").collect()] == [0, 2, 4]
        for where, expected in (("> TIME '00:00:00'", [2, 4]), ("IN (TIME '00:00:00', TIME '02:00:00')", [0, 2])):
            rows = spark.sql(f"SELECT v FROM lake.{table.name} WHERE at {where} ORDER BY v").collect()
            assert [row.v for row in rows] == expected
        spark.sql(f"DELETE FROM lake.{table.name} WHERE at >= TIME '04:00:00'")
    assert table.refresh().scan().to_arrow()["v"].to_pylist() == [0, 2]


NO_RANGES = [
    ("on => array('id2')", "pass lower or upper"),
    ("on => array('dya'), lower => 1", "unknown column 'dya' in on. Did you mean 'day'"),
    ("lower => struct('a', 2, 3)", "has 3 values for the columns (id1, id2)"),
    ("lower => struct('a', 'b')", "column 'id2' is long, not the text 'b'"),
    ("lower => named_struct('id2', 2)", "which are not the first of the columns (id1, id2)"),
    ("lower => array()", "lower has no value; NULL is an open bound"),
    ("upper => struct()", "upper has no value"),
    ("lower => map('id1', 'a')", "a map has no order"),
    ("on => array('day'), lower => '2024-01-01'", "column 'day' is date"),
    ("lower => 'a', mode => 'equality'", "mode must be one of 'auto', 'range', 'scan'"),
]


def test_invalid_ranges_are_rejected(spark: SparkSession, table: Table) -> None:
    """PR-7."""
    for arguments, message in NO_RANGES:
        assert message in failure(spark, f"delete_range(table => '{table.name}', {arguments})")
    assert left(spark, table) == "a1 a2 a3 b1 b2 b3"


def test_deletes_on_a_branch(spark: SparkSession, table: Table) -> None:
    table.create_branch("audit")
    call(spark, f"delete_prefix('{table.name}', map('id1', 'a'), branch => 'audit')")
    assert left(spark, table) == "a1 a2 a3 b1 b2 b3"
    assert spark.sql(f"SELECT id1 FROM lake.{table.name} VERSION AS OF 'audit'").count() == 3


def test_uuid_is_written_as_text(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    schema = pa.schema([pa.field("id", pa.uuid(), nullable=False)])
    table = lake.create_table((namespace, "u"), schema, key=["id"])
    keys = [uuid.UUID(int=number) for number in (1, 2)]
    table.append(pa.table({"id": pa.array([key.bytes for key in keys], pa.uuid())}, schema=schema))
    call(spark, f"delete_prefix('{table.name}', map('id', '{keys[0]}'))")
    assert [row.id for row in spark.sql(f"SELECT id FROM lake.{table.name}").collect()] == [str(keys[1])]
    assert "is a uuid, but 'x' is not a UUID" in failure(spark, f"delete_prefix('{table.name}', map('id', 'x'))")


def test_if_unchanged_since_rejects_concurrent_rows_in_scope(
    spark: SparkSession, lake: Catalog, namespace: str, table: Table
) -> None:
    """CP-83: the call fails if rows were added to its scope; rows outside the scope do not matter."""
    read = table.snapshot_id
    table.append(pa.Table.from_pylist([{"id1": "a", "id2": 9, "day": None, "weight": 1.0}], schema=SCHEMA))
    since = f"if_unchanged_since => {read}"
    source = lake.create_table((namespace, "fixed"), SCHEMA, key=["id1", "id2"])
    source.append(pa.Table.from_pylist([{"id1": "a", "id2": 7, "day": None, "weight": 1.0}], schema=SCHEMA))
    for text in (
        f"delete_prefix('{table.name}', map('id1', 'a'), {since})",
        f"delete_prefix('{table.name}', map('id1', 'a'), mode => 'scan', {since})",
        f"delete_range('{table.name}', lower => struct('a'), upper => struct('b'), {since})",
        f"replace_interval('{table.name}', source => '{source.name}', on => array('id1'), lower => 'a', upper => 'b', "
        f"{since})",
    ):
        with pytest.raises(Exception, match="was added since"):
            spark.sql(f"CALL lake.system.{text}").collect()
    call(spark, f"delete_prefix('{table.name}', map('id1', 'b'), {since})")
    assert left(spark, table) == "a1 a2 a3 a9"


def test_delete_ranges_from_a_table(spark: SparkSession, namespace: str, table: Table) -> None:
    """PR-28, CP-86: a cutoff for each prefix, in one snapshot."""
    spark.sql(f"CREATE TABLE lake.{namespace}.cutoffs (lower_id1 STRING, upper_id1 STRING, upper_id2 BIGINT)")
    spark.sql(f"INSERT INTO lake.{namespace}.cutoffs VALUES ('a', 'a', 3), ('b', 'b', 2)")
    arguments = f"'{table.name}', source => '{namespace}.cutoffs'"
    assert call(spark, f"delete_ranges({arguments}, dry_run => true)")["deleted_rows_count"] == 3
    assert call(spark, f"delete_ranges({arguments})")["added_delete_files_count"] == 1
    assert left(spark, table) == "a3 b2 b3"


def test_delete_ranges_from_a_temporary_view(spark: SparkSession, table: Table) -> None:
    """PR-28, PR-1: names may differ in case from the table's."""
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT id AS lower_ID1, id AS Upper_id1, cutoff AS UPPER_ID2 "
        "FROM VALUES ('a', 3), ('b', 2), ('a', 3) AS v(id, cutoff)"
    )
    assert call(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")["added_delete_files_count"] == 1
    assert left(spark, table) == "a3 b2 b3"
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT 'a' AS lower_id1, 1 AS cutoff")
    assert "cutoff is not a bound" in failure(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT 'a' AS lower_id3")
    assert "unknown column 'id3'" in failure(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT 'a' AS lower_id1, 'x' AS lower_id2")
    assert "lower_id2" in failure(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT CAST(NULL AS STRING) AS lower_id1")
    assert "has no bound" in failure(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cutoffs AS SELECT 'a' AS lower_id1 WHERE false")
    call(spark, f"delete_ranges('{table.name}', source => 'cutoffs')")
    assert left(spark, table) == "a3 b2 b3"
