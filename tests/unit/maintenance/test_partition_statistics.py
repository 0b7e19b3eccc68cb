"""Statistics of partitions; what Spark makes of them is in tests/spark/test_spark_procedure_migration.py."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import CommitConflictError
from tableformat.maintenance import partition_statistics
from tableformat.maintenance.partition_statistics import compute_partition_statistics


def test_a_file_that_is_not_named_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SP-33: the snapshot expired while its file was written."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
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
    compute_partition_statistics(table.iceberg, snapshot_id)
    assert len(list(tmp_path.rglob("partition-stats-*"))) == 1
