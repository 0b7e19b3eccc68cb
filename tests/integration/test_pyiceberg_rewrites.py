"""PyIceberg's own deletes on tables with equality deletes of this library: if PyIceberg fixes its bugs, these tests
notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.table import Table as IcebergTable

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.testing.table_rows import live_tuples

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])

VERBS: dict[str, Callable[[tf.Table], object]] = {
    "upsert": lambda table: table.upsert([{"id": 2, "v": "new"}]),
    "delete_rows": lambda table: table.delete_rows([{"id": 2}]),
    "apply_changes": lambda table: table.apply_changes(
        [{"id": 2, "v": "new", "_op": "U", "_ts": 1}], op="_op", order_by="_ts"
    ),
}
REWRITES: dict[str, Callable[[IcebergTable], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "overwrite": lambda table: table.overwrite(of((1, "w")), overwrite_filter="id = 1"),
    "upsert": lambda table: table.upsert(of((1, "w")), join_cols=["id"]),
}


def of(*rows: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value} for key, value in rows], schema=COLUMNS)


def changed_table(directory: Path, verb: str, *, version: str = "2") -> tf.Table:
    """Rows 1 to 3 in one data file; an equality delete removes row 2."""
    catalog = new_lake(directory / "lake")
    table = catalog.create_table("db.t", COLUMNS, key=["id"], properties={"format-version": version})
    table.append(of((1, "old"), (2, "old"), (3, "old")))
    VERBS[verb](table)
    assert "equality" in table.inspect.delete_files()["kind"].to_pylist()
    return table


def rewritten(table: tf.Table, rewrite: str) -> list[tuple[object, ...]]:
    assert table.catalog is not None
    REWRITES[rewrite](table.catalog.iceberg.load_table("db.t"))
    return live_tuples(table.refresh())


@pytest.mark.parametrize("rewrite", list(REWRITES))
@pytest.mark.parametrize("verb", list(VERBS))
def test_pyiceberg_rewrite_restores_equality_deleted_rows(tmp_path: Path, verb: str, rewrite: str) -> None:
    """A bug of PyIceberg 0.12 (docs/reference/iceberg-compatibility.md). If this test fails because (2, 'old') is
    missing, PyIceberg has fixed it: remove the warnings from the guide."""
    rows = rewritten(changed_table(tmp_path, verb), rewrite)
    assert (2, "old") in rows


@pytest.mark.parametrize("rewrite", list(REWRITES))
@pytest.mark.parametrize("verb", list(VERBS))
def test_pyiceberg_rewrite_is_correct_after_conversion(tmp_path: Path, verb: str, rewrite: str) -> None:
    """The workaround in the guide."""
    table = changed_table(tmp_path, verb)
    table.maintenance.convert_deletes()
    new = [] if verb == "delete_rows" else [(2, "new")]
    replaced = [] if rewrite == "delete" else [(1, "w")]
    assert rewritten(table, rewrite) == sorted([*replaced, *new, (3, "old")])


@pytest.mark.parametrize("verb", list(VERBS))
def test_pyiceberg_rejects_filters_that_match_equality_deletes(tmp_path: Path, verb: str) -> None:
    table = changed_table(tmp_path, verb)
    assert table.catalog is not None
    with pytest.raises(ValueError, match="does not yet support equality deletes"):
        table.catalog.iceberg.load_table("db.t").delete("id = 2")


def test_pyiceberg_append_with_pending_equality_deletes_is_visible(tmp_path: Path) -> None:
    """They do not apply to its rows, which are newer."""
    table = changed_table(tmp_path, "delete_rows")
    assert table.catalog is not None
    table.catalog.iceberg.load_table("db.t").append(of((2, "again")))
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "again"), (3, "old")]


def test_pyiceberg_cannot_write_v3_manifests(tmp_path: Path) -> None:
    """So its fault is one of version 2."""
    table = changed_table(tmp_path, "upsert", version="3")
    with pytest.raises(ValueError, match="Cannot write manifest for table version: 3"):
        rewritten(table, "delete")
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "new"), (3, "old")]


def test_pyiceberg_adds_file_with_null_to_wrong_partition(tmp_path: Path) -> None:
    """LK-10: a bug of PyIceberg 0.12 (docs/reference/iceberg-compatibility.md); this library rejects such a file, and
    verification reports it."""
    schema = pa.schema([("p", pa.string())])
    pq.write_table(pa.table({"p": ["a", None]}, schema=schema), tmp_path / "added.parquet")
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", schema, partition_by=["p"])
    with pytest.raises(InvalidArgumentError):
        table.add_files([str(tmp_path / "added.parquet")])
    catalog.iceberg.load_table("db.t").add_files([str(tmp_path / "added.parquet")])
    assert table.refresh().scan(where="p IS NULL").count() == 0, "mended: take the section out"
    assert [finding.kind.value for finding in table.verify(deep=True).errors] == ["wrong-partition"]
