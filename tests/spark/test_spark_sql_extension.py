"""Statements of the SQL extension (docs/reference/spark-sql.md), which Spark's own grammar does not have."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from session_settings import settings

from spark_ext.configure import SQL_EXTENSION_CLASS
from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Ids 1 and 2."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    return created


def refused(spark: SparkSession, statement: str, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        spark.sql(statement)


def test_branches_and_tags(spark: SparkSession, table: Table) -> None:
    """SQ-3."""
    name, first = f"lake.{table.name}", table.snapshot_id
    spark.sql(f"ALTER TABLE {name} CREATE TAG `the first` RETAIN 3 HOURS")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    spark.sql(
        f"alter table {name} create branch if not exists audit as of version {first} -- the first\n"
        "RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 90 MINUTES;"
    )
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH other WITH SNAPSHOT RETENTION 5 DAYS")
    found = {row.name: tuple(row)[2:] for row in spark.table(f"{name}.refs").collect()}
    assert found["the first"] == (first, 3 * 3_600_000, None, None)
    assert found["audit"] == (first, 7 * 86_400_000, 2, 90 * 60_000)
    assert found["other"] == (table.refresh().snapshot_id, None, None, 5 * 86_400_000)
    spark.sql(f"ALTER TABLE {name} CREATE OR REPLACE BRANCH audit")
    spark.sql(f"ALTER TABLE {name} REPLACE TAG `the first` AS OF VERSION {table.snapshot_id}")
    spark.sql(f"ALTER TABLE {name} DROP BRANCH IF EXISTS nowhere")
    spark.sql(f"ALTER TABLE {name} DROP BRANCH other")
    assert {row.name: row.snapshot_id for row in spark.table(f"{name}.refs").collect()} == dict.fromkeys(
        ("audit", "main", "the first"), table.snapshot_id
    )
    refused(spark, f"ALTER TABLE {name} DROP TAG nowhere", AnalysisException, "no tag 'nowhere'")
    refused(spark, f"ALTER TABLE {name} CREATE BRANCH audit", AnalysisException, "CREATE OR REPLACE BRANCH moves it")
    refused(spark, f"ALTER TABLE {name}x CREATE BRANCH b", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND")


def test_syntax_errors_name_the_expected_token(spark: SparkSession, table: Table) -> None:
    """SQ-2."""
    name = f"lake.{table.name}"
    for clause, where, expected in (
        ("CREATE BRANCHE b", "'BRANCHE'", "BRANCH or TAG"),
        ("CREATE BRANCH", "end of input", "a name"),
        ("CREATE BRANCH b RETAIN 3 WEEKS", "'WEEKS'", "DAYS, HOURS or MINUTES"),
        ("CREATE BRANCH b WITH SNAPSHOT RETENTION 3", "end of input", "SNAPSHOTS, DAYS, HOURS or MINUTES"),
        ("CREATE TAG b AS OF VERSION 'x'", "''x''", "the id of a snapshot"),
        ("DROP TAG a b", "'b'", "the end of the statement"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", ParseException, f"{where}: expected {expected}")
    with pytest.raises(ParseException) as caught:
        spark.sql(f"ALTER TABLE {name}\n  CREATE BRANCHE b")
    assert "[PARSE_SYNTAX_ERROR]" in str(caught.value)
    assert "line 2, pos 9" in str(caught.value)
    assert table.refresh().metadata.refs.keys() == {"main"}


def test_other_statements_are_passed_to_the_next_parser(spark: SparkSession, table: Table, namespace: str) -> None:
    """SQ-1: names in the current catalog are ours as well."""
    assert SQL_EXTENSION_CLASS in (spark.conf.get("spark.sql.extensions") or "")
    refused(spark, "ALTER TABLE spark_catalog.default.t CREATE BRANCH b", ParseException, r"near 'CREATE'\.")
    refused(spark, "ALTER TABLE t CREATE BRANCH b", ParseException, r"near 'CREATE'\.")
    refused(spark, f"ALTER TABLE lake.{namespace}.t MAKE BRANCH b", ParseException, r"near 'MAKE'\.")
    assert spark.sql("SELECT 'ALTER TABLE t CREATE BRANCH b' AS text").collect()[0].text.startswith("ALTER")
    spark.sql(f"USE lake.{namespace}")
    try:
        spark.sql("SET the.name = one")
        spark.sql("ALTER TABLE /* of ours /* really */ */ t CREATE BRANCH ${the.name}")
        spark.sql(f"ALTER TABLE {namespace}.t CREATE BRANCH `two words`")
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql("RESET the.name")
    assert table.refresh().metadata.refs.keys() == {"main", "one", "two words"}


def partition_fields(lake: Catalog, name: str) -> list[tuple[str, str]]:
    return [(field.name, str(field.transform)) for field in lake.load_table(name).iceberg.spec().fields]


def test_partition_fields(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-4."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ts TIMESTAMP, s STRUCT<c: STRING>, Country STRING)")
    spark.sql(f"INSERT INTO {name} SELECT id, TIMESTAMP '2024-05-06 07:08:09', struct('x'), 'fr' FROM range(4)")
    for clause in ("bucket(16, ID)", "days(ts) AS day", "truncate(s.c, 2)", "country"):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {clause}")
    assert partition_fields(lake, f"{namespace}.t") == [
        ("id_bucket_16", "bucket[16]"),
        ("day", "day"),
        ("s.c_trunc_2", "truncate[2]"),
        ("Country", "identity"),
    ]
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD day WITH hours(ts) AS day")
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD bucket(16, id) WITH bucket(id, 4)")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD truncate(2, s.c)")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD country")
    assert sorted(partition_fields(lake, f"{namespace}.t")) == [("day", "hour"), ("id_bucket_4", "bucket[4]")]
    spark.sql(f"INSERT INTO {name} SELECT id + 4, TIMESTAMP '2024-05-06 07:08:09', struct('x'), 'fr' FROM range(4)")
    spark.sql(f"DELETE FROM {name} WHERE id IN (1, 6)")
    assert sorted(row.id for row in spark.table(name).collect()) == [0, 2, 3, 4, 5, 7]
    for clause, kind, match in (
        ("DROP PARTITION FIELD dya", AnalysisException, "no partition field 'dya'.*day"),
        ("DROP PARTITION FIELD days(ts)", AnalysisException, "is not partitioned by day of 'ts'"),
        ("ADD PARTITION FIELD hours(ts)", AnalysisException, "[Dd]uplicate"),
        ("ADD PARTITION FIELD zorder(id)", AnalysisException, "not a partition transform"),
        ("ADD PARTITION FIELD bucket(0, id)", AnalysisException, "whole number above 0"),
        ("ADD PARTITION FIELD days(id)", AnalysisException, "day does not support"),
        ("ADD PARTITION FIELD x", AnalysisException, "unknown column 'x'|no column 'x'|'x'"),
        ("ADD PARTITION FIELD bucket(16 id)", ParseException, r"near 'id': expected '\)'"),
        ("REPLACE PARTITION FIELD day hours(ts)", ParseException, "near 'hours': expected WITH"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", kind, match)
    assert len(partition_fields(lake, f"{namespace}.t")) == 2


def test_write_order(spark: SparkSession, lake: Catalog, namespace: str, table: Table) -> None:
    """SQ-5."""
    name = f"lake.{namespace}.plain"
    spark.sql(f"CREATE TABLE {name} (a BIGINT, b STRING) PARTITIONED BY (b)")

    def order() -> tuple[list[str], str | None]:
        metadata = lake.load_table(f"{namespace}.plain").metadata
        return [str(field) for field in metadata.sort_order().fields], metadata.properties["write.distribution-mode"]

    spark.sql(f"ALTER TABLE {name} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a DESC, bucket(4, b) NULLS LAST")
    assert order() == (["1 DESC NULLS LAST", "bucket[4](2) ASC NULLS LAST"], "hash")
    spark.sql(f"INSERT INTO {name} SELECT id, 'x' FROM range(50)")
    assert [row.a for row in spark.table(name).collect()] == list(range(49, -1, -1)), "one file, in the order"
    (ordered,) = spark.table(f"{name}.files").collect()
    assert ordered.sort_order_id == lake.load_table(f"{namespace}.plain").metadata.default_sort_order_id
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY (b, a)")
    assert order() == (["2 ASC NULLS FIRST", "1 ASC NULLS FIRST"], "range")
    spark.sql(f"ALTER TABLE {name} WRITE LOCALLY ORDERED BY a NULLS LAST DISTRIBUTED BY PARTITION")
    assert order() == (["1 ASC NULLS LAST"], "hash")
    spark.sql(f"ALTER TABLE {name} WRITE LOCALLY ORDERED BY b")
    assert order() == (["2 ASC NULLS FIRST"], "hash"), "how rows are spread stays"
    spark.sql(f"ALTER TABLE {name} WRITE UNORDERED")
    assert order() == ([], "none")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'y')")
    assert {row.sort_order_id for row in spark.table(f"{name}.files").collect()} == {ordered.sort_order_id, None}
    for clause, kind, match in (
        ("WRITE", ParseException, "expected ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION or UNORDERED"),
        ("WRITE UNORDERED ORDERED BY a", ParseException, "near 'ORDERED': expected DISTRIBUTED BY PARTITION, or"),
        ("WRITE ORDERED BY a NULLS", ParseException, "expected LAST"),
        ("WRITE ORDERED BY days(a)", AnalysisException, "day does not support"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", kind, match)

    spark.sql(f"ALTER TABLE lake.{table.name} WRITE ORDERED BY id")
    refused(spark, f"ALTER TABLE lake.{table.name} WRITE ORDERED BY v", AnalysisException, r"has the key \(id\)")
    metadata = table.refresh().metadata
    assert ([str(field) for field in metadata.sort_order().fields], metadata.properties["write.distribution-mode"]) == (
        ["1 ASC NULLS FIRST"],
        "range",
    )


def test_identifier_fields(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-6."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (a BIGINT NOT NULL, b STRING NOT NULL, c STRING, d DOUBLE NOT NULL)")
    spark.sql(f"ALTER TABLE {name} SET IDENTIFIER FIELDS B, a")
    assert lake.load_table(f"{namespace}.t").key == ("b", "a")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', 'one', 0), (2, 'y', 'two', 0)")
    spark.sql(f"ALTER TABLE {name} DROP IDENTIFIER FIELDS b")
    assert lake.load_table(f"{namespace}.t").key == ("a",)
    for clause, match in (
        ("SET IDENTIFIER FIELDS c", "c is optional"),
        ("SET IDENTIFIER FIELDS d", "floating point"),
        ("SET IDENTIFIER FIELDS a, a", "twice"),
        ("SET IDENTIFIER FIELDS e", "'e'"),
        ("DROP IDENTIFIER FIELDS c", "'c' is not an identifier field"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", AnalysisException, match)
    spark.sql(f"DELETE FROM {name} WHERE a = 1")
    spark.sql(f"ALTER TABLE {name} DROP IDENTIFIER FIELDS a")
    assert lake.load_table(f"{namespace}.t").key == ()
    assert [row.c for row in spark.table(name).collect()] == ["two"]


def told(spark: SparkSession, statement: str) -> str:
    """The text that EXPLAIN prints about a delete, before Spark's plan."""
    text: str = spark.sql(f"EXPLAIN {statement}").collect()[0][0]
    head, _, plan = text.partition("\n\n")
    assert plan.startswith("== Physical Plan ==")
    return head


