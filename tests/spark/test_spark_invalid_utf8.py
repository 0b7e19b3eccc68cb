"""Spark's strings may contain any bytes; text in tables and in statements must be UTF-8."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

FF, FE, REPLACED = "CAST(X'FF' AS STRING)", "CAST(X'FE' AS STRING)", "CAST(X'EFBFBD' AS STRING)"
"""The last is the replacement character for invalid UTF-8."""


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])
def test_strings_with_invalid_utf8_are_distinguished(spark: SparkSession, namespace: str, version: str) -> None:
    """SP-96: every such literal was U+FFFD: rows were not found, and a DELETE without a job took others."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (n INT, s STRING) TBLPROPERTIES ('format-version' = '{version}')")
    for number, text in enumerate((FF, FE, REPLACED, "'a'")):
        spark.sql(f"INSERT INTO {name} SELECT {number}, {text}")

    def numbers(where: str) -> list[int]:
        return sorted(row.n for row in spark.sql(f"SELECT n FROM {name} WHERE {where}").collect())

    assert numbers(f"s = {FF}") == [0]
    assert numbers(f"s IN ({FE}, 'a')") == [1, 3]
    assert numbers(f"s >= {FF}") == [0]
    assert numbers(f"s < {FE}") == [2, 3]
    assert numbers(f"s <> {FF}") == [1, 2, 3]
    assert numbers(f"s <=> {REPLACED}") == [2]
    assert numbers(f"startswith(s, {FE})") == [1]
    spark.sql(f"UPDATE {name} SET n = 10 WHERE s = {FF}")
    spark.sql(f"DELETE FROM {name} WHERE s = {FE}")
    spark.sql(f"MERGE INTO {name} t USING (SELECT {FF} AS s) u ON t.s = u.s WHEN MATCHED THEN UPDATE SET n = n + 1")
    assert numbers("true") == [2, 3, 11]


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])
def test_files_with_invalid_utf8_are_compacted(spark: SparkSession, namespace: str, version: str) -> None:
    """SP-96: a merge of files by the key used to read its texts as Python strings, so that upkeep of the table always
    failed."""
    name = f"lake.{namespace}.t"
    properties = f"'format-version' = '{version}', 'tableformat.key' = 's, n'"
    spark.sql(f"CREATE TABLE {name} (s STRING NOT NULL, n INT NOT NULL) TBLPROPERTIES ({properties})")
    for number, text in enumerate((FF, "'é'", FE, "'a'", "'z'")):
        spark.sql(
            f"INSERT INTO {name} SELECT * FROM (SELECT {text} AS s, {number} AS n UNION ALL SELECT 'q', {number})"
        )
    spark.sql(f"CALL lake.system.delete_prefix('{namespace}.t', map('s', 'z'))")
    spark.sql(f"CALL lake.system.rewrite_data_files('{namespace}.t', options => map('rewrite-all', 'true'))")
    assert spark.sql(f"SELECT * FROM {name}.data_files").count() == 1
    rows = [(row[0], row.n) for row in spark.sql(f"SELECT hex(s), n FROM {name} ORDER BY n, s").collect()]
    assert rows == [("71", 0), ("FF", 0), ("71", 1), ("C3A9", 1), ("71", 2), ("FE", 2), ("61", 3), ("71", 3), ("71", 4)]
