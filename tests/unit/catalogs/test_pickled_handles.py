"""Catalogs, tables and scans that are pickled, and their state in another process."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.catalog.memory import InMemoryCatalog

import tableformat as tf
from tableformat.errors import UnsupportedFeatureError

SECRET = "not-to-be-shown"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tf.Table]:
    """Two rows; its catalog was opened by a relative path, with a secret."""
    monkeypatch.chdir(tmp_path)
    with new_lake("lake/", **{"s3.secret-access-key": SECRET}) as catalog:
        table = catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64(), nullable=False)]), key=["id"])
        table.append([{"id": 1}, {"id": 2}])
        yield table


def add_a_row(table: tf.Table) -> tuple[int, int]:
    """In another process: the rows that the handle sees, before and after it adds one."""
    before = table.scan().count()
    table.append([{"id": 100}])
    return before, table.scan().count()


def test_pickled_handle_reads_and_writes_in_spawned_process(
    table: tf.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handle is at the snapshot that it was pinned to; the other process may be in another directory."""
    monkeypatch.chdir(tmp_path.parent)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(add_a_row, (table,)) == (2, 3)
    assert table.scan().count() == 2
    assert table.refresh().scan().count() == 3


def test_handles_round_trip_through_pickle(table: tf.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned snapshot, branch, catalog; what is read from its metadata file alone stays so."""
    assert table.catalog is not None
    table.create_branch("audit")
    audit = table.catalog.load_table("db.t", branch="audit")
    static = tf.read_metadata(table.iceberg.metadata_location)
    scan = table.scan(where="id > 1")
    table.append([{"id": 3}])
    monkeypatch.chdir(tmp_path.parent)
    catalog, here, branch, alone, rows = pickle.loads(pickle.dumps((table.catalog, table, audit, static, scan)))
    assert catalog.list_tables() == ["db.t"]
    assert catalog.iceberg.properties == table.catalog.iceberg.properties
    assert (here.name, here.snapshot_id, here.catalog) == ("db.t", table.snapshot_id, catalog)
    assert (branch.branch, branch.scan().count(), here.scan().count()) == ("audit", 2, 3)
    assert (alone.catalog, alone.scan().count()) == (None, 2)
    assert rows.to_arrow()["id"].to_pylist() == [2]
    catalog.close()


def test_repr_does_not_contain_secrets(table: tf.Table) -> None:
    catalog, here, scan = pickle.loads(pickle.dumps((table.catalog, table, table.scan())))
    assert catalog.iceberg.properties["s3.secret-access-key"] == SECRET
    assert SECRET not in f"{catalog!r} {here!r} {scan!r}"
    catalog.close()


def test_in_memory_catalog_cannot_be_pickled(table: tf.Table) -> None:
    catalog = tf.Catalog(InMemoryCatalog("somewhere"))
    with pytest.raises(UnsupportedFeatureError, match=r"'somewhere' cannot be pickled.*open_catalog\(\)"):
        pickle.dumps(catalog)
    with pytest.raises(UnsupportedFeatureError, match=r"handle of db\.t cannot be pickled"):
        pickle.dumps(tf.Table(table.iceberg))
