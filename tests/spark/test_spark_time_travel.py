"""VERSION AS OF, TIMESTAMP AS OF, metadata tables and metadata columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Three snapshots: ids 1 to 3; id 2 deleted; id 4 added. A tag on the first, a branch at the second."""
    from datetime import date

    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"], partition_by=["month(day)"])
    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 1)]
    created.append(pa.table({"id": [1, 2, 3], "day": days, "v": ["a", "b", "c"]}, schema=SCHEMA))
    created.create_tag("first")
    created.delete("id = 2", mode="equality")
    created.create_branch("audit")
    created.append(pa.table({"id": [4], "day": days[:1], "v": ["d"]}, schema=SCHEMA))
    return created


def ids(spark: SparkSession, query: str) -> list[int]:
    return sorted(row.id for row in spark.sql(query).collect())


def test_version_as_of(spark: SparkSession, table: Table) -> None:
    name = f"lake.{table.name}"
    first, second, third = table.inspect.snapshots()["snapshot_id"].to_pylist()
    assert ids(spark, f"SELECT id FROM {name}") == [1, 3, 4]
    assert ids(spark, f"SELECT id FROM {name} VERSION AS OF {first}") == [1, 2, 3]
    assert ids(spark, f"SELECT id FROM {name} VERSION AS OF {second}") == [1, 3]
    assert ids(spark, f"SELECT id FROM {name} VERSION AS OF {third}") == [1, 3, 4]
    assert ids(spark, f"SELECT id FROM {name} VERSION AS OF 'first'") == [1, 2, 3]
    assert ids(spark, f"SELECT id FROM {name} VERSION AS OF 'audit'") == [1, 3]
    joined = f"SELECT a.id FROM {name} VERSION AS OF 'first' a LEFT ANTI JOIN {name} b ON a.id = b.id"
    assert ids(spark, joined) == [2]


def test_timestamp_as_of(spark: SparkSession, table: Table) -> None:
    name = f"lake.{table.name}"
    first = table.inspect.snapshots()["committed_at"].to_pylist()[0]
    assert ids(spark, f"SELECT id FROM {name} TIMESTAMP AS OF '{first:%Y-%m-%d %H:%M:%S.%f}'") == [1, 2, 3]
    assert ids(spark, f"SELECT id FROM {name} TIMESTAMP AS OF current_timestamp()") == [1, 3, 4]
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"SELECT id FROM {name} TIMESTAMP AS OF '2001-01-01'")
    assert caught.value.getCondition() == "TABLEFORMAT_SNAPSHOT_NOT_FOUND"


@pytest.mark.parametrize("version", ["'frist'", "17"])
def test_unknown_version_raises_error(spark: SparkSession, table: Table, version: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"SELECT * FROM lake.{table.name} VERSION AS OF {version}")
    assert caught.value.getCondition() == "TABLEFORMAT_SNAPSHOT_NOT_FOUND"


def test_old_snapshot_is_read_with_its_schema(spark: SparkSession, table: Table) -> None:
    spark.sql(f"ALTER TABLE lake.{table.name} RENAME COLUMN v TO w")
    assert spark.sql(f"SELECT * FROM lake.{table.name} VERSION AS OF 'first'").columns == ["id", "day", "v"]
    assert spark.sql(f"SELECT * FROM lake.{table.name}").columns == ["id", "day", "w"]


def test_metadata_columns(spark: SparkSession, table: Table) -> None:
    found = spark.sql(
        f"SELECT id, _pos, _spec_id, _partition.day_month AS month, _file FROM lake.{table.name} ORDER BY id"
    ).collect()
    files = table.refresh().inspect.data_files().to_pylist()
    assert [(row.id, row._pos, row._spec_id, row.month) for row in found] == [
        (1, 0, 0, 648),
        (3, 0, 0, 649),
        (4, 0, 0, 648),
    ]
    assert {row._file for row in found} == {file["file_path"] for file in files}


