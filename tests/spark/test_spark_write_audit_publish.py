"""`spark.wap.branch` and `spark.wap.id`: writes of a session that are published after they were checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

NAMES = ("spark.wap.branch", "spark.wap.id")


@pytest.fixture(autouse=True)
def session_says_nothing(spark: SparkSession) -> Iterator[None]:
    yield
    for name in NAMES:
        spark.conf.unset(name)


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """Ids 1 to 3."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return lake.load_table((namespace, "t"))


def ids(spark: SparkSession, table: Table, name: str = "") -> list[int]:
    return [row.id for row in spark.sql(f"SELECT id FROM lake.{table.name}{name} ORDER BY id").collect()]


def test_wap_branch_redirects_writes_and_reads(
    spark: SparkSession, table: Table, lake: Catalog, namespace: str
) -> None:
    """SP-23: every kind of statement; a table that is not enabled does not listen."""
    name = f"lake.{table.name}"
    spark.conf.set("spark.wap.branch", "audit")
    assert ids(spark, table) == [1, 2, 3]
    assert list(table.refresh().metadata.refs) == ["main"]
    spark.sql(f"UPDATE {name} SET v = 'x' WHERE id % 2 = 0")
    spark.sql(f"INSERT INTO {name} VALUES (4, 'd')")
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 3L id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert ids(spark, table) == ids(spark, table, ".branch_audit") == [2, 4]
    assert ids(spark, table, " VERSION AS OF 'main'") == [1, 2, 3]
    table.refresh().create_branch("other")
    spark.range(1).selectExpr("id", "'v' v").writeTo(name).option("branch", "other").append()
    spark.sql(f"INSERT INTO {name}.branch_other VALUES (7, 'g'), (8, 'h')")
    spark.sql(f"UPDATE {name}.branch_other SET id = id + 1 WHERE id % 7 = 0")
    assert ids(spark, table, ".branch_other") == [1, 1, 2, 3, 8, 8]
    assert ids(spark, table) == [2, 4]
    spark.sql(f"CREATE TABLE lake.{namespace}.deaf AS SELECT 1L id")
    spark.sql(f"INSERT INTO lake.{namespace}.deaf VALUES (2)")
    assert list(lake.load_table((namespace, "deaf")).metadata.refs) == ["main"]

    spark.sql(f"CREATE TABLE lake.{namespace}.u (id BIGINT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.sql(f"INSERT INTO lake.{namespace}.u VALUES (1)")
    assert list(lake.load_table((namespace, "u")).metadata.refs) == ["audit"]
    spark.conf.unset("spark.wap.branch")
    assert ids(spark, table) == [1, 2, 3]
    spark.sql(f"CALL lake.system.fast_forward('{table.name}', 'main', 'audit')").collect()
    assert ids(spark, table) == [2, 4]
    spark.conf.set("spark.wap.branch", "audit")
    spark.sql(f"UPDATE {name}.branch_main SET id = 5 WHERE id = 4")
    assert (ids(spark, table, ".branch_main"), ids(spark, table)) == ([2, 5], [2, 4])


def test_wap_snapshots_are_published_once(spark: SparkSession, table: Table) -> None:
    """SP-23, SP-24: an append at any time, other changes only if nothing was committed in between."""
    name, main = f"lake.{table.name}", table.snapshot_id
    staged: dict[str, int] = {}
    for wap_id, statement in {
        "rows": f"INSERT INTO {name} VALUES (4, 'd')",
        "gone": f"DELETE FROM {name} WHERE id = 1",
        "changed": f"UPDATE {name} SET v = 'x' WHERE id % 2 = 0",
    }.items():
        spark.conf.set("spark.wap.id", wap_id)
        spark.sql(statement)
        newest = max(table.refresh().metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
        staged[wap_id] = newest.snapshot_id
        assert ids(spark, table) == [1, 2, 3]
    assert table.refresh().snapshot_id == main
    spark.conf.set("spark.wap.branch", "audit")
    with pytest.raises(AnalysisException, match="Unset one of them"):
        spark.sql(f"INSERT INTO {name} VALUES (5, 'e')")
    spark.sql(f"CREATE TABLE {name}2 (id BIGINT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.sql(f"DROP TABLE {name}2")
    for each in NAMES:
        spark.conf.unset(each)

    moved = spark.sql(f"CALL lake.system.publish_changes('{table.name}', 'gone')").collect()
    assert [tuple(row) for row in moved] == [(staged["gone"], staged["gone"])]
    picked = spark.sql(
        f"CALL lake.system.cherrypick_snapshot(table => '{table.name}', snapshot_id => {staged['rows']})"
    ).collect()
    assert picked[0].source_snapshot_id == staged["rows"] != picked[0].current_snapshot_id
    assert picked[0].current_snapshot_id == table.refresh().snapshot_id
    assert ids(spark, table) == [2, 3, 4]
    for call, message in {
        f"publish_changes('{table.name}', 'rows')": "was already published to 'main'|is already in the history",
        f"cherrypick_snapshot('{table.name}', {staged['gone']})": "is already in the history of 'main'",
        f"publish_changes('{table.name}', 'changed')": "deletes or replaces rows of its parent",
        f"publish_changes('{table.name}', 'none')": "no snapshot was staged with the WAP id 'none'",
        f"cherrypick_snapshot('{table.name}', 7)": "has no snapshot 7",
    }.items():
        with pytest.raises(AnalysisException, match=message):
            spark.sql(f"CALL lake.system.{call}").collect()
    assert ids(spark, table) == [2, 3, 4]
