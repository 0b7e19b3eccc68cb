"""Tables of format version 3: how they are created, and that every operation does the same as on version 2."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from v3_tables import SCHEMA, ids, new_catalog, new_table, rows, vectors

import tableformat as tf
from tableformat.errors import InvalidArgumentError, RowsRefusedError, UnsupportedFeatureError
from tableformat.metadata.content_file import DeleteKind
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_values

# -- how a table gets version 3 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition_by", [(), ("region",)])
def test_a_table_is_created_in_version_3_and_read_by_pyiceberg(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    table = new_table(new_catalog(tmp_path), partition_by=partition_by)
    document = json.loads(Path(table.iceberg.metadata_location.removeprefix("file://")).read_text())
    assert (document["format-version"], document["next-row-id"]) == (3, 0)
    assert "format-version" not in table.properties
    assert table.key == ("region", "id")
    table.append(rows("a", 1, 2))
    assert table.iceberg.scan().to_arrow().sort_by("id")["note"].to_pylist() == ["a1", "a2"]


def test_format_version_as_a_property_upgrades_a_table(tmp_path: Path) -> None:
    """FM-19."""
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, 2)
    table.append(rows("a", 1))
    table.set_properties({"format-version": "3", "owner": "ann"}, comment="upgraded")
    again = catalog.load_table("db.t")
    assert again.metadata.format_version == table.metadata.format_version == 3
    assert (again.properties["owner"], again.properties["comment"]) == ("ann", "upgraded")
    assert "format-version" not in again.properties
    assert ids(again) == [("a", 1)]


def test_v1_table_is_upgraded_to_v2_or_v3(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    for version in (2, 3):
        name, like = f"db.to_{version}", new_table(catalog, 2, name=f"like_{version}")
        catalog.iceberg.create_table(name, like.iceberg.schema(), properties={"format-version": "1"})
        table = catalog.load_table(name)
        assert table.metadata.format_version == 1
        table.upgrade(version)
        table.append(rows("a", 1))
        assert (table.metadata.format_version, ids(table)) == (version, [("a", 1)])


def test_invalid_format_versions_are_rejected(tmp_path: Path) -> None:
    """FM-3, FM-19."""
    catalog = new_catalog(tmp_path)
    table = new_table(catalog)
    with pytest.raises(InvalidArgumentError, match="format-version 3 and cannot be downgraded to 2"):
        table.upgrade(2)
    with pytest.raises(UnsupportedFeatureError, match="format-version 4 is newer than 3"):
        table.upgrade(4)
    with pytest.raises(InvalidArgumentError, match="must be a whole number such as '3', not 'three'"):
        catalog.create_table("db.u", SCHEMA, properties={"format-version": "three"})
    with pytest.raises(UnsupportedFeatureError, match="newer than 3"):
        catalog.create_table("db.u", SCHEMA, properties={"format-version": "4"})
    assert not catalog.table_exists("db.u")


def test_v3_tables_in_pyiceberg_sql_catalog(tmp_path: Path) -> None:
    """LK-11: PyIceberg itself writes metadata up to version 2."""
    warehouse = {"uri": f"sqlite:///{tmp_path}/other.db", "warehouse": f"file://{tmp_path}/other"}
    with new_lake("other", type="sql", **warehouse) as catalog:
        made = catalog.create_table("db.made", SCHEMA, key=["region", "id"], properties={"format-version": "3"})
        upgraded = catalog.create_table("db.upgraded", SCHEMA, key=["region", "id"])
        upgraded.append(rows("a", 1, 2))
        upgraded.upgrade(3)
        made.append(rows("a", 1, 2))
        for table in (made, upgraded):
            table.delete_prefix({"region": "a", "id": 1})
            table.maintenance.convert_deletes()
            assert [vector.kind for vector in live_delete_files(table)] == [DeleteKind.DELETION_VECTOR]
            read = catalog.load_table(table.name)
            assert read.metadata.format_version == 3
            assert ids(read) == [("a", 2)]
            assert read.iceberg.scan().to_arrow()["id"].to_pylist() == [2]


# -- verbs ------------------------------------------------------------------------------------------------------------


def delete_by_scan(table: tf.Table) -> None:
    table.delete("id = 2 OR id = 4", mode="scan")
    table.delete("id = 3", mode="scan")


def delete_every_row_of_a_file(table: tf.Table) -> None:
    table.delete("id = 3", mode="scan")
    table.delete("region = 'a'", mode="scan")


def upsert_and_replace(table: tf.Table) -> None:
    table.upsert(rows("a", 2, 9, note="new "))
    table.replace(rows("b", 7, note="new "), prefix=["region"])


def change_by_filter(table: tf.Table) -> None:
    table.overwrite(rows("a", 3, 8, note="new "), where="note = 'a3'", allow_outside=True)
    table.append(rows("a", 1, 10, note="new "), on_duplicate="ignore")


def transact(table: tf.Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows("c", 1, 2, 3))
        transaction.delete("region = 'c' AND id = 2 OR note = 'a1'", mode="scan")
        transaction.delete_prefix({"region": "b"})
        transaction.upsert(rows("c", 3, 4, note="new "))


def convert(table: tf.Table) -> None:
    table.delete("id = 1", mode="scan")
    table.delete_prefix({"region": "a", "id": 3})
    table.delete_rows(pa.table({"note": ["b4", "b5"]}))
    table.maintenance.convert_deletes()


def convert_away_a_file(table: tf.Table) -> None:
    table.delete("id = 1", mode="scan")
    table.delete_prefix({"region": "a"})
    table.delete_rows(pa.table({"note": [f"b{number}" for number in range(6)]}))
    table.maintenance.convert_deletes()


def roll_back(table: tf.Table) -> None:
    kept = table.delete("id = 1", mode="scan").snapshot_id
    table.delete("id = 2", mode="scan")
    table.rollback(snapshot_id=kept)
    table.delete("id = 3", mode="scan")


STORIES: list[Callable[[tf.Table], None]] = [
    delete_by_scan,
    delete_every_row_of_a_file,
    upsert_and_replace,
    change_by_filter,
    transact,
    convert,
    convert_away_a_file,
    roll_back,
]


@pytest.mark.parametrize("partition_by", [(), ("bucket(2, id)",)], ids=["whole", "partitioned"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_v3_returns_the_same_rows_as_v2(
    tmp_path: Path, story: Callable[[tf.Table], None], partition_by: tuple[str, ...]
) -> None:
    """DA-7: now, and at every snapshot on the way; never a new position delete file."""
    catalog = new_catalog(tmp_path)
    states = []
    for version in (2, 3):
        table = new_table(catalog, version, name=f"v{version}", partition_by=partition_by)
        table.append(rows("a", 1, 2, 3, 4, 5))
        table.append(rows("b", 1, 2, 3, 4, 5))
        story(table)
        snapshots = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        states.append(
            [
                sorted(map(str, table.scan(**chosen).to_arrow().to_pylist()))
                for chosen in ({}, *({"snapshot_id": snapshot_id} for snapshot_id in snapshots))
            ]
        )
    assert states[0] == states[1]
    kinds = {delete.kind for delete in live_delete_files(table)}
    assert DeleteKind.POSITION not in kinds
    vectors(table)
    live_paths = {data.file_path for data in live_data_files(table)}
    assert set(vectors(table)) <= live_paths


def test_vector_is_removed_with_its_fully_deleted_file(tmp_path: Path) -> None:
    """CP-20."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 1, 2, 3))
    table.append(rows("b", 1))
    table.delete("id = 2", mode="scan")
    table.delete("region = 'a'", mode="scan")
    data, deletes = live_data_files(table), live_delete_files(table)
    assert ([file.record_count for file in data], deletes) == ([1], [])
    summary = table.metadata.snapshots[-1].summary
    assert summary is not None
    assert (summary["removed-dvs"], summary["total-delete-files"], summary["total-position-deletes"]) == ("1", "0", "0")