def test_deleted_rows_are_visible_with_deleted_column(spark: SparkSession, table: Table) -> None:
    table.delete_prefix({"id": 3})
    found = spark.sql(f"SELECT id, _deleted FROM lake.{table.name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, False), (2, True), (3, True), (4, False)]
    only = spark.sql(f"SELECT id FROM lake.{table.name} WHERE _deleted").collect()
    assert sorted(row.id for row in only) == [2, 3]


@pytest.mark.parametrize(
    "name",
    ["snapshots", "history", "files", "data_files", "delete_files", "manifests", "partitions", "refs", "entries"],
)
def test_metadata_tables_agree_with_python(spark: SparkSession, table: Table, name: str) -> None:
    found = spark.sql(f"SELECT * FROM lake.{table.name}.{name}")
    expected = getattr(table.refresh().inspect, name)()
    ours = [column for column in ("kind", "sequence_number", "min_sequence_number") if column in expected.column_names]
    assert found.columns == [each for each in expected.column_names if each not in ours or name == "entries"]
    found = spark.table(f"lake.{table.name}.{name}").select("*", *(each for each in ours if each not in found.columns))
    rows = [row.asDict(True) for row in found.collect()]
    assert len(rows) == expected.num_rows > 0
    for column in {"snapshot_id", "file_path", "kind", "path", "name", "spec_id", "operation", "status"} & set(
        found.columns
    ):
        assert [row[column] for row in rows] == expected[column].to_pylist()


def test_self_join_reads_one_snapshot_during_concurrent_write(spark: SparkSession, table: Table) -> None:
    frame = spark.table(f"lake.{table.name}")
    before = frame.count()
    both = frame.alias("a").join(frame.alias("b"), "id")
    both.explain()
    table.append(pa.table({"id": [9], "day": [None], "v": ["z"]}, schema=SCHEMA))
    assert both.count() in {before, before + 1}
    assert spark.table(f"lake.{table.name}").count() == before + 1


_FILE = (
    "content:int,file_path:string,file_format:string,spec_id:int,partition:struct<>,record_count:bigint,"
    "file_size_in_bytes:bigint,column_sizes:map<int,bigint>,value_counts:map<int,bigint>,"
    "null_value_counts:map<int,bigint>,nan_value_counts:map<int,bigint>,lower_bounds:map<int,binary>,"
    "upper_bounds:map<int,binary>,key_metadata:binary,split_offsets:array<bigint>,equality_ids:array<int>,"
    "sort_order_id:int,first_row_id:bigint,referenced_data_file:string,content_offset:bigint,"
    "content_size_in_bytes:bigint"
)


_METRICS = (
    "readable_metrics:struct<a:struct<column_size:bigint,value_count:bigint,null_value_count:bigint,"
    "nan_value_count:bigint,lower_bound:bigint,upper_bound:bigint>>"
)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (
            "snapshots",
            "committed_at:timestamp,snapshot_id:bigint,parent_id:bigint,operation:string,manifest_list:string,"
            "summary:map<string,string>",
        ),
        ("history", "made_current_at:timestamp,snapshot_id:bigint,parent_id:bigint,is_current_ancestor:boolean"),
        ("files", f"{_FILE},{_METRICS}"),
        ("delete_files", f"{_FILE},{_METRICS}"),
        (
            "manifests",
            "content:int,path:string,length:bigint,partition_spec_id:int,added_snapshot_id:bigint,"
            "added_data_files_count:int,existing_data_files_count:int,deleted_data_files_count:int,"
            "added_delete_files_count:int,existing_delete_files_count:int,deleted_delete_files_count:int,"
            "partition_summaries:array<struct<contains_null:boolean,contains_nan:boolean,lower_bound:string,"
            "upper_bound:string>>",
        ),
        (
            "refs",
            "name:string,type:string,snapshot_id:bigint,max_reference_age_in_ms:bigint,min_snapshots_to_keep:int,"
            "max_snapshot_age_in_ms:bigint",
        ),
        (
            "entries",
            "status:int,snapshot_id:bigint,sequence_number:bigint,file_sequence_number:bigint,"
            f"data_file:struct<{_FILE}>,{_METRICS}",
        ),
    ],
)
def test_metadata_tables_have_icebergs_columns(
    spark: SparkSession, lake: Catalog, namespace: str, name: str, columns: str
) -> None:
    """Names, order and types as Iceberg's."""
    lake.create_table((namespace, "m"), pa.schema([("a", pa.int64())]), partition_by=["bucket(2, a)"])
    found = spark.table(f"lake.{namespace}.m.{name}").schema.simpleString()
    assert found == f"struct<{columns}>".replace("struct<>", "struct<a_bucket:int>")
