"""Statements whose rows come from data frames and temporary views that read the target table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from test_spark_transactions import READS_ARE_KNOWN, append, while_running

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
TARGET = {2: "t2", 3: "t3", 4: "t4"}
OTHER = {1: "o1", 2: "o2", 3: "o3"}
MERGE_INTO = pytest.mark.since_spark("4.0", "DataFrame.mergeInto")


def filled(lake: Catalog, namespace: str, name: str, rows: dict[int, str]) -> Table:
    created = lake.create_table((namespace, name), SCHEMA, key=["id"])
    created.append(pa.table({"id": list(rows), "v": list(rows.values())}, schema=SCHEMA))
    return created


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """The target: ids 2 to 4."""
    return filled(lake, namespace, "t", TARGET)


@pytest.fixture
def other(lake: Catalog, namespace: str) -> Table:
    """Ids 1 to 3."""
    return filled(lake, namespace, "o", OTHER)


def rows(table: Table) -> dict[int, str]:
    found = table.refresh().scan().to_arrow()
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def new_rows(spark: SparkSession, table: Table, other: Table) -> DataFrame:
    """The row of the other table that the target lacks: (1, o1)."""
    source, target = spark.table(f"lake.{other.name}").alias("x"), spark.table(f"lake.{table.name}").alias("y")
    return source.join(target, expr("x.id = y.id"), "left_anti")


def common_rows(spark: SparkSession, table: Table, other: Table) -> DataFrame:
    """Rows of both tables, one of them in a subquery: (2, o2t4) and (3, o3t4)."""
    newest = f"(SELECT max(v) FROM lake.{table.name})"
    return spark.sql(f"SELECT id, concat(v, {newest}) v FROM lake.{other.name} WHERE id > 1")


def own_rows(spark: SparkSession, table: Table, _other: Table) -> DataFrame:
    """Rows of the target joined with itself: (3, t3t2) and (4, t4t3)."""
    frame = spark.table(f"lake.{table.name}")
    return frame.alias("x").join(frame.alias("y"), expr("x.id = y.id + 1")).selectExpr("x.id", "concat(x.v, y.v) v")


SOURCES = {new_rows: {1: "o1"}, common_rows: {2: "o2t4", 3: "o3t4"}, own_rows: {3: "t3t2", 4: "t4t3"}}


def as_frame(frame: DataFrame) -> DataFrame:
    return frame


def as_view(frame: DataFrame) -> DataFrame:
    frame.createOrReplaceTempView("the_source")
    return frame.sparkSession.table("the_source")


def as_cached(frame: DataFrame) -> DataFrame:
    cached = frame.cache()
    cached.count()
    return cached


@pytest.fixture(params=SOURCES, ids=lambda source: source.__name__)
def source(request: pytest.FixtureRequest) -> Callable[..., DataFrame]:
    return request.param


@pytest.fixture(
    params=every(3, [as_frame, as_view, as_cached]),
    ids=lambda form: form.__name__,
)
def frame(
    spark: SparkSession, table: Table, other: Table, source: Callable[..., DataFrame], request: pytest.FixtureRequest
) -> Iterator[DataFrame]:
    yield request.param(source(spark, table, other))
    spark.catalog.clearCache()


@MERGE_INTO
def test_merge_into_with_dataframe_that_reads_the_target(
    table: Table, frame: DataFrame, source: Callable[..., DataFrame]
) -> None:
    """ST-9."""
    name = f"lake.{table.name}"
    merge = frame.alias("s").mergeInto(name, expr(f"{name}.id = s.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert rows(table) == {**TARGET, **SOURCES[source]}


def only(found: dict[int, str]) -> set[int]:
    return found.keys() & TARGET.keys()


def without(found: dict[int, str]) -> dict[int, str]:
    return {n: v for n, v in TARGET.items() if n not in found}


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", without),
        ("DELETE FROM {t} WHERE id IN (SELECT id FROM s)", without),
        ("UPDATE {t} SET v = 'u' WHERE id IN (SELECT id FROM s)", lambda s: {**TARGET, **dict.fromkeys(only(s), "u")}),
        ("UPDATE {t} SET v = (SELECT max(v) FROM s) WHERE id = 2", lambda s: {**TARGET, 2: max(s.values())}),
        ("INSERT INTO {t} SELECT id + 100, v FROM s", lambda s: {**TARGET, **{n + 100: s[n] for n in s}}),
        ("INSERT OVERWRITE {t} SELECT * FROM s", lambda s: s),
        ("INSERT INTO {t} REPLACE WHERE id > 0 SELECT * FROM s", lambda s: s),
        ("CREATE OR REPLACE TABLE {t} AS SELECT * FROM s", lambda s: s),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_statements_with_view_that_joins_the_target(
    spark: SparkSession, table: Table, other: Table, statement: str, wanted: Callable[[dict[int, str]], dict[int, str]]
) -> None:
    """ST-9."""
    for source, found in SOURCES.items():
        spark.sql(f"INSERT OVERWRITE lake.{table.name} VALUES (2, 't2'), (3, 't3'), (4, 't4')")
        source(spark, table, other).createOrReplaceTempView("s")
        spark.sql(statement.format(t=f"lake.{table.name}"))
        assert rows(table) == wanted(found), source.__name__


def test_writers_with_dataframe_that_reads_the_target(
    table: Table, frame: DataFrame, source: Callable[..., DataFrame]
) -> None:
    """ST-9."""
    found, name = SOURCES[source], f"lake.{table.name}"
    frame.selectExpr("id + 100 id", "v").writeTo(name).append()
    assert rows(table) == {**TARGET, **{n + 100: v for n, v in found.items()}}
    frame.where("id < 100").writeTo(name).option("replace-prefix", "id").append()
    assert rows(table) == {**TARGET, **{n + 100: v for n, v in found.items()}, **found}


def test_foreach_batch_merge_joined_with_its_target(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """ST-9: the usual `foreachBatch`."""
    name = f"lake.{table.name}"

    def merge(batch: DataFrame, _number: int) -> None:
        known = batch.alias("b").join(spark.table(name).alias("t"), expr("b.id = t.id"), "left")
        known.selectExpr("b.id", "concat_ws('+', t.v, b.v) v").createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""
            MERGE INTO {name} t USING batch s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        """)

    for batch in ([(4, "a"), (5, "b")], [(5, "c")]):
        new = spark.createDataFrame(batch, "id long, v string").coalesce(1)
        new.write.json(str(tmp_path / "source"), mode="append")
        stream = spark.readStream.schema("id long, v string").json(str(tmp_path / "source"))
        writer = stream.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert rows(table) == {**TARGET, 4: "t4+a", 5: "b+c"}


