"""The order column: stale rows, messages and events are left out, counted, raised or returned (CP-69 to CP-73)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.types import DoubleType

import tableformat as tf
from tableformat.errors import (
    CommitConflictError,
    DuplicateKeyError,
    InvalidArgumentError,
    StaleRowsError,
    UnknownColumnError,
)

ORDER_COLUMN = "tableformat.order-column"


COLUMNS = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        ("note", pa.string()),
        ("ts", pa.int64()),
    ]
)


@pytest.fixture(params=["2", "3"])
def orders(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    return new_table(tmp_path, **{"format-version": request.param})


def new_table(directory: Path, **properties: str) -> tf.Table:
    catalog = new_lake(directory / "lake")
    properties = {ORDER_COLUMN: "ts", **properties}
    return catalog.create_table("db.orders", COLUMNS, key=["customer", "order"], properties=properties)


def row(order: int | None, ts: int | None, note: str = "new", *, customer: str = "ann") -> dict[str, Any]:
    return {"customer": customer, "order": order, "note": note, "ts": ts}


def delete_of(order: int, ts: int | None) -> pa.Table:
    """A delete event with only the key and the time."""
    return pa.table({"customer": ["ann"], "order": [order], "ts": pa.array([ts], pa.int64()), "op": ["delete"]})


def apply(table: tf.Table, events: pa.Table, **options: Any) -> tf.CommitResult:
    return table.apply_changes(events, op="op", order_by="ts", **options)


def notes(table: tf.Table) -> dict[int, str]:
    rows = table.scan(columns=["order", "note"]).to_arrow().to_pylist()
    return {each["order"]: each["note"] for each in sorted(rows, key=lambda each: each["order"])}


def expire_all(table: tf.Table) -> None:
    table.append([row(99, 1)])
    time.sleep(0.01)
    table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)


def test_older_row_does_not_replace_the_stored_one(orders: tf.Table) -> None:
    """CP-69: rows with equal values replace the stored ones, and null is the smallest value."""
    orders.upsert([row(1, 40, "first"), row(2, None, "null")])
    assert orders.upsert([row(1, 30), row(2, None, "null again"), row(3, 5)]).stale_row_count == 1
    assert notes(orders) == {1: "first", 2: "null again", 3: "new"}
    assert orders.upsert([row(1, 40, "equal"), row(2, 0, "number")]).stale_row_count == 0
    assert orders.upsert([row(2, None, "null")]).stale_row_count == 1
    assert notes(orders) == {1: "equal", 2: "number", 3: "new"}


def test_append_with_on_duplicate_replace_compares_order(orders: tf.Table) -> None:
    orders.upsert([row(1, 40, "first")])
    assert orders.append([row(1, 30)], on_duplicate="replace").stale_row_count == 1
    assert notes(orders) == {1: "first"}


def test_stale_delete_is_skipped_and_newer_delete_is_remembered(orders: tf.Table) -> None:
    """CP-71: also for a key that the table never contained."""
    orders.upsert([row(1, 40, "first")])
    assert apply(orders, delete_of(1, 30)).stale_row_count == 1
    assert apply(orders, delete_of(1, 50)).stale_row_count == 0
    assert apply(orders, delete_of(7, 50)).stale_row_count == 0
    assert orders.upsert([row(1, 45), row(7, 45)]).stale_row_count == 2
    assert apply(orders, delete_of(1, 49)).stale_row_count == 1
    assert notes(orders) == {}
    assert orders.upsert([row(1, 50, "equal"), row(7, 51, "later")]).stale_row_count == 0
    assert notes(orders) == {1: "equal", 7: "later"}


def test_deletes_are_remembered_after_conversion_and_expiry(orders: tf.Table) -> None:
    """CP-72, FM-34: a conversion removes the delete file, and an expiry removes its snapshot."""
    orders.upsert([row(1, 40), row(2, 40)])
    apply(orders, delete_of(1, 50))
    orders.maintenance.convert_deletes()
    orders.maintenance.compact(rewrite_all=True)
    assert orders.inspect.delete_files().num_rows == 0
    assert orders.upsert([row(1, 45), row(8, 45)]).stale_row_count == 1
    expire_all(orders)
    assert orders.upsert([row(1, 45), row(2, 45), row(8, 46), row(9, 50)]).stale_row_count == 1
    assert sorted(notes(orders)) == [2, 8, 9, 99]


def test_new_key_older_than_a_forgotten_delete_is_stale_and_logged(
    orders: tf.Table, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-72: `append` stores the row."""
    apply(orders, delete_of(1, 50))
    expire_all(orders)
    assert orders.upsert([row(5, 49)]).stale_row_count == 1
    assert "older than deletes whose snapshots have expired" in caplog.text
    orders.append([row(5, 49)])
    assert orders.upsert([row(5, 49, "known now")]).stale_row_count == 0


