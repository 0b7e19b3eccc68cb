"""`write.{delete,update}.mode = copy-on-write`: files with matching rows are replaced by files with the remaining
rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from renamed_columns import rename_as_another_writer

import tableformat as tf
from tableformat.merge_on_read.small_files import batches
from tableformat.operations.ranges.dropped import live_delete_files

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
BOTH = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"}


@pytest.fixture(params=["2", "3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Ids 1 to 4 in one file, with 4 deleted; ids 5 and 6 in another file."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    created.append(pa.table({"id": [1, 2, 3, 4], "v": list("abcd")}, schema=SCHEMA))
    created.append(pa.table({"id": [5, 6], "v": list("ef")}, schema=SCHEMA))
    created.delete_prefix({"id": 4}, mode="scan")
    return created


def paths(table: tf.Table) -> set[str]:
    return {task.data_file.file_path for task in table.refresh().scan().plan().tasks}


def stored(table: tf.Table) -> dict[int, str]:
    rows = table.refresh().scan().to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def test_files_with_deleted_rows_are_replaced_without_delete_file(table: tf.Table) -> None:
    """SP-21: the existing row delete is removed with its file; other files stay unchanged."""
    before = paths(table)
    table.set_properties(BOTH)
    deleted = table.delete("v = 'b'")
    assert stored(table) == {1: "a", 3: "c", 5: "e", 6: "f"}
    assert not live_delete_files(table.view)
    assert len(before & paths(table)) == 1
    assert (deleted.deleted_row_count, deleted.added_row_count) == (1, 0)

    changed = table.update("v = 'c'", set={"v": "'C'"})
    assert stored(table) == {1: "a", 3: "C", 5: "e", 6: "f"}
    assert not live_delete_files(table.view)
    assert (changed.deleted_row_count, changed.added_row_count) == (1, 1)
    assert table.delete("v = 'e' OR v = 'f'").deleted_row_count == 2
    assert stored(table) == {1: "a", 3: "C"}


@pytest.mark.parametrize("name", ["_row_id", "_last_updated_sequence_number"])
def test_column_named_like_a_lineage_column_is_kept(tmp_path: Path, name: str) -> None:
    """FM-20: it was named twice, so that nothing could be changed; the other column of lineage is carried as well."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    table = catalog.create_table("db.t", schema, key=["id"], properties={"format-version": "3", **BOTH})
    rename_as_another_writer(table, {"n": name})
    table.append(pa.table({"id": [1, 2, 3], name: [10, None, 30]}, schema=table.schema))
    table.delete("id = 1")
    table.update("id = 3", set={name: 7})
    table.maintenance.compact(rewrite_all=True)
    assert [tuple(row.values()) for row in table.scan().to_arrow().sort_by("id").to_pylist()] == [(2, None), (3, 7)]
    if name == "_row_id":
        numbers = table.scan(columns=["id", "_last_updated_sequence_number"]).to_arrow().sort_by("id")
        assert numbers["_last_updated_sequence_number"].to_pylist() == [1, 3]


def test_remaining_rows_keep_their_ids(table: tf.Table) -> None:
    """SP-21, MT-49."""
    if table.metadata.format_version < 3:
        return
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = {row["id"]: row for row in table.scan(columns=columns).to_arrow().to_pylist()}
    table.set_properties(BOTH)
    table.delete("v = 'b'")
    after = {row["id"]: row for row in table.scan(columns=columns).to_arrow().to_pylist()}
    assert after == {each: before[each] for each in (1, 3, 5, 6)}


@pytest.mark.parametrize("small_file_bytes", [batches.SMALL_FILE_BYTES, -1], ids=["small", "large"])
def test_rows_keep_ids_if_file_is_replaced_twice_in_a_transaction(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, small_file_bytes: int
) -> None:
    """SP-21, MT-49: a file of the transaction assigns no row ids, so its rows keep their stored ids. New rows get their
    ids from the commit."""
    if table.metadata.format_version < 3:
        return
    monkeypatch.setattr(batches, "SMALL_FILE_BYTES", small_file_bytes)
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = {row["id"]: row for row in table.scan(columns=columns).to_arrow().to_pylist()}
    next_row_id = table.metadata.next_row_id
    table.set_properties(BOTH)
    with table.transaction() as several:
        several.append(pa.table({"id": [7, 8], "v": list("gh")}, schema=SCHEMA))
        several.delete("v = 'a'")
        several.delete("v = 'b' OR v = 'g'")
        several.delete("v = 'e'")
        several.delete("v = 'z'")
    after = {row["id"]: row for row in table.refresh().scan(columns=columns).to_arrow().to_pylist()}
    number = table.metadata.last_sequence_number
    new = after.pop(8)
    assert after == {each: before[each] for each in (3, 6)}
    assert new["_last_updated_sequence_number"] == number
    assert new["_row_id"] >= next_row_id
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("kind", ["range", "equality"])
@pytest.mark.parametrize("change", ["delete", "prefix", "update", "merge", "transaction"])
def test_deleted_rows_are_not_rewritten(table: tf.Table, kind: str, change: str) -> None:
    """SP-71: the filter of the statement selects files, and all live rows of a selected file are rewritten."""
    if kind == "range":
        table.delete_range(lower=[2], upper=[3])
    else:
        table.delete_rows([{"id": 2}])
    table.set_properties({**BOTH, "write.merge.mode": "copy-on-write"})
    source = pa.table({"id": [3], "v": ["C"]}, schema=SCHEMA)
    left = {1: "a", 5: "e", 6: "f"}
    match change:
        case "delete":
            table.delete("id = 3")
        case "prefix":
            table.delete_prefix({"id": 3})
        case "update":
            table.update("id = 3", set={"v": "'C'"})
            left[3] = "C"
        case "merge":
            table.merge(source, on=["id"]).when_matched_update_all().execute()
            left[3] = "C"
        case _:
            with table.transaction() as both:
                both.append(pa.table({"id": [7], "v": ["g"]}, schema=SCHEMA))
                both.delete("id = 3 OR id = 7")
    assert stored(table) == left
    assert table.verify(deep=True).findings == ()
