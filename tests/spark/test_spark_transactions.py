"""A statement reads one snapshot of every table, and its commit is checked against that snapshot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udf, udtf

from spark_ext.service.session import Pin, Session
from tableformat import Catalog, Table, open_catalog
from tableformat.storage.location import local_path

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


READS_ARE_KNOWN = pytest.mark.since_spark("4.2", "a statement's reads are known to its commit")


def rows_of(*ids: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": n, "v": f"v{n}"} for n in ids], schema=SCHEMA)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Ids 1 to 3 in one file."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(rows_of(1, 2, 3))
    return created


@pytest.fixture
def other(lake: Catalog, namespace: str) -> Table:
    """Ids 11 and 12."""
    created = lake.create_table((namespace, "s"), SCHEMA)
    created.append(rows_of(11, 12))
    return created


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def files(table: Table) -> set[str]:
    path = local_path(table.location)
    assert path is not None
    return {str(found) for found in Path(path).rglob("*.parquet")}


def once(table: Table, act: Callable[[Table], object]) -> Callable[[], None]:
    """Does something to the table, in whichever of several processes calls it first."""
    warehouse = unquote(str(table.catalog.iceberg.properties["warehouse"]).removeprefix("file://"))  # type: ignore[union-attr]
    name, marker = table.name, str(Path(tempfile.mkdtemp()) / "called")

    def call() -> None:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        with open_catalog(warehouse) as catalog:
            act(catalog.load_table(name))

    return call


def while_running(spark: SparkSession, table: Table, act: Callable[[Table], object]) -> None:
    """Register the function meanwhile(id), which returns id. While a statement computes it, another writer commits."""
    commit = once(table, act)

    def meanwhile(n):  # type: ignore[no-untyped-def]  # With hints it would be taken for a function of columns.
        commit()
        return n

    spark.udf.register("meanwhile", udf(meanwhile, "long"))


def while_analyzed(spark: SparkSession, table: Table, act: Callable[[Table], object]) -> None:
    """Registers one_row(): after Spark has looked tables up, and before it runs anything, another writer commits."""
    commit = once(table, act)

    class OneRow:
        @staticmethod
        def analyze():  # type: ignore[no-untyped-def]
            from pyspark.sql.types import LongType, StructType
            from pyspark.sql.udtf import AnalyzeResult

            commit()
            return AnalyzeResult(StructType().add("one", LongType()))

        def eval(self):  # type: ignore[no-untyped-def]
            yield (1,)

    spark.udtf.register("one_row", udtf(OneRow))


def append(*new: int) -> Callable[[Table], object]:
    return lambda table: table.append(pa.Table.from_pylist([{"id": n, "v": "new"} for n in new], schema=table.schema))


def test_self_join_sees_one_snapshot(spark: SparkSession, table: Table) -> None:
    """ST-1: the rows are deleted before the other side of the join is read."""
    while_running(spark, table, lambda found: found.delete("id > 0"))
    joined = spark.sql(f"""
        SELECT /*+ BROADCAST(b) */ a.id FROM lake.{table.name} a
        JOIN (SELECT meanwhile(id) id FROM lake.{table.name}) b ON a.id = b.id
    """)
    assert sorted(row.id for row in joined.collect()) == [1, 2, 3]
    assert ids(table) == []


@pytest.mark.since_spark("4.0", "table functions that are analysed")
def test_statement_looks_up_each_table_once(spark: SparkSession, table: Table) -> None:
    while_analyzed(spark, table, append(4))
    found = spark.sql(f"""
        SELECT (SELECT count(*) FROM lake.{table.name}) a, (SELECT count(id) FROM lake.{table.name} WHERE id > 0) b
        FROM one_row()
    """).collect()[0]
    assert found.a == found.b
    assert ids(table) == [1, 2, 3, 4]


@pytest.mark.since_spark("4.1", "a data frame looks its table up anew")
def test_dataframes_of_different_times_are_joined_at_one_snapshot(spark: SparkSession, table: Table) -> None:
    before = spark.table(f"lake.{table.name}")
    append(4)(table)
    after = spark.table(f"lake.{table.name}")
    assert before.join(after.withColumnRenamed("v", "w"), "id", "full").where("v IS NULL OR w IS NULL").collect() == []


def test_commit_does_not_move_pinned_handles(lake: Catalog, table: Table) -> None:
    """ST-1: a commit moves the handle that it is made with, and no other."""
    session, identifier = Session(lake, {}), tuple(table.iceberg.name())
    loaded = session.load(identifier)
    pin = Pin(identifier, loaded.iceberg.metadata_location)
    before = session.view(pin).snapshot
    loaded.delete("id = 1")
    assert session.view(pin).snapshot == before != session.load(identifier).view.snapshot


@pytest.mark.since_spark("4.0", "table functions that are analysed")
def test_merge_reads_one_snapshot_of_its_source(spark: SparkSession, table: Table, other: Table) -> None:
    while_analyzed(spark, other, append(13))
    spark.sql(f"""
        MERGE INTO lake.{table.name} t
        USING (SELECT a.id, b.v FROM lake.{other.name} a FULL JOIN lake.{other.name} b ON a.id = b.id, one_row()) s
        ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
    """)
    # Spark 4.1 looks tables up once more when a statement is analysed.
    assert ids(table) == [1, 2, 3, 11, 12, *([13] if spark.version.startswith("4.1") else [])]


@READS_ARE_KNOWN
def test_insert_that_missed_rows_of_its_table_conflicts(spark: SparkSession, table: Table) -> None:
    """ST-2, CP-5: it read the table, so it is a read and a write, and nothing is written."""
    while_running(spark, table, append(4))
    before = files(table)
    with pytest.raises(AnalysisException, match="was added") as error:
        spark.sql(f"INSERT INTO lake.{table.name} SELECT meanwhile(max(id)) + 1, 'max' FROM lake.{table.name}")
    assert [error.value.getCondition(), error.value.getSqlState()] == ["TABLEFORMAT_COMMIT_CONFLICT", "40001"]
    assert "Run the operation again" in str(error.value)
    assert "java" not in str(error.value)
    assert ids(table) == [1, 2, 3, 4]
    assert len(files(table) - before) == 1  # the other writer's


@READS_ARE_KNOWN
def test_insert_conflict_check_covers_every_scan_of_its_table(spark: SparkSession, table: Table) -> None:
    """CP-5: by its bounds, the new row matters to neither scan; then it matters to the second."""
    statement = f"""
        INSERT INTO lake.{table.name} SELECT id + 10, v FROM lake.{table.name} WHERE meanwhile(id) = id AND id < 3
        UNION ALL SELECT id + 10, v FROM lake.{table.name} WHERE id = 50
    """
    while_running(spark, table, append(60))
    spark.sql(statement)
    assert ids(table) == [1, 2, 3, 11, 12, 60]
    while_running(spark, table, append(50))
    with pytest.raises(AnalysisException, match="was added"):
        spark.sql(statement)
    assert ids(table) == [1, 2, 3, 11, 12, 50, 60]


def test_insert_from_old_snapshot_does_not_conflict(spark: SparkSession, table: Table) -> None:
    while_running(spark, table, append(4))
    spark.sql(f"""
        INSERT INTO lake.{table.name}
        SELECT meanwhile(id) + 10, v FROM lake.{table.name} VERSION AS OF {table.refresh().snapshot_id}
    """)
    assert ids(table) == [1, 2, 3, 4, 11, 12, 13]


def test_merge_source_that_missed_target_rows_conflicts(spark: SparkSession, table: Table) -> None:
    """ST-2, CP-5: the row matters to the source's scan and not to the target's."""
    while_running(spark, table, append(50))
    statement = f"""
        MERGE INTO lake.{table.name} t
        USING (SELECT meanwhile(id) - 49 id, v FROM lake.{table.name} WHERE id < 3 OR id = 50) s
        ON t.id = s.id AND t.id < 4 WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *
    """
    with pytest.raises(AnalysisException, match="was added") as error:
        spark.sql(statement)
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert ids(table) == [1, 2, 3, 50]
    spark.sql(statement)
    assert ids(table) == [-48, -47, 1, 2, 3, 50]


def test_update_subquery_that_missed_table_rows_conflicts(spark: SparkSession, table: Table) -> None:
    while_running(spark, table, append(50))
    with pytest.raises(AnalysisException, match="was added"):
        spark.sql(f"""
            UPDATE lake.{table.name} SET v = 'x'
            WHERE id = 1 AND id IN (SELECT meanwhile(id) FROM lake.{table.name} WHERE id > 0)
        """)
    assert ids(table) == [1, 2, 3, 50]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lake.{name} SET v = 'x' WHERE meanwhile(id) < 3",
        "DELETE FROM lake.{name} WHERE meanwhile(id) < 3",
        pytest.param(
            "MERGE INTO lake.{name} t USING (SELECT 2L id) s ON meanwhile(t.id) = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'x')",
            marks=READS_ARE_KNOWN,
        ),
        pytest.param(
            "INSERT INTO lake.{name} SELECT meanwhile(max(id)) + 1, 'max' FROM lake.{name}", marks=READS_ARE_KNOWN
        ),
        pytest.param(
            "INSERT INTO lake.{name} REPLACE WHERE id < 3 SELECT 1L, max(v) FROM lake.{name} WHERE meanwhile(id) > 0",
            marks=READS_ARE_KNOWN,
        ),
    ],
    ids=lambda statement: statement.split()[0],
)
@pytest.mark.parametrize("mode", [pytest.param("scan", marks=pytest.mark.long), "range"])
def test_concurrent_rollback_conflicts_with_statement(
    spark: SparkSession, table: Table, statement: str, mode: str
) -> None:
    """CP-22: a row is alive again that the statement has not seen."""
    before = table.snapshot_id
    table.delete("id = 2", mode=mode)
    while_running(spark, table, lambda found: found.rollback(snapshot_id=before))
    with pytest.raises(AnalysisException, match="is not in its history") as error:
        spark.sql(statement.format(name=table.name)).collect()
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert ids(table) == [1, 2, 3]


@READS_ARE_KNOWN
def test_overwrite_that_missed_rows_of_its_table_conflicts(spark: SparkSession, table: Table) -> None:
    while_running(spark, table, append(50))
    with pytest.raises(AnalysisException, match="was added"):
        spark.sql(f"""
            INSERT INTO lake.{table.name} REPLACE WHERE id = 1
            SELECT 1L, max(v) FROM lake.{table.name} WHERE meanwhile(id) > 0
        """)
    assert ids(table) == [1, 2, 3, 50]


@READS_ARE_KNOWN
def test_replace_from_itself_conflicts_with_concurrent_commit(spark: SparkSession, table: Table) -> None:
    """ST-3: the concurrent commit happened after the table was looked up and before the replacement began."""
    statement = f"REPLACE TABLE lake.{table.name} AS SELECT id + 10 id, v FROM lake.{table.name}, one_row()"
    while_analyzed(spark, table, append(4))
    with pytest.raises(AnalysisException, match="was changed by another commit") as error:
        spark.sql(statement)
    assert error.value.getSqlState() == "40001"
    assert ids(table) == [1, 2, 3, 4]
    spark.sql(statement)
    assert ids(table) == [11, 12, 13, 14]


def test_statement_does_not_read_cached_rows_of_another_snapshot(
    spark: SparkSession, table: Table, other: Table
) -> None:
    cached = spark.table(f"lake.{other.name}").cache()
    try:
        assert cached.count() == 2
        append(13)(other)
        cached.writeTo(f"lake.{table.name}").append()
        # Spark 4.1 also writes the cached rows.
        assert ids(table) == [1, 2, 3, 11, 12, *([] if spark.version.startswith("4.1") else [13])]
    finally:
        cached.unpersist()


def test_stream_joined_with_its_target_table(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """Each epoch is a separate statement."""
    source = tmp_path / "source"
    checkpoint = str(tmp_path / "checkpoint")

    def run() -> None:
        stream = spark.readStream.schema("n BIGINT").json(str(source))
        joined = stream.join(spark.table(f"lake.{table.name}").withColumnRenamed("id", "n"), "n")
        query = joined.selectExpr("n + 10 id", "v").writeStream.option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).toTable(f"lake.{table.name}").awaitTermination()

    spark.createDataFrame([Row(n=1), Row(n=2)]).coalesce(1).write.json(str(source), mode="append")
    run()
    spark.createDataFrame([Row(n=11)]).coalesce(1).write.json(str(source), mode="append")
    run()
    assert ids(table) == [1, 2, 3, 11, 12, 21]


@pytest.mark.since_spark("4.3", "ids of columns")
@pytest.mark.parametrize(
    "changes",
    [
        ("RENAME COLUMN a TO c", "RENAME COLUMN b TO a", "RENAME COLUMN c TO b"),
        ("DROP COLUMN a", "ADD COLUMN a STRING"),
        ("RENAME COLUMN s.x TO z", "RENAME COLUMN s.y TO x", "RENAME COLUMN s.z TO y"),
        ("DROP COLUMN l.element.x", "ADD COLUMN l.element.x INT"),
    ],
)
def test_dataframe_with_changed_columns_is_rejected(
    spark: SparkSession, namespace: str, changes: tuple[str, ...]
) -> None:
    """ST-8: it was run by name, and gave the values of other columns, and nulls."""
    name = f"lake.{namespace}.t"
    columns = "id BIGINT, a STRING, b STRING, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT, y: INT>>"
    spark.sql(f"CREATE TABLE {name} ({columns})")
    spark.sql(
        f"INSERT INTO {name} SELECT 1, 'a', 'b', named_struct('x', 1, 'y', 2), array(named_struct('x', 1, 'y', 2))"
    )
    frame = spark.table(name).where("a = 'a'")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    assert frame.count() == 1, "columns that came are nothing to it"
    for change in changes:
        spark.sql(f"ALTER TABLE {name} {change}")
    with pytest.raises(AnalysisException, match="field ID has changed"):
        frame.collect()
    with pytest.raises(AnalysisException, match="field ID has changed"):
        frame.writeTo(name).append()
    assert spark.table(name).count() == 1