def test_newest_message_is_kept_and_empty_message_is_remembered(orders: tf.Table) -> None:
    orders.replace([row(1, 40), row(2, 40)], prefix=["customer"])
    assert orders.replace([row(3, 30), row(4, 30)], prefix=["customer"]).stale_row_count == 2
    assert sorted(notes(orders)) == [1, 2]
    orders.replace([row(None, 50)], prefix=["customer"])
    assert notes(orders) == {}
    assert orders.replace([row(3, 45)], prefix=["customer"]).stale_row_count == 1
    assert orders.replace([row(None, 45)], prefix=["customer"]).stale_row_count == 1
    assert orders.upsert([row(6, 49)]).stale_row_count == 1, "the customer was emptied at 50"
    assert orders.replace([row(5, 50)], prefix=["customer"]).stale_row_count == 0
    assert sorted(notes(orders)) == [5]


def test_prefixes_to_cover_are_deleted_even_if_their_rows_are_newer(orders: tf.Table) -> None:
    orders.replace([row(1, 40), row(1, 40, customer="bob")], prefix=["customer"])
    cover = pa.table({"customer": ["bob"]})
    assert orders.replace([row(2, 30)], prefix=["customer"], cover=cover).stale_row_count == 1
    assert orders.scan(columns=["customer"]).to_arrow().to_pylist() == [{"customer": "ann"}]
    write = orders.new_write(kind="replace", prefix=["customer"])
    stale = write.write([row(2, 30)])
    assert orders.commit(write, [stale, write.cover(pa.table({"customer": ["ann"]}))]).stale_row_count == 1
    assert orders.scan().count() == 0


def test_rows_of_one_batch_are_ordered_by_the_column(orders: tf.Table) -> None:
    """CP-70."""
    orders.upsert([row(1, 30, "older"), row(1, 40, "newer")])
    orders.replace([row(2, 30, "older"), row(2, 40, "newer")])
    assert notes(orders) == {1: "newer", 2: "newer"}
    with pytest.raises(DuplicateKeyError):
        orders.upsert([row(1, 50), row(1, 50)])
    with pytest.raises(InvalidArgumentError, match="order_by"):
        orders.upsert([row(1, 50)], order_by="note")
    orders.upsert([row(1, 60, "a"), row(1, 60, "b")], order_by=["ts", "note"])
    assert notes(orders)[1] == "b"


def test_operations_of_a_transaction_see_each_other(orders: tf.Table) -> None:
    with orders.transaction() as tx:
        tx.upsert([row(1, 40, "first"), row(2, 40)])
        tx.upsert([row(1, 30)])
        tx.apply_changes(delete_of(2, 50), op="op", order_by="ts")
        tx.upsert([row(2, 45)])
        tx.replace([row(3, 10, customer="bob")], prefix=["customer"])
        tx.replace([row(4, 5, customer="bob")], prefix=["customer"])
    assert tx.result.stale_row_count == 3
    assert notes(orders) == {1: "first", 3: "new"}


