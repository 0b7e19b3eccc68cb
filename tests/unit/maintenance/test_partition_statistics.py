"""Partition statistics; tests/spark/test_spark_procedure_migration.py tests them in Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import commit_deletes
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CommitConflictError
from tableformat.maintenance import partition_statistics
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.testing.raw_files import foreign_equality_delete
from tableformat.write.context import WriteContext

COUNTED = ("spec_id", "data_record_count", "data_file_count", "total_data_file_size_in_bytes")


OF_DELETES = tuple(f"{kind}_delete_{what}_count" for kind in ("position", "equality") for what in ("record", "file"))


REQUIRED = {2: COUNTED, 3: (*COUNTED, *OF_DELETES, "dv_count")}


"""By format version, as Iceberg's specification has them."""


def _computed(table: tf.Table) -> pa.Table:
    """The content of the Parquet file that the metadata references for the newest snapshot."""
    assert table.snapshot_id is not None
    location = compute_partition_statistics(table.iceberg, table.snapshot_id)
    (named,) = table.iceberg.metadata.partition_statistics
    assert (named.statistics_path, named.snapshot_id) == (location, table.snapshot_id)
    path = named.statistics_path.removeprefix("file://")
    assert named.file_size_in_bytes == Path(path).stat().st_size
    return pq.read_table(path)


def test_unregistered_statistics_file_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SP-33: the snapshot expired while its file was written."""
    catalog = new_lake(tmp_path / "lake")
    rows = pa.table({"part": [1, 2], "v": [3, 4]})
    table = catalog.create_table("db.t", rows.schema, partition_by=["part"])
    table.append(rows)
    snapshot_id = table.snapshot_id
    assert snapshot_id is not None

    def lost(*_arguments: object, **_options: object) -> None:
        assert list(tmp_path.rglob("partition-stats-*"))
        raise CommitConflictError("expired")

    monkeypatch.setattr(partition_statistics, "commit_metadata", lost)
    with pytest.raises(CommitConflictError):
        compute_partition_statistics(table.iceberg, snapshot_id)
    assert list(tmp_path.rglob("partition-stats-*")) == []
    monkeypatch.undo()
    location = compute_partition_statistics(table.iceberg, snapshot_id)
    assert compute_partition_statistics(table.iceberg, snapshot_id) == location, "it is there already"
    (written,) = tmp_path.rglob("partition-stats-*")
    written.unlink()
    assert compute_partition_statistics(table.iceberg, snapshot_id) != location
    assert len(list(tmp_path.rglob("partition-stats-*"))) == 1


@pytest.mark.parametrize("version", [2, 3])
def test_partition_statistics_counts(tmp_path: Path, version: int) -> None:
    """SP-33: live files and rows of each partition by kind, and the last snapshot that changed it."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([pa.field("part", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", schema, key=["part", "v"], partition_by=["part"], properties=properties)
    first = table.append(pa.table({"part": [1, 1, 1, 2], "v": [1, 2, 3, 4]}, schema=schema)).snapshot_id
    table.append(pa.table({"part": [1], "v": [9]}, schema=schema))
    table.delete("part = 1 AND v IN (2, 3)", mode="scan")
    table.append(pa.table({"part": [3], "v": [1]}, schema=schema))
    table.delete("part = 3", mode="scan")
    of_emptied = partition_statistics.partition_statistics(table.view).to_pylist()[-1]
    assert (of_emptied["partition"], of_emptied["data_file_count"]) == ({"part": 3}, 0)
    assert of_emptied["last_updated_snapshot_id"] == table.snapshot_id, "what leaves is an update too"
    context = WriteContext.of(table.metadata, table.iceberg.io)
    gone = [{"v": 1}, {"v": 9}]
    deletes = foreign_equality_delete(
        context, gone, table.metadata.schema(), equality_columns=["v"], spec_id=0, partition=(1,)
    )
    commit_deletes(table, deletes)
    table.refresh()
    computed = _computed(table)
    required = {"partition", *REQUIRED[version]}
    assert [(each.metadata[b"PARQUET:field_id"], each.nullable) for each in computed.schema] == [
        (str(number).encode(), name not in required) for number, name in enumerate(computed.column_names, 1)
    ]
    rows = {row["partition"]["part"]: row for row in computed.to_pylist()}
    assert list(rows) == [1, 2]
    data = [file for file in table.inspect.data_files().to_pylist() if file["partition"]["part"] == 1]
    vectors = {"dv_count": 1} if version == 3 else {}
    assert rows[1] == {
        "partition": {"part": 1},
        "spec_id": 0,
        "data_record_count": 4,
        "data_file_count": 2,
        "total_data_file_size_in_bytes": sum(file["file_size_in_bytes"] for file in data),
        "position_delete_record_count": 2,
        "position_delete_file_count": 0 if version == 3 else 1,
        "equality_delete_record_count": 2,
        "equality_delete_file_count": 1,
        "total_record_count": None,
        "last_updated_at": table.iceberg.metadata.snapshots[-1].timestamp_ms,
        "last_updated_snapshot_id": table.snapshot_id,
        **vectors,
    }
    assert (rows[2]["data_record_count"], rows[2]["last_updated_snapshot_id"]) == (1, first)


def test_last_update_is_unknown_after_expiry(tmp_path: Path) -> None:
    """SP-33"""
    catalog = new_lake(tmp_path / "lake")
    rows = pa.table({"part": [1], "v": [3]})
    table = catalog.create_table("db.t", rows.schema, partition_by=["part"])
    table.append(rows)
    table.append(rows.set_column(0, "part", pa.array([2])))
    table.maintenance.expire_snapshots(retain_last=1, older_than=timedelta(0))
    of_first, of_second = _computed(table.refresh()).to_pylist()
    assert (of_first["last_updated_at"], of_first["last_updated_snapshot_id"]) == (None, None)
    assert of_second["last_updated_snapshot_id"] == table.snapshot_id
