"""Tables that Apache Iceberg's Java library wrote are read, and have the same rows as in its own reader.

They contain every delete kind of the specification: DA-1 (position deletes, also in the commit of their data), DA-2
(rows and their equality deletes in one commit), DA-3, DA-4 (null in delete keys), DA-6 (extra columns in delete files),
DA-7 (deletion vectors) and DA-9 (inherited sequence numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

import duckdb
import pyarrow as pa
from foreign_tables import EVERY_TABLE, WRITTEN_HERE, ForeignTable, each_of
from pyiceberg.expressions import EqualTo, IsNull
from pyiceberg.types import PrimitiveType

from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.testing.json_values import rows_from_json
from tableformat.testing.key_order import fingerprint
from tableformat.testing.replay import check_feed


def assert_rows(found: pa.Table, expected: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    assert found.column_names == list(columns)
    assert fingerprint(found.to_pylist(), columns) == fingerprint(expected, columns)


@each_of(EVERY_TABLE, "snapshots")
def test_changes_rebuild_every_snapshot(foreign: ForeignTable) -> None:
    """CF-6: the change feed, from the first snapshot to the last."""
    events = check_feed(foreign.open().view)
    assert set(events["_change_type"].to_pylist()) == {"insert", "delete"}


@each_of(EVERY_TABLE)
def test_rows_match_the_reference_reader(foreign: ForeignTable) -> None:
    table = foreign.open()
    expected = foreign.rows(table.iceberg.schema())
    assert_rows(table.scan().to_arrow(), expected, foreign.expected["columns"])
    assert table.scan().count() == len(expected) > 0


@each_of(EVERY_TABLE, "delete_files")
def test_plan_contains_only_live_delete_files(foreign: ForeignTable) -> None:
    plan = foreign.open().scan().plan()
    found = {(delete.record_count, delete.equality_ids or ()) for delete in plan.delete_files}
    live = {(each["record_count"], tuple(each["equality_ids"] or ())) for each in foreign.expected["delete_files"]}
    assert found <= live
    assert len(plan.tasks) + len(plan.covered) == foreign.expected["data_files"]


@each_of(EVERY_TABLE)
def test_filters_and_entry_points_agree_with_the_reference_rows(foreign: ForeignTable) -> None:
    """A filter is applied after the deletes, through every entry point."""
    table, columns = foreign.open(), foreign.expected["columns"]
    rows = foreign.rows(table.iceberg.schema())
    first_id = median_low(row["id"] for row in rows)
    where = f"id >= {first_id}"
    expected = [row for row in rows if row["id"] >= first_id]
    assert_rows(table.scan(where).to_arrow(), expected, columns)
    assert_rows(table.scan(where, columns=columns[-1:]).to_arrow(), expected, columns[-1:])
    marked = DuckDBDataset(table.scan(), marks_rows=True)
    for dataset in (table.scan().to_dataset(), marked):
        with duckdb.connect() as connection:
            connection.register("lake", dataset)
            chosen = f"* EXCLUDE ({marked.marker})" if dataset is marked else "*"
            assert_rows(connection.sql(f"SELECT {chosen} FROM lake WHERE {where}").to_arrow_table(), expected, columns)
            counts = [connection.sql(f"SELECT count(*) FROM lake{end}").fetchall() for end in ("", f" WHERE {where}")]
        assert counts == [[(len(rows),)], [(len(expected),)]]


@each_of(WRITTEN_HERE)
def test_every_snapshot_matches_the_reference_reader(foreign: ForeignTable) -> None:
    """With the columns at the time of the snapshot, on branches too."""
    table = foreign.open()
    snapshots = foreign.expected["snapshots"]
    assert {each["snapshot_id"] for each in snapshots} == {each.snapshot_id for each in table.metadata.snapshots}
    for stated in snapshots:
        scan = table.scan(snapshot_id=stated["snapshot_id"])
        expected = rows_from_json(stated["rows"], scan.view.schema)
        assert_rows(scan.to_arrow(), expected, stated["columns"])
        assert scan.count() == len(expected) > 0


@each_of(WRITTEN_HERE)
def test_branches_and_tags_return_rows_of_their_snapshots(foreign: ForeignTable) -> None:
    table = foreign.open()
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == foreign.expected["refs"]
    by_id = {each["snapshot_id"]: each for each in foreign.expected["snapshots"]}
    for name, ref in table.metadata.refs.items():
        scan = table.scan(**{ref.snapshot_ref_type: name})
        stated = by_id[ref.snapshot_id]
        assert_rows(scan.to_arrow(), rows_from_json(stated["rows"], scan.view.schema), stated["columns"])


@each_of(WRITTEN_HERE)
def test_filter_by_each_column_value_finds_its_rows(foreign: ForeignTable) -> None:
    """Filters do not skip files that lack a column, or have it under another name or as a narrower type."""
    table = foreign.open()
    rows = foreign.rows(table.iceberg.schema())
    columns = foreign.expected["columns"]
    for field in table.iceberg.schema().fields:
        if not isinstance(field.field_type, PrimitiveType):
            continue
        # NaN is not equal to itself.
        for value in {row[field.name] for row in rows if row[field.name] == row[field.name]}:
            where = IsNull(field.name) if value is None else EqualTo(field.name, value)
            expected = [row for row in rows if row[field.name] == value]
            assert_rows(table.scan(where).to_arrow(), expected, columns)
            assert table.scan(where).count() == len(expected), where
