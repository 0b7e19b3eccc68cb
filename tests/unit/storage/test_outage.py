"""Errors of the process, the disk or the store are not reported as damaged files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CorruptFileError, StorageError
from tableformat.metadata.manifests import avro_container
from tableformat.parquet.parquet_file import unreadable_as_corrupt
from tableformat.storage.duckdb_connection import duckdb_connection

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
LACK: dict[str, tuple[BaseException, type[BaseException]]] = {
    "threads of Arrow": (pa.ArrowException("Unknown error: Failed to launch worker thread: Try again"), StorageError),
    "threads of Python": (RuntimeError("can't start new thread"), StorageError),
    "memory of Python": (MemoryError(), MemoryError),
    "memory of Arrow": (pa.ArrowMemoryError("realloc of size 640000000 failed"), MemoryError),
    "files": (OSError(errno.EMFILE, "Too many open files"), StorageError),
    "memory of the system": (OSError(errno.ENOMEM, "Cannot allocate memory"), StorageError),
    "disk": (OSError(errno.EIO, "Input/output error"), StorageError),
    "handle": (OSError(errno.ESTALE, "Stale file handle"), StorageError),
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": ids}, schema=SCHEMA)


def made(directory: Path) -> tf.Table:
    catalog = new_lake(directory / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(rows(1))
    table.append(rows(2))
    return table


@pytest.mark.parametrize("lack", LACK)
def test_process_resource_errors_are_not_corruption(lack: str) -> None:
    """DA-8: an operator who reads "corrupt" would restore a backup."""
    error, kind = LACK[lack]
    with pytest.raises(kind) as found, unreadable_as_corrupt("file:///healthy.parquet"):
        raise error
    assert not isinstance(found.value, CorruptFileError)


def test_impossible_allocation_size_is_corruption() -> None:
    """DA-8: it is stated by the file."""
    with pytest.raises(CorruptFileError), unreadable_as_corrupt("file:///a.parquet"):
        raise pa.ArrowMemoryError("malloc of size 4611686018427387904 failed")
    with pytest.raises(CorruptFileError), unreadable_as_corrupt("file:///a.parquet"):
        np.zeros(1 << 60, np.int64)


@pytest.mark.parametrize(("error", "kind"), [(MemoryError(), MemoryError), (ValueError("damaged"), CorruptFileError)])
def test_memory_error_in_manifests_is_not_corruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception]
) -> None:
    """DA-8"""
    table = made(tmp_path)
    location = table.inspect.snapshots()["manifest_list"].to_pylist()[-1]
    data = Path(location.removeprefix("file://")).read_bytes()

    def fails(*_: Any) -> None:
        raise error

    container = avro_container.read_container(data, location)
    monkeypatch.setattr(avro_container.fastavro, "schemaless_reader", fails)
    with pytest.raises(kind):
        avro_container.decode_block(*container.blocks[0], avro_container.RecordCodec({}), location)


WRITERS: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows(3)),
    "upsert": lambda table: table.upsert(rows(1)),
    "overwrite": lambda table: table.overwrite(rows(3)),
    "update": lambda table: table.update("id = 1", set={"v": 2}),
    "staged write": lambda table: table.new_write().write(rows(3)),
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_full_disk_at_the_first_byte_raises_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """PyArrow writes the first bytes of a Parquet file while it makes its writer."""
    table = made(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "ParquetWriter", full)
    with pytest.raises(StorageError, match="No space left"):
        WRITERS[writer](table)
    monkeypatch.undo()
    assert table.refresh().scan().count() == 2


def test_duckdb_out_of_memory_raises_memory_error() -> None:
    with pytest.raises(MemoryError), duckdb_connection({"memory_limit": "2MB", "max_temp_directory_size": "0MB"}) as db:
        db.sql("SELECT list(i) FROM range(10000000) t(i)").fetchall()


def test_update_out_of_memory_raises_memory_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    connect, table = duckdb.connect, made(tmp_path)
    monkeypatch.setattr(duckdb, "connect", lambda **_: connect(config={"memory_limit": "1KB"}))
    with pytest.raises(MemoryError):
        table.update("id >= 1", set={"v": "len(repeat('x', 10000000)) + id"})
