"""`option("replace-prefix", ...)`: new rows replace all rows with the same prefixes, in batches and in streams."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("n", pa.int32(), nullable=False),
        ("v", pa.string()),
    ]
)


COLUMNS = "id1 string, id2 long, n int, v string"


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Prefixes a1, a2 and b1 of two rows each."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2", "n"])
    created.append(
        pa.Table.from_pylist(
            [
                {"id1": id1, "id2": id2, "n": n, "v": "old"}
                for id1, id2 in (("a", 1), ("a", 2), ("b", 1))
                for n in (0, 1)
            ],
            schema=SCHEMA,
        )
    )
    return created


def rows(spark: SparkSession, table: Table) -> list[str]:
    """Rows such as "a1.0 old"."""
    found = sorted(f"{r.id1}{r.id2}.{r.n} {r.v}" for r in spark.table(f"lake.{table.name}").collect())
    by_python = table.refresh().scan().to_arrow().to_pylist()
    assert found == sorted(f"{r['id1']}{r['id2']}.{r['n']} {r['v']}" for r in by_python)
    return found


def test_replaced_prefixes_contain_only_the_new_rows(spark: SparkSession, table: Table) -> None:
    """RD-2: rows written with their range delete stay."""
    new = spark.createDataFrame([("a", 2, 5, "new"), ("c", 9, 0, "new"), ("a", 2, 6, "new")], COLUMNS)
    new.repartition(3).writeTo(f"lake.{table.name}").option("replace-prefix", "id1,id2").append()
    assert rows(spark, table) == [
        "a1.0 old",
        "a1.1 old",
        "a2.5 new",
        "a2.6 new",
        "b1.0 old",
        "b1.1 old",
        "c9.0 new",
    ]
    deletes = table.inspect.delete_files()
    assert deletes["file_format"].to_pylist() == ["RANGE_DELETES_PARQUET"]
    assert deletes["record_count"].to_pylist() == [2]


def test_many_prefixes_are_replaced_by_many_tasks(spark: SparkSession, table: Table) -> None:
    for value in ("x", "y"):
        columns = ("concat('k', id % 10) id1", "id % 2000 id2", "int(id / 2000) n", f"'{value}' v")
        rows = spark.range(20_000).selectExpr(*columns).repartition(4)
        rows.writeTo(f"lake.{table.name}").option("replace-prefix", "id1,id2").append()
    found = spark.table(f"lake.{table.name}").groupBy("v").count().collect()
    assert {row.v: row["count"] for row in found} == {"old": 6, "y": 20_000}
    assert table.refresh().inspect.delete_files()["record_count"].to_pylist() == [2000, 2000]


def test_prefix_must_be_leading_key_columns(spark: SparkSession, table: Table) -> None:
    new = spark.createDataFrame([("a", 7, 0, "new")], COLUMNS)
    with pytest.raises(AnalysisException, match=r"prefix \(id2\) is not a leading part of the key"):
        new.writeTo(f"lake.{table.name}").option("replace-prefix", "id2").append()
    with pytest.raises(AnalysisException, match="already overwrites"):
        new.writeTo(f"lake.{table.name}").option("replace-prefix", "id1").overwritePartitions()


def start(spark: SparkSession, table: Table, source: Path, checkpoint: Path, **options: str) -> StreamingQuery:
    return (
        spark.readStream.schema(COLUMNS)
        .json(str(source))
        .writeStream.option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
        .toTable(f"lake.{table.name}")
    )


def add(source: Path, name: str, *lines: str) -> None:
    source.mkdir(exist_ok=True)
    (source / name).write_text("\n".join(lines))


def test_stream_appends_and_is_exactly_once(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """CP-14: if Spark lost the record of an epoch, the epoch is not committed a second time."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    add(source, "1.json", '{"id1": "z", "id2": 1, "n": 0, "v": "one"}')
    start(spark, table, source, checkpoint).awaitTermination()
    add(source, "2.json", '{"id1": "z", "id2": 2, "n": 0, "v": "two"}')
    start(spark, table, source, checkpoint).awaitTermination()
    expected = [row for row in rows(spark, table) if row.startswith("z")]
    assert expected == ["z1.0 one", "z2.0 two"]
    snapshot_id = table.snapshot_id
    for record in (checkpoint / "commits").glob("*1*"):
        record.unlink()
    start(spark, table, source, checkpoint).awaitTermination()
    assert [row for row in rows(spark, table) if row.startswith("z")] == expected
    assert table.snapshot_id == snapshot_id


def test_stream_replaces_prefixes(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    add(source, "1.json", '{"id1": "a", "id2": 1, "n": 7, "v": "one"}')
    start(spark, table, source, checkpoint, **{"replace-prefix": "id1,id2"}).awaitTermination()
    assert rows(spark, table) == ["a1.7 one", "a2.0 old", "a2.1 old", "b1.0 old", "b1.1 old"]
    add(source, "2.json", '{"id1": "a", "id2": 1, "n": 8, "v": "two"}', '{"id1": "b", "id2": 1, "n": 0, "v": "two"}')
    start(spark, table, source, checkpoint, **{"replace-prefix": "id1,id2"}).awaitTermination()
    assert rows(spark, table) == ["a1.8 two", "a2.0 old", "a2.1 old", "b1.0 two"]


def test_unknown_stream_option_is_rejected(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    add(tmp_path / "in", "1.json", '{"id1": "a", "id2": 1, "n": 7, "v": "one"}')
    with pytest.raises(Exception, match=r"unknown option 'replaceprefix'.*Did you mean 'replace-prefix'"):
        start(spark, table, tmp_path / "in", tmp_path / "c", replaceprefix="id1").awaitTermination()


def test_complete_mode_overwrites_at_each_epoch(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.counts (id1 STRING, n BIGINT)")
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for name, expected in (("1.json", [("a", 1)]), ("2.json", [("a", 2)])):
        add(source, name, '{"id1": "a", "id2": 1, "n": 7, "v": "one"}')
        query = (
            spark.readStream.schema(COLUMNS)
            .json(str(source))
            .groupBy("id1")
            .count()
            .withColumnRenamed("count", "n")
            .writeStream.outputMode("complete")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .toTable(f"lake.{namespace}.counts")
        )
        query.awaitTermination()
        assert [tuple(row) for row in spark.table(f"lake.{namespace}.counts").collect()] == expected
