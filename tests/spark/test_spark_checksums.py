"""Spark writes page checksums, and verifies them if the table requests it (DA-11)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog
from tableformat.storage.location import local_path

VERIFY = "read.parquet.page-checksum-verification"


def damage(path: Path) -> None:
    """Another bit in the last value of the last column."""
    row_group = pq.read_metadata(path).row_group(0)
    chunk = row_group.column(row_group.num_columns - 1)
    damaged = bytearray(path.read_bytes())
    damaged[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(damaged)


def test_page_damage_is_detected_by_spark_and_python(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (a BIGINT, x DOUBLE) "
        f"TBLPROPERTIES ('{VERIFY}' = 'true', 'write.parquet.compression-codec' = 'uncompressed')"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.t SELECT id, id / 7 FROM range(0, 1000, 1, 1)")
    table = lake.load_table((namespace, "t"))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    assert spark.sql(f"SELECT count(x) FROM lake.{namespace}.t").collect()[0][0] == 1000
    damage(Path(local_path(path)))
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(local_path(path), page_checksum_verification=True).read()
    with pytest.raises(Exception, match="CRC"):
        spark.sql(f"SELECT sum(x) FROM lake.{namespace}.t").collect()
    spark.sql(f"ALTER TABLE lake.{namespace}.t SET TBLPROPERTIES ('{VERIFY}' = 'false')")
    assert spark.sql(f"SELECT count(x) FROM lake.{namespace}.t").collect()[0][0] == 1000, "read as it is"


def test_spark_verifies_checksums_of_python_files(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("x", pa.float64())])
    properties = {VERIFY: "true", "write.parquet.compression-codec": "uncompressed"}
    table = lake.create_table((namespace, "t"), schema, properties=properties)
    table.append(pa.table({"a": range(100), "x": [number / 7 for number in range(100)]}, schema=schema))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    damage(Path(local_path(path)))
    with pytest.raises(Exception, match="CRC"):
        spark.sql(f"SELECT sum(x) FROM lake.{namespace}.t").collect()
