"""CALL lake.system.<name>: arguments, table names, errors, and the procedures that move branches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def make(lake: Catalog, identifier: tuple[str, ...]) -> Table:
    """Three snapshots, each with one row more."""
    created = lake.create_table(identifier, SCHEMA, key=["id"])
    for number in (1, 2, 3):
        append(created, number)
    return created


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    return make(lake, (namespace, "t"))


def append(table: Table, number: int) -> None:
    table.append(pa.table({"id": [number], "v": ["x"]}, schema=SCHEMA))


def call(spark: SparkSession, text: str) -> list[dict[str, Any]]:
    """Rows of `CALL lake.system.<text>`."""
    return [row.asDict() for row in spark.sql(f"CALL lake.system.{text}").collect()]


def failure(spark: SparkSession, text: str) -> AnalysisException:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"CALL lake.system.{text}")
    return caught.value


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM lake.{name}").collect())


def snapshots(table: Table) -> list[int]:
    found: list[int] = table.inspect.snapshots()["snapshot_id"].to_pylist()
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        "'{table}', {first}",
        "table => '{table}', snapshot_id => {first}",
        "snapshot_id => {first}, table => '{table}'",
        "'{table}', snapshot_id => {first}",
        "'{table}', {first}, NULL",
        "'{table}', {first}, branch => 'main'",
        pytest.param(
            "TABLE => '{table}', SNAPSHOT_ID => {first}",
            marks=pytest.mark.since_spark("4.1", "names of arguments in any case"),
        ),
        "'lake.{table}', bigint('{first}')",
    ],
)
def test_arguments_by_name_and_by_position(spark: SparkSession, table: Table, arguments: str) -> None:
    """PR-1, SQ-30."""
    first, _, third = snapshots(table)
    answer = call(spark, f"rollback_to_snapshot({arguments.format(table=table.name, first=first)})")
    assert answer == [{"previous_snapshot_id": third, "current_snapshot_id": first}]
    assert ids(spark, table.name) == [1]


def test_unknown_procedure_and_argument_errors_suggest_the_nearest(spark: SparkSession, table: Table) -> None:
    """PR-3."""
    error = failure(spark, f"rollback_to_snapshit('{table.name}', 1)")
    assert "Did you mean 'system.rollback_to_snapshot'" in str(error)
    error = failure(spark, f"rollback_to_snapshot(table => '{table.name}', snapshot_idd => 1)")
    assert error.getCondition() == "UNRECOGNIZED_PARAMETER_NAME"
    assert "snapshot_id" in str(error).split("Did you mean", 1)[1]
    with pytest.raises(AnalysisException, match="namespace 'system'"):
        spark.sql(f"CALL lake.sys.rollback_to_snapshot('{table.name}', 1)")


def test_missing_argument_and_null_for_a_required_one(spark: SparkSession, table: Table) -> None:
    """PR-1."""
    error = failure(spark, f"rollback_to_snapshot('{table.name}')")
    assert error.getCondition() == "REQUIRED_PARAMETER_NOT_FOUND"
    assert "snapshot_id" in str(error)
    assert "'snapshot_id' is required" in str(failure(spark, f"rollback_to_snapshot('{table.name}', NULL)"))
    assert "the argument table is empty" in str(failure(spark, "rollback_to_snapshot(NULL, 1)"))
    assert "WRONG_NUM_ARGS" in str(failure(spark, f"rollback_to_snapshot('{table.name}', 1, 'main', 4)"))
    assert ids(spark, table.name) == [1, 2, 3]


@pytest.mark.since_spark("4.1", "SHOW PROCEDURES")
def test_procedures_are_listed_and_described(spark: SparkSession) -> None:
    shown = [row.asDict() for row in spark.sql("SHOW PROCEDURES IN lake.system").collect()]
    names = [row["procedure_name"] for row in shown]
    assert names == sorted(names)
    assert {"rollback_to_snapshot", "fast_forward", "ancestors_of"} <= set(names)
    text = "\n".join(row[0] for row in spark.sql("DESCRIBE PROCEDURE lake.system.ancestors_of").collect())
    assert "The snapshot and its ancestors, newest first" in text
    assert "table (string, required): Name of the table" in text
    assert "snapshot_id (long): The snapshot to begin with" in text


def test_name_without_namespace_uses_the_current_namespace(spark: SparkSession, table: Table) -> None:
    """PR-2."""
    namespace, name = table.name.split(".")
    first, second, _ = snapshots(table)
    assert f"needs its namespace: table => 'namespace.{name}'" in str(failure(spark, f"ancestors_of('{name}')"))
    try:
        spark.sql(f"USE lake.{namespace}")
        assert [row.snapshot_id for row in spark.sql(f"CALL system.ancestors_of('{name}', {second})").collect()] == [
            second,
            first,
        ]
    finally:
        spark.sql("USE spark_catalog")


def test_invalid_table_names_are_rejected(spark: SparkSession, table: Table) -> None:
    namespace = table.name.split(".")[0]
    error = failure(spark, f"ancestors_of('{namespace}.tt')")
    assert error.getCondition() == "TABLEFORMAT_TABLE_NOT_FOUND"
    assert "in `backticks`" in str(failure(spark, f"ancestors_of('{namespace}.a b')"))
    assert "is in the catalog spark_catalog" in str(failure(spark, "ancestors_of('spark_catalog.a.b')"))


def test_cached_rows_are_refreshed_after_a_procedure(spark: SparkSession, table: Table) -> None:
    """PR-5."""
    first, _, third = snapshots(table)
    spark.sql(f"CACHE TABLE lake.{table.name}")
    try:
        assert ids(spark, table.name) == [1, 2, 3]
        call(spark, f"rollback_to_snapshot('{table.name}', {first})")
        assert ids(spark, table.name) == [1]
        spark.sql(f"ALTER TABLE lake.{table.name} CREATE TAG old")
        call(spark, f"set_current_snapshot('{table.name}', {third})")
        assert ids(spark, table.name) == [1, 2, 3]
        frame = spark.sql(f"SELECT count(*) AS n FROM lake.{table.name}").cache()
        assert frame.collect()[0].n == 3
        call(spark, f"rollback_to_snapshot('{table.name}', {first})")
        assert spark.sql(f"SELECT count(*) AS n FROM lake.{table.name}").collect()[0].n == 1
    finally:
        spark.catalog.clearCache()


def test_rollback_to_timestamp(spark: SparkSession, table: Table) -> None:
    """PR-6."""
    first, _, third = snapshots(table)
    moment = table.inspect.snapshots()["committed_at"].to_pylist()[0]
    text = f"rollback_to_timestamp('{table.name}', TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}')"
    assert call(spark, text) == [{"previous_snapshot_id": third, "current_snapshot_id": first}]
    error = failure(spark, f"rollback_to_timestamp('{table.name}', TIMESTAMP '2001-01-01 00:00:00')")
    assert error.getCondition() == "TABLEFORMAT_SNAPSHOT_NOT_FOUND"


def test_set_current_snapshot_by_id_and_by_ref(spark: SparkSession, table: Table) -> None:
    first, second, third = snapshots(table)
    table.create_tag("one", first)
    assert call(spark, f"set_current_snapshot(table => '{table.name}', ref => 'one')") == [
        {"previous_snapshot_id": third, "current_snapshot_id": first}
    ]
    assert call(spark, f"set_current_snapshot('{table.name}', {second})") == [
        {"previous_snapshot_id": first, "current_snapshot_id": second}
    ]
    assert ids(spark, table.name) == [1, 2]
    assert "either snapshot_id or ref" in str(failure(spark, f"set_current_snapshot('{table.name}')"))
    assert "either snapshot_id or ref" in str(failure(spark, f"set_current_snapshot('{table.name}', {first}, 'one')"))
    assert "Did you mean 'one'" in str(failure(spark, f"set_current_snapshot('{table.name}', ref => 'onw')"))


def test_fast_forward(spark: SparkSession, lake: Catalog, table: Table) -> None:
    third = table.snapshot_id
    table.create_branch("audit")
    audit = lake.load_table(table.name, branch="audit")
    append(audit, 4)
    assert call(spark, f"fast_forward('{table.name}', 'main', 'audit')") == [
        {"branch_updated": "main", "previous_ref": third, "updated_ref": audit.snapshot_id}
    ]
    assert ids(spark, table.name) == [1, 2, 3, 4]
    assert call(spark, f"fast_forward('{table.name}', 'new', to => 'audit')")[0]["previous_ref"] is None
    append(table.refresh(), 5)
    assert "cannot be moved forward" in str(failure(spark, f"fast_forward('{table.name}', 'main', 'audit')"))


def test_procedures_on_a_branch(spark: SparkSession, lake: Catalog, table: Table) -> None:
    """PR-4."""
    first, _, third = snapshots(table)
    table.create_branch("audit")
    call(spark, f"rollback_to_snapshot('{table.name}', {first}, branch => 'audit')")
    assert ids(spark, f"{table.name} VERSION AS OF 'audit'") == [1]
    assert ids(spark, table.name) == [1, 2, 3]
    assert "Did you mean 'audit'" in str(
        failure(spark, f"rollback_to_snapshot('{table.name}', {first}, branch => 'audt')")
    )
    assert [row["snapshot_id"] for row in call(spark, f"ancestors_of('{table.name}', branch => 'audit')")] == [first]
    assert call(spark, f"ancestors_of('{table.name}')")[0]["snapshot_id"] == third


def test_ancestors_of(spark: SparkSession, table: Table, lake: Catalog, namespace: str) -> None:
    listed = table.inspect.snapshots()
    times = [int(moment.timestamp() * 1000) for moment in listed["committed_at"].to_pylist()]
    expected = list(zip(snapshots(table), times, strict=True))[::-1]
    answer = call(spark, f"ancestors_of('{table.name}')")
    assert [(row["snapshot_id"], row["timestamp"]) for row in answer] == expected
    lake.create_table((namespace, "empty"), SCHEMA)
    assert call(spark, f"ancestors_of('{namespace}.empty')") == []


def test_result_columns_have_icebergs_names_and_types(spark: SparkSession, table: Table) -> None:
    first, *_ = snapshots(table)
    moved = spark.sql(f"CALL lake.system.rollback_to_snapshot('{table.name}', {first})")
    assert moved.dtypes == [("previous_snapshot_id", "bigint"), ("current_snapshot_id", "bigint")]
    assert spark.sql(f"CALL lake.system.fast_forward('{table.name}', 'a', 'main')").dtypes == [
        ("branch_updated", "string"),
        ("previous_ref", "bigint"),
        ("updated_ref", "bigint"),
    ]
    listed = spark.sql(f"CALL lake.system.ancestors_of('{table.name}')")
    assert listed.dtypes == [("snapshot_id", "bigint"), ("timestamp", "bigint")]
