"""`merge`: source rows are matched with target rows, and clauses decide what happens to them."""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    DuplicateKeyError,
    InvalidArgumentError,
    RowsRefusedError,
    SchemaMismatchError,
    UnknownColumnError,
    UnknownOptionError,
)

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("x", pa.float64()), ("text", pa.string())])


SMALL = '{"type": "lt", "term": "a", "value": 100}'


@pytest.fixture(params=["2", "3"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    """Rows 0 and 2 to 5 in two files; row 1 is deleted by its key."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    for first in (0, 3):
        numbers = [first, first + 1, first + 2]
        table.append(pa.table([numbers, numbers, numbers, ["t"] * 3], names=SCHEMA.names))
    table.delete_prefix({"id": 1})
    return table


def stored(table: tf.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = table.refresh().scan(columns=["id", *columns]).to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in rows]


def source(*ids: int, **columns: list[Any]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def test_first_matching_clause_applies_to_each_row(table: tf.Table) -> None:
    rows = source(0, 1, 2, 3, 9, a=[10, 11, 12, None, 19], kind=["upd", "ins", "del", "upd", "no"])
    merge = (
        table.merge(rows, on="id")
        .when_matched_delete("source.kind = 'del'")
        .when_matched_update({"a": "source.a + target.a", "text": "'x' || target.id"}, "source.a IS NOT NULL")
        .when_matched_update({"x": 0.5})
        .when_not_matched_insert({"id": "source.id", "a": "source.a", "text": "'new'"}, "kind = 'ins'")
        .when_not_matched_by_source_delete("target.id = 5")
        .when_not_matched_by_source_update({"text": "upper(text)"})
    )
    result = merge.execute()
    assert (result.deleted_row_count, result.added_row_count) == (5, 4)
    assert stored(table, "a", "x", "text") == [
        (0, 10, 0.0, "x0"),
        (1, 11, None, "new"),
        (3, 3, 0.5, "t"),
        (4, 4, 4.0, "T"),
    ]


def test_on_accepts_any_condition_and_null_matches_nothing(table: tf.Table) -> None:
    rows = pa.table({"low": [2, None], "high": [3, 9]})
    merge = table.merge(rows, on="t.id BETWEEN s.low AND s.high", source_alias="s", target_alias="t")
    merge.when_matched_update({"text": "'between ' || s.low"}).when_not_matched_insert({"id": "s.high"}).execute()
    assert stored(table, "text") == [
        (0, "t"), (2, "between 2"), (3, "between 2"), (4, "t"), (5, "t"), (9, None)
    ]  # fmt: skip
    nothing = table.merge(source(None), on="id").when_matched_delete().execute()  # type: ignore[arg-type]
    assert nothing.attempts == 0


def test_target_row_matched_twice_raises_error(table: tf.Table) -> None:
    """CP-28: regardless of the predicates, unless all matching rows are deleted."""
    before = table.snapshot_id
    merge = table.merge(source(4, 0, 4, a=[1, 2, 3]), on="id").when_matched_update_all("source.a < 3")
    with pytest.raises(DuplicateKeyError):
        merge.execute()
    assert table.refresh().snapshot_id == before
    assert table.merge(source(4, 4), on="id").when_matched_delete().execute().deleted_row_count == 1


@pytest.mark.parametrize("change", ["delete", "update", "append"])
def test_a_concurrent_change_is_not_lost(table: tf.Table, change: str) -> None:
    """CP-5, CP-6: the merge is made again of the rows that are there then, from a reader too."""
    other = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    if change == "delete":
        other.delete_prefix({"id": 4})
    elif change == "update":
        other.update("id = 4", set={"a": 50})
    else:
        other.append(source(7, a=pa.array([50], pa.int32())))
    rows = source(4, 7, a=[1, 1]).to_reader()
    merge = table.merge(rows, on="id").when_matched_update({"a": "target.a + source.a"})
    merge.when_not_matched_insert_all().execute()
    expected = {
        "delete": [(4, 1), (5, 5), (7, 1)],
        "update": [(4, 51), (5, 5), (7, 1)],
        "append": [(4, 5), (5, 5), (7, 51)],
    }
    assert stored(table, "a")[3:] == expected[change]


def test_concurrent_changes_of_other_rows_do_not_conflict(table: tf.Table) -> None:
    other = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    other.append(source(50, a=pa.array([50], pa.int32())))
    assert table.merge(source(4, a=[1]), on="id").when_matched_update_all().execute().attempts == 1


def test_merge_isolation_level_is_honoured(table: tf.Table) -> None:
    """SP-20: at "snapshot" isolation a row that was added concurrently is not checked."""
    table.set_properties({"write.merge.isolation-level": "snapshot"})
    other = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    other.append(source(7, a=pa.array([50], pa.int32())))
    table.merge(source(7, a=[1]), on="id").when_not_matched_insert_all().execute()
    assert [row for row in stored(table, "a") if row[0] == 7] in ([(7, 50), (7, 1)], [(7, 1), (7, 50)])


def test_merge_mode_copy_on_write(table: tf.Table) -> None:
    """SP-21: `write.merge.mode` rewrites the files, and no delete is left."""
    table.set_properties({"write.merge.mode": "copy-on-write"})
    result = table.merge(source(4, 3, a=[1, 2]), on="id").when_matched_update_all("source.id = 4").when_matched_delete()
    assert result.execute().added_delete_files_count == 0
    assert stored(table, "a") == [(0, 0), (2, 2), (4, 1), (5, 5)]


def test_merge_sees_earlier_changes_of_its_transaction(table: tf.Table) -> None:
    with table.transaction() as tx:
        tx.append(source(9, a=pa.array([9], pa.int32())))
        tx.delete_prefix({"id": 5})
        assert tx.merge(source(9, 5, a=[1, 2]), on="id").when_matched_update(
            {"a": "source.a + target.a"}
        ).when_not_matched_insert_all().execute() is None  # fmt: skip
        tx.update("id = 9", set={"a": "a * 2"})
        with pytest.raises(InvalidArgumentError, match="does not support dry runs"):
            tx.merge(source(0), on="id").when_matched_delete().execute(dry_run=True)
    assert stored(table, "a") == [(0, 0), (2, 2), (3, 3), (4, 4), (5, 2), (9, 20)]


def test_merge_batch_is_applied_once_and_dry_run_changes_nothing(table: tf.Table) -> None:
    before, rows = table.snapshot_id, stored(table, "a")
    merge = table.merge(source(0, 2, a=[1, 1]), on="id").when_matched_update({"a": "target.a + 1"})
    preview = merge.execute(dry_run=True)
    assert (preview.dry_run, preview.added_row_count, preview.deleted_row_count) == (True, 2, 2)
    assert (table.refresh().snapshot_id, stored(table, "a")) == (before, rows)
    for is_again in (False, True):
        merge = table.merge(source(0, a=[1]), on="id", application_id="loader", batch_id=1)
        assert merge.when_matched_update({"a": "target.a + 1"}).execute().already_applied is is_again
    assert stored(table, "a")[0] == (0, 1)


def test_merge_checks_constraints_of_new_rows(table: tf.Table) -> None:
    """CK-3: changed and inserted rows alike."""
    table.set_properties({"tableformat.check.small": "a < 100", "tableformat.check-expression.small": SMALL})
    before = stored(table, "a")
    for merge in (
        table.merge(source(0, a=[100]), on="id").when_matched_update_all(),
        table.merge(source(8, a=[100]), on="id").when_not_matched_insert_all(),
        table.merge(source(8, a=[1]), on="id").when_not_matched_insert({"a": "source.a"}),
    ):
        with pytest.raises((RowsRefusedError, SchemaMismatchError)):
            merge.execute()
    assert stored(table, "a") == before


def test_merge_keeps_column_types(tmp_path: Path) -> None:
    """Copied columns are not passed through DuckDB, which has other types."""
    catalog = new_lake(tmp_path / "lake")
    at = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
    columns = {
        "day": pa.array([dt.date(2026, 1, 2)] * 2),
        "price": pa.array([1, 2], pa.decimal128(9, 2)),
        "at": pa.array([at, None], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\xff", b""]),
        "unique": pa.array([bytes(16), None], pa.uuid()),
        "tags": pa.array([["a"], []]),
    }
    rows = pa.table(columns)
    table = catalog.create_table("db.t", rows.schema, key=["day", "price"])

    def stored_rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = table.scan().to_arrow().sort_by("price").to_pylist()
        return found

    table.merge(rows, on=["day", "price"]).when_not_matched_insert_all().execute()
    assert stored_rows() == rows.to_pylist()
    changed = pa.table({**columns, "at": pa.array([at, at], rows.schema.field("at").type)})
    table.merge(changed, on=["day", "price"]).when_matched_update_all("target.at IS NULL").execute()
    assert stored_rows() == changed.to_pylist()
    by_uuid = table.merge(rows, on="unique").when_matched_update({"raw": "source.raw", "at": None})
    assert by_uuid.execute().added_row_count == 1


def test_invalid_merges_are_rejected(table: tf.Table) -> None:
    before, rows = table.snapshot_id, source(0, a=[1], b=[2])
    by_id, by_a = partial(table.merge, on="id"), partial(table.merge, on="target.a = source.a")
    cases: list[tuple[type[Exception], str, Any]] = [
        (InvalidArgumentError, "at least one clause", lambda: by_id(rows)),
        (InvalidArgumentError, "never applies", lambda: by_id(rows).when_matched_delete().when_matched_delete()),
        (InvalidArgumentError, "two different names", lambda: by_id(rows, source_alias="target")),
        (InvalidArgumentError, "on=", lambda: table.merge(rows, on=[])),
        (InvalidArgumentError, "predicate", lambda: by_id(rows).when_matched_delete("max(a) = 1")),
        (InvalidArgumentError, "key", lambda: by_id(rows).when_matched_update({"id": 1})),
        (InvalidArgumentError, "would change 'id'", lambda: by_a(rows).when_matched_update_all(except_cols=["b"])),
        (InvalidArgumentError, "at least one column", lambda: by_id(rows).when_matched_update({})),
        (InvalidArgumentError, "cannot be computed", lambda: by_id(rows).when_matched_update({"a": "source.no + 1"})),
        (InvalidArgumentError, "cannot be computed", lambda: by_id(rows).when_matched_delete("source.no = 1")),
        (InvalidArgumentError, "cannot be computed", lambda: table.merge(rows, on="no = 1").when_matched_delete()),
        (InvalidArgumentError, "computed", lambda: by_id(source(8)).when_not_matched_insert({"id": "target.id"})),
        (UnknownColumnError, "'b'", lambda: by_id(rows).when_matched_update_all()),
        (UnknownColumnError, "'b'", lambda: table.merge(rows, on=["b"]).when_matched_delete()),
        (UnknownColumnError, "'x'", lambda: table.merge(rows, on="x").when_matched_delete()),
        (UnknownColumnError, "'no'", lambda: by_id(rows).when_matched_update_all(except_cols=["no"])),
        (UnknownColumnError, "'b'", lambda: by_id(rows).when_matched_update({"b": 1})),
        (UnknownOptionError, "mode", lambda: by_id(rows, mode="scan")),
    ]
    for error, names, make in cases:
        with pytest.raises(error, match=names):
            make().execute()
    assert table.refresh().snapshot_id == before