def test_summary_counts_vector_bytes_individually(tmp_path: Path) -> None:
    """As in Iceberg's Java library: otherwise files that vectors share would be counted several times."""
    table = new_table(new_catalog(tmp_path), partition_by=["region"])
    table.append(rows("a", 1, 2, 3))
    table.append(rows("b", 1, 2, 3))
    result = table.delete("id = 2", mode="scan")
    summary = table.metadata.snapshots[-1].summary
    assert summary is not None
    assert (summary["added-dvs"], summary["added-delete-files"], summary["added-position-deletes"]) == ("2", "2", "2")
    own = sum(vector.content_size_bytes or 0 for vector in vectors(table).values())
    assert summary["added-files-size"] == str(own)
    assert own < result.written_bytes


def test_conversion_merges_with_existing_vector(tmp_path: Path) -> None:
    """DA-7, decision 13."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 1, 2, 3, 4, 5))
    table.append(rows("b", 1, 2))
    table.delete("id = 2", mode="scan")
    table.delete_prefix({"region": "a", "id": 4})
    preview = table.maintenance.convert_deletes(dry_run=True)
    result = table.maintenance.convert_deletes()
    for told in (preview, result):
        assert (told.added_deletion_vectors_count, told.removed_deletion_vectors_count) == (1, 1)
        assert (told.added_position_delete_files_count, told.removed_position_delete_files_count) == (0, 0)
        assert (told.removed_range_delete_files_count, told.deleted_row_count) == (1, 1)
    assert sorted(vector.record_count for vector in vectors(table).values()) == [1, 2]
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    assert ids(table) == [("a", 1), ("a", 3), ("a", 5), ("b", 1)]


def test_position_deletes_before_upgrade_apply_until_merged_into_vector(tmp_path: Path) -> None:
    """DA-7: the vector holds what the position delete files of its data file held, and they leave with its commit."""
    table = new_table(new_catalog(tmp_path), 2)
    table.append(rows("a", 1, 2, 3, 4))
    table.append(rows("b", 1, 2, 3, 4))
    table.delete("id = 1", mode="scan")
    table.upgrade()
    table.delete("region = 'b' AND id = 2", mode="scan")
    assert sorted((delete.kind.value, delete.record_count) for delete in live_delete_files(table)) == [
        ("deletion-vector", 2),
        ("position", 1),
    ]
    assert ids(table) == [("a", 2), ("a", 3), ("a", 4), ("b", 3), ("b", 4)]
    table.delete_rows(pa.table({"note": ["a4"]}))
    result = table.maintenance.convert_deletes()
    assert (result.added_deletion_vectors_count, result.removed_position_delete_files_count) == (1, 1)
    assert ids(table) == [("a", 2), ("a", 3), ("b", 3), ("b", 4)]
    assert [delete.kind for delete in live_delete_files(table)] == [DeleteKind.DELETION_VECTOR] * 2


# -- types and defaults -----------------------------------------------------------------------------------------------

DEFAULTS: dict[str, tuple[iceberg.IcebergType, Any]] = {
    "yes": (iceberg.BooleanType(), True),
    "small": (iceberg.IntegerType(), 7),
    "large": (LongType(), 1 << 40),
    "half": (iceberg.FloatType(), 1.5),
    "price": (iceberg.DecimalType(9, 2), Decimal("12.34")),
    "day": (iceberg.DateType(), dt.date(2024, 2, 29)),
    "time": (iceberg.TimeType(), dt.time(12, 30, 1)),
    "ts": (iceberg.TimestampType(), dt.datetime(2024, 1, 1, 1, 2, 3)),
    "tz": (iceberg.TimestamptzType(), "2024-01-01T01:02:03+00:00"),
    "text": (iceberg.StringType(), "x"),
    "bytes": (iceberg.BinaryType(), b"\x00\xff"),
    "code": (iceberg.FixedType(3), b"abc"),
    "uuid": (iceberg.UUIDType(), UUID(int=5)),
}


def test_defaults_apply_to_old_rows_and_are_written_for_new_rows(tmp_path: Path) -> None:
    """FM-21."""
    catalog = new_catalog(tmp_path)
    table = catalog.create_table(
        "db.t", pa.schema([pa.field("n", pa.int64(), nullable=False)]), key=["n"], properties={"format-version": "3"}
    )
    table.append(pa.table({"n": [1]}))
    with table.update_schema() as update:
        for name, (kind, value) in DEFAULTS.items():
            update.add_column(name, kind, default_value=value)
    expected = {name: value for name, (_, value) in DEFAULTS.items()}
    expected["tz"] = dt.datetime(2024, 1, 1, 1, 2, 3, tzinfo=dt.UTC)
    table = new_catalog(tmp_path).load_table("db.t")
    table.append(pa.table({"n": [2]}))
    for row in table.scan().to_arrow().to_pylist():
        assert {name: row[name] for name in expected} == expected
    # A default set later is for rows written later; a null that the rows do have stays one.
    with table.update_schema() as update:
        update.set_default_value("small", 8)
    table.append(pa.table({"n": [3]}))
    table.append(pa.table({"n": [4], "small": pa.nulls(1, pa.int32())}))
    found = table.scan(columns=["n", "small"]).to_arrow().sort_by("n")["small"].to_pylist()
    assert found == [7, 7, 8, None]
    table.delete_rows(pa.table({"small": pa.array([7], pa.int32())}))
    assert live_values(table, "n", columns=["n"]) == [3, 4]


def test_nanosecond_timestamps_as_keys_partitions_and_delete_columns(tmp_path: Path) -> None:
    schema = pa.schema(
        [pa.field("at", pa.timestamp("ns"), nullable=False), pa.field("seen", pa.timestamp("ns", "UTC"))]
    )
    start = 1_700_000_000_123_456_789
    moments = [start + step for step in range(5)]
    data = pa.table({"at": pa.array(moments, pa.timestamp("ns")), "seen": moments}, schema=schema)
    catalog = new_catalog(tmp_path)
    with pytest.raises(RowsRefusedError):
        # Version 2 has microseconds only.
        catalog.create_table("db.v2", schema, key=["at"]).append(data)
    table = catalog.create_table(
        "db.t", schema, key=["at"], partition_by=["day(seen)"], properties={"format-version": "3"}
    )
    table.append(data)
    assert str(table.iceberg.schema().find_type("at")) == "timestamp_ns"
    table.delete_prefix({"at": pd.Timestamp(moments[1])})
    table.delete_rows(pa.table({"seen": pa.array([moments[3]], pa.timestamp("ns", "UTC"))}))
    table.maintenance.convert_deletes()
    kept = table.scan().to_arrow()["at"].cast(pa.int64()).to_pylist()
    assert sorted(kept) == [moments[0], moments[2], moments[4]]
    where = "at = TIMESTAMP '2023-11-14 22:13:20.123456789'"
    assert table.scan(where).to_arrow()["at"].cast(pa.int64()).to_pylist() == [start]


def test_unknown_type_column_is_null_and_not_stored(tmp_path: Path) -> None:
    """FM-22."""
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("later", pa.null()), ("text", pa.string())])
    table_catalog = new_catalog(tmp_path)
    table = table_catalog.create_table("db.t", schema, key=["n"], properties={"format-version": "3"})
    table.append(pa.table({"n": [1, 2], "later": pa.nulls(2), "text": ["x", "y"]}))
    table.append(pa.table({"n": [3], "text": ["z"]}))
    assert table.scan("later IS NULL").to_arrow().sort_by("n").to_pylist() == [
        {"n": number, "later": None, "text": text} for number, text in ((1, "x"), (2, "y"), (3, "z"))
    ]
    for data in live_data_files(table):
        assert pq.read_schema(data.file_path.removeprefix("file://")).names == ["n", "text"]
    inside = Schema(NestedField(1, "s", iceberg.StructType(NestedField(2, "u", iceberg.UnknownType(), required=False))))
    with pytest.raises(UnsupportedFeatureError, match=r"column 's\.u' is of type unknown inside another column"):
        table_catalog.create_table("db.nested", inside, properties={"format-version": "3"})
    assert not table_catalog.table_exists("db.nested")


def test_v3_types_require_format_version_3(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="later"):
        new_catalog(tmp_path).create_table("db.t", pa.schema([pa.field("later", pa.null())]))
