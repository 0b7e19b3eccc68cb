"""Row ids, and the sequence number of the last change of a row (v3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from foreign_tables import EVERY_TABLE, ForeignTable, each_of
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.snapshots import Operation
from renamed_columns import rename_as_another_writer
from v3_tables import SCHEMA, new_catalog, new_table, rows

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import UnknownColumnError, UnsupportedFeatureError
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_task
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_conformed
from tableformat.write.rows.conform import table_arrow_schema

ROW_ID, LAST_UPDATED = ROW_LINEAGE_NAMES


def lineage(table: tf.Table, where: str | None = None) -> dict[str, tuple[int | None, int | None]]:
    """Note of each row -> its row id and the sequence number of its last change."""
    found = table.scan(where, columns=["note", ROW_ID, LAST_UPDATED]).to_arrow().to_pylist()
    assert len({row["note"] for row in found}) == len(found)
    return {row["note"]: (row[ROW_ID], row[LAST_UPDATED]) for row in found}


def next_row_id(table: tf.Table) -> int | None:
    assert isinstance(table.metadata, TableMetadataV3)
    return table.metadata.next_row_id


@each_of(EVERY_TABLE, "row_lineage")
def test_row_lineage_agrees_with_reference_reader(foreign: ForeignTable) -> None:
    """FM-20: updated rows keep the ids that their new file stores; older rows of an upgraded table have ids too."""
    names = ["id", ROW_ID, LAST_UPDATED]
    found = foreign.open().scan(columns=names).to_arrow()
    expected = foreign.expected["row_lineage"]
    as_tuples = [tuple(row.values() if isinstance(row, dict) else row) for row in expected]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(as_tuples)
    assert found.schema.names == names
    assert found.schema.types == [pa.int64()] * 3


def test_row_ids_follow_commit_order(tmp_path: Path) -> None:
    """FM-20."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 1, 2, 3))
    table.append(rows("b", 1, 2))
    assert lineage(table) == {"a1": (0, 1), "a2": (1, 1), "a3": (2, 1), "b1": (3, 2), "b2": (4, 2)}
    assert [(snapshot.first_row_id, snapshot.added_rows) for snapshot in table.metadata.snapshots] == [(0, 3), (3, 2)]
    assert next_row_id(table) == 5


