"""Tables that Apache Iceberg's reference implementation, Spark and Flink wrote, read row for row.

Every delete kind of the specification is in them: DA-1 (position deletes, those of the same commit included), DA-2
(rows and their equality deletes in one commit), DA-3, DA-4 (null in delete keys), DA-6 (extra columns in delete files),
DA-7 (deletion vectors) and DA-9 (inherited sequence numbers).
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.table_file import read_table_metadata
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.scan.scan import Scan
from tableformat.testing.replay import check_feed

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "iceberg"
REFERENCE = FIXTURES / "reference"
FLINK = FIXTURES / "duckdb" / "equality_deletes" / "warehouse" / "mydb"
pytestmark = pytest.mark.skipif(not FIXTURES.is_dir(), reason=f"tables of other writers are not at {FIXTURES}")

EXPECTED: dict[str, Any] = json.loads((REFERENCE / "expected.json").read_text()) if REFERENCE.is_dir() else {}


def scan_of(directory: Path, *args: Any, **kwargs: Any) -> Scan:
    metadata, io, _ = read_table_metadata(str(directory), {})
    return Scan(SnapshotView(metadata, io, metadata.current_snapshot(), metadata.schema()), *args, **kwargs)


def as_written(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows with dates, timestamps and decimals as the expectations spell them."""
    columns = [
        [
            str(value)
            if value is not None and pa.types.is_temporal(column.type) | pa.types.is_decimal(column.type)
            else value
            for value in column.to_pylist()
        ]
        for column in rows.columns
    ]
    return sorted(zip(*columns, strict=True), key=repr)


def expected_rows(name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in EXPECTED[name]["rows"]), key=repr)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_changes_rebuild_every_snapshot(name: str) -> None:
    """CF-6: the change feed of tables by Spark and Iceberg's Java library, from the first snapshot to the last."""
    events = check_feed(scan_of(REFERENCE / "wh" / "db" / name).view)
    assert set(events["_change_type"].to_pylist()) == {"insert", "delete"}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_rows_are_those_of_the_reference_reader(name: str) -> None:
    scan = scan_of(REFERENCE / "wh" / "db" / name)
    assert scan.schema.names == EXPECTED[name]["columns"]
    assert as_written(scan.to_arrow()) == expected_rows(name)
    assert scan.count() == EXPECTED[name]["n_rows"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_delete_files_of_the_plan_are_the_live_ones(name: str) -> None:
    plan = scan_of(REFERENCE / "wh" / "db" / name).plan()
    found = sorted((delete.record_count, delete.equality_ids or ()) for delete in plan.delete_files)
    live = sorted(
        (delete["record_count"], tuple(delete["equality_ids"] or ())) for delete in EXPECTED[name]["delete_files"]
    )
    assert set(found) <= set(live)
    assert len(plan.tasks) + len(plan.covered) == EXPECTED[name]["data_files"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_filters_and_doors_agree_with_the_reference_rows(name: str) -> None:
    """A filter is applied after the deletes, whichever door it comes through."""
    expected = [row for row in expected_rows(name) if row[0] >= 10]
    assert as_written(scan_of(REFERENCE / "wh" / "db" / name, "id >= 10").to_arrow()) == expected
    scan = scan_of(REFERENCE / "wh" / "db" / name)
    marked = DuckDBDataset(scan, marks_rows=True)
    for dataset in (scan.to_dataset(), marked):
        with duckdb.connect() as connection:
            connection.register("lake", dataset)
            columns = f"* EXCLUDE ({marked.marker})" if dataset is marked else "*"
            assert as_written(connection.sql(f"SELECT {columns} FROM lake WHERE id >= 10").to_arrow_table()) == expected
            counts = [
                connection.sql(f"SELECT count(*) FROM lake{where}").fetchall() for where in ("", " WHERE id >= 10")
            ]
        assert counts == [[(EXPECTED[name]["n_rows"],)], [(len(expected),)]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mytable", [(4, "d", dt.date(2025, 1, 4)), (5, "e", dt.date(2025, 1, 5))]),
        (
            "mytable_partitioned",
            [(1, "a", dt.date(2025, 1, 1)), (4, "d", dt.date(2025, 1, 4)), (5, "e", dt.date(2025, 1, 5))],
        ),
    ],
)
def test_equality_deletes_of_flink(name: str, expected: list[tuple[Any, ...]]) -> None:
    """DA-2, DA-3: equality deletes of a partitioned and an unpartitioned table."""
    rows = scan_of(FLINK / name).to_arrow()
    assert sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected
    only = scan_of(FLINK / name, "name = 'd'", columns=["bir"]).to_arrow()
    assert only.to_pydict() == {"bir": [dt.date(2025, 1, 4)]}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_snapshot_of_the_history_can_be_read(name: str) -> None:
    metadata, io, _ = read_table_metadata(str(REFERENCE / "wh" / "db" / name), {})
    counts = []
    for snapshot in sorted(metadata.snapshots, key=lambda found: found.sequence_number or 0):
        view = SnapshotView(metadata, io, snapshot, metadata.schema())
        scan = Scan(view)
        counts.append(scan.count())
        assert scan.to_arrow().num_rows == counts[-1]
    assert counts[-1] == EXPECTED[name]["n_rows"]
    assert counts[0] > 0
