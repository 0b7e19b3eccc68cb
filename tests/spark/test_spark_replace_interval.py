"""Intervals and conditions that a Spark write replaces: rows outside of them are rejected."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("day", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
COLUMNS = "day int, id long"


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Days 0 to 5, one file each."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["day", "id"], partition_by=["day"])
    created.append(pa.table({"day": range(6), "id": range(6)}, SCHEMA))
    return created


def frame(spark: SparkSession, *rows: tuple[int, int]) -> DataFrame:
    return spark.createDataFrame(list(rows), COLUMNS)


def rows(table: Table) -> list[tuple[int, int]]:
    return sorted((row["day"], row["id"]) for row in table.refresh().scan().to_arrow().to_pylist())


def test_replace_interval_option(spark: SparkSession, table: Table) -> None:
    """RP-19, RP-24: days without new rows become empty, whole files are removed, and a row outside is rejected."""
    options = {"replace-interval": "day", "lower": "2", "upper": "5"}
    writer = frame(spark, (3, 30), (3, 31)).writeTo(f"lake.{table.name}")
    writer.options(**options).append()
    kept = [(0, 0), (1, 1), (3, 30), (3, 31), (5, 5)]
    assert rows(table) == kept
    assert table.inspect.delete_files().num_rows == 0

    outside = frame(spark, (2, 20), (5, 50), (1, 10))
    with pytest.raises(AnalysisException, match=r"2 of 3 rows for .* are outside the interval 2 <= day < 5") as error:
        outside.writeTo(f"lake.{table.name}").options(**options).append()
    assert error.value.getCondition() == "TABLEFORMAT_ROWS_REFUSED"
    assert "day = 5" in str(error.value)
    assert rows(table) == kept
    spark.sql(f"CREATE TABLE lake.{table.name}_refused (day INT, id BIGINT, _refused_reason STRING)")
    diverting = {"on-refused": "divert", "refused-rows-table": f"{table.name}_refused"}
    outside.coalesce(1).writeTo(f"lake.{table.name}").options(**options, **diverting).append()
    assert rows(table) == [(0, 0), (1, 1), (2, 20), (5, 5)]
    refused = spark.table(f"lake.{table.name}_refused").collect()
    assert sorted((row.day, row._refused_reason) for row in refused) == [
        (day, "is outside the interval 2 <= day < 5") for day in (1, 5)
    ]
    for wrong, message in (
        ({"replace-interval": "dya", "lower": "1"}, "dya"),
        ({"replace-interval": "day"}, "needs lower, upper or both"),
        ({"upper": "1"}, "requires replace-interval"),
        ({"replace-interval": "day", "lower": "x"}, "whole number"),
        ({**options, "replace-prefix": "day"}, "cannot be combined"),
        ({"allow-outside": "true"}, "requires an overwrite"),
    ):
        with pytest.raises(AnalysisException, match=message):
            outside.writeTo(f"lake.{table.name}").options(**wrong).append()


def test_stream_replaces_its_interval_once_per_epoch(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """CP-14, RP-19: an epoch that is run again does not remove rows that were added in between."""
    source = tmp_path / "in"
    source.mkdir()

    def run() -> None:
        stream = spark.readStream.schema(COLUMNS).json(str(source)).writeStream
        options = {"replace-interval": "day", "lower": "2", "upper": "5"}
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).options(**options)
        stream.trigger(availableNow=True).toTable(f"lake.{table.name}").awaitTermination()

    (source / "1.json").write_text('{"day": 4, "id": 40}')
    run()
    assert rows(table) == [(0, 0), (1, 1), (4, 40), (5, 5)]
    table.append(pa.table({"day": [3], "id": [3]}, SCHEMA))
    for record in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        record.unlink()
    run()
    assert rows(table) == [(0, 0), (1, 1), (3, 3), (4, 40), (5, 5)]


def test_replace_interval_procedure_with_a_source_table(spark: SparkSession, table: Table, lake: Catalog) -> None:
    """PR-21"""
    source = lake.create_table(f"{table.name}_new", SCHEMA)
    source.append(pa.table({"day": [3, 4], "id": [7, 8]}, SCHEMA))
    call = "CALL lake.system.replace_interval('{}', source => 'lake.{}', on => array('day'), lower => {}, upper => 5)"
    row = spark.sql(call.format(table.name, source.name, 2)).first()
    assert row is not None
    assert (row.added_rows_count, row.deleted_rows_count, row.added_delete_files_count) == (2, 3, 0)
    assert rows(table) == [(0, 0), (1, 1), (3, 7), (4, 8), (5, 5)]
    with pytest.raises(AnalysisException, match="1 of 2 rows do not fit"):
        spark.sql(call.format(table.name, source.name, 4))


def test_rows_outside_of_the_condition_are_refused(spark: SparkSession, table: Table) -> None:
    """RP-24: for REPLACE WHERE and overwrite(condition), by bounds if they decide, otherwise by rows."""
    from pyspark.sql.functions import expr

    name = f"lake.{table.name}"
    replace_where = (
        f"INSERT INTO {name} REPLACE WHERE day >= 2 AND id < 100 SELECT day, id FROM VALUES {{}} AS v(day, id)"
    )
    spark.sql(replace_where.format("(2, 20), (4, 40L)"))
    assert rows(table) == [(0, 0), (1, 1), (2, 20), (4, 40)]
    with pytest.raises(AnalysisException, match=r"2 of 4 rows for .* are outside the overwritten rows"):
        spark.sql(replace_where.format("(2, 20L), (4, 40), (1, 10), (2, 100)"))
    assert rows(table) == [(0, 0), (1, 1), (2, 20), (4, 40)]
    writer = frame(spark, (1, 10), (3, 30)).writeTo(name)
    with pytest.raises(AnalysisException, match="1 of 2 rows"):
        writer.overwrite(expr("day >= 2"))
    with pytest.raises(AnalysisException, match=r"are outside the overwritten rows, FALSE\. Nothing was"):
        writer.overwrite(expr("false"))
    frame(spark, (1, 10), (3, 30)).writeTo(name).option("allow-outside", "true").overwrite(expr("day >= 2"))
    assert rows(table) == [(0, 0), (1, 1), (1, 10), (3, 30)]
