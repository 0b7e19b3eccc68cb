"""UPDATE and MERGE: rows are deleted by position and written again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from long_forms import every
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table, open_catalog

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Six rows in two files: a1=1, a2=2, a3=3 and b1=1, b2=2, b3=3."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    for letter in "ab":
        created.append(pa.table({"id1": [letter] * 3, "id2": np.arange(1, 4), "v": np.arange(1.0, 4.0)}, schema=SCHEMA))
    return created


def rows(spark: SparkSession, table: Table) -> list[str]:
    """Rows such as "a1=1.0" as Spark reads them, after checking that Python reads the same."""
    found = sorted(f"{row.id1}{row.id2}={row.v}" for row in spark.table(f"lake.{table.name}").collect())
    assert found == sorted(f"{r['id1']}{r['id2']}={r['v']}" for r in table.refresh().scan().to_arrow().to_pylist())
    return found


def test_update_writes_position_deletes_and_new_rows(spark: SparkSession, table: Table) -> None:
    spark.sql(f"UPDATE lake.{table.name} SET v = v * 10 WHERE id2 = 2")
    assert rows(spark, table) == ["a1=1.0", "a2=20.0", "a3=3.0", "b1=1.0", "b2=20.0", "b3=3.0"]
    assert set(table.inspect.delete_files()["content"].to_pylist()) == {1}


@pytest.mark.parametrize("condition", every(2, ["k >= 2", "v = 'q'", "k IN (2, 4) AND v = 'q'", "true"]))
def test_deleted_rows_stay_deleted(spark: SparkSession, lake: Catalog, namespace: str, condition: str) -> None:
    """SP-50: Spark looks for the keys that a statement matches, and then reads the files that hold them."""
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string())])
    before = pa.table({"k": [1, 2, 3, 4], "v": ["p", "q", "q", "q"]}, schema)
    for kind, options in {"range": {}, "equality": {}, "parts": {"partition_by": ["v"]}}.items():
        for statement, left in {
            f"UPDATE {{}} SET v = 'r' WHERE {condition}": [("r" if condition == "true" else "p", 1), ("r", 4)],
            f"DELETE FROM {{}} WHERE ({condition}) AND k + 0 > 3": [("p", 1)],
            f"MERGE INTO {{}} t USING (SELECT 4 AS id) s ON t.k = s.id AND ({condition}) WHEN MATCHED THEN UPDATE "
            "SET v = 'm'": [("p", 1), ("m", 4)],
        }.items():
            table = lake.create_table((namespace, f"t{len(lake.list_tables(namespace))}"), schema, key=["k"], **options)
            table.append(before)
            if kind == "equality":
                table.delete_rows([{"k": 2}, {"k": 3}])
            else:
                table.delete_range(lower=[2], upper=[4])
            spark.sql(statement.format(f"lake.{table.name}"))
            found = sorted((row["k"], row["v"]) for row in table.refresh().scan().to_arrow().to_pylist())
            assert found == sorted((key, value) for value, key in left), (kind, statement)


def test_update_of_all_rows_removes_the_old_files(spark: SparkSession, table: Table) -> None:
    spark.sql(f"UPDATE lake.{table.name} SET v = 0")
    assert rows(spark, table) == ["a1=0.0", "a2=0.0", "a3=0.0", "b1=0.0", "b2=0.0", "b3=0.0"]
    assert len(table.inspect.delete_files()) == 0


def test_update_in_a_partitioned_table_moves_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "p"), SCHEMA, key=["id1", "id2"], partition_by=["id1", "bucket(3, id2)"])
    spark.sql(f"INSERT INTO lake.{table.name} SELECT 'a', id, double(id) FROM range(30)")
    spark.sql(f"UPDATE lake.{table.name} SET id1 = 'b' WHERE v < 10")
    expected = [f"b{n}={float(n)}" for n in range(10)] + [f"a{n}={float(n)}" for n in range(10, 30)]
    assert rows(spark, table) == sorted(expected)
    partitions = table.inspect.partitions()["partition"].to_pylist()
    assert sorted(each["id1"] for each in partitions) == ["a", "a", "a", "b", "b", "b"]


def test_update_respects_every_kind_of_delete(spark: SparkSession, table: Table) -> None:
    table.delete_prefix({"id1": "a", "id2": 1})
    table.delete("id2 = 2", mode="equality")
    spark.sql(f"UPDATE lake.{table.name} SET v = 9")
    assert rows(spark, table) == ["a3=9.0", "b1=9.0", "b3=9.0"]


def test_merge_with_every_clause(spark: SparkSession, table: Table) -> None:
    spark.sql(f"""
        MERGE INTO lake.{table.name} t
        USING (SELECT * FROM VALUES ('a', 1L, 10D), ('a', 2L, NULL), ('a', 3L, 30D), ('c', 1L, 40D), ('c', 2L, 5D)
               AS s(id1, id2, v)) s
        ON t.id1 = s.id1 AND t.id2 = s.id2
        WHEN MATCHED AND s.v IS NULL THEN DELETE
        WHEN MATCHED AND s.v < 20 THEN UPDATE SET v = s.v
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND s.v > 9 THEN INSERT *
        WHEN NOT MATCHED THEN INSERT (id1, id2) VALUES ('d', s.id2)
        WHEN NOT MATCHED BY SOURCE AND t.id2 = 1 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id2 = 2 THEN UPDATE SET v = -1
    """)
    assert rows(spark, table) == ["a1=10.0", "a3=30.0", "b2=-1.0", "b3=3.0", "c1=40.0", "d2=None"]


@pytest.mark.since_spark("4.1", "counts of what a MERGE did")
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_merge_summary_counts_its_changes(spark: SparkSession, table: Table, mode: str) -> None:
    """SP-28."""
    table.set_properties({"write.merge.mode": mode})
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT 'a' id1, id id2 FROM range(2, 6)) s
        ON t.id1 = s.id1 AND t.id2 = s.id2
        WHEN MATCHED AND s.id2 = 2 THEN UPDATE SET v = 0 WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id1, id2, v) VALUES (s.id1, s.id2, 9)
        WHEN NOT MATCHED BY SOURCE AND t.id2 = 1 THEN DELETE
    """)
    assert rows(spark, table) == ["a2=0.0", "a4=9.0", "a5=9.0", "b2=2.0", "b3=3.0"]
    summary = table.refresh().metadata.current_snapshot().summary.additional_properties
    name = "spark.merge-into.num-target-rows-"
    counts = {each.removeprefix(name): value for each, value in summary.items() if each.startswith(name)}
    assert counts.pop("copied") == ("0" if mode == "merge-on-read" else "2")
    assert counts == {
        **{"deleted": "3", "updated": "1", "inserted": "2", "matched-updated": "1", "matched-deleted": "1"},
        **{"not-matched-by-source-updated": "0", "not-matched-by-source-deleted": "2"},
    }


