"""Range partitions from Spark: uncovered rows are rejected individually, in batches and in streams."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tableformat as tf
from tableformat import Catalog, Table
from tableformat.errors import InvalidArgumentError
from tableformat.testing.table_builder import BuiltTable, create, split_step

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("year", pa.int32(), nullable=False),
        ("v", pa.string()),
    ]
)


COLUMNS = "id long, year int, v string"


YEARS = tf.RangePartitions(on=["year"], bounds=[(2011, 2014), (2016, 2018)], splits=[2012])


def make(lake: Catalog, namespace: str, ranges: tf.RangePartitions, name: str = "t") -> Table:
    return lake.create_table((namespace, name), SCHEMA, key=["id", "year"], range_partitions=ranges)


def refused_table(spark: SparkSession, namespace: str) -> str:
    name = f"lake.{namespace}.refused"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, year INT, v STRING, _refused_reason STRING)")
    return name


def frame(spark: SparkSession, *rows: tuple[int, int]) -> DataFrame:
    return spark.createDataFrame([(key, year, f"{key}/{year}") for key, year in rows], COLUMNS)


def rows(table: Table) -> list[tuple[int, int]]:
    found = table.refresh().scan(columns=["id", "year"]).to_arrow().to_pylist()
    return sorted((row["id"], row["year"]) for row in found)


def stored_files(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.location.removeprefix("file://")).rglob("*.parquet"))


def test_uncovered_rows_fail_every_statement(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-5, RP-21: the error counts the rows of all tasks and states the reason; nothing is stored, and no file is
    left."""
    table = make(lake, namespace, YEARS)
    name = f"lake.{table.name}"
    frame(spark, (1, 2011), (2, 2017)).writeTo(name).append()
    before, files = rows(table), stored_files(table)
    outside = frame(spark, (3, 2014), (4, 2011), (5, 2015), (6, 2018), (7, 2031)).repartition(2)
    outside.createOrReplaceTempView("outside")
    with pytest.raises(AnalysisException) as error:
        outside.writeTo(name).append()
    assert error.value.getCondition() == "TABLEFORMAT_UNCOVERED_ROWS"
    assert f"4 of 5 rows are outside all range partitions of {table.name}" in str(error.value)
    assert "no range partition covers year = 2031; the nearest is [2016, 2018)" in str(error.value)
    assert "no range partition covers year = 2014; the nearest is [2011, 2014)" in str(error.value)
    for statement in (
        f"INSERT INTO {name} SELECT * FROM outside",
        f"INSERT OVERWRITE {name} SELECT * FROM outside",
        f"UPDATE {name} SET year = 2019 WHERE id = 1",
        f"MERGE INTO {name} t USING outside s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ):
        with pytest.raises(AnalysisException, match="are outside all range partitions"):
            spark.sql(statement)
    assert rows(table) == before
    assert files
    assert stored_files(table) == files


def test_files_do_not_cross_range_bounds(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-7: rows on both sides of a gap, a split and a step in one task, although the key does not begin with the range
    column: one file for each partition."""
    table = make(lake, namespace, YEARS)
    years = (2013, 2017, 2011, 2012, 2016)
    some = frame(spark, *((key, year) for key in range(4) for year in years)).coalesce(1)
    some.writeTo(f"lake.{table.name}").append()
    listed = table.refresh().range_partitions.list().to_pylist()
    assert [(each["partition"], each["file_count"], each["straddling_file_count"]) for each in listed] == [
        ("[2011, 2012)", 1, 0),
        ("[2012, 2014)", 1, 0),
        ("[2016, 2018)", 1, 0),
    ]
    assert len(rows(table)) == 20
    spark.sql(f"UPDATE lake.{table.name} SET year = 2013 WHERE id = 2 AND year = 2016")
    assert table.refresh().range_partitions.list()["straddling_file_count"].to_pylist() == [0, 0, 0]


TYPES: tuple[tuple[pa.DataType, list[Any], tuple[Any, Any]], ...] = (
    (pa.string(), ["", "a", "a\0", "b", "é", "ｚ", "𐍈"], ("a\0", "𐍈")),
    (
        pa.decimal128(12, 2),
        [Decimal("-3.50"), Decimal("0.00"), Decimal("9999999999.99")],
        (Decimal("-3.50"), Decimal(1)),
    ),
    (pa.binary(), [b"", b"\x00", b"\x7f\xff", b"\x80"], (b"\x00", b"\x80")),
    (
        pa.uuid(),
        [UUID(int=number << 120) for number in (1, 127, 128, 255)],
        (UUID(int=127 << 120), UUID(int=255 << 120)),
    ),
    (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)], (date(1970, 1, 1), date(2024, 2, 29))),
    (pa.bool_(), [False, True], (None, True)),
    (pa.timestamp("us"), [datetime(1969, 1, 1), datetime(2024, 1, 1)], (datetime(1970, 1, 1), None)),
    (pa.int64(), [-(2**63), -1, 5, 6, 2**63 - 1], (5, 2**63 - 1)),
    (pa.int32(), [-(2**31), 0, 5, 2**31 - 1], (-(2**31), 5)),
)


def test_tasks_reject_the_same_rows_as_python(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-2: the order of values of each type, and of two columns together, is the same in both."""
    for number, (arrow_type, values, bound) in enumerate(TYPES):
        schema = pa.schema([pa.field("k", arrow_type, nullable=False), pa.field("n", pa.int64(), nullable=False)])
        ranges = tf.RangePartitions(
            on=["k", "n"], bounds=[tf.bound(lower=bound[0], upper=bound[1] and (bound[1], 1), upper_inclusive=True)]
        )
        source = lake.create_table((namespace, f"source{number}"), schema)
        source.append(
            pa.table({"k": pa.array(values * 3, arrow_type), "n": [n for n in range(3) for _ in values]}, schema)
        )
        by_python, by_spark = (
            lake.create_table((namespace, f"{who}{number}"), schema, key=["n", "k"], range_partitions=ranges)
            for who in ("python", "spark")
        )
        refused = lake.create_table((namespace, f"refused{number}"), schema)
        result = by_python.append(source.scan().to_arrow(), on_refused="divert")
        options = {"on-refused": "divert", "refused-rows-table": refused.name}
        spark.table(f"lake.{source.name}").writeTo(f"lake.{by_spark.name}").options(**options).append()
        kept = [str(sorted(map(str, table.refresh().scan().to_arrow().to_pylist()))) for table in (by_python, by_spark)]
        assert kept[0] == kept[1], arrow_type
        assert result.refused is not None
        assert refused.refresh().scan().count() == len(result.refused) > 0


STEPS: tuple[dict[str, Any], ...] = (
    {"step": "1 day", "time_zone": "America/Sao_Paulo"},
    {"step": "1 week", "time_zone": "Europe/Berlin"},
    {"step": "2 months", "origin": datetime(1969, 11, 1, tzinfo=UTC)},
    {"step": "7 hours"},
    {"step": "1 year", "time_zone": "Pacific/Apia"},
)


def test_tasks_add_the_same_steps_as_python(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-4, RP-9: rows around changes of clocks add the same steps from both, and no file crosses a border."""
    schema = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), pa.field("n", pa.int64())])
    moments = [
        *(datetime(2018, 2, day, hour, 30, tzinfo=UTC) for day in (17, 18) for hour in range(0, 24, 1)),
        *(datetime(2018, 11, 4, hour, 30, tzinfo=UTC) for hour in range(0, 24, 1)),
        *(datetime(2011, 12, day, hour, 30, tzinfo=UTC) for day in (29, 30, 31) for hour in range(0, 24, 2)),
        *(datetime(1969, month, 1, tzinfo=UTC) for month in range(1, 13)),
    ]
    source = lake.create_table((namespace, "source"), schema)
    source.append(pa.table({"ts": moments, "n": range(len(moments))}, schema))
    for number, options in enumerate(STEPS):
        ranges = tf.RangePartitions(on=["ts"], on_demand=True, max_new_per_commit=1000, **options)
        by_python, by_spark = (
            lake.create_table(
                (namespace, f"{who}{number}"), schema, key=["n"], partition_by=["bucket(2, n)"], range_partitions=ranges
            )
            for who in ("python", "spark")
        )
        by_python.append(source.scan().to_arrow())
        spark.table(f"lake.{source.name}").writeTo(f"lake.{by_spark.name}").append()
        columns = ["partition", "record_count", "straddling_file_count"]
        listed = [table.refresh().range_partitions.list().select(columns) for table in (by_python, by_spark)]
        assert listed[1].to_pylist() == listed[0].to_pylist(), options
        assert not any(listed[1]["straddling_file_count"].to_pylist())


def test_on_demand_limits_and_default_partition(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-9: an append adds its steps, not outside of the limits, and not more than a commit may. RP-10: a default
    partition takes the rest."""
    demanded = tf.RangePartitions(
        on=["year"], bounds=[(2020, 2021)], step=1, on_demand=True, on_demand_limits=(2000, 2030), max_new_per_commit=3
    )
    table = make(lake, namespace, demanded, "demanded")
    frame(spark, (1, 2020), (2, 2024), (3, 2001)).writeTo(f"lake.{table.name}").append()
    bounds = table.refresh().range_partitions.list()["partition"].to_pylist()
    assert bounds == ["[2001, 2002)", "[2020, 2021)", "[2024, 2025)"]
    with pytest.raises(
        AnalysisException, match=r"1 of 2 rows.*year = 2030; the nearest is \[2000, 2030\), where steps"
    ):
        frame(spark, (1, 2022), (1, 2030)).writeTo(f"lake.{table.name}").append()
    with pytest.raises(AnalysisException, match="4 new range partitions"):
        frame(spark, *((1, year) for year in range(2005, 2009))).writeTo(f"lake.{table.name}").append()
    rest = make(lake, namespace, tf.RangePartitions(on=["year"], bounds=[(2011, 2012)], default=True), "rest")
    frame(spark, (1, 1999), (2, 2011), (3, 2031)).coalesce(1).writeTo(f"lake.{rest.name}").append()
    listed = rest.refresh().range_partitions.list().to_pylist()
    assert [(each["state"], each["record_count"], each["straddling_file_count"]) for each in listed] == [
        ("live", 1, 0),
        ("default", 2, 0),
    ]


def test_rejected_row_diverts_its_whole_prefix(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-22, CP-24: if one row of a prefix is rejected, no row of the prefix is replaced, in any task."""
    table = make(lake, namespace, YEARS)
    name, refused = f"lake.{table.name}", refused_table(spark, namespace)
    frame(spark, (1, 2011), (1, 2012), (2, 2011)).writeTo(name).append()
    options = {"on-refused": "divert", "refused-rows-table": f"{namespace}.refused"}
    new = frame(spark, (1, 2013), (1, 2016), (1, 2031), (2, 2012), (3, 2017)).repartition(3)
    new.writeTo(name).options(**options, **{"replace-prefix": "id"}).append()
    assert rows(table) == [(1, 2011), (1, 2012), (2, 2012), (3, 2017)]
    found = sorted((row.id, row.year, row._refused_reason) for row in spark.table(refused).collect())
    assert found == [
        (1, 2013, "another row with the same id was rejected"),
        (1, 2016, "another row with the same id was rejected"),
        (1, 2031, "no range partition covers year = 2031; the nearest is [2016, 2018)"),
    ]
    live = (
        *table.inspect.data_files()["file_path"].to_pylist(),
        *table.inspect.delete_files()["file_path"].to_pylist(),
    )
    assert stored_files(table) == sorted(Path(path).name for path in live)

    new.writeTo(name).options(**options).append()
    assert len(rows(table)) == 8
    spark.createDataFrame([(9, 1999, "")], COLUMNS).writeTo(name).options(**options).append()
    assert len(rows(table)) == 8
    assert spark.table(refused).count() == 5


def test_invalid_refused_rows_options_are_rejected(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Invalid options are rejected before a row is written."""
    table = make(lake, namespace, YEARS)
    lake.create_table((namespace, "narrow"), pa.schema([("id", pa.int64())]))
    for options, message in (
        ({"on-refused": "divert"}, "needs refused-rows-table"),
        ({"refused-rows-table": f"{namespace}.narrow"}, "requires on-refused = 'divert'"),
        ({"on-refused": "drop"}, "on-refused must be one of 'fail', 'divert'"),
        ({"on-refused": "divert", "refused-rows-table": f"{namespace}.narrow"}, "year"),
        ({"on-refused": "divert", "refused-rows-table": table.name}, "cannot be written to the table itself"),
        ({"on-refused": "divert", "refused-rows-table": f"{namespace}.nowhere"}, "nowhere"),
    ):
        with pytest.raises(AnalysisException, match=message):
            frame(spark, (1, 2011)).writeTo(f"lake.{table.name}").options(**options).append()
    assert rows(table) == []


def start(spark: SparkSession, table: Table, directory: Path, **options: str) -> StreamingQuery:
    return (
        spark.readStream.schema(COLUMNS)
        .json(str(directory / "in"))
        .writeStream.option("checkpointLocation", str(directory / "checkpoint"))
        .options(**options)
        .trigger(availableNow=True)
        .toTable(f"lake.{table.name}")
    )


def add(directory: Path, name: str, *given: tuple[int, int]) -> None:
    (directory / "in").mkdir(exist_ok=True)
    lines = [f'{{"id": {key}, "year": {year}, "v": "{name}"}}' for key, year in given]
    path = directory / "in" / f"{name}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (int(name), int(name)))


def test_stream_diverts_each_epoch_once(spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path) -> None:
    """RP-22, CP-14: a repeated epoch appends neither its rows nor the rejected ones a second time."""
    table = make(lake, namespace, YEARS)
    refused = refused_table(spark, namespace)
    options = {"on-refused": "divert", "refused-rows-table": refused}
    for name, year in (("1", 2031), ("2", 2032)):
        add(tmp_path, name, (int(name), year), (int(name), 2011))
        start(spark, table, tmp_path, **options).awaitTermination()
    for record in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        record.unlink()
    start(spark, table, tmp_path, **options).awaitTermination()
    assert rows(table) == [(1, 2011), (2, 2011)]
    assert sorted(row.year for row in spark.table(refused).collect()) == [2031, 2032]


def test_stream_continues_after_a_range_is_added(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """RP-21: the tasks of each epoch know the current ranges. An uncovered row stops the query; after a restart it
    continues from that epoch."""
    table = make(lake, namespace, YEARS)
    for number in range(3):
        add(tmp_path, str(number), (number, (2011, 2020, 2021)[number]))

    def files_one_by_one() -> StreamingQuery:
        return (
            spark.readStream.schema(COLUMNS)
            .option("maxFilesPerTrigger", 1)
            .json(str(tmp_path / "in"))
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .toTable(f"lake.{table.name}")
        )

    table.range_partitions.add(2020, 2021)
    query = files_one_by_one()
    with pytest.raises(Exception, match=r"1 of 1 rows are outside all range partitions.*year = 2021"):
        query.awaitTermination(60)
    assert rows(table) == [(0, 2011), (1, 2020)]
    table.range_partitions.add(2021, 2022)
    query = files_one_by_one()
    query.processAllAvailable()
    table.refresh().range_partitions.add(2022, 2023)
    add(tmp_path, "4", (4, 2022))
    query.processAllAvailable()
    query.stop()
    assert rows(table) == [(0, 2011), (1, 2020), (2, 2021), (4, 2022)]


def listed(spark: SparkSession, name: str) -> list[str]:
    return [row.partition for row in spark.sql(f"SELECT `partition` FROM {name}.range_partitions").collect()]


def test_range_partitions_in_table_properties(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-23: CREATE TABLE, also AS SELECT, whose rows are checked against the ranges, and REPLACE TABLE."""
    name = f"lake.{namespace}.t"
    properties = (
        "TBLPROPERTIES ('tableformat.key' = 'id', 'range-partitions.on' = 'year', "
        "'range-partitions.bounds' = '[2011, 2014), VALUE = 2020', 'range-partitions.splits' = '2012'{more})"
    )
    columns = "(id BIGINT NOT NULL, year INT NOT NULL)"
    spark.sql(f"CREATE TABLE {name} {columns} {properties.format(more='')}")
    assert listed(spark, name) == ["[2011, 2012)", "[2012, 2014)", "VALUE = 2020"]
    assert not any(key.startswith("range-partitions.") for key in lake.load_table((namespace, "t")).properties)
    with pytest.raises(AnalysisException, match=r"unknown option 'bound'.*Did you mean 'bounds'"):
        spark.sql(
            f"CREATE TABLE {name}2 {columns} TBLPROPERTIES ('range-partitions.on'='id','range-partitions.bound'='')"
        )
    with pytest.raises(AnalysisException, match="can only be set in CREATE TABLE"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('range-partitions.default' = 'true')")

    stepped = (
        "'tableformat.key' = 'year', 'range-partitions.on' = 'year', 'range-partitions.bounds' = '[2010, 2020)', "
        "'range-partitions.step' = '10'"
    )
    rows_of = "SELECT int(id) year FROM range({}, {})"
    with pytest.raises(AnalysisException, match="2 of 3 rows are outside all range partitions"):
        spark.sql(f"CREATE TABLE {name}3 TBLPROPERTIES ({stepped}) AS {rows_of.format(2019, 2022)}")
    assert not lake.table_exists((namespace, "t3"))
    spark.sql(f"CREATE TABLE {name}3 TBLPROPERTIES ({stepped}) AS {rows_of.format(2010, 2015)}")
    made = lake.load_table((namespace, "t3"))
    assert made.scan().count() == 5
    assert [str(field.transform) for field in made.metadata.spec().fields] == ["truncate[10]"]
    spark.sql(f"CREATE OR REPLACE TABLE {name} TBLPROPERTIES ({stepped}) AS {rows_of.format(2011, 2013)}")
    assert listed(spark, name) == ["[2010, 2020)"]
    assert [
        tuple(row) for row in spark.sql(f"SELECT record_count, lower, upper FROM {name}.range_partitions").collect()
    ] == [(2, 2010, 2020)]
    spark.sql(f"CREATE TABLE lake.{namespace}.plain (a INT)")
    with pytest.raises(AnalysisException, match="no range partitions"):
        spark.sql(f"SELECT * FROM lake.{namespace}.plain.range_partitions")


def test_delete_of_only_retired_rows_is_recorded(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-13: in a table without a file that may match, and if Spark finds the rows."""
    columns = pa.schema([pa.field("year", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    years = tf.RangePartitions(on=["year"], bounds=[(2011, 2013)], splits=[2012])
    for number, condition in enumerate(["year = 2011", "id > 1 AND year > 2010", "id % 5 = 2"]):
        name = (namespace, f"retired_{number}")
        table = lake.create_table(name, columns, key=["year", "id"], range_partitions=years)
        table.append(pa.table({"year": pa.array([2011, 2012], pa.int32()), "id": [2, 1]}, columns))
        tag = table.range_partitions.retire(2011, 2012).tag
        assert tag is not None
        spark.sql(f"DELETE FROM lake.{table.name} WHERE {condition}")
        with pytest.raises(InvalidArgumentError, match="1 deletes that may affect"):
            table.refresh().range_partitions.restore(tag)
        table.range_partitions.restore(tag, deletes="ignore")
        assert spark.table(f"lake.{table.name}").count() == 2


def test_procedures_alter_range_partitions(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """PR-20: each change by values or by text, also as a dry run."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("year", pa.int32(), nullable=False)])
    table = lake.create_table((namespace, "t"), columns, key=["year", "id"])
    name = f"lake.{table.name}"

    def call(procedure: str, arguments: str = "") -> dict[str, Any]:
        row = spark.sql(f"CALL lake.system.{procedure}('{table.name}'{arguments})").first()
        assert row is not None
        return row.asDict()

    defined = call(
        "define_range_partitions", ", options => map('on', 'year', 'bounds', '[2011, 2014)', 'splits', '2012')"
    )
    assert (defined["added_ranges"], defined["uncovered_data_files_count"]) == (["[2011, 2014)"], 0)
    spark.sql(f"INSERT INTO {name} VALUES (1, 2011), (2, 2012), (3, 2013)")
    assert call("add_range_partition", ", 2014, 2016, dry_run => true")["added_ranges"] == ["[2014, 2016)"]
    assert call("add_range_partition", ", lower => 2014, upper => 2016")["snapshot_id"] is None
    assert call("split_range_partition", ", at => 2015")["added_ranges"] == []
    assert listed(spark, name) == ["[2011, 2012)", "[2012, 2014)", "[2014, 2015)", "[2015, 2016)"]
    call("merge_range_partitions", ", struct(2014), struct(2016)")
    tried = call("drop_range_partition", ", lower => 2011, upper => 2012, dry_run => true")
    assert (tried["removed_data_files_count"], tried["removed_records_count"]) == (1, 1)
    assert spark.table(name).count() == 3
    dropped = call("drop_range_partition", ", lower => 2011, upper => 2012, metadata_only => true")
    assert dropped["dropped_partitions"] == ["[2011, 2012)"]
    retired = call("retire_range_partition", ", 2012, 2014")
    assert (spark.table(name).count(), listed(spark, name)) == (0, ["[2012, 2014)", "[2014, 2016)"])
    assert spark.table(f"{name}.range_partitions").where("state = 'retired'").first()["partition"] == "[2012, 2014)"
    assert call("restore_range_partition", f", '{retired['tag']}'")["restored_data_files_count"] == 1
    assert spark.table(name).count() == 2
    changed = call(
        "alter_range_partitions",
        ", add => array('[2020, 2022]'), drop => array('[2014, 2016)'), split => array('2021')",
    )
    assert (changed["added_ranges"], changed["dropped_partitions"]) == (["[2020, 2022]"], ["[2014, 2016)"])
    assert listed(spark, name) == ["[2012, 2014)", "[2020, 2021)", "[2021, 2022]"]
    with pytest.raises(AnalysisException, match=r"\[2021, 2023\) cannot be added: \[2020, 2022\] exists already"):
        call("add_range_partition", ", 2021, 2023")

    window = tf.RangePartitions(on=["year"], bounds=[(2020, 2023)], step=1, retain=2, ahead=1)
    years = make(lake, namespace, window, "window")
    row = spark.sql(f"CALL lake.system.advance_range_partitions('{years.name}', now => 2023)").first()
    assert row is not None
    assert (row.added_ranges, row.dropped_partitions) == (["[2023, 2025)"], ["[2020, 2021)"])


SHOWN: dict[str, dict[str, Any]] = {
    "several columns": {
        "on": ["region", "year"],
        "bounds": [(None, ("it's", 5)), (("m",), ("z, [", 2))],
        "splits": [("a", 7), ("n",)],
        "default": True,
    },
    "a window": {
        "on": ["year"],
        "bounds": [(2000, 2020)],
        "splits": [2007],
        "step": 5,
        "origin": 2002,
        "retain": 50,
        "ahead": 3,
        "keep_latest": 1,
        "max_drops": 2,
        "protect": [(2000, 2002)],
    },
    "on demand": {
        "on": ["ts"],
        "bounds": [(datetime(2024, 1, 1, 3, tzinfo=UTC), datetime(2024, 2, 1, 3, tzinfo=UTC))],
        "step": "1 day",
        "time_zone": "America/Sao_Paulo",
        "on_demand": True,
        "on_demand_limits": (datetime(2000, 1, 1, tzinfo=UTC), None),
        "max_new_per_commit": 7,
    },
    "by day": {
        "on": ["ts"],
        "bounds": [(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC))],
        "step": "1 day",
    },
    "a list": {
        "on": ["region"],
        "bounds": [tf.bound(each, each, upper_inclusive=True) for each in ("Asia", "inf", "")],
    },
    "behind a value": {
        "on": ["year"],
        "bounds": [tf.bound(1, 5, upper_inclusive=True), tf.bound(5, 9, lower_inclusive=False)],
    },
    "nothing": {"on": ["year"]},
}


def test_show_create_table_recreates_range_partitions(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-23, SQ-9: the statement of SHOW CREATE TABLE, run with another name, for every kind of definition."""
    schema = pa.schema(
        [
            pa.field("region", pa.string(), nullable=False),
            pa.field("year", pa.int32(), nullable=False),
            pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        ]
    )
    for number, (what, given) in enumerate(SHOWN.items()):
        ranges = tf.RangePartitions(**given)
        one = lake.create_table((namespace, f"one{number}"), schema, key=["region"], range_partitions=ranges)
        statement: str = spark.sql(f"SHOW CREATE TABLE lake.{one.name}").collect()[0][0]
        assert "tableformat.range-partitions" not in statement, what
        spark.sql(statement.replace(f"{namespace}.one{number}", f"{namespace}.other{number}"))
        other = lake.load_table((namespace, f"other{number}"))
        name = "tableformat.range-partitions"
        assert other.properties[name] == one.properties[name], what
        assert (other.key, other.schema, other.iceberg.spec()) == (one.key, one.schema, one.iceberg.spec()), what
        assert other.location.endswith(f"/other{number}"), "the directory of its own name"


CORPUS = json.loads((Path(__file__).parents[2] / "specs" / "corpus" / "range-partitions.json").read_text())


IN_SPARK = [case for case in CORPUS if {"RP-22", "RP-23", "RP-27"} & set(case["rules"])]


def run_in_spark(spark: SparkSession, built: BuiltTable, step: dict[str, Any], refused: Table) -> None:
    """A step of the corpus; rows are written by tasks of Spark."""
    verb, given, options = split_step(step)
    if verb not in ("append", "replace"):
        built.run(step)
        return
    name = f"lake.{built.identifier}"
    new = spark.createDataFrame([tuple(row) for row in given], spark.table(name).schema).repartition(2)
    told = {"replace-prefix": ",".join(options["prefix"])} if "prefix" in options else {}
    if options.get("on_refused") == "divert":
        told |= {"on-refused": "divert", "refused-rows-table": refused.name}
    if "error" not in step:
        new.writeTo(name).options(**told).append()
        return
    with pytest.raises(AnalysisException, match="are outside all range partitions"):
        new.writeTo(name).options(**told).append()


def test_range_partition_corpus_cases_in_spark(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """RP-21, RP-22, RP-23, RP-27: the rows, the rejected rows, and the list of ranges are the same as from Python."""
    for number, case in enumerate(IN_SPARK):
        built = create(lake, case, identifier=f"{namespace}.t{number}")
        name, schema = f"lake.{built.identifier}", built.table.schema
        refused = lake.create_table((namespace, f"refused{number}"), schema)
        for step in case["steps"]:
            run_in_spark(spark, built, step, refused)
        diverted = [row for step in case["steps"] for row in step.get("refused", ())]
        for table, wanted in ((name, case["rows"]), (f"lake.{refused.name}", diverted)):
            assert sorted(map(list, spark.table(table).collect())) == sorted(wanted), case["title"]
        if "partitions" in case:
            found = spark.sql(f"SELECT `partition`, state, record_count FROM {name}.range_partitions").collect()
            assert list(map(list, found)) == case["partitions"]
