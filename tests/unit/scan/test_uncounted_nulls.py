"""Numbers in structs, some of which are null. The counts come from Iceberg's Java library, which omits rows whose
struct is null."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import DataFile
from tableformat.table import Table
from tableformat.testing.raw_files import foreign_equality_delete
from tableformat.testing.table_files import live_data_files
from tableformat.write.context import WriteContext

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.struct([("x", pa.float64())]))])
ROWS = [{"id": 1, "at": {"x": 1.0}}, {"id": 2, "at": None}, {"id": 3, "at": {"x": 3.0}}]


def counted_as_by_java(data: DataFile, field_id: int) -> DataFile:
    """The same rows under another name; of the column only the values of structs that are there are counted."""
    path = Path(data.file_path.removeprefix("file://"))
    copy = path.with_name(f"java-{path.name}")
    copy.write_bytes(path.read_bytes())
    assert data.null_value_counts is not None
    assert data.value_counts is not None
    present = data.record_count - data.null_value_counts[field_id]
    return replace(
        data,
        file_path=f"file://{copy}",
        sequence_number=None,
        value_counts={**data.value_counts, field_id: present},
        null_value_counts={**data.null_value_counts, field_id: 0},
    )


@pytest.fixture(params=[ROWS, [ROWS[1]]], ids=["some", "all"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Table]:
    with new_lake(tmp_path / "lake") as catalog:
        table, source = (catalog.create_table(f"db.{name}", SCHEMA, key=["id"]) for name in ("t", "source"))
        source.append(pa.Table.from_pylist(request.param, schema=SCHEMA))
        (data,) = live_data_files(source)
        added = counted_as_by_java(data, field_id_of_x(table))
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(added,)))
        table.refresh()
        yield table


def field_id_of_x(table: Table) -> int:
    return table.metadata.schema().find_field("at.x").field_id


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where=where).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("at.x IS NULL", [2]),
        ("at.x IS NOT NULL", [1, 3]),
        ("at.x < 100", [1, 3]),
        ("at.x <> 100", [1, 3]),
        ("at.x > 100", []),
        ("NOT (at.x > 100)", [1, 3]),
    ],
)
def test_filter_treats_fields_of_null_structs_as_null(table: Table, where: str, wanted: list[int]) -> None:
    """FM-8: a file is neither passed over nor taken as a whole by counts that leave such rows out."""
    assert ids(table, where) == [each for each in ids(table) if each in wanted]


def test_equality_delete_of_null_applies_to_null_structs(table: Table) -> None:
    """DA-4: null equals null, even if the counts of the file omit the nulls."""
    schema = table.metadata.schema()
    delete = foreign_equality_delete(
        WriteContext.of(table.metadata, table.iceberg.io),
        [{"id": 0, "at": None}],
        schema,
        equality_columns=["at"],
        spec_id=0,
    )
    by_x = replace(delete, equality_ids=(field_id_of_x(table),))
    before = ids(table)
    commit_change(table.iceberg, TableChange(operation=Operation.DELETE, added_delete_files=(by_x,)))
    table.refresh()
    assert ids(table) == [each for each in before if each != 2]


def test_verify_accepts_uncounted_nulls(table: Table) -> None:
    """MT-74: what is held against the rows is what readers take the counts for."""
    assert table.maintenance.verify(deep=True).is_clean
