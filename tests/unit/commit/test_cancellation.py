"""Jobs and commits whose caller has stopped waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.commit.cancellation import cancelled_when
from tableformat.errors import OperationCancelledError
from tableformat.storage.location import local_path

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
CHANGES: dict[str, Callable[[tf.Table], object]] = {
    "append": lambda table: table.append(pa.table({"id": [9], "v": ["x"]}, schema=SCHEMA)),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update("id = 1", set={"v": "'u'"}),
    "set_properties": lambda table: table.set_properties(a="b"),
    "create_tag": lambda table: table.create_tag("now"),
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "convert_deletes": lambda table: table.maintenance.convert_deletes(),
    "rewrite_manifests": lambda table: table.maintenance.rewrite_manifests(),
    "expire_snapshots": lambda table: table.maintenance.expire_snapshots(older_than=datetime.now(UTC)),
}


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """Three data files, and a range delete of a row."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    for n in range(3):
        created.append(pa.table({"id": [n, 10 + n], "v": ["a", "b"]}, schema=SCHEMA))
    created.delete_prefix({"id": 11})
    return created


@pytest.mark.parametrize("change", CHANGES)
def test_cancelled_change_commits_nothing(table: tf.Table, change: str) -> None:
    """MT-62: the metadata file is the same one, and no data file was left."""
    before, files = table.iceberg.metadata_location, data_files(table)
    with pytest.raises(OperationCancelledError), cancelled_when(lambda: True):
        CHANGES[change](table)
    assert table.refresh().iceberg.metadata_location == before
    assert data_files(table) == files
    with cancelled_when(lambda: False):
        CHANGES[change](table)
    assert table.refresh().iceberg.metadata_location != before


def data_files(table: tf.Table) -> set[Path]:
    root = local_path(table.location)
    assert root is not None
    return set(Path(root).rglob("*.parquet"))