@pytest.mark.parametrize("verb", ["upsert", "replace", "apply_changes", "new_write"])
def test_stale_rows_are_raised_or_returned(orders: tf.Table, verb: str) -> None:
    orders.upsert([row(1, 40, "first")])
    rows = pa.Table.from_pylist([row(2, 50), row(1, 30)], schema=COLUMNS)

    def run(on_stale: str) -> tf.CommitResult:
        if verb == "apply_changes":
            return apply(orders, rows.append_column("op", pa.array(["u", "u"])), on_stale=on_stale)
        if verb == "new_write":
            write = orders.new_write(kind="replace", on_stale=on_stale)
            return orders.commit(write, [write.write(rows)])
        result: tf.CommitResult = getattr(orders, verb)(rows, on_stale=on_stale)
        return result

    with pytest.raises(StaleRowsError):
        run("error")
    assert notes(orders) == {1: "first"}
    result = run("divert")
    assert result.stale_row_count == 1
    assert result.refused is not None
    (refused,) = result.refused.select([*COLUMNS.names, "_row_index", "_refused_column"]).to_pylist()
    index = None if verb == "new_write" else 1
    assert refused == {**row(1, 30), "_row_index": index, "_refused_column": "ts"}
    assert notes(orders) == {1: "first", 2: "new"}


def test_dry_run_counts_stale_rows(orders: tf.Table) -> None:
    orders.upsert([row(1, 40), row(2, 40)])
    result = apply(orders, pa.concat_tables([delete_of(1, 30), delete_of(2, 50)]), dry_run=True)
    assert (result.stale_row_count, result.deleted_row_count) == (1, 1)
    assert sorted(notes(orders)) == [1, 2]


def test_rows_without_the_column_are_an_error(orders: tf.Table) -> None:
    rows = pa.table({"customer": ["ann"], "order": [1], "note": ["x"]})
    for verb in (orders.replace, lambda rows: orders.upsert(rows, missing="null")):
        with pytest.raises(InvalidArgumentError, match="order column"):
            verb(rows)
    with pytest.raises(InvalidArgumentError, match="order column"):
        orders.apply_changes(rows.append_column("op", pa.array(["d"])), op="op", order_by=None)


def test_option_without_the_property_is_an_error(tmp_path: Path) -> None:
    table = new_table(tmp_path).remove_properties(ORDER_COLUMN)
    for call in (table.upsert, table.replace):
        with pytest.raises(InvalidArgumentError, match="no order column"):
            call([row(1, 1)], on_stale="error")
    with pytest.raises(InvalidArgumentError, match="no order column"):
        apply(table, delete_of(1, 1), on_stale="divert")
    with pytest.raises(InvalidArgumentError, match="no order column"):
        table.new_write(kind="replace", on_stale="error")
    with pytest.raises(InvalidArgumentError, match="on_stale"):
        table.upsert([row(1, 1)], on_stale="skip")


def test_delete_events_require_equality_deletes_to_be_allowed(tmp_path: Path) -> None:
    """CP-71: without equality deletes, these deletes could not be remembered."""
    table = new_table(tmp_path, **{"write.delete.blind": "off"})
    table.upsert([row(1, 40)])
    assert table.upsert([row(1, 30)]).stale_row_count == 1
    with pytest.raises(InvalidArgumentError, match="'equality'"):
        apply(table, delete_of(1, 50))
    with pytest.raises(InvalidArgumentError, match="'equality'"):
        table.replace([row(None, 50)], prefix=["customer"])
    assert notes(table) == {1: "new"}


def test_concurrent_delete_between_plan_and_commit_conflicts(tmp_path: Path) -> None:
    """CP-73: also if the delete is converted before the commit."""
    table = new_table(tmp_path)
    other = tf.open_catalog(tmp_path / "lake").load_table("db.orders")

    def write(*, converts: bool) -> None:
        with table.transaction() as tx:
            tx.upsert([row(1, 45)])
            apply(other.refresh(), delete_of(1, 50))
            if converts:
                other.maintenance.convert_deletes()

    for converts in (False, True):
        with pytest.raises(CommitConflictError):
            write(converts=converts)
    assert table.refresh().upsert([row(1, 45)]).stale_row_count == 1


def test_concurrent_row_between_plan_and_commit_is_compared(tmp_path: Path) -> None:
    """CP-73: a transaction raises a conflict, but a single operation is staged again."""
    table = new_table(tmp_path)
    other = tf.open_catalog(tmp_path / "lake").load_table("db.orders")

    def write(order: int, *, beside: int) -> None:
        with table.refresh().transaction() as tx:
            tx.upsert([row(order, 40)])
            other.refresh().upsert([row(beside, 50, "newer")])

    with pytest.raises(CommitConflictError):
        write(1, beside=1)
    write(2, beside=9)
    assert notes(table.refresh()) == {1: "newer", 2: "new", 9: "newer"}


