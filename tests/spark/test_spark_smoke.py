"""The basics that a Spark version must support before other tests are run on it. Takes a few seconds: `make smoke-spark
SPARK=3.5`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from stream_runs import Source

from tableformat import Catalog


def test_smoke_test_of_all_statement_kinds(spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path) -> None:
    """Every statement that has its own code path, and the rows that Python reads afterwards."""
    name = f"lake.{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, place STRING, n INT) PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('tableformat.key' = 'id')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('p', id % 3), int(id) FROM range(20)")
    stream = Source(spark, name, tmp_path / "checkpoint")
    assert [len(batch) for batch in stream.batches()] == [20]

    spark.sql(f"DELETE FROM {name} WHERE id BETWEEN 5 AND 9")  # A range delete: no job.
    spark.sql(f"DELETE FROM {name} WHERE n % 7 = 3")  # Positions.
    spark.sql(f"UPDATE {name} SET place = 'moved' WHERE id = 11")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT explode(array(12L, 50L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET place = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, place, n) VALUES (s.id, 'new', 0)"
    )
    expected = [(n, f"p{n % 3}", n) for n in (0, 1, 2, 4, 13, 14, 15, 16, 18, 19)]
    expected += [(11, "moved", 11), (12, "merged", 12), (50, "new", 0)]
    assert sorted(map(tuple, spark.table(name).collect())) == sorted(expected)
    kept = sorted(tuple(row.values()) for row in lake.load_table((namespace, "t")).scan().to_arrow().to_pylist())
    assert kept == sorted(expected)
    assert [tuple(row) for row in spark.sql(f"SELECT count(*), min(id) FROM {name} WHERE place = 'p1'").collect()] == [
        (5, 1)
    ]

    spark.sql(f"INSERT OVERWRITE {name} VALUES (1L, 'only', 1)")
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {name}").collect()] == [(1, "only", 1)]
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").first()
    assert first is not None
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF {first.snapshot_id}").collect()[0][0] == 20
    rows = spark.range(3).selectExpr("id + 100 AS id", "'streamed' AS place", "int(id) AS n")
    rows.writeTo(name).append()
    spark.sql(f"CREATE TABLE lake.{namespace}.copy AS SELECT * FROM {name}")
    assert spark.table(f"lake.{namespace}.copy").count() == 4
