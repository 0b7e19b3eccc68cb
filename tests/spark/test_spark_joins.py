"""Joins of tables with the same partitioning (SP-40), and column statistics for the optimizer (SP-38)."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from long_forms import every
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from session_settings import settings

from tableformat import Catalog, Table

STORAGE_PARTITIONED = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""The settings in Iceberg's documentation."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("at", pa.date32(), nullable=False),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
    ]
)


def plan(frame: DataFrame, mode: str = "simple") -> str:
    return str(frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))  # type: ignore[union-attr]


def exchanges(frame: DataFrame) -> int:
    return plan(frame).count("Exchange hashpartitioning")


@pytest.mark.parametrize("partitioning", every(3, ["days(at), bucket(2, id)", "bucket(4, id)", "id"]))
def test_tables_with_equal_partitioning_join_without_shuffle(
    spark: SparkSession, lake: Catalog, namespace: str, partitioning: str
) -> None:
    """SP-40."""
    for name, ids in (("a", "range(0, 40)"), ("b", "range(20, 60)")):
        spark.sql(f"CREATE TABLE lake.{namespace}.{name} (id BIGINT, at DATE) PARTITIONED BY ({partitioning})")
        days = "date_add(DATE'2026-01-01', CAST(id % 3 AS INT))"
        spark.sql(f"INSERT INTO lake.{namespace}.{name} SELECT id % 30, {days} FROM {ids}")
    spark.sql(f"DELETE FROM lake.{namespace}.a WHERE id = 7")
    joined_tables = f"lake.{namespace}.a JOIN lake.{namespace}.b USING (id, at)"
    query = f"SELECT id, at, count(*) FROM {joined_tables} GROUP BY id, at ORDER BY id, at"
    expected = [tuple(row) for row in spark.sql(query).collect()]
    assert expected
    with settings(spark, {**STORAGE_PARTITIONED, "spark.sql.iceberg.planning.preserve-data-grouping": "false"}):
        assert exchanges(spark.sql(query)) > 0
    with settings(spark, STORAGE_PARTITIONED):
        joined = spark.sql(query)
        assert exchanges(joined) == 0, plan(joined)
        assert [tuple(row) for row in joined.collect()] == expected
        spark.sql(f"ALTER TABLE lake.{namespace}.b ADD PARTITION FIELD bucket(3, id)")
        spark.sql(f"INSERT INTO lake.{namespace}.b VALUES (1, DATE'2026-01-02')")
        evolved = spark.sql(query)
        assert exchanges(evolved) == 0, "files of two specs are grouped by what both have"
        found = [tuple(row) for row in evolved.collect()]
    assert found == [tuple(row) for row in spark.sql(query).collect()] != []


@pytest.mark.since_spark("4.0", "joins by transforms of which one gives the other")
@pytest.mark.parametrize(("one", "other"), [("bucket(4, id)", "bucket(6, id)"), ("hours(at)", "days(at)")])
def test_compatible_transforms_join_without_shuffle(spark: SparkSession, namespace: str, one: str, other: str) -> None:
    """SP-40: buckets by a common divisor, hours by days, before 1970 too."""
    for name, partitioning in (("a", one), ("b", other)):
        spark.sql(f"CREATE TABLE lake.{namespace}.{name} (id BIGINT, at TIMESTAMP) PARTITIONED BY ({partitioning})")
        moments = "TIMESTAMP'1969-12-31 22:00:00' + make_dt_interval(0, id)"
        spark.sql(f"INSERT INTO lake.{namespace}.{name} SELECT id, {moments} FROM range(0, 30)")
    query = f"SELECT id, at FROM lake.{namespace}.a JOIN lake.{namespace}.b USING (id, at) ORDER BY id"
    compatible = {
        "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "true",
        "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": "true",
    }
    with settings(spark, {**STORAGE_PARTITIONED, **compatible}):
        joined = spark.sql(query)
        assert exchanges(joined) == 0, plan(joined)
        assert [row.id for row in joined.collect()] == list(range(30))
        by_read = spark.sql(f"SELECT id, count(*) FROM lake.{namespace}.a GROUP BY id")
        assert (exchanges(by_read) == 0) == (one != "hours(at)"), "only columns that are read are told"


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """A hundred rows, ten names, one null in ten."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    ids = list(range(100))
    created.append(
        pa.table(
            {
                "id": ids,
                "at": pa.array(ids, pa.int32()).cast(pa.date32()),
                "name": [None if each % 10 == 0 else f"n{each % 10}" for each in ids],
                "price": [Decimal(each) for each in ids],
            },
            schema=SCHEMA,
        )
    )
    return created


def test_analyze_table_provides_statistics_to_the_optimizer(spark: SparkSession, table: Table) -> None:
    """SQ-29, SP-38."""
    name = f"lake.{table.name}"
    assert spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS NOSCAN").collect() == []
    assert table.refresh().metadata.statistics == []
    assert spark.sql(f"analyze table {name} compute statistics for columns ID, name;").collect() == []
    (file,) = table.refresh().metadata.statistics
    assert [(each.fields, each.properties) for each in file.blob_metadata] == [
        ([1], {"ndv": "100"}),
        ([3], {"ndv": "9"}),
    ]
    (row,) = spark.sql(f"CALL lake.system.compute_table_stats('{table.name}', columns => array('at'))").collect()
    (file,) = table.refresh().metadata.statistics
    assert row.asDict() == {"statistics_file": file.statistics_path}
    table.append(
        pa.table({"id": [1000], "at": pa.array([5], pa.date32()), "name": ["x"], "price": [None]}, schema=SCHEMA)
    )
    with settings(spark, {"spark.sql.cbo.enabled": "true"}):
        whole = plan(spark.table(name), "cost")
        assert "rowCount=101" in whole
        statistics = spark.table(name)._jdf.queryExecution().optimizedPlan().stats().attributeStats()
        known = {
            pair._1().name(): pair._2() for pair in (statistics.toSeq().apply(n) for n in range(statistics.size()))
        }
        described = {
            column: [each.toString() for each in (stat.distinctCount(), stat.nullCount(), stat.min(), stat.max())]
            for column, stat in known.items()
        }
        assert described == {
            "id": ["Some(100)", "Some(0)", "Some(0)", "Some(1000)"],
            "at": ["Some(100)", "Some(0)", "Some(0)", "Some(99)"],
            "name": ["Some(9)", "Some(10)", "None", "None"],
            "price": ["None", "Some(1)", "Some(0.00)", "Some(99.00)"],
        }
        chosen = spark.sql(f"SELECT * FROM {name} WHERE name = 'n1'")._jdf.queryExecution().optimizedPlan().stats()
        assert 8 <= int(chosen.rowCount().get()) <= 13, "one name of nine, of 91 rows that have one"
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert len(table.refresh().metadata.statistics) == 2
    for statement, error, match in (
        (f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR COLUMNS nme", AnalysisException, "nme.*name"),
        (f"ANALYZE TABLE {name} COMPUTE STATISTIC", ParseException, "STATISTICS"),
        (f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR name", ParseException, "FOR COLUMNS"),
        (f"ANALYZE TABLE {name} PARTITION (id = 1) COMPUTE STATISTICS", AnalysisException, "PARTITION"),
        (f"ANALYZE TABLES IN {name.rpartition('.')[0]} COMPUTE STATISTICS", AnalysisException, "Analyze each table"),
        (f"ANALYZE TABLE {name}x COMPUTE STATISTICS", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND"),
    ):
        with pytest.raises(error, match=match):
            spark.sql(statement)