def test_concurrent_changes_of_other_keys_do_not_conflict(tmp_path: Path) -> None:
    """CP-73: the rows of the delete file are compared if its bounds overlap."""
    table = new_table(tmp_path)
    other = tf.open_catalog(tmp_path / "lake").load_table("db.orders")
    with table.transaction() as tx:
        tx.upsert([row(5, 40)])
        other.upsert([row(1, 50), row(9, 50)])
        apply(other, pa.concat_tables([delete_of(2, 60), delete_of(8, 60)]))
    assert sorted(notes(table.refresh())) == [1, 5, 9]


def test_order_column_set_between_plan_and_commit_conflicts(tmp_path: Path) -> None:
    table = new_table(tmp_path).remove_properties(ORDER_COLUMN)
    other = tf.open_catalog(tmp_path / "lake").load_table("db.orders")
    table.append([row(1, 40)])
    write = table.new_write(kind="replace")
    staged = write.write([row(1, 30)])

    def upsert() -> None:
        with table.transaction() as tx:
            tx.upsert([row(1, 30)])
            other.set_properties({ORDER_COLUMN: "ts"})

    with pytest.raises(CommitConflictError):
        upsert()
    with pytest.raises(CommitConflictError):
        table.refresh().commit(write, [staged])


def test_order_column_cannot_be_dropped_or_renamed(orders: tf.Table) -> None:
    """FM-33."""
    with pytest.raises(InvalidArgumentError, match="cannot be dropped"), orders.update_schema() as update:
        update.delete_column("ts")
    with pytest.raises(InvalidArgumentError, match="cannot be renamed"), orders.update_schema() as update:
        update.rename_column("ts", "moment")
    with pytest.raises(InvalidArgumentError, match="cannot be dropped"), orders.update_schema() as update:
        update.case_sensitive(False).delete_column("TS")
    orders.remove_properties(ORDER_COLUMN)
    with orders.update_schema() as update:
        update.rename_column("ts", "moment")
    orders.set_properties({ORDER_COLUMN: "moment"})
    orders.upsert(pa.table({"customer": ["ann"], "order": [1], "note": ["x"], "moment": [40]}))
    rows = pa.table({"customer": ["ann"], "order": [1], "note": ["y"], "moment": [30]})
    assert orders.upsert(rows).stale_row_count == 1


def test_order_column_must_have_an_exact_order(tmp_path: Path) -> None:
    """FM-33: both when the property is set and when a table is created."""
    table = new_table(tmp_path)
    with table.update_schema() as update:
        update.add_column("price", DoubleType())
    for name, error in (("price", InvalidArgumentError), ("order", InvalidArgumentError), ("t", UnknownColumnError)):
        with pytest.raises(error, match="order-column"):
            table.set_properties({ORDER_COLUMN: name})
    with pytest.raises(UnknownColumnError):
        new_table(tmp_path / "other", **{ORDER_COLUMN: "moment"})
    required = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("order", "ts")])
    numbered = tf.open_catalog(tmp_path / "lake").create_table(
        "db.numbered", required, key=["order"], properties={ORDER_COLUMN: "ts"}
    )
    with pytest.raises(InvalidArgumentError, match="part of the key"):
        numbered.set_key(["order", "ts"])


