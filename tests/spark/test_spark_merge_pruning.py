"""Target files that the source's keys rule out are not read, as counted by the scan metric."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("v", pa.int64())])
FILES = 8
ROWS = 2000
"""In each file."""


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """File f has the ids from f * 10,000 on."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    for number in range(FILES):
        ids = range(number * 10_000, number * 10_000 + ROWS)
        created.append(pa.table({"id": ids, "day": [None] * ROWS, "v": [0] * ROWS}, schema=SCHEMA))
    return created


@pytest.fixture
def source(spark: SparkSession, namespace: str) -> str:
    """A table of two ids of the file 3 and a new one, without any filter."""
    name = f"lake.{namespace}.s"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v BIGINT)")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, 5L FROM VALUES (30001L), (30002L), (33333L) AS s(id)")
    return name


def executions_after(store: Any, last: int) -> list[Any]:
    """The executions with a higher id, oldest first. The store keeps a thousand, so their number does not grow for
    ever."""
    kept = store.executionsList()
    found = []
    for index in reversed(range(kept.size())):
        execution = kept.apply(index)
        if execution.executionId() <= last:
            break
        found.append(execution)
    return found[::-1]


def files_read(spark: SparkSession, statement: str) -> list[int]:
    """Data files that each scan of the statement read, fewest first."""
    context, store = spark.sparkContext._jsc.sc(), spark._jsparkSession.sharedState().statusStore()
    context.listenerBus().waitUntilEmpty()
    kept = store.executionsList()
    last = kept.apply(kept.size() - 1).executionId() if kept.size() else -1
    spark.sql(statement).collect()
    context.listenerBus().waitUntilEmpty()
    found = {}
    for execution in executions_after(store, last):
        values = store.executionMetrics(execution.executionId())
        metrics = execution.metrics()
        for position in range(metrics.size()):
            metric = metrics.apply(position)
            if metric.name() == "number of result data files" and values.contains(metric.accumulatorId()):
                found[metric.accumulatorId()] = int(values.apply(metric.accumulatorId()))
    return sorted(found.values())


def changed(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in table.refresh().scan("v != 0").to_arrow().to_pylist())


def test_scan_metric_counts_files(spark: SparkSession, table: Table) -> None:
    assert files_read(spark, f"SELECT sum(v) FROM lake.{table.name} WHERE v >= 0") == [FILES]
    assert files_read(spark, f"SELECT sum(v) FROM lake.{table.name} WHERE id = 5 AND v >= 0") == [1]


@pytest.mark.since_spark("4.2", "a MERGE finds its rows before it reads files")
def test_merge_reads_only_files_with_source_keys(spark: SparkSession, table: Table, source: str) -> None:
    """ST-4: neither to find the rows nor to change them."""
    read = files_read(
        spark,
        f"""
        MERGE INTO lake.{table.name} t USING {source} s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
        """,
    )
    assert max(read) == 1
    assert changed(table) == [(30001, 5), (30002, 5), (33333, 5)]


def test_delete_with_subquery_reads_only_matching_files(spark: SparkSession, table: Table, source: str) -> None:
    read = files_read(spark, f"DELETE FROM lake.{table.name} WHERE id IN (SELECT id FROM {source})")
    assert max(read) == 1
    assert table.refresh().scan().to_arrow().num_rows == FILES * ROWS - 2


def test_update_with_subquery_reads_only_matching_files(spark: SparkSession, table: Table, source: str) -> None:
    read = files_read(spark, f"UPDATE lake.{table.name} SET v = 7 WHERE id IN (SELECT id FROM {source})")
    assert max(read) == 1
    assert changed(table) == [(30001, 7), (30002, 7)]


def test_merge_not_matched_by_source_reads_all_files(spark: SparkSession, table: Table, source: str) -> None:
    """Rows that the source does not name matter here."""
    read = files_read(
        spark,
        f"""
        MERGE INTO lake.{table.name} t USING {source} s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE AND t.id % 10000 = 7 THEN DELETE
        """,
    )
    assert max(read) == FILES
    assert table.refresh().scan().to_arrow().num_rows == FILES * ROWS - FILES


MERGES = {
    "t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v": {3: "s3", 0: "s0"},
    "t.k <=> s.k WHEN MATCHED THEN UPDATE SET v = s.v": {None: "null", 3: "s3", 0: "s0"},
    "t.k = s.k AND t.v > 'u' WHEN MATCHED THEN DELETE": {3: None},
    "t.k + 1 = s.k + 1 AND t.d = s.d WHEN MATCHED THEN UPDATE SET v = s.v": {0: "s0"},
    "t.d = s.d WHEN MATCHED THEN UPDATE SET v = s.v": {0: "s0", 1: "s3"},
    "t.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.k = 1 THEN DELETE": {
        3: None,
        0: None,
        1: None,
    },
}
"""The clauses after ON, and their changes: values by key; None for rows that are deleted."""