@READS_ARE_KNOWN
def test_dataframe_that_missed_target_rows_conflicts(spark: SparkSession, table: Table, other: Table) -> None:
    """ST-2, ST-9: what the data frame reads of the target, the statement has read."""
    name = f"lake.{table.name}"
    while_running(spark, table, append(1))
    source = new_rows(spark, table, other).selectExpr("meanwhile(id) id", "v").alias("s")
    with pytest.raises(AnalysisException, match="was added") as error:
        source.mergeInto(name, expr(f"{name}.id = s.id")).whenNotMatched().insertAll().merge()
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert rows(table) == {**TARGET, 1: "new"}


def past(spark: SparkSession, table: Table, snapshot_id: int) -> dict[str, DataFrame]:
    """The table at an earlier snapshot, with each spelling of time travel that Spark has."""
    name = f"lake.{table.name}"
    return {
        "version": spark.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot_id}").where("id > 0"),
        "option": spark.read.option("versionAsOf", str(snapshot_id)).table(name).selectExpr("id", "v"),
        "join": spark.sql(f"SELECT x.* FROM {name} VERSION AS OF {snapshot_id} x LEFT JOIN {name} y ON x.id = y.id"),
        "files": spark.sql(f"SELECT record_count id, 'files' v FROM {name}.files VERSION AS OF {snapshot_id}"),
    }


@pytest.mark.parametrize(
    "how", ["version", pytest.param("option", marks=pytest.mark.since_spark("4.0", "versionAsOf")), "join", "files"]
)
def test_dataframe_of_earlier_snapshot_is_written_unchanged(
    spark: SparkSession, lake: Catalog, namespace: str, table: Table, how: str
) -> None:
    """ST-9: from 4.2 on, Spark looked up the table again by name, and wrote the current rows."""
    before = table.snapshot_id
    table.delete("id < 4")
    assert before is not None
    wanted = {3: "files"} if how == "files" else TARGET
    copy = lake.create_table((namespace, "copy"), SCHEMA)
    past(spark, table, before)[how].writeTo(f"lake.{copy.name}").append()
    assert rows(copy) == wanted
    past(spark, table, before)[how].writeTo(f"lake.{namespace}.made").create()
    assert rows(lake.load_table((namespace, "made"))) == wanted


@MERGE_INTO
def test_merge_from_earlier_snapshot_of_the_target(spark: SparkSession, table: Table) -> None:
    """ST-9: deleted rows are brought back."""
    before, name = table.snapshot_id, f"lake.{table.name}"
    table.delete("id < 4")
    assert before is not None
    source = past(spark, table, before)["join"].alias("s")
    source.mergeInto(name, expr(f"{name}.id = s.id")).whenNotMatched().insertAll().merge()
    assert rows(table) == TARGET