def test_merge_matching_a_row_twice_is_rejected(spark: SparkSession, table: Table) -> None:
    before = rows(spark, table)
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(f"""
            MERGE INTO lake.{table.name} t USING (SELECT * FROM VALUES ('a', 1D), ('a', 2D) AS s(id1, v)) s
            ON t.id1 = s.id1 WHEN MATCHED THEN UPDATE SET v = s.v
        """)
    assert rows(spark, table) == before


def test_merge_from_the_table_itself(spark: SparkSession, table: Table) -> None:
    """The statement sees one snapshot."""
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT id1, id2 + 10 id2, v FROM lake.{table.name}) s
        ON t.id1 = s.id1 AND t.id2 = s.id2 WHEN NOT MATCHED THEN INSERT *
    """)
    assert len(rows(spark, table)) == 12


@pytest.mark.since_spark("4.1", "MERGE WITH SCHEMA EVOLUTION")
def test_merge_adds_columns_with_schema_evolution(spark: SparkSession, table: Table) -> None:
    spark.sql(f"""
        MERGE WITH SCHEMA EVOLUTION INTO lake.{table.name} t
        USING (SELECT * FROM VALUES ('a', 1L, 10D, 'x'), ('c', 1L, 40D, 'y') AS s(id1, id2, v, note)) s
        ON t.id1 = s.id1 AND t.id2 = s.id2
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *
    """)
    assert rows(spark, table) == ["a1=10.0", "a2=2.0", "a3=3.0", "b1=1.0", "b2=2.0", "b3=3.0", "c1=40.0"]
    notes = {row["note"] for row in table.scan("v >= 10").to_arrow().to_pylist()}
    assert notes == {"x", "y"}


@pytest.mark.since_spark("4.2", "INSERT WITH SCHEMA EVOLUTION")
def test_insert_adds_columns_with_schema_evolution(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO lake.{table.name} BY NAME SELECT 'c' id1, 1L id2, 4D v, 'y' note")
    assert "c1=4.0" in rows(spark, table)
    assert table.schema.names == ["id1", "id2", "v", "note"]


def test_update_in_v3_writes_deletion_vectors(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """DA-7."""
    table = lake.create_table((namespace, "v3"), SCHEMA, key=["id1", "id2"], properties={"format-version": "3"})
    spark.sql(f"INSERT INTO lake.{table.name} SELECT 'a', id, double(id) FROM range(4)")
    for _ in range(2):
        spark.sql(f"UPDATE lake.{table.name} SET v = v + 10 WHERE id2 = 1")
    spark.sql(f"UPDATE lake.{table.name} SET v = 5 WHERE id2 = 2")
    assert rows(spark, table) == ["a0=0.0", "a1=21.0", "a2=5.0", "a3=3.0"]


def test_update_conflicts_with_concurrent_delete_of_its_row(spark: SparkSession, table: Table, lake: Catalog) -> None:
    """CP-6: committed after the delete, the update would bring the row back."""
    _delete_meanwhile(spark, table, "delete_prefix")
    with pytest.raises(AnalysisException, match=r"deletes rows of .*, which this change replaces") as error:
        spark.sql(f"UPDATE lake.{table.name} SET v = meanwhile(v) WHERE id1 = 'a' AND id2 = 1")
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert rows(spark, table) == ["a2=2.0", "a3=3.0", "b1=1.0", "b2=2.0", "b3=3.0"]


def test_update_allows_concurrent_deletes_of_other_rows_in_its_file(
    spark: SparkSession, table: Table, lake: Catalog
) -> None:
    """CP-6: a stream that replaces messages all day lets a statement about other messages through."""
    _delete_meanwhile(spark, table, "delete_prefix")
    spark.sql(f"UPDATE lake.{table.name} SET v = meanwhile(v) + 10 WHERE id1 = 'b' AND id2 = 1")
    assert rows(spark, table) == ["a2=2.0", "a3=3.0", "b1=11.0", "b2=2.0", "b3=3.0"]


def test_delete_allows_concurrent_delete_of_the_same_row(spark: SparkSession, table: Table) -> None:
    _delete_meanwhile(spark, table, "delete_prefix")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE id1 = 'a' AND meanwhile(v) < 3")
    assert rows(spark, table) == ["a3=3.0", "b1=1.0", "b2=2.0", "b3=3.0"]


def test_update_conflicts_with_concurrently_added_matching_row(spark: SparkSession, table: Table) -> None:
    """CP-5: serializable."""
    _delete_meanwhile(spark, table, "append")
    with pytest.raises(AnalysisException, match="was added"):
        spark.sql(f"UPDATE lake.{table.name} SET v = meanwhile(v) WHERE id1 = 'a'")
    assert rows(spark, table) == ["a1=1.0", "a2=2.0", "a3=3.0", "a4=4.0", "b1=1.0", "b2=2.0", "b3=3.0"]


@pytest.mark.since_spark("4.2", "a statement's reads are known to its commit")
def test_concurrently_added_rows_that_cannot_match_are_allowed(spark: SparkSession, table: Table) -> None:
    """CP-5: bounds rule the new file out."""
    _delete_meanwhile(spark, table, "append")
    spark.sql(f"UPDATE lake.{table.name} SET v = meanwhile(v) + 1 WHERE id1 = 'b'")
    assert rows(spark, table) == ["a1=1.0", "a2=2.0", "a3=3.0", "a4=4.0", "b1=2.0", "b2=3.0", "b3=4.0"]


def _delete_meanwhile(spark: SparkSession, table: Table, act: str) -> None:
    """Register the function meanwhile(v), which returns v. While a statement computes it, another writer commits
    once."""
    from urllib.parse import unquote

    from pyspark.sql.functions import udf

    warehouse, name = str(table.catalog.iceberg.properties["warehouse"]), table.name  # type: ignore[union-attr]
    marker = str(Path(tempfile.mkdtemp()) / "called")

    def meanwhile(v: float) -> float:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return v
        with open_catalog(unquote(warehouse.removeprefix("file://"))) as catalog:
            other = catalog.load_table(name)
            if act == "append":
                other.append(pa.Table.from_pylist([{"id1": "a", "id2": 4, "v": 4.0}], schema=other.schema))
            else:
                other.delete_prefix({"id1": "a", "id2": 1})
        return v

    # Spark would take a function with type hints for one over columns.
    spark.udf.register("meanwhile", udf(lambda v: meanwhile(v), "double"))  # noqa: PLW0108


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])
def test_row_level_statements_may_use_metadata_columns(spark: SparkSession, namespace: str, version: str) -> None:
    """SP-95: Spark has all of them behind the table's columns in each row then, and `_deleted` shows deleted rows."""
    name = f"lake.{namespace}.t"
    properties = f"'format-version' = '{version}', 'tableformat.key' = 'n'"
    spark.sql(f"CREATE TABLE {name} (n INT NOT NULL, s STRING) TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lineage = "_row_id" if version == "3" else "n"
    before = {row.n: row[1] for row in spark.sql(f"SELECT n, {lineage} FROM {name}").collect()}
    spark.sql(f"UPDATE {name} SET s = concat(s, _pos) WHERE _pos < 2 AND _file LIKE '%.parquet' AND _spec_id = 0")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT explode(array(3, 4)) AS n) u ON t.n = u.n AND t._pos >= 0 "
        "WHEN MATCHED AND t._pos = 2 THEN UPDATE SET s = 'd' "
        "WHEN NOT MATCHED BY SOURCE AND t._pos = 0 THEN UPDATE SET s = concat(s, 'f')"
    )
    spark.sql(f"DELETE FROM {name} WHERE _pos = 1 AND n = 2")
    found = spark.sql(f"SELECT n, s, {lineage} FROM {name} ORDER BY n").collect()
    assert [(row.n, row.s) for row in found] == [(1, "a0f"), (3, "d")]
    assert [row[2] for row in found] == [before[1], before[3]]
