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
def test_auto_schema_evolution_can_be_disabled(spark: SparkSession, lake: Catalog, namespace: str) -> None:
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


def test_summary_has_application_id_and_rows_have_input_file_name(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
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


def test_table_with_variant_column_raises_unsupported_error(spark: SparkSession, lake: Catalog, namespace: str) -> None:
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
