"""Batch readers that several threads share, that fail, or that are not read to the end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CorruptFileError
from tableformat.storage.location import local_path
from tableformat.testing.table_files import live_data_files

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
READERS: dict[str, Callable[[tf.Table], pa.RecordBatchReader]] = {
    "scan": lambda table: table.scan().to_batches(),
    "filter": lambda table: table.scan("id >= 0").to_arrow_batch_reader(),
    "dataset": lambda table: table.scan().to_dataset().scanner(batch_size=50).to_reader(),
    "changes": lambda table: table.changes(columns=["id"]).to_batches(),
}


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """1,000 rows in ten files of four row groups."""
    catalog = new_lake(tmp_path / "lake")
    made = catalog.create_table("db.t", SCHEMA, properties={"write.parquet.row-group-limit": "25"})
    for start in range(0, 1000, 100):
        made.append(pa.table({"id": range(start, start + 100)}, schema=SCHEMA))
    return made


@pytest.mark.parametrize("name", ["scan", "filter", "changes"])
def test_threads_sharing_a_reader_receive_each_row_once(table: tf.Table, name: str) -> None:
    """Each row is returned to exactly one of them."""
    reader = READERS[name](table)

    def take(_: int) -> list[int]:
        return [number for batch in reader for number in batch.column("id").to_pylist()]

    with ThreadPoolExecutor(4) as pool:
        found = [number for taken in pool.map(take, range(4)) for number in taken]
    assert sorted(found) == list(range(1000))


@pytest.mark.parametrize("name", ["scan", "filter", "changes"])
def test_failed_reader_raises_again_instead_of_ending(table: tf.Table, name: str) -> None:
    """A caller that reads again after the error would otherwise take the rows before it for the whole result."""
    path = local_path(live_data_files(table)[-1].file_path)
    assert path is not None
    Path(path).unlink()
    reader = READERS[name](table)
    for _ in range(3):
        with pytest.raises((CorruptFileError, pa.ArrowException, OSError), match="does not exist"):
            reader.read_all()


@pytest.mark.parametrize("name", READERS)
def test_half_read_reader_continues_or_raises_after_file_removal(table: tf.Table, name: str) -> None:
    reader = READERS[name](table)
    begun = reader.read_next_batch().num_rows
    assert table.catalog is not None
    other = table.catalog.load_table(table.name)
    other.maintenance.compact(rewrite_all=True)
    other.maintenance.expire_snapshots(older_than=2**42, retain_last=1)
    try:
        left = reader.read_all().num_rows
    except (CorruptFileError, pa.ArrowException, OSError) as error:
        assert "does not exist" in str(error)  # noqa: PT017 (either is right)
    else:
        assert begun + left == 1000
