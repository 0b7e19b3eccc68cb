"""Iceberg metadata tables that cover more than one snapshot, names of refs and snapshots, and `changes`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
OF_FILES = (
    "content,file_path,file_format,spec_id,record_count,file_size_in_bytes,column_sizes,value_counts,null_value_counts,"
    "nan_value_counts,lower_bounds,upper_bounds,key_metadata,split_offsets,equality_ids,sort_order_id,first_row_id,"
    "referenced_data_file,content_offset,content_size_in_bytes"
)
OF_MANIFESTS = (
    "content,path,length,partition_spec_id,added_snapshot_id,added_data_files_count,existing_data_files_count,"
    "deleted_data_files_count,added_delete_files_count,existing_delete_files_count,deleted_delete_files_count,"
    "partition_summaries"
)


def rows(ids: list[int], value: str) -> pa.Table:
    return pa.table({"id": ids, "v": [value] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Three rows, one of them deleted by position, another by a range delete; then all rewritten into one file."""
    made = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    made.append(rows([1, 2], "a"))
    made.append(rows([3], "b"))
    made.delete("v = 'a' AND id > 1", mode="scan")
    made.delete_prefix({"id": 3})
    made.create_tag("before")
    made.maintenance.compact(rewrite_all=True)
    made.maintenance.drop_dead_deletes()
    return made


def select(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def test_metadata_columns_match_iceberg_and_own_columns_are_hidden(spark: SparkSession, table: Table) -> None:
    """SP-32."""
    name = f"lake.{table.name}"
    for files in ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"):
        assert spark.table(f"{name}.{files}").columns == [*OF_FILES.split(","), "readable_metrics"]
    assert spark.table(f"{name}.manifests").columns == OF_MANIFESTS.split(",")
    assert spark.table(f"{name}.all_manifests").columns == [
        *OF_MANIFESTS.split(","), "reference_snapshot_id", "key_metadata",
    ]  # fmt: skip
    for entries in ("entries", "all_entries"):
        found = spark.table(f"{name}.{entries}")
        assert found.columns == [
            "status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file", "readable_metrics",
        ]  # fmt: skip
        assert found.select("data_file.*").columns == OF_FILES.split(",")
    kinds = select(spark, f"SELECT DISTINCT kind FROM {name}.all_entries ORDER BY kind")
    assert kinds == [("data",), ("position",), ("range",)]
    assert select(spark, f"SELECT min(sequence_number), count(*) FROM {name}.all_manifests")[0][0] == 1


def test_readable_metrics_have_the_types_of_columns(spark: SparkSession, table: Table) -> None:
    found = select(
        spark,
        "SELECT readable_metrics.id.lower_bound, readable_metrics.id.upper_bound, readable_metrics.v.lower_bound, "
        f"readable_metrics.v.value_count FROM lake.{table.name}.entries VERSION AS OF 'before' "
        "WHERE kind = 'data' ORDER BY 1",
    )
    assert found == [(1, 2, "a", 2), (3, 3, "b", 1)]


def test_position_deletes(spark: SparkSession, table: Table) -> None:
    name = f"lake.{table.name}"
    assert spark.table(f"{name}.position_deletes").count() == 0
    found = spark.sql(f"SELECT * FROM {name}.tag_before.position_deletes")
    assert found.columns == ["file_path", "pos", "row", "spec_id", "delete_file_path"]
    [(data_path, position, row, spec_id, delete_path)] = found.collect()
    assert (position, row, spec_id) == (1, None, 0)
    files = dict(select(spark, f"SELECT kind, file_path FROM {name}.tag_before.files WHERE kind = 'position'"))
    assert delete_path == files["position"]
    assert spark.sql(f"SELECT * FROM {name}.tag_before.data_files WHERE file_path = '{data_path}'").count() == 1


def test_metadata_table_at_a_timestamp_by_name(spark: SparkSession, table: Table) -> None:
    """ST-5."""
    moments = table.inspect.snapshots()["committed_at"].cast(pa.int64()).to_pylist()
    name = f"lake.{table.name}.at_timestamp_{moments[0]}"
    assert select(spark, f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]
    assert spark.table(f"{name}.data_files").count() == 1
    with pytest.raises(AnalysisException, match="does not support append"):
        spark.sql(f"INSERT INTO {name} VALUES (9, 'x')")
    with pytest.raises(AnalysisException, match="had no snapshot"):
        spark.table(f"lake.{table.name}.at_timestamp_1")


def changes(spark: SparkSession, table: Table, **options: object) -> DataFrame:
    given = {name.replace("_", "-"): str(value) for name, value in options.items()}
    return spark.read.options(**given).table(f"lake.{table.name}.changes")


def test_changes_table_matches_iceberg(spark: SparkSession, table: Table) -> None:
    """SP-34, CF-3, CF-4."""
    first, second, third, fourth, *_, compacted = table.inspect.snapshots()["snapshot_id"].to_pylist()
    found = changes(spark, table)
    assert found.columns == ["id", "v", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert sorted(map(tuple, found.collect()), key=lambda row: (row[3], row[0])) == [
        (1, "a", "INSERT", 0, first),
        (2, "a", "INSERT", 0, first),
        (3, "b", "INSERT", 1, second),
        (2, "a", "DELETE", 2, third),
        (3, "b", "DELETE", 3, fourth),
    ]
    after = changes(spark, table, start_snapshot_id=first, end_snapshot_id=third).where("_change_type = 'DELETE'")
    assert [tuple(row) for row in after.collect()] == [(2, "a", "DELETE", 1, third)]
    assert changes(spark, table, start_snapshot_id=fourth, end_snapshot_id=compacted).count() == 0
    moments = table.inspect.snapshots()["committed_at"].cast(pa.int64()).to_pylist()
    between = changes(spark, table, start_timestamp=moments[0], end_timestamp=moments[1])
    assert [row.id for row in between.collect()] == [3]
