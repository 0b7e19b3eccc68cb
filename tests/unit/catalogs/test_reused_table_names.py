"""A handle whose table was dropped or renamed, and whose name another table now uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import crossed
from new_lakes import new_lake
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import TableNotFoundError
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
_ANY_AGE = 2**42


def add_column(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.add_column("more", LongType())


CALLS: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(pa.table({"id": [5]})),
    "delete": lambda table: table.delete("id = 1", mode="scan"),
    "refresh": lambda table: table.refresh(),
    "properties": lambda table: table.set_properties(owner="me"),
    "tag": lambda table: table.create_tag("q"),
    "schema": add_column,
    "key": lambda table: table.set_key(["id"]),
    "upgrade": lambda table: table.upgrade(),
    "check": lambda table: table.add_check("positive", "id > 0"),
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "convert": lambda table: table.maintenance.convert_deletes(),
    "expire": lambda table: table.maintenance.expire_snapshots(older_than=_ANY_AGE),
    "orphans": lambda table: table.maintenance.remove_orphan_files(older_than=_ANY_AGE, allow_recent=True),
    "manifests": lambda table: table.maintenance.rewrite_manifests(),
    "statistics": lambda table: table.maintenance.compute_table_stats(),
    "upkeep": lambda table: table.maintenance.upkeep(),
}


@pytest.mark.parametrize(("how", "name"), crossed(["dropped", "renamed", "gone"], list(CALLS)))
def test_old_handle_never_touches_a_new_table_with_its_name(tmp_path: Path, name: str, how: str) -> None:
    """LK-17"""
    with new_lake(tmp_path / "lake") as catalog:
        old = catalog.create_table("db.t", SCHEMA, key=["id"])
        old.append(pa.table({"id": [1, 2]}))
        if how == "dropped":
            catalog.drop_table("db.t")
        else:
            catalog.rename_table("db.t", "db.u")
        if how != "gone":
            catalog.create_table("db.t", SCHEMA, key=["id"]).append(pa.table({"id": [9]}))
        with pytest.raises(TableNotFoundError):
            CALLS[name](old)
        if how != "gone":
            assert live_values(catalog.load_table("db.t"), "id") == [9]
        assert live_values(old, "id") == [1, 2]


def test_new_table_does_not_reuse_directory_of_renamed_table(tmp_path: Path) -> None:
    """LK-18: orphan removal used to be rejected for both tables."""
    catalog = new_lake(tmp_path)
    first = catalog.create_table("db.a_%", pa.schema({"id": pa.int64()}))
    first.append(pa.table({"id": [1]}))
    renamed = catalog.rename_table("db.a_%", "db.b")
    tables = [
        catalog.create_table("db.a_%", pa.schema({"id": pa.int64()})),
        catalog.create_table("db.a__", pa.schema({"id": pa.int64()})),
    ]
    places = [table.location for table in (renamed, *tables)]
    assert len(set(places)) == 3
    assert places[1].startswith(f"{places[0]}-")
    assert places[2].endswith("/db/a__")
    for number, table in enumerate((renamed, *tables)):
        table.append(pa.table({"id": [number]}))
        table.maintenance.remove_orphan_files(older_than=2**42, allow_recent=True)
    assert [table.refresh().scan().count() for table in (renamed, *tables)] == [2, 1, 1]
    catalog.drop_table("db.b", purge=True)
    assert tables[0].refresh().scan().count() == 1
