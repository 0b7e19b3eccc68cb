"""Table properties that Spark reads, snapshot summaries, and `input_file_name()`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog
from tableformat.storage.location import local_path


@pytest.mark.since_spark("4.1", "MERGE WITH SCHEMA EVOLUTION")
def test_columns_of_a_table_are_fixed_by_its_property(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """`write.spark.auto-schema-evolution.enabled` = `false`: no statement adds columns."""
    name = f"lake.{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled' = 'false') AS SELECT 1 id"
    )
    merge = f"""
        MERGE WITH SCHEMA EVOLUTION INTO {name} t USING (SELECT 1 id, 'x' extra) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    """
    with pytest.raises(AnalysisException, match="auto-schema-evolution"):
        spark.sql(merge)
    assert spark.table(name).columns == ["id"]
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled')")
    spark.sql(merge)
    assert spark.table(name).columns == ["id", "extra"]


def test_promises_that_nobody_keeps_are_refused(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """FM-25."""
    for name, message in (("encryption.key-id", "does not encrypt files"), ("uuid", "is reserved")):
        with pytest.raises(AnalysisException, match=message):
            spark.sql(f"CREATE TABLE lake.{namespace}.t (id INT) TBLPROPERTIES ('{name}' = 'x')")
    assert not lake.table_exists((namespace, "t"))


def test_snapshots_tell_the_application_and_rows_their_file(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Statements and compaction alike; `input_file_name()` is the data file of the row."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} AS SELECT 1 id")
    spark.sql(f"INSERT INTO {name} VALUES (2)")
    files = spark.sql(f"SELECT id, input_file_name() f, _file FROM {name} ORDER BY id").collect()
    assert [row.f for row in files] == [row._file for row in files]
    assert len({row.f for row in files}) == 2
    spark.sql(f"CALL lake.system.rewrite_data_files('{namespace}.t', options => map('rewrite-all', 'true'))").collect()
    summaries = [row.summary for row in spark.sql(f"SELECT summary FROM {name}.snapshots").collect()]
    assert len(summaries) == 3
    app = {"engine-name": "spark", "engine-version": spark.version, "app-id": spark.sparkContext.applicationId}
    app |= {"app-name": spark.sparkContext.appName, "spark.app.id": spark.sparkContext.applicationId}
    assert all(app.items() <= summary.items() for summary in summaries)


def test_entries_say_of_columns_what_the_properties_ask(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """FM-8: of files that Spark's tasks write, NaNs included."""
    metrics = "write.metadata.metrics"
    spark.sql(
        f"""CREATE TABLE lake.{namespace}.t (id STRING, text STRING, part DOUBLE) TBLPROPERTIES
        ('{metrics}.default' = 'counts', '{metrics}.column.id' = 'full', '{metrics}.column.part' = 'none')"""
    )
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES (repeat('a', 50), 'x', double('NaN'))")
    (file,) = lake.load_table((namespace, "t")).inspect.files().to_pylist()
    assert dict(file["null_value_counts"]) == {1: 0, 2: 0}
    assert dict(file["lower_bounds"]) == dict(file["upper_bounds"]) == {1: b"a" * 50}
    assert not file["nan_value_counts"]
    with pytest.raises(AnalysisException, match="none, counts, truncate"):
        spark.sql(f"ALTER TABLE lake.{namespace}.t SET TBLPROPERTIES ('{metrics}.default' = 'some')")


def test_a_table_with_a_variant_of_another_writer_says_so(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """FM-3, SP-37: other tables of its namespace are listed and read."""
    spark.sql(f"CREATE TABLE lake.{namespace}.good AS SELECT 1 id")
    columns = pa.schema([("id", pa.int32()), ("v", pa.string())])
    bad = lake.create_table((namespace, "bad"), columns, properties={"format-version": "3"})
    path = local_path(bad.iceberg.metadata_location)
    assert path is not None
    file = Path(path)
    file.write_text(file.read_text().replace('"type":"string"', '"type":"variant"'))
    for query in ("SELECT id FROM {}", "SELECT * FROM {}.files", "INSERT INTO {} (id) VALUES (1)", "DESCRIBE {}"):
        with pytest.raises(AnalysisException, match="has the type variant, which this library does not support"):
            spark.sql(query.format(f"lake.{namespace}.bad")).collect()
    assert spark.sql(f"SHOW TABLES IN lake.{namespace}").count() == 2
    assert spark.table(f"lake.{namespace}.good").count() == 1
