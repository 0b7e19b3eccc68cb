"""CREATE and REPLACE TABLE AS SELECT: a table and its rows in one commit, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.storage.location import local_path

# A statement ends with its first failed task; another one may remove its files a moment after that.
ONE_TASK = "range(0, 100, 1, 1)"


def files(location: str) -> set[str]:
    path = local_path(location)
    assert path is not None
    return {str(found) for found in Path(path).rglob("*") if found.is_file() and found.suffix != ".json"}


def rows(spark: SparkSession, table: Table) -> list[tuple[object, ...]]:
    """The rows that Spark reads, after checking that Python reads the same."""
    found = sorted((tuple(row) for row in spark.table(f"lake.{table.name}").collect()), key=repr)
    assert found == sorted((tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist()), key=repr)
    return found


@pytest.fixture
def old(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id)) PARTITIONED BY (v)")
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES (1, 'a'), (2, 'b')")
    return lake.load_table((namespace, "t"))


def test_create_table_as_select_commits_table_with_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"""
        CREATE TABLE lake.{namespace}.t PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('owner-team'='x')
        AS SELECT id, id * 2 w FROM range(10)
    """)
    table = lake.load_table((namespace, "t"))
    assert rows(spark, table) == sorted(((n, 2 * n) for n in range(10)), key=repr)
    assert table.properties["owner-team"] == "x"
    assert len(table.metadata.metadata_log) == 0
    assert table.metadata.current_snapshot() is not None


def test_failed_query_leaves_no_table_and_no_file(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    with pytest.raises(Exception, match="no such row"):
        spark.sql(
            f"CREATE TABLE lake.{namespace}.t AS SELECT IF(id = 99, raise_error('no such row'), id) id FROM {ONE_TASK}"
        )
    assert not lake.table_exists((namespace, "t"))
    assert spark.sql(f"SHOW TABLES IN lake.{namespace}").collect() == []


def test_create_table_as_select_rejects_existing_table(spark: SparkSession, old: Table) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE lake.{old.name} AS SELECT 1 id")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{old.name} AS SELECT 1 id")
    assert rows(spark, old) == [(1, "a"), (2, "b")]


def test_replace_changes_rows_schema_and_partitions_in_one_commit(spark: SparkSession, old: Table) -> None:
    before = old.snapshot_id
    spark.sql(f"""
        REPLACE TABLE lake.{old.name} PARTITIONED BY (bucket(2, k))
        AS SELECT concat('k', id) k, id * 1.5D w FROM range(3)
    """)
    assert rows(spark, old) == [("k0", 0.0), ("k1", 1.5), ("k2", 3.0)]
    assert [row.col_name for row in spark.sql(f"DESCRIBE lake.{old.name}").collect()][:2] == ["k", "w"]
    assert [len(old.inspect.snapshots()), old.key] == [2, ()]
    assert sorted(
        tuple(row) for row in spark.sql(f"SELECT * FROM lake.{old.name} VERSION AS OF {before}").collect()
    ) == [
        (1, "a"),
        (2, "b"),
    ]
    old.rollback(snapshot_id=before)
    spark.sql(f"INSERT INTO lake.{old.name} VALUES ('k9', 1)")


def test_failed_replace_does_not_change_the_table(spark: SparkSession, old: Table) -> None:
    before, snapshot_id = files(old.location), old.snapshot_id
    with pytest.raises(Exception, match="no such row"):
        spark.sql(
            f"REPLACE TABLE lake.{old.name} AS SELECT IF(id = 99, raise_error('no such row'), id) id FROM {ONE_TASK}"
        )
    with pytest.raises(AnalysisException, match=f"unknown option 'replaceWhere' of a write to {old.name}\\."):
        spark.table(f"lake.{old.name}").write.mode("overwrite").option("replaceWhere", "id = 1").saveAsTable(
            f"lake.{old.name}"
        )
    assert rows(spark, old) == [(1, "a"), (2, "b")]
    assert old.snapshot_id == snapshot_id
    assert files(old.location) == before


def test_replace_keeps_ids_of_unchanged_columns_and_specs(spark: SparkSession, old: Table) -> None:
    """SP-53: columns of the same name and type, fields of the same transform, and whole specs and schemas."""
    first, second, name = old.snapshot_id, None, f"lake.{old.name}"
    spec = old.metadata.spec()
    spark.sql(f"REPLACE TABLE {name} PARTITIONED BY (v) AS SELECT id + 10 id, upper(v) v, 1 w FROM {name}")
    second = old.refresh().snapshot_id
    assert [(field.name, field.field_id) for field in old.metadata.schema().fields] == [("id", 1), ("v", 2), ("w", 3)]
    assert old.metadata.spec() == spec
    spark.sql(f"REPLACE TABLE {name} PARTITIONED BY (id, v) AS SELECT 'x' id, v, 1 w FROM {name}")
    assert [field.field_id for field in old.refresh().metadata.schema().fields] == [4, 2, 3], "another type, another id"
    assert [field.name for field in old.metadata.spec().fields] == ["id", "v"]
    assert old.metadata.spec().fields[1].field_id == spec.fields[0].field_id
    assert rows(spark, old) == [("x", "A", 1), ("x", "B", 1)]
    for snapshot, expected in ((first, [(1, "a"), (2, "b")]), (second, [(11, "A", 1), (12, "B", 1)])):
        found = spark.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot}").collect()
        assert sorted(tuple(row) for row in found) == expected
    spark.sql(f"CREATE OR REPLACE TABLE {name} (v STRING, w INT NOT NULL) TBLPROPERTIES ('tableformat.key' = 'w')")
    assert [field.field_id for field in old.refresh().metadata.schema().fields] == [2, 5], "a required one had nulls"
    spark.sql(f"INSERT INTO {name} VALUES ('z', 7), ('y', 8)")
    spark.sql(f"DELETE FROM {name} WHERE w = 8")
    assert rows(spark, old) == [("z", 7)]


def test_replace_conflicts_with_concurrent_commit(spark: SparkSession, old: Table) -> None:
    from collections.abc import Iterator
    from urllib.parse import unquote

    import pyarrow as pa

    warehouse, name = str(old.catalog.iceberg.properties["warehouse"]), old.name  # type: ignore[union-attr]

    def commit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tableformat import open_catalog

        for batch in batches:
            with open_catalog(unquote(warehouse.removeprefix("file://"))) as catalog:
                other = catalog.load_table(name)
                other.append(pa.Table.from_pylist([{"id": 3, "v": "c"}], schema=other.schema))
            yield batch

    before = files(old.location)
    with pytest.raises(AnalysisException, match="was changed by another commit") as error:
        spark.range(1).coalesce(1).mapInArrow(commit, "id long").writeTo(f"lake.{name}").replace()
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert rows(spark, old) == [(1, "a"), (2, "b"), (3, "c")]
    added = {Path(path).suffix for path in files(old.location) - before}
    assert len([path for path in files(old.location) - before if path.endswith(".parquet")]) == 1
    assert added == {".parquet", ".avro"}


def test_replace_without_a_query_empties_the_table(spark: SparkSession, old: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TABLE lake.{old.name} (x INT)")
    assert rows(spark, old) == []
    spark.sql(f"INSERT INTO lake.{old.name} VALUES (7)")
    assert rows(spark, old) == [(7,)]