def test_row_ids_survive_deletes_conversion_and_time_travel(tmp_path: Path) -> None:
    """Rows that a range delete or an upsert replaces get new ids, as the specification requires."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 1, 2, 3, 4))
    first = table.snapshot_id
    before = lineage(table)
    table.delete("id = 2", mode="scan")
    table.delete_prefix({"region": "a", "id": 3})
    table.maintenance.convert_deletes()
    assert lineage(table) == {note: before[note] for note in ("a1", "a4")}
    table.upsert(rows("a", 4, note="new "))
    after = lineage(table)
    assert after["a1"] == before["a1"]
    new_id, number = after["new a4"]
    assert new_id is not None
    assert new_id >= 4
    assert number == table.view.sequence_number
    old = table.scan(snapshot_id=first, columns=["note", ROW_ID]).to_arrow().to_pylist()
    assert {row["note"]: row[ROW_ID] for row in old} == {note: row_id for note, (row_id, _) in before.items()}


def test_rewritten_manifest_keeps_row_ids(tmp_path: Path) -> None:
    """CP-15, MT-48: rows get no new ids when one of two files of a manifest is removed, or when manifests are
    merged."""
    table = new_table(new_catalog(tmp_path), **{"commit.manifest.min-count-to-merge": "3"}, partition_by=["region"])
    table.append(pa.concat_tables([rows("a", 1, 2), rows("b", 1, 2)]))
    before = lineage(table)
    table.delete("region = 'a'", mode="scan")
    assert lineage(table) == {note: before[note] for note in ("b1", "b2")}
    entries = [
        entry
        for manifest in manifests_of(table.view)
        if manifest.content is ManifestContent.DATA
        for entry in read_manifest(table.iceberg.io, manifest, table.metadata)
    ]
    assert {(entry.status, entry.file.partition) for entry in entries} == {
        (EntryStatus.EXISTING, ("b",)),
        (EntryStatus.DELETED, ("a",)),
    }
    for number in range(4):
        table.append(rows("c", number))
    assert {note: ids for note, ids in lineage(table).items() if note[0] == "b"} == {
        note: before[note] for note in ("b1", "b2")
    }
    ids = [row_id for row_id, _ in lineage(table).values()]
    assert len(set(ids)) == len(ids)


def test_upgraded_rows_get_ids_with_the_next_snapshot(tmp_path: Path) -> None:
    table = new_table(new_catalog(tmp_path), 2)
    table.append(rows("a", 1, 2))
    table.append(rows("b", 1))
    old = table.snapshot_id
    table.upgrade()
    assert set(lineage(table).values()) == {(None, None)}
    table.append(rows("c", 1))
    given = lineage(table)
    assert sorted(row_id for row_id, _ in given.values() if row_id is not None) == [0, 1, 2, 3]
    assert {note: number for note, (_, number) in given.items()} == {"a1": 1, "a2": 1, "b1": 2, "c1": 3}
    assert next_row_id(table) == 4
    # Later changes of the manifests keep the ids; the old snapshot still has none.
    table.delete("note = 'a1'", mode="scan")
    table.delete("region = 'b'", mode="scan")
    assert lineage(table) == {note: given[note] for note in ("a2", "c1")}
    assert table.scan(snapshot_id=old, columns=[ROW_ID]).to_arrow()[ROW_ID].to_pylist() == [None] * 3


def test_lineage_columns_work_in_filters_limits_and_engines(tmp_path: Path) -> None:
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", *range(10)))
    table.delete("id < 3", mode="scan")
    assert lineage(table, "id = 7") == {"a7": (7, 1)}
    scan = table.scan(columns=[ROW_ID, "id"])
    assert scan.to_arrow().column_names == [ROW_ID, "id"]
    assert scan.to_dataset().to_table(filter=pa.compute.field(ROW_ID) > 8).to_pylist() == [{ROW_ID: 9, "id": 9}]
    assert table.scan(columns=[ROW_ID], limit=2).to_arrow()[ROW_ID].to_pylist() == [3, 4]
    assert ROW_ID not in table.scan().schema.names


def test_missing_row_lineage_error_suggests_upgrade(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, 2)
    with pytest.raises(UnsupportedFeatureError, match=r"need format version 3, .*\. Table\.upgrade"):
        table.scan(columns=["id", ROW_ID])
    with pytest.raises(UnsupportedFeatureError, match="need format version 3"):
        WriteContext.of(table.metadata, table.iceberg.io).with_row_lineage()
    with pytest.raises(UnknownColumnError):
        table.upgrade().scan(columns=["_row_id2"])


def test_table_column_named_like_row_id_takes_precedence(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("own", pa.string()))
    table = new_catalog(tmp_path).create_table("db.t", schema, properties={"format-version": "3"})
    rename_as_another_writer(table, {"own": ROW_ID})
    table.append(rows("a", 1).append_column(ROW_ID, [["mine"]]))
    assert table.scan(columns=[ROW_ID, LAST_UPDATED]).to_arrow().to_pylist() == [{ROW_ID: "mine", LAST_UPDATED: 1}]


# -- rewrites ---------------------------------------------------------------------------------------------------------


def rewrite(table: tf.Table, *, forget: str | None = None) -> None:
    """Rewrite all rows into new files that store their row ids; rows with the note `forget` get null ids."""
    view = table.view
    plan = plan_scan(view)
    names = [field.name for field in view.schema.fields]
    context = ReadContext.of(view, [*names, *ROW_LINEAGE_NAMES])
    write = WriteContext.of(view.metadata, view.io).with_row_lineage()
    rows_read = pa.Table.from_batches([batch for task in plan.tasks for batch in read_task(task, context)])
    if forget is not None:
        is_known = pa.compute.not_equal(rows_read["note"], forget)
        for name in ROW_LINEAGE_NAMES:
            place = rows_read.column_names.index(name)
            known = pa.compute.if_else(is_known, rows_read[name], pa.scalar(None, pa.int64()))
            rows_read = rows_read.set_column(place, name, known)
    target = table_arrow_schema(write.schema)
    staged = write_conformed(write, rows_read.select(target.names).cast(target).to_batches())
    number = view.sequence_number
    data, deletes = live_data_files(table), live_delete_files(table)
    change = TableChange(
        operation=Operation.REPLACE,
        kind=ChangeKind.REWRITE,
        added_data_files=tuple(replace(file, sequence_number=number) for file in staged.data_files),
        removed_data_files=tuple(data),
        planned_snapshot_id=table.snapshot_id,
        planned_sequence_number=number,
    )
    assert deletes, "the removal of vectors with their files is part of the story"
    commit_change(table.iceberg, change)
    table.refresh()


def test_rewritten_rows_keep_row_lineage(tmp_path: Path) -> None:
    """MT-49, FM-20, CP-20: the vectors of the rewritten files leave with them, though the change does not name them."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("b", 1, 2, 3))
    table.append(rows("a", 1, 2, 3))
    table.delete("id = 2", mode="scan")
    before = lineage(table)
    rewrite(table)
    assert lineage(table) == before
    data, deletes = live_data_files(table), live_delete_files(table)
    assert (len(data), deletes) == (1, [])
    table.append(rows("c", 1))
    table.delete("note = 'b1'", mode="scan")
    rewrite(table)
    expected = {note: before[note] for note in ("a1", "a3", "b3")}
    assert {note: ids for note, ids in lineage(table).items() if note != "c1"} == expected
    assert table.iceberg.scan().to_arrow().num_rows == 4


def test_null_stored_row_id_is_inherited(tmp_path: Path) -> None:
    """So an updated row states its id and a new one nothing, in one file."""
    table = new_table(new_catalog(tmp_path))
    table.append(rows("a", 1, 2, 3, 4))
    table.delete("id = 4", mode="scan")
    before = lineage(table)
    rewrite(table, forget="a2")
    after = lineage(table)
    (data,) = live_data_files(table)
    assert data.first_row_id is not None
    assert after == {"a1": before["a1"], "a2": (data.first_row_id + 1, data.sequence_number), "a3": before["a3"]}
