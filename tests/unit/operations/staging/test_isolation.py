"""`write.{delete,update}.isolation-level`: whether rows that others add concurrently conflict with an operation that
reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.testing.acts import interrupted_by
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
VERBS: dict[str, Callable[[tf.Table], Any]] = {
    "delete": lambda table: table.delete("v = 'old'", mode="scan"),
    "update": lambda table: table.update("v = 'old'", set={"v": "'new'"}),
}


def rows_of(*ids: int, v: str = "old") -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


@pytest.fixture(params=["2", "3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Ids 1 to 3 in one file."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    created.append(rows_of(1, 2))
    created.append(rows_of(3, v="kept"))
    return created


def meanwhile(table: tf.Table, act: Callable[[tf.Table], object]) -> Any:
    """Run `act` on another handle after the operation has read the table, and before it commits."""
    assert table.catalog is not None
    other = table.catalog.load_table("db.t")
    return interrupted_by(lambda: act(other))


def values(table: tf.Table) -> dict[int, str]:
    rows = table.refresh().scan().to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


@pytest.mark.parametrize("verb", VERBS)
def test_snapshot_isolation_allows_concurrent_appends(table: tf.Table, verb: str) -> None:
    """SP-20: the operation commits its decision from the time of reading; the serializable default, CP-5, decides
    again."""
    changed = {} if verb == "delete" else {1: "new", 2: "new"}
    table.set_properties({f"write.{verb}.isolation-level": "snapshot"})
    with meanwhile(table, lambda other: other.append(rows_of(4))):
        result = VERBS[verb](table)
    assert result.attempts == 1
    assert values(table) == {**changed, 3: "kept", 4: "old"}

    table.set_properties({f"write.{verb}.isolation-level": "serializable"})
    with meanwhile(table, lambda other: other.append(rows_of(5))):
        result = VERBS[verb](table)
    assert result.attempts > 1
    again = {} if verb == "delete" else {1: "new", 2: "new", 4: "new", 5: "new"}
    assert values(table) == {**again, 3: "kept"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("change", ["update", "upsert", "compact"])
def test_concurrent_row_changes_conflict_at_every_level(table: tf.Table, verb: str, change: str) -> None:
    """SP-20, CP-4, CP-6: of two that change a row the first commits, and the second decides again."""
    acts: dict[str, Callable[[tf.Table], object]] = {
        "update": lambda other: other.update("id = 1", set={"v": "'theirs'"}),
        "upsert": lambda other: other.upsert(rows_of(1, v="theirs")),
        "compact": lambda other: (other.upsert(rows_of(1, v="theirs")), other.maintenance.compact(rewrite_all=True)),
    }
    table.set_properties({f"write.{verb}.isolation-level": "snapshot"})
    with meanwhile(table, acts[change]):
        result = table.delete("id < 3 AND v <> 'x'", mode="scan") if verb == "delete" else VERBS[verb](table)
    assert result.attempts > 1
    assert values(table) == ({3: "kept"} if verb == "delete" else {1: "theirs", 2: "new", 3: "kept"})


def test_delete_finds_concurrently_updated_row_of_untouched_file(table: tf.Table) -> None:
    """SP-20: its new version is what the delete is about, though no file that leaves has met the upsert."""
    table.set_properties({"write.delete.isolation-level": "snapshot"})
    with meanwhile(table, lambda other: other.upsert(rows_of(1, v="theirs"))):
        result = table.delete("id < 2 AND v <> 'x'", mode="scan")
    assert result.attempts > 1
    assert values(table) == {2: "old", 3: "kept"}


KEYED: dict[str, Callable[[tf.Table, int], object]] = {
    "range delete": lambda other, key: other.delete_prefix({"id": key}),
    "equality delete": lambda other, key: other.delete_rows(rows_of(key)),
    "replace": lambda other, key: other.replace(rows_of(key, v="theirs"), prefix=["id"]),
}


@pytest.mark.parametrize("level", ["snapshot", "serializable"])
@pytest.mark.parametrize("kind", KEYED)
def test_concurrent_keyed_delete_of_other_rows_does_not_conflict(table: tf.Table, kind: str, level: str) -> None:
    """CP-6, SP-20: a stream that replaces rows all day lets an update of other rows of the same file through."""
    table.set_properties({"write.update.isolation-level": level})
    with meanwhile(table, lambda other: KEYED[kind](other, 2)):
        result = table.update("id = 1", set={"v": "'new'"})
    assert result.attempts == 1
    theirs = {2: "theirs"} if kind == "replace" else {}
    assert values(table) == {1: "new", 3: "kept", **theirs}


@pytest.mark.parametrize("level", ["snapshot", "serializable"])
@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("updated", ["id = 1", "id <= 2"])
def test_concurrent_keyed_delete_of_updated_row_conflicts(table: tf.Table, kind: str, level: str, updated: str) -> None:
    """CP-6: otherwise the row would come back with its new value; also if the whole file is rewritten by the update."""
    table.set_properties({"write.update.isolation-level": level})
    with meanwhile(table, lambda other: KEYED[kind](other, 1)):
        result = table.update(updated, set={"v": "'new'"})
    assert result.attempts != 1  # 0 where the second look finds nothing
    assert values(table) == {
        **({1: "new"} if kind == "replace" else {}),
        2: "new" if updated == "id <= 2" else "old",
        3: "kept",
    }


def test_snapshot_isolation_allows_deletes_of_other_rows(table: tf.Table) -> None:
    """SP-20: no row was added, so none was changed. A deletion vector has to hold what others deleted (CP-10)."""
    table.set_properties({"write.delete.isolation-level": "snapshot"})
    with meanwhile(table, lambda other: other.delete("id = 1 AND v <> 'x'", mode="scan")):
        result = table.delete("id = 2 AND v <> 'x'", mode="scan")
    assert (result.attempts == 1) == (table.metadata.format_version == 2)
    assert live_values(table.refresh(), "id") == [3]


INSERTING: dict[str, Callable[[tf.Table], Any]] = {
    "append": lambda table: table.append(rows_of(1, 4, v="new"), on_duplicate="ignore"),
    "merge": lambda table: table.merge(rows_of(1, 4, v="new"), on=["id"]).when_not_matched_insert_all().execute(),
    "merge, no update": lambda table: (
        table.merge(rows_of(1, 4, v="new"), on=["id"])
        .when_matched_update({"v": "'never'"}, "target.v = 'another'")
        .when_not_matched_insert_all()
        .execute()
    ),
}
DELETES: dict[str, Callable[[tf.Table, int], object]] = {
    "range delete": KEYED["range delete"],
    "equality delete": KEYED["equality delete"],
    "positions": lambda other, key: other.delete(f"id = {key}", mode="scan"),
    "whole file": lambda other, key: other.delete("id = 3" if key == 3 else "id < 3", mode="scan"),
    "and converted": lambda other, key: (
        other.delete_prefix({"id": key}),
        other.maintenance.convert_deletes(),
        other.maintenance.drop_dead_deletes(),
    ),
}


@pytest.mark.parametrize("verb", INSERTING)
@pytest.mark.parametrize("kind", DELETES)
def test_insert_if_missing_is_retried_after_concurrent_delete(table: tf.Table, verb: str, kind: str) -> None:
    """CP-38: otherwise neither the old row is in the table nor the new one."""
    with meanwhile(table, lambda other: DELETES[kind](other, 1)):
        result = INSERTING[verb](table)
    assert result.attempts > 1
    others = {} if kind == "whole file" else {2: "old"}
    assert values(table) == {1: "new", 3: "kept", 4: "new", **others}


@pytest.mark.parametrize("verb", INSERTING)
@pytest.mark.parametrize("kind", [kind for kind in DELETES if kind != "whole file"])
def test_deletes_of_other_rows_do_not_conflict_with_insert_if_missing(table: tf.Table, verb: str, kind: str) -> None:
    """CP-38: the check compares rows, regardless of the kind of delete in the files of others."""
    with meanwhile(table, lambda other: DELETES[kind](other, 2)):
        result = INSERTING[verb](table)
    assert result.attempts == 1
    assert values(table) == {1: "old", 3: "kept", 4: "new"}


@pytest.mark.parametrize("kind", DELETES)
def test_snapshot_isolation_merge_inserts_by_its_read_snapshot(table: tf.Table, kind: str) -> None:
    """SP-20."""
    table.set_properties({"write.merge.isolation-level": "snapshot"})
    with meanwhile(table, lambda other: DELETES[kind](other, 1)):
        result = INSERTING["merge"](table)
    assert result.attempts == 1
    others = {} if kind == "whole file" else {2: "old"}
    assert values(table) == {3: "kept", 4: "new", **others}