def test_explain_of_deletes(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-7, SQ-45."""
    name = f"lake.{namespace}.t"
    table = lake.create_table(
        (namespace, "t"),
        pa.schema([("id", pa.int64()), ("w", pa.int64()), ("v", pa.string()), ("x", pa.float64())]),
        key=["id", "w"],
    )
    rows = {"id": [1, 2, 3], "w": [1, 1, 1], "v": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]}
    table.append(pa.table(rows, schema=table.schema))
    for condition, says in (
        ("id = 2", r"range delete: id leads the key (id, w)"),
        ("w > 1 AND id = 2 OR v = 'b'", "range delete: w is limited to an interval"),
        ("w > 1 AND id = 2 OR v = 'b'", "equality delete: v has values that do not lead the key (id, w)"),
        ("id >= 1", "whole files: partition values or bounds"),
        ("id > 7 AND id < 3", "nothing: no row can match"),
        ("id % 2 = 1", "positions: ((lake."),
        ("x = 0.5", "floating point columns, or the table has no key, so Spark finds the rows"),
        ("id IN (SELECT 3)", "range delete: id leads the key (id, w)"),
    ):
        assert says in told(spark, f"DELETE FROM {name} WHERE {condition}"), condition
    for condition in ("id = 2", "id = 2 AND x = 1.5"):
        assert "reaches at most: 1 data file of " in told(spark, f"DELETE FROM {name} WHERE {condition}")
    assert "reaches" not in told(spark, f"DELETE FROM {name} WHERE id IN (SELECT 3)")
    assert "1 with 3 rows are removed without being opened" in told(spark, f"DELETE FROM {name}")
    assert "== Delete ==" not in spark.sql(f"EXPLAIN SELECT * FROM {name}").collect()[0][0]
    assert table.refresh().scan().count() == 3
    table.set_properties({"write.delete.prefix-encoding": "equality", "format-version": "3"})
    assert "equality delete: id leads the key (id, w), and write" in told(spark, f"DELETE FROM {name} WHERE id = 2")
    assert "deletion vectors: " in told(spark, f"DELETE FROM {name} WHERE id % 2 = 1")


def test_session_setting_counts_deleted_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-114, CP-87: the rows are counted, and the next statement is blind again."""
    name, setting = f"lake.{namespace}.t", "spark.sql.catalog.lake.delete-mode"
    table = lake.create_table((namespace, "t"), pa.schema([("id", pa.int64()), ("w", pa.int64())]), key=["id", "w"])
    table.append(pa.table({"id": [1, 1, 2, 3], "w": [1, 2, 1, 1]}))
    with pytest.raises(ParseException, match="INVALID_SET_SYNTAX"):
        spark.sql(f"SET {setting} = scan")
    spark.sql(f"SET `{setting}` = scan")
    try:
        assert "positions: the session's delete-mode is 'scan'" in told(spark, f"DELETE FROM {name} WHERE id = 1")
        spark.sql(f"DELETE FROM {name} WHERE id IN (SELECT explode(array(1, 9)))")
        snapshot = table.refresh().view.snapshot
        assert snapshot is not None
        assert snapshot.summary is not None
        assert snapshot.summary["tableformat.deleted-rows"] == "2"
        assert "added-range-deletes" not in snapshot.summary.additional_properties
    finally:
        spark.sql(f"RESET `{setting}`")
    with settings(spark, {setting: "sometimes"}), pytest.raises(Exception, match="delete-mode must be one of"):
        spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    after = table.refresh().view.snapshot
    assert after is not None
    assert after.summary is not None
    assert after.summary["added-range-deletes"] == "1"
    assert table.scan().to_arrow()["id"].to_pylist() == [3]


def test_nan_partition_is_listed_once_and_dropped(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-8, DA-3: 0.0 and -0.0 are two."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, x DOUBLE) PARTITIONED BY (x)")
    for _ in range(2):
        spark.sql(f"INSERT INTO {name} VALUES (1, 2.0D), (2, double('NaN')), (3, NULL), (4, 0.0D), (5, -0.0D)")
    listed = [row.partition for row in spark.sql(f"SHOW PARTITIONS {name}").collect()]
    assert listed == sorted(["x=null", "x=0.0", "x=-0.0", "x=2.0", "x=NaN"])
    counted = spark.sql(f"SELECT file_count FROM {name}.partitions").collect()
    assert [row.file_count for row in counted] == [2, 2, 2, 2, 2]
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (x = 'NaN')")
    assert sorted(row.id for row in spark.table(name).collect()) == [1, 1, 3, 3, 4, 4, 5, 5]


def test_partitions_are_listed_and_dropped(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-8."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, s STRING, d DATE, ts TIMESTAMP) PARTITIONED BY (s)")
    values = "(1, 'a', DATE '2024-01-31', TIMESTAMP '2024-01-31 23:59:59')"
    spark.sql(f"INSERT INTO {name} VALUES {values}, (2, 'b', NULL, NULL)")
    for field in ("months(d)", "hours(ts)", "truncate(10, id) AS tens", "truncate(1, s) AS letter"):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {field}")
    spark.sql(
        f"INSERT INTO {name} VALUES {values}, (13, 'ab', DATE '2024-02-01', NULL), (14, 'ab', DATE '1969-12-31', NULL)"
    )
    first = "s=a/d_month=648/ts_hour=474095/tens=0/letter=a"
    listed = [row.partition for row in spark.sql(f"SHOW PARTITIONS {name}").collect()]
    assert listed == [
        first,
        "s=ab/d_month=-1/ts_hour=null/tens=10/letter=a",
        "s=ab/d_month=649/ts_hour=null/tens=10/letter=a",
    ]
    assert [row.partition for row in spark.sql(f"SHOW PARTITIONS {name} PARTITION (s = 'a')").collect()] == [first]
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (s='ab', d_month=-1, ts_hour=null, tens=10, letter='a')")
    assert sorted(row.id for row in spark.table(name).collect()) == [1, 1, 2, 13]
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (s='a', d_month=648, ts_hour=474095, tens=0, letter='a')")
    assert sorted(row.id for row in spark.table(name).collect()) == [2, 13], "the file of the older spec too"
    spark.sql(f"TRUNCATE TABLE {name} PARTITION (s='ab')")
    assert [row.id for row in spark.table(name).collect()] == [2]
    absent = "PARTITION (s='zz', d_month=1, ts_hour=1, tens=0, letter='z')"
    spark.sql(f"ALTER TABLE {name} DROP IF EXISTS {absent}")
    refused(spark, f"ALTER TABLE {name} DROP {absent}", AnalysisException, "PARTITIONS_NOT_FOUND|cannot be found")
    refused(spark, f"ALTER TABLE {name} ADD {absent}", AnalysisException, "is created only with its first rows")
    spark.sql(f"TRUNCATE TABLE {name}")
    assert spark.table(name).count() == 0
    spark.sql(f"CREATE TABLE lake.{namespace}.u (id BIGINT) PARTITIONED BY (bucket(1, id))")
    spark.sql(f"INSERT INTO lake.{namespace}.u VALUES (1)")
    refused(
        spark,
        f"ALTER TABLE lake.{namespace}.u DROP PARTITION (id_bucket=0)",
        AnalysisException,
        "cannot be expressed as a comparison",
    )


def test_describe_and_show_create_hide_internals(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-9: and the statement makes the same table."""
    name = f"lake.{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING COMMENT 'what', PRIMARY KEY (id)) PARTITIONED BY (bucket(4, id)) "
        "TBLPROPERTIES ('mine' = 'x')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    statement: str = spark.sql(f"SHOW CREATE TABLE {name}").collect()[0][0]
    assert "tableformat.txn" not in statement
    assert "key-field-ids" not in statement
    assert "'mine' = 'x'" in statement
    made = lake.load_table((namespace, "t"))
    spark.sql(f"DROP TABLE {name} PURGE")
    spark.sql(statement)
    again = lake.load_table((namespace, "t"))
    assert (again.key, again.schema, again.iceberg.spec()) == (("id",), made.schema, made.iceberg.spec())
    usage = [row.function_desc for row in spark.sql("DESCRIBE FUNCTION EXTENDED lake.system.bucket").collect()]
    assert usage == [
        "Function: lake.system.bucket",
        "Usage: bucket(width, column): the partition transform with this name.",
    ]
    refused(spark, "DESC FUNCTION lake.system.nothing", AnalysisException, "nothing")
    assert "abs" in spark.sql("DESCRIBE FUNCTION abs").collect()[0][0]


def ranges(spark: SparkSession, name: str) -> list[tuple[str, int]]:
    shown = spark.sql(f"SHOW RANGE PARTITIONS {name}")
    assert shown.columns == ["partition", "state", "file_count", "record_count", "total_bytes", "tag", "retired_at"]
    return [(row.partition, row.record_count) for row in shown.collect()]


def test_range_partitions(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-10."""
    name = f"lake.{namespace}.sales"
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT NOT NULL, year INT NOT NULL) "
        "PARTITION BY RANGE (year) (PARTITION 2011 <= VALUES < 2016, PARTITION VALUE = 2020) "
        "COMMENT 'by year' TBLPROPERTIES ('mine' = 'x')"
    )
    assert lake.load_table(f"{namespace}.sales").properties["mine"] == "x"
    spark.sql(f"INSERT INTO {name} VALUES (1, 2011), (2, 2015), (3, 2020)")
    refused(spark, f"INSERT INTO {name} VALUES (4, 2017)", Exception, "2017|range")
    spark.sql(f"ALTER TABLE {name} ADD RANGE PARTITION 2016 <= VALUES < 2018")
    spark.sql(f"ALTER TABLE {name} ADD IF NOT EXISTS RANGE PARTITION 2016 <= VALUES <= 2017")
    spark.sql(f"INSERT INTO {name} VALUES (4, 2017)")
    assert ranges(spark, name) == [("[2011, 2016)", 2), ("[2016, 2018)", 1), ("VALUE = 2020", 1)]
    spark.sql(f"ALTER TABLE {name} DROP RANGE PARTITION 2011 <= VALUES < 2016;")
    spark.sql(f"ALTER TABLE {name} DROP IF EXISTS RANGE PARTITION VALUES < 2016")
    assert sorted(row.id for row in spark.table(name).collect()) == [3, 4]
    for clause, kind, match in (
        ("ADD RANGE PARTITION 2017 <= VALUES < 2019", AnalysisException, "exists already"),
        ("ADD IF NOT EXISTS RANGE PARTITION 2017 <= VALUES < 2019", AnalysisException, "exists already"),
        ("DROP RANGE PARTITION VALUE = 1999", AnalysisException, "1999"),
        ("ADD RANGE PARTITION VALUE = 'x'", AnalysisException, "'year' is int"),
        ("ADD RANGE PARTITION 2030 VALUES", ParseException, "near 'VALUES': expected '<' or '<='"),
        ("ADD RANGE PARTITION year < VALUES", ParseException, "near 'year': expected a constant"),
        ("ADD RANGE PARTITION VALUES", ParseException, "near end of input: expected '<' or '<='"),
        ("ADD RANGE VALUES", ParseException, "near 'VALUES': expected PARTITION"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", kind, match)

    spark.sql(
        f"CREATE OR REPLACE TABLE {name} (region STRING NOT NULL, d DATE NOT NULL) TBLPROPERTIES ('a' = 'b') "
        "PARTITION BY RANGE (region, d) (PARTITION ('Asia, the \"far\"', DATE '2024-01-01') <= VALUES < ('Europe'))"
    )
    assert len(ranges(spark, name)) == 1
    spark.sql(f"INSERT INTO {name} VALUES ('Asia, the \"far\"', DATE '2024-05-05')")
    spark.sql(
        f"CREATE TABLE lake.{namespace}.hours (ts TIMESTAMP NOT NULL) PARTITION BY RANGE (ts) "
        "(PARTITION TIMESTAMP '2024-01-01 00:00:00' <= VALUES < TIMESTAMP '2024-01-02 12:30:00')"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.hours VALUES (TIMESTAMP '2024-01-02 12:29:59')")
    refused(
        spark, f"INSERT INTO lake.{namespace}.hours VALUES (TIMESTAMP '2024-01-02 12:30:00')", Exception, "range|12:30"
    )
    refused(spark, f"SHOW RANGE PARTITIONS {name} now", ParseException, "near 'now': expected the end")
    spark.sql(f"CREATE TABLE lake.{namespace}.none (id BIGINT)")
    refused(spark, f"SHOW RANGE PARTITIONS lake.{namespace}.none", AnalysisException, "no range partitions|range")


def test_create_table_like(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-11."""
    name = f"lake.{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (gone INT, id BIGINT NOT NULL COMMENT 'who', year INT NOT NULL, s STRING DEFAULT 'x') "
        "PARTITIONED BY (bucket(4, id)) PARTITION BY RANGE (year) (PARTITION 2011 <= VALUES < 2016) "
        "TBLPROPERTIES ('format-version' = '3', 'mine' = 'x', 'tableformat.key' = 'id, year')"
    )
    spark.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    spark.sql(f"INSERT INTO {name} VALUES (1, 2011, 'a')")
    spark.sql(f"CREATE TABLE lake.{namespace}.u LIKE {name} TBLPROPERTIES ('mine' = 'y', other.one 'z')")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{namespace}.u LIKE {name}")
    made, source = lake.load_table((namespace, "u")), lake.load_table((namespace, "t"))
    assert (made.key, made.schema, made.scan().count()) == (source.key, source.schema, 0)
    assert [str(field.transform) for field in made.iceberg.spec().fields] == ["bucket[4]"]
    assert (made.properties["mine"], made.properties["other.one"], made.metadata.format_version) == ("y", "z", 3)
    assert made.range_partitions.list()["partition"].to_pylist() == ["[2011, 2016)"]
    spark.sql(f"INSERT INTO lake.{namespace}.u VALUES (1, 2012, 'b')")
    assert [tuple(row) for row in spark.table(f"lake.{namespace}.u").collect()] == [(1, 2012, "b")]
    assert made.iceberg.schema().find_field("s").write_default == "x"
    refused(spark, f"CREATE TABLE lake.{namespace}.u LIKE {name}", AnalysisException, "ALREADY_EXISTS")
    refused(spark, f"CREATE TABLE lake.{namespace}.v LIKE {name}x", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND")
    refused(spark, f"CREATE TABLE lake.nowhere.v LIKE {name}", AnalysisException, "SCHEMA_NOT_FOUND")
    refused(
        spark, f"CREATE TABLE lake.{namespace}.v LIKE {name} STORED", ParseException, "near 'STORED': expected TBLP"
    )
    spark.sql(f"CREATE TABLE lake.{namespace}.sorted (a INT)")
    spark.sql(f"ALTER TABLE lake.{namespace}.sorted WRITE ORDERED BY a DESC")
    spark.sql(f"CREATE TABLE lake.{namespace}.again LIKE lake.{namespace}.sorted")
    order = lake.load_table((namespace, "again")).metadata.sort_order()
    assert [str(field) for field in order.fields] == ["1 DESC NULLS LAST"]