def test_delete_file_stores_the_order_value_without_comparing_it(orders: tf.Table) -> None:
    """FM-34, FM-12."""
    orders.append([row(1, 10), row(1, 20)])
    apply(orders, delete_of(1, 50))
    assert notes(orders) == {}
    (location,) = orders.inspect.delete_files()["file_path"].to_pylist()
    stored = pq.read_table(location.removeprefix("file://"))
    assert stored.to_pylist() == [{"customer": "ann", "order": 1, "ts": 50}]
    snapshot = orders.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.additional_properties["tableformat.ordered-deletes"] == '{"field-id":4,"value":50}'
    assert orders.maintenance.verify(deep=True).findings == ()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us", tz="UTC"), [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
        (pa.date32(), [datetime(2026, 1, day, tzinfo=UTC).date() for day in (1, 2, 3)]),
        (pa.string(), ["a", "b", "z"]),
        (pa.decimal128(30, 4), [1, 2, 3]),
        (pa.timestamp("us"), [datetime(1969, 1, day) for day in (1, 2, 3)]),
    ],
)
def test_order_values_of_other_types_are_compared(tmp_path: Path, kind: pa.DataType, values: list[Any]) -> None:
    catalog = new_lake(tmp_path / "lake")
    columns = pa.schema([pa.field("order", pa.int64(), nullable=False), ("ts", kind)])
    table = catalog.create_table("db.orders", columns, key=["order"], properties={ORDER_COLUMN: "ts"})

    def event(at: int, op: str) -> pa.Table:
        return pa.table({"order": [1], "ts": pa.array([values[at]]).cast(kind), "op": [op]})

    apply(table, event(1, "d"))
    assert apply(table, event(0, "u")).stale_row_count == 1
    table.append(pa.table({"order": [2], "ts": pa.array([values[0]]).cast(kind)}))
    time.sleep(0.01)
    table.maintenance.expire_snapshots(older_than=datetime.now(UTC), retain_last=1)
    assert apply(table, event(0, "u")).stale_row_count == 1
    assert apply(table, event(2, "u")).stale_row_count == 0
    assert apply(table, event(1, "d")).stale_row_count == 1
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"key": None}, "Set a key"),
        ({"missing": "keep"}, "events with all columns"),
        ({"envelope": "debezium"}, "this column themselves"),
    ],
)
def test_incomparable_changes_are_rejected(orders: tf.Table, options: dict[str, Any], text: str) -> None:
    """CP-71."""
    orders.upsert([row(1, 40, "first")])
    events = pa.Table.from_pylist([row(1, 50)], schema=COLUMNS).append_column("op", pa.array(["u"]))
    with pytest.raises(InvalidArgumentError, match=text):
        apply(orders, events, **options)
    assert notes(orders) == {1: "first"}


def test_truncate_event_is_rejected(orders: tf.Table) -> None:
    """CP-71: the keys that it deletes could not be remembered."""
    orders.upsert([row(1, 40, "first")])
    events = pa.concat_tables([delete_of(1, 50), delete_of(2, 60).set_column(3, "op", pa.array(["truncate"]))])
    with pytest.raises(InvalidArgumentError, match="a delete event for each key"):
        apply(orders, events)
    with pytest.raises(InvalidArgumentError, match="truncate events"), orders.transaction() as tx:
        tx.apply_changes(events, op="op", order_by="ts")
    assert notes(orders) == {1: "first"}


def test_revert_and_restore_write_older_rows(orders: tf.Table) -> None:
    """CP-69: these operations write older rows on purpose. Later writes are compared with them."""
    first = orders.upsert([row(1, 40, "first"), row(2, 40, "other")]).snapshot_id
    mistake = orders.upsert([row(1, 60, "wrong")]).snapshot_id
    assert mistake is not None
    result = orders.revert(mistake)
    assert (result.stale_row_count, notes(orders)) == (0, {1: "first", 2: "other"})
    assert orders.upsert([row(1, 39)]).stale_row_count == 1
    deleted = apply(orders, delete_of(2, 90)).snapshot_id
    assert deleted is not None
    assert orders.restore_rows("order = 2", snapshot_id=first).stale_row_count == 0
    assert notes(orders) == {1: "first", 2: "other"}
    # The delete with the value 90 is still remembered.
    assert orders.upsert([row(2, 80)]).stale_row_count == 1
    assert orders.upsert([row(2, 90)]).stale_row_count == 0


def test_transaction_of_several_tables_counts_stale_rows_of_each(tmp_path: Path) -> None:
    """CP-69: also for a table in which nothing else changes."""
    table = new_table(tmp_path)
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_table("db.lines", COLUMNS, key=["customer", "order"], properties={ORDER_COLUMN: "ts"})
    table.upsert([row(1, 40, "first")])
    with catalog.transaction() as tx:
        tx.table("db.orders").upsert([row(1, 30)])
        tx.table("db.lines").upsert([row(1, 30), row(2, 30)])
    assert tx.results["db.orders"].stale_row_count == 1
    assert (tx.results["db.lines"].stale_row_count, tx.results["db.lines"].added_row_count) == (0, 2)
    assert notes(table.refresh()) == {1: "first"}
