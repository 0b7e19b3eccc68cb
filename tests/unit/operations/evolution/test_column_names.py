"""Files without field ids keep their columns, even if columns of the table are renamed (LK-19)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_forms import every
from new_lakes import new_lake
from pyiceberg.types import LongType, StringType

from tableformat import Table
from tableformat.errors import InvalidArgumentError

PLACE = pa.struct([("city", pa.string())])


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("place", PLACE)])


OLD = {"id": 1, "v": "old", "place": {"city": "Bonn"}}


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    """With one file that has no field ids."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
        add(table, tmp_path / "old.parquet", OLD)
        yield table


def add(table: Table, path: Path, row: dict[str, Any], schema: pa.Schema | None = SCHEMA) -> None:
    pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
    table.add_files([str(path)])


def change(table: Table, *calls: Callable[[Any], Any]) -> None:
    for call in calls:
        with table.update_schema() as update:
            call(update)


def rows(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(where).to_arrow().to_pylist()
    return found


CHANGES: dict[str, tuple[list[Callable[[Any], Any]], dict[str, Any]]] = {
    "renamed, and the name taken by a new column": (
        [lambda update: update.rename_column("v", "w"), lambda update: update.add_column("v", StringType())],
        {"id": 1, "w": "old", "place": {"city": "Bonn"}, "v": None},
    ),
    "renamed, and the name taken by a column of another type": (
        [lambda update: update.rename_column("v", "w"), lambda update: update.add_column("v", LongType())],
        {"id": 1, "w": "old", "place": {"city": "Bonn"}, "v": None},
    ),
    "dropped and added anew": (
        [lambda update: update.delete_column("v"), lambda update: update.add_column("v", StringType())],
        {"id": 1, "place": {"city": "Bonn"}, "v": None},
    ),
    "names exchanged": (
        [
            lambda update: update.add_column("w", StringType()),
            lambda update: update.rename_column("v", "x"),
            lambda update: update.rename_column("w", "v"),
            lambda update: update.rename_column("x", "w"),
        ],
        {"id": 1, "w": "old", "place": {"city": "Bonn"}, "v": None},
    ),
    "required, renamed, and the name taken": (
        [lambda update: update.rename_column("id", "k"), lambda update: update.add_column("id", LongType())],
        {"k": 1, "v": "old", "place": {"city": "Bonn"}, "id": None},
    ),
    "inside of a struct": (
        [
            lambda update: update.rename_column("place.city", "town"),
            lambda update: update.add_column(("place", "city"), StringType()),
        ],
        {"id": 1, "v": "old", "place": {"town": "Bonn", "city": None}},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_file_without_field_ids_keeps_its_columns_after_rename(table: Table, name: str) -> None:
    """LK-19: regardless of the current column names, and after compaction too."""
    calls, expected = CHANGES[name]
    change(table, *calls)
    assert rows(table) == [expected]
    table.maintenance.compact(rewrite_all=True)
    assert rows(table.refresh()) == [expected]


def test_filters_and_deletes_use_the_column_of_the_file(table: Table) -> None:
    change(table, *CHANGES["renamed, and the name taken by a new column"][0])
    assert rows(table, "v = 'old'") == []
    assert len(rows(table, "w = 'old'")) == 1
    table.delete_rows(pa.table({"v": ["old"]}))
    assert len(rows(table)) == 1
    table.delete_rows(pa.table({"w": ["old"]}))
    assert rows(table) == []


def test_file_with_names_of_other_columns_is_rejected(table: Table, tmp_path: Path) -> None:
    """Under the current names, its columns would be read as the columns of the first file."""
    change(table, *CHANGES["renamed, and the name taken by a new column"][0])
    with pytest.raises(InvalidArgumentError, match=r"it has the columns 'v'.*Append the rows"):
        add(table, tmp_path / "new.parquet", {"id": 2, "w": "w", "v": "v", "place": None}, table.schema)
    assert len(rows(table.refresh())) == 1
    add(
        table,
        tmp_path / "fits.parquet",
        {"id": 3, "w": "w", "place": None},
        pa.schema(table.schema[i] for i in (0, 1, 2)),
    )
    assert rows(table, "id = 3") == [{"id": 3, "w": "w", "place": None, "v": None}]


def test_file_with_names_of_columns_of_other_types_is_rejected(table: Table, tmp_path: Path) -> None:
    """Otherwise its metrics would be taken for those of the other column."""
    change(table, lambda update: update.rename_column("v", "w"), lambda update: update.add_column("v", LongType()))
    with pytest.raises(InvalidArgumentError, match=r"it has the columns 'v'.*Append the rows"):
        add(table, tmp_path / "new.parquet", {"id": 2, "v": 7}, pa.schema([("id", pa.int64()), ("v", pa.int64())]))


def test_stale_handle_keeps_the_current_name_mapping(tmp_path: Path) -> None:
    """The handle used to add files under the old names, and removed the current names from the mapping."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        held = catalog.load_table("db.t")
        assert isinstance(held, Table)
        add(table, tmp_path / "first.parquet", OLD)
        change(table, lambda update: update.rename_column("v", "w"))
        add(table, tmp_path / "second.parquet", {"id": 2, "w": "new", "place": None}, table.schema)
        add(held, tmp_path / "third.parquet", {"id": 3, "w": "newer", "place": None}, table.schema)
        assert sorted(row["w"] for row in rows(table.refresh())) == ["new", "newer", "old"]
