"""A full disk: the error names the cause, and no file is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import StorageError
from tableformat.testing.table_files import files_on_disk

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
WRITES: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows(100_000)),
    "replace": lambda table: table.replace(rows(100_000), prefix=["id"]),
    "compaction": lambda table: table.maintenance.compact(rewrite_all=True),
}


def rows(count: int) -> pa.Table:
    return pa.table({"id": range(count), "v": [f"{number * 7919:x}" for number in range(count)]}, schema=SCHEMA)


@contextmanager
def files_end_at(byte_count: int) -> Iterator[None]:
    """The limit of the process stands for the disk: Python ignores the signal, and the write fails."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of a process")
@pytest.mark.parametrize("name", WRITES)
def test_full_disk_raises_storage_error_and_leaves_no_file(tmp_path: Path, name: str) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    for _ in range(2):
        table.append(rows(20_000))
    before = files_on_disk(table)
    with files_end_at(60_000), pytest.raises(StorageError, match="could not be written"):
        WRITES[name](table)
    assert files_on_disk(table) == before
    assert table.refresh().scan().count() == 40_000
