"""Options of batch reads: the snapshot or ref that is read, and that no option is ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from stream_runs import Source

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Ids 1 and 2 in the first snapshot, which has a tag; 2 is deleted on the branch `audit`; 3 is added on main."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    created.create_branch("audit")
    created.create_tag("first")
    lake.load_table(created.name, branch="audit").delete("id = 2", mode="scan")
    created.append(pa.table({"id": [3], "v": ["c"]}, schema=SCHEMA))
    return created.refresh()


@pytest.fixture
def first(table: Table) -> dict[str, str]:
    """The options that each name the first snapshot."""
    snapshot = table.at(tag="first").snapshot
    assert snapshot is not None
    moment = str(snapshot.timestamp_ms)
    return {"snapshot-id": str(snapshot.snapshot_id), "as-of-timestamp": moment, "tag": "first"}


def read(spark: SparkSession, table: Table | str, **options: Any) -> DataFrame:
    name = table if isinstance(table, str) else table.name
    return spark.read.options(**{key.replace("_", "-"): value for key, value in options.items()}).table(f"lake.{name}")


ONE_OPTION_A_STATEMENT = pytest.mark.since_spark(
    "4.3", "a table that one statement names twice has the options of each; older ones read both with the first's"
)


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.collect())


@pytest.mark.parametrize("option", ["snapshot-id", "as-of-timestamp", "tag"])
@pytest.mark.since_spark("4.0", "options of a table in SQL")
def test_snapshot_option_applies_to_every_kind_of_read(
    spark: SparkSession, table: Table, first: dict[str, str], option: str
) -> None:
    given = {option.upper(): first[option]}
    rows = read(spark, table, **given)
    assert ids(rows) == [1, 2]
    assert ids(rows.where("id >= 2")) == [2]
    assert [tuple(row) for row in rows.selectExpr("count(*)", "min(id)", "max(id)").collect()] == [(2, 1, 2)]
    assert sorted(tuple(row) for row in rows.select("id", "_pos", "_deleted").collect()) == [
        (1, 0, False),
        (2, 1, False),
    ]
    keys = spark.sql("SELECT explode(array(2L, 3L)) AS id")
    assert ids(rows.join(keys, "id")) == [2]
    assert ids(spark.sql(f"SELECT * FROM lake.{table.name} WITH (`{option}` = {first[option]!r})")) == [1, 2]
    assert ids(read(spark, table)) == [1, 2, 3]


@pytest.mark.since_spark("4.0", "options of a table in SQL")
def test_branch_option(spark: SparkSession, table: Table) -> None:
    audit = read(spark, table, branch="audit")
    assert ids(audit) == [1]
    assert audit.count() == 1
    assert ids(spark.sql(f"SELECT * FROM lake.{table.name} WITH (branch = 'audit')")) == [1]


@pytest.mark.since_spark("4.3", "options are known when a table is loaded, so that its columns are those of the state")
def test_snapshot_option_uses_the_schema_of_version_as_of(
    spark: SparkSession, table: Table, first: dict[str, str]
) -> None:
    spark.sql(f"ALTER TABLE lake.{table.name} RENAME COLUMN v TO w")
    spark.sql(f"ALTER TABLE lake.{table.name} ADD COLUMN x INT")
    for option, value in first.items():
        rows = read(spark, table, **{option: value})
        assert rows.columns == ["id", "v"]
        assert sorted(tuple(row) for row in rows.where("v > ''").collect()) == [(1, "a"), (2, "b")]
    assert read(spark, table, branch="audit").columns == ["id", "w", "x"]


@pytest.mark.since_spark("4.1", "a data frame looks its table up anew")
def test_dataframe_of_a_snapshot_ignores_concurrent_writes(
    spark: SparkSession, table: Table, first: dict[str, str]
) -> None:
    rows, audit = read(spark, table, snapshot_id=first["snapshot-id"]), read(spark, table, branch="audit")
    assert ids(audit) == [1]
    spark.sql(f"INSERT INTO lake.{table.name}.branch_audit VALUES (9, 'z')")
    assert ids(rows.select("id")) == [1, 2]
    assert ids(audit.select("id")) == [1, 9]


@ONE_OPTION_A_STATEMENT
def test_statements_read_sources_at_another_snapshot(spark: SparkSession, table: Table) -> None:
    name = f"lake.{table.name}"
    spark.sql(f"INSERT INTO {name} SELECT id + 10, v FROM {name} WITH (tag = 'first')")
    assert ids(read(spark, table)) == [1, 2, 3, 11, 12]
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM {name} WITH (branch = 'audit')) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE"
    )
    assert ids(read(spark, table)) == [2, 3, 11, 12]
    read(spark, table, tag="first").writeTo(name).option("branch", "audit").append()
    assert ids(read(spark, table, branch="audit")) == [1, 1, 2]


def test_metadata_tables(spark: SparkSession, table: Table, first: dict[str, str]) -> None:
    assert read(spark, f"{table.name}.data_files").count() == 2
    assert read(spark, f"{table.name}.data_files", snapshot_id=first["snapshot-id"]).count() == 1
    with pytest.raises(AnalysisException, match=r"Did you mean 'tag'"):
        read(spark, f"{table.name}.data_files", tagg="first").collect()


def test_unknown_option_error_suggests_the_nearest(spark: SparkSession, table: Table) -> None:
    for action in (DataFrame.collect, DataFrame.count):
        with pytest.raises(
            AnalysisException, match=r"unknown option 'snapshotid' of .*Did you mean 'snapshot-id'"
        ) as error:
            action(read(spark, table, snapshotId="1"))
        assert error.value.getCondition() == "TABLEFORMAT_UNKNOWN_OPTION"


def test_time_travel_options_of_spark(spark: SparkSession, table: Table, first: dict[str, str]) -> None:
    """ST-6: applied, or rejected if Spark itself ignores them."""
    version, moment = {"versionAsOf": first["snapshot-id"]}, {"timestampAsOf": "2999-01-01"}
    if spark.version < "4":
        for options in (version, moment):
            with pytest.raises(AnalysisException, match=r"no effect in Spark 3\.5"):
                read(spark, table, **options).collect()
    else:
        assert ids(read(spark, table, **version)) == [1, 2]
        assert ids(read(spark, table, **moment)) == [1, 2, 3]


REFUSED_STATES = [
    ({"tag": "first", "branch": "audit"}, "branch and tag both choose a state; pass only one"),
    ({"snapshot_id": "1", "as_of_timestamp": "1"}, "snapshot-id and as-of-timestamp both choose a state"),
    ({"snapshot_id": "1", "branch": "audit"}, "snapshot-id and branch both choose a state"),
    ({"snapshot_id": "77"}, "no snapshot 77"),
    ({"snapshot_id": "first"}, "option snapshot-id must be a number, not 'first'"),
    ({"as_of_timestamp": "1"}, "had no snapshot at 1970"),
    ({"as_of_timestamp": "today"}, "'today' is not ISO 8601"),
    ({"tag": "frist"}, r"no tag 'frist'.*Did you mean 'first'"),
    ({"branch": "audi"}, r"no branch 'audi'.*Did you mean 'audit'"),
]


def test_invalid_snapshot_options_are_rejected(spark: SparkSession, table: Table) -> None:
    """ST-6."""
    for options, message in REFUSED_STATES:
        with pytest.raises(AnalysisException, match=message):
            read(spark, table, **options).collect()


@pytest.mark.since_spark("4.0", "versionAsOf and timestampAsOf of readers")
def test_snapshot_by_option_and_by_version_as_of(spark: SparkSession, table: Table) -> None:
    """ST-6."""
    with pytest.raises(AnalysisException, match="both tag and VERSION AS OF"):
        read(spark, table, tag="first", versionAsOf="audit").collect()


def test_snapshot_by_name_and_by_option(spark: SparkSession, table: Table, first: dict[str, str]) -> None:
    """ST-5, ST-6."""
    with pytest.raises(AnalysisException, match="its name and tag both choose a state"):
        read(spark, f"{table.name}.branch_audit", tag="first").collect()
    with pytest.raises(AnalysisException, match="the name of branch audit and snapshot-id both choose a state"):
        read(spark, f"{table.name}.branch_audit", snapshot_id=first["snapshot-id"]).collect()


def test_streams_use_read_options(spark: SparkSession, table: Table, first: dict[str, str], tmp_path: Path) -> None:
    def stream(name: str, **options: str) -> list[Any]:
        rows = Source(spark, f"lake.{table.name}", tmp_path / name, columns=lambda each: each.select("id"), **options)
        return rows.batches()

    assert stream("snapshot", snapshot_id=first["snapshot-id"]) == [[(1,), (2,), (3,)]]
    assert stream(
        "branch", snapshot_id=first["snapshot-id"], branch="audit", streaming_skip_delete_snapshots="true"
    ) == [[(1,), (2,)]]
    options = {"snapshot-id": first["snapshot-id"], "streaming-skip-delete-snapshots": "true"}
    by_name = Source(spark, f"lake.{table.name}.branch_audit", tmp_path / "by_name", **options)
    assert by_name.batches() == [[(1, "a"), (2, "b")]]
    with pytest.raises(Exception, match=r"unknown option 'tag' of a stream"):
        stream("tag", tag="first")
    with pytest.raises(Exception, match=r"a stream from .* needs a table or branch that grows, not snapshot"):
        Source(spark, f"lake.{table.name}.tag_first", tmp_path / "name").batches()
    spark.sql(f"ALTER TABLE lake.{table.name} ADD COLUMN x INT")
    with pytest.raises(Exception, match=r"has other columns than the current table"):
        stream("columns", snapshot_id=first["snapshot-id"])


def test_stream_with_checkpoint_does_not_need_its_first_snapshot(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """SS-2."""
    table = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    first = table.append(pa.table({"id": [1], "v": ["a"]}, schema=SCHEMA)).snapshot_id
    stream = Source(spark, f"lake.{table.name}", tmp_path / "checkpoint", snapshot_id=first)
    assert stream.batches() == [[(1, "a")]]
    table.append(pa.table({"id": [2], "v": ["b"]}, schema=SCHEMA))
    table.maintenance.expire_snapshots(snapshot_ids=[first])
    assert stream.batches() == [[(2, "b")]]
