"""The steps of docs/tasks/delete-by-prefix.md remove a deleted key from all files of a table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.testing.table_files import files_on_disk
from tableformat.testing.table_rows import live_tuples

VALUE = "ann.lee@example.com"


def contents(path: Path) -> Iterator[str]:
    """The bytes, and what is decoded from them."""
    content = path.read_bytes()
    yield repr(content)
    if path.suffix == ".parquet":
        yield repr(pq.read_table(path).to_pylist())
    if path.suffix == ".avro":
        yield repr(list(fastavro.reader(io.BytesIO(content))))


def files_with(value: str, directory: Path) -> list[Path]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    assert files
    return [path for path in files if any(value in text for text in contents(path))]


def forget(table: tf.Table) -> None:
    table.maintenance.compact(rewrite_all=True)
    table.maintenance.rewrite_manifests()
    table.maintenance.expire_snapshots(older_than=timedelta(0), retain_last=1)
    table.maintenance.remove_orphan_files(older_than=timedelta(0), allow_recent=True)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", [(), ("id1",), ("bucket(4, id1)",)], ids=["whole", "by value", "by bucket"])
@pytest.mark.parametrize("min_count_to_merge", ["2", "100"])
def test_documented_steps_remove_a_deleted_key_from_all_files(
    tmp_path: Path, version: int, partition_by: tuple[str, ...], min_count_to_merge: str
) -> None:
    """MT-48, MT-95, MT-3: deletes of each kind were made for the key, and others share their files and manifests."""
    properties = {
        "format-version": str(version),
        "commit.manifest.min-count-to-merge": min_count_to_merge,
        "write.parquet.bloom-filter-enabled.column.id1": "true",
    }
    table = keyed_table(tmp_path, partition_by=partition_by, properties=properties)
    for ids in (range(3), range(3, 6)):
        table.append(pa.concat_tables([rows(name, ids) for name in ("a", VALUE, "b", "c")]))
    table.upsert(pa.concat_tables([rows(VALUE, [1]), rows("b", [1], "new")]))
    table.delete("id2 = 2", mode="scan")
    table.delete_rows(pa.table({"id1": [VALUE, "c"], "id2": [3, 3]}))
    table.maintenance.compute_table_stats()
    if partition_by:
        assert table.snapshot_id is not None
        assert compute_partition_statistics(table.iceberg, table.snapshot_id) is not None
    table.delete_prefix(pa.table({"id1": [VALUE, "c"]}))
    (Path(table.location.removeprefix("file://")) / "data" / "orphan.parquet").write_bytes(VALUE.encode())
    before = live_tuples(table)
    assert len(files_with(VALUE, tmp_path)) > 5
    forget(table)
    assert files_with(VALUE, tmp_path) == []
    assert live_tuples(table) == before
    assert table.verify(deep=True).is_clean
    assert files_on_disk(table)


def test_branch_keeps_deleted_key_until_compacted(tmp_path: Path) -> None:
    """MT-1, MT-95: jobs work on one branch, and files that another one needs stay."""
    table = keyed_table(tmp_path)
    table.append(pa.concat_tables([rows(VALUE, range(3)), rows("b", range(3))]))
    table.delete_prefix({"id1": VALUE})
    table.create_branch("audit")
    forget(table)
    assert files_with(VALUE, tmp_path)
    forget(table.catalog.load_table(table.name, branch="audit"))
    assert files_with(VALUE, tmp_path) == []
    assert live_tuples(table.refresh()) == [("b", number, "x") for number in range(3)]
