"""Spark statements whose cost does not depend on the rows: prefix deletes, the plan of many files; and one MERGE."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from measuring import Contender, Timing, against_target, heading, show, show_all
from nine_million_rows import adopt, benchmark_directory, new_table
from spark_measuring import CATALOG, Stopwatch, race_in_spark, spark_session
from test_planning_bench import small_files
from wide_rows import wide_rows

import tableformat as tf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS = 15
_WARM_UPS = 5
_FILES = 10_000
_MATCHED = 100_000
_NEW = 1_000
_MERGES = 3


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark-statements") / "warehouse"


@pytest.fixture(scope="module")
def spark(warehouse: Path) -> Iterator[SparkSession]:
    with spark_session(warehouse) as session:
        yield session


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, warehouse: Path) -> tf.Catalog:
    opened = tf.open_catalog(str(warehouse))
    opened.create_namespace("statements")
    return opened


def test_delete_by_prefix(spark: SparkSession, catalog: tf.Catalog, tmp_path: Path) -> None:
    base = wide_rows(benchmark_directory(tmp_path))
    base.copy(catalog, "statements.deletes")
    numbers = itertools.count()

    def delete(_: None) -> None:
        number = next(numbers)
        spark.sql(f"DELETE FROM {CATALOG}.statements.deletes WHERE id1 = 'c{number % 100:03}' AND id2 = {number}")

    contenders = {
        "DELETE by prefix": Contender(delete),
        "SELECT 1": Contender(lambda _: spark.sql("SELECT 1").collect()),
    }
    timings = race_in_spark(Stopwatch(spark), contenders, rounds=_ROUNDS, warm_ups=_WARM_UPS)
    heading(f"DELETE of a prefix of the key, {base.row_count:,} rows")
    show_all(timings)
    against_target("DELETE by prefix", timings["DELETE by prefix"].wall * 1000, 100, "ms")
    against_target("DELETE by prefix, CPU time", timings["DELETE by prefix"].cpu * 1000, 100, "ms")


def test_plan_of_ten_thousand_files(spark: SparkSession, warehouse: Path) -> None:
    """From the DataFrame to its Spark tasks; each first plan is of a table that no process has read."""
    numbers = itertools.count()
    files = list(small_files(_FILES))
    adopt(new_table(warehouse), files)

    def another_table() -> str:
        name = f"statements.plan{next(numbers)}"
        other = tf.open_catalog(str(warehouse)).create_table(name, new_schema, key=("id1", "id2", "num_cal"))
        adopt(other, files)
        return name

    new_schema = tf.open_catalog(str(warehouse)).load_table("bench.calendars").schema

    def plan(name: str, where: str = "true") -> None:
        assert task_count(spark.table(f"{CATALOG}.{name}").where(where)) > 0

    contenders = {
        "first plan": Contender(plan, another_table),
        "repeated plan": Contender(lambda _: plan("bench.calendars")),
        "plan with a filter, one file": Contender(lambda _: plan("bench.calendars", "id1 = 'partner-05000'")),
    }
    timings = race_in_spark(Stopwatch(spark), contenders, rounds=_ROUNDS, warm_ups=_WARM_UPS)
    heading(f"planning of {_FILES:,} files in Spark")
    show_all(timings)
    for name in contenders:
        against_target(name, timings[name].wall, 1.0, "s")
        against_target(f"{name}, CPU time", timings[name].cpu, 1.0, "s")


def task_count(frame: DataFrame) -> int:
    """Plans the frame as far as its tasks, and runs none."""
    return int(frame._jdf.queryExecution().executedPlan().execute().getNumPartitions())


def test_merge(spark: SparkSession, catalog: tf.Catalog, tmp_path: Path) -> None:
    """All files have matching rows. Each merge starts from the table that the previous one has left."""
    base = wide_rows(benchmark_directory(tmp_path))
    base.copy(catalog, "statements.merges")
    merges = f"{CATALOG}.statements.merges"
    changes = (
        spark.read.parquet(*base.paths)
        .where(f"qty % {base.row_count // _MATCHED} = 7")
        .selectExpr("id1", "id2", "name", "qty", "0D val", "ts")
        .unionByName(
            spark.range(base.row_count, base.row_count + _NEW).selectExpr(
                "'new' id1", "id id2", "'new' name", "id qty", "1D val", "timestamp '2027-01-01' ts"
            )
        )
    )
    changes.cache().createOrReplaceTempView("changes")
    same = "t.qty = s.qty AND t.id1 = s.id1"
    merge = (
        f"MERGE INTO {merges} t USING changes s ON {same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    join = f"SELECT * FROM changes s LEFT JOIN {merges} t ON {same}"

    def find(_: None) -> None:
        spark.sql(join).write.format("noop").mode("overwrite").save()

    contenders = {"MERGE": Contender(lambda _: spark.sql(merge)), "the join that finds its rows": Contender(find)}
    timings = {name: Timing() for name in contenders}
    stopwatch = Stopwatch(spark)
    for _ in range(_MERGES):
        for name, contender in contenders.items():
            stopwatch.time(contender, timings[name])
    heading(f"MERGE of {_MATCHED:,} rows that match and {_NEW:,} new ones into {base.row_count:,}")
    show_all(timings)
    rows = spark.table(merges).count()
    show("rows afterwards", f"{rows:,}")
    assert rows == base.row_count + _NEW