@pytest.mark.parametrize("clauses", every(2, MERGES))
def test_runtime_filter_excludes_only_rows_without_a_match(
    spark: SparkSession, lake: Catalog, namespace: str, clauses: str
) -> None:
    """SP-81: nulls, -0.0 and NaN, duplicate keys in the source, conditions in addition to the keys, absence as a
    condition."""
    schema = pa.schema([("k", pa.int64()), ("d", pa.float64()), ("v", pa.string())])
    keys = [None, 0, 1, 2, 3]
    table = lake.create_table((namespace, "m"), schema)
    doubles = [None, 0.0, float("nan"), 2.0, 3.0]
    table.append(pa.table({"k": keys, "d": doubles, "v": ["t", "t", "t", "t", "v"]}, schema))
    source = """
        VALUES (3L, double('NaN'), 's3'), (0L, -0.0D, 's0'), (9L, 9D, 'new'), (9L, 9D, 'new'), (NULL, NULL, 'null')
    """
    matched, by_source, condition = clauses.partition("WHEN NOT MATCHED BY SOURCE")
    statement = f"""
        MERGE INTO lake.{table.name} t USING (SELECT * FROM {source} AS s(k, d, v)) s ON {matched}
        WHEN NOT MATCHED AND s.k = 9 THEN INSERT * {by_source} {condition}
    """
    (plan,) = spark.sql(f"EXPLAIN {statement}").first()  # type: ignore[misc]
    assert ("ExistenceJoin" in plan) == (not by_source)
    spark.sql(statement)
    expected = {**dict(zip(keys, ["t", "t", "t", "t", "v"], strict=True)), **MERGES[clauses]}
    found = [(row["k"], row["v"]) for row in table.refresh().scan().to_arrow().to_pylist()]
    left = [(key, value) for key, value in expected.items() if value is not None]
    assert sorted(found, key=str) == sorted([*left, (9, "new"), (9, "new")], key=str)


def test_nondeterministic_source_raises_error(spark: SparkSession, table: Table) -> None:
    """SP-81: the rows that match the second keys were not read for the join. They would be inserted in addition to the
    existing rows."""
    from pyspark.sql.functions import udf

    marker = str(Path(tempfile.mkdtemp()) / "called")

    def changing(key):  # type: ignore[no-untyped-def]  # With hints it would be taken for a function of columns.
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return key + 1
        return key

    spark.udf.register("changing", udf(changing, "long"))
    merge = f"""
        MERGE INTO lake.{table.name} t USING (SELECT changing(id) id FROM VALUES (30001L) AS s(id)) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 2)
    """
    with pytest.raises(Exception, match="returned other keys when it was read again"):
        spark.sql(merge)
    assert changed(table) == []
    spark.conf.set("spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled", "false")
    try:
        spark.sql(merge)
    finally:
        spark.conf.unset("spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled")
    assert changed(table) == [(30002, 1)]


@pytest.mark.since_spark("4.2", "a MERGE finds its rows before it reads files")
def test_merges_of_different_files_do_not_conflict(spark: SparkSession, table: Table, source: str) -> None:
    """ST-2: the keys found at run time are part of what was read, so a row elsewhere does not matter."""
    from urllib.parse import unquote

    from pyspark.sql.functions import udf

    from tableformat import open_catalog

    warehouse = unquote(str(table.catalog.iceberg.properties["warehouse"]).removeprefix("file://"))  # type: ignore[union-attr]
    name, marker = table.name, str(Path(tempfile.mkdtemp()) / "called")

    def meanwhile(v):  # type: ignore[no-untyped-def]  # With hints it would be taken for a function of columns.
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return v
        with open_catalog(warehouse) as catalog:
            catalog.load_table(name).append(pa.table({"id": [99_999], "day": [None], "v": [0]}, schema=SCHEMA))
        return v

    spark.udf.register("meanwhile", udf(meanwhile, "long"))
    spark.sql(f"""
        MERGE INTO lake.{name} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = meanwhile(s.v)
    """)
    assert changed(table) == [(30001, 5), (30002, 5)]
    assert table.scan("id = 99999").to_arrow().num_rows == 1
