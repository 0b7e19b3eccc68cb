"""Format version 3 from Spark: deletion vectors, and rows that keep their ids."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

NAMES = ["_row_id", "_last_updated_sequence_number"]


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """Ids 0 to 3 in one file, with the row ids 0 to 3, and 10 to 12 in another, with 4 to 6."""
    name = f"{namespace}.t"
    spark.sql(f"""
        CREATE TABLE lake.{name} (id BIGINT NOT NULL, s STRUCT<a: INT, b: STRING>, PRIMARY KEY (id))
        TBLPROPERTIES ('format-version' = '3')
    """)
    for ids in ("range(0, 4, 1, 1)", "range(10, 13, 1, 1)"):
        spark.sql(f"INSERT INTO lake.{name} SELECT id, named_struct('a', int(id), 'b', 'x') FROM {ids}")
    return lake.load_table((namespace, "t"))


def lineage(spark: SparkSession, table: Table) -> dict[int, tuple[int, int]]:
    """The row id and sequence number by id that Spark reads, after checking that Python reads the same."""
    found = spark.sql(f"SELECT id, {', '.join(NAMES)} FROM lake.{table.name}").collect()
    by_id = {row.id: (row._row_id, row._last_updated_sequence_number) for row in found}
    read = table.refresh().scan(columns=["id", *NAMES]).to_arrow().to_pylist()
    assert by_id == {row["id"]: (row[NAMES[0]], row[NAMES[1]]) for row in read}
    assert len(by_id) == len(found) == len({row_id for row_id, _ in by_id.values()})
    return by_id


def vectors(table: Table) -> Counter[str]:
    """The number of deletion vectors of each data file, after checking that there are no other delete files."""
    deletes = table.refresh().inspect.delete_files().to_pylist()
    assert {each["file_format"] for each in deletes} <= {"PUFFIN"}
    return Counter(each["referenced_data_file"] for each in deletes)


def test_row_ids_are_read(spark: SparkSession, table: Table) -> None:
    assert lineage(spark, table) == {
        **{n: (n, 1) for n in range(4)},
        **{10 + n: (4 + n, 2) for n in range(3)},
    }
    found = spark.sql(f"SELECT id FROM lake.{table.name} WHERE _row_id = 5 AND _last_updated_sequence_number = 2")
    assert [row.id for row in found.collect()] == [11]
    assert spark.sql(f"SELECT max(_row_id) m, min(_row_id) n FROM lake.{table.name}").collect()[0] == (6, 0)


def test_row_ids_are_not_columns_in_v2(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.old (id BIGINT)")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql(f"SELECT _row_id FROM lake.{namespace}.old")


def test_updated_rows_keep_their_ids(spark: SparkSession, table: Table) -> None:
    before = lineage(spark, table)
    spark.sql(f"UPDATE lake.{table.name} SET s.a = 100 WHERE id IN (1, 11)")
    after = lineage(spark, table)
    assert after == {**before, 1: (1, 3), 11: (5, 3)}
    spark.sql(f"UPDATE lake.{table.name} SET s.b = 'y' WHERE id = 1 OR id = 2")
    assert lineage(spark, table) == {**after, 1: (1, 4), 2: (2, 4)}


def test_merge_with_every_clause(spark: SparkSession, table: Table) -> None:
    before = lineage(spark, table)
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT explode(array(0L, 1L, 30L)) id) s ON t.id = s.id
        WHEN MATCHED AND s.id = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.s.b = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, named_struct('a', 1, 'b', 'new'))
        WHEN NOT MATCHED BY SOURCE AND t.id = 12 THEN UPDATE SET t.s.a = -1
        WHEN NOT MATCHED BY SOURCE AND t.id = 11 THEN DELETE
    """)
    after = lineage(spark, table)
    new_id = after.pop(30)[0]
    assert new_id not in {row_id for row_id, _ in before.values()}
    assert after == {2: before[2], 3: before[3], 10: before[10], 1: (1, 3), 12: (6, 3)}
    found = spark.sql(f"SELECT id, s.a, s.b FROM lake.{table.name} WHERE id IN (1, 12, 30) ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, 1, "merged"), (12, -1, "x"), (30, 1, "new")]


def test_partition_update_keeps_row_ids(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"""
        CREATE TABLE lake.{namespace}.p (id BIGINT, p STRING, u STRING) PARTITIONED BY (p)
        TBLPROPERTIES ('format-version' = '3')
    """)
    spark.sql(f"INSERT INTO lake.{namespace}.p SELECT id, concat('p', id % 2), 'u' FROM range(0, 6, 1, 1)")
    table = lake.load_table((namespace, "p"))
    before = lineage(spark, table)
    spark.sql(f"UPDATE lake.{namespace}.p SET p = 'p9' WHERE id > 2")
    after = lineage(spark, table)
    assert {n: row_id for n, (row_id, _) in after.items()} == {n: row_id for n, (row_id, _) in before.items()}


def test_each_data_file_has_one_deletion_vector(spark: SparkSession, table: Table) -> None:
    """DA-7: from Spark's DELETE, UPDATE and MERGE, and from Python."""
    spark.sql(f"DELETE FROM lake.{table.name} WHERE s.a = 1")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE s.a = 2 OR s.a = 10")
    assert sorted(vectors(table).values()) == [1, 1]
    spark.sql(f"UPDATE lake.{table.name} SET s.b = 'y' WHERE s.a = 3")
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT 3L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s.b = 'z'
    """)
    table.refresh().delete("id = 11", mode="scan")
    assert set(vectors(table).values()) == {1}
    found = spark.sql(f"SELECT id, s.b FROM lake.{table.name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(0, "x"), (3, "z"), (12, "x")]


def test_row_ids_are_assigned_after_upgrade(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Rows of before the upgrade get ids with the first commit after it."""
    spark.sql(f"CREATE TABLE lake.{namespace}.u (id BIGINT, v INT)")
    spark.sql(f"INSERT INTO lake.{namespace}.u SELECT id, 0 FROM range(0, 3, 1, 1)")
    spark.sql(f"ALTER TABLE lake.{namespace}.u SET TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"UPDATE lake.{namespace}.u SET v = 1 WHERE id = 1")
    found = lineage(spark, lake.load_table((namespace, "u")))
    assert sorted(found) == [0, 1, 2]
    spark.sql(f"UPDATE lake.{namespace}.u SET v = 2 WHERE id = 1")
    assert lineage(spark, lake.load_table((namespace, "u")))[1][0] == found[1][0]
