"""If a row is rejected, the rows that would replace the same old rows are rejected too: no message is stored in part
(CP-24)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidArgumentError, RowsRefusedError
from tableformat.testing.table_rows import live_tuples
from tableformat.write.rows import held_batches

SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False), ("v", pa.int32())]
)
TOO_LARGE = 2**40
OLD = [("a", 1, 0), ("a", 2, 0), ("b", 1, 0)]


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Messages a, of two rows, and b; v is 0."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id", "n"], properties={"format-version": request.param})
    created.append(rows_of(*OLD))
    return created


def rows_of(*rows: tuple[Any, Any, Any]) -> pa.Table:
    names = ("id", "n", "v")
    return pa.table(
        {name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(
            zip(names, (pa.string(), pa.int64(), pa.int64()), strict=True)
        )}
    )  # fmt: skip


def refused(result: Any) -> list[tuple[int, str]]:
    return sorted((row["_row_index"], row["_refused_reason"]) for row in result.refused.to_pylist())


def one_by_one(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=1)))


NEW = rows_of(("a", 7, 1), ("b", 8, 1), ("a", 9, TOO_LARGE), ("c", 1, 1), ("b", 9, 1))


@pytest.mark.parametrize("carrier", [lambda rows: rows, one_by_one], ids=["table", "stream"])
@pytest.mark.parametrize("held_bytes", [held_batches.HELD_BYTES, 0])
def test_message_with_a_rejected_row_is_rejected_entirely(
    table: tf.Table, carrier: Any, held_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-24: also if the bad row is after the good ones; the old message stays."""
    monkeypatch.setattr(held_batches, "HELD_BYTES", held_bytes)
    result = table.replace(carrier(NEW), prefix=["id"], on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 0), ("b", 8, 1), ("b", 9, 1), ("c", 1, 1)]
    (first, why), (second, bad) = refused(result)
    assert (first, second) == (0, 2)
    assert why == "another row with the same id was rejected"
    assert str(TOO_LARGE) in bad
    assert result.refused is not None
    assert result.refused.select(["id", "n", "v"]).to_pylist() == [
        {"id": "a", "n": 7, "v": 1},
        {"id": "a", "n": 9, "v": TOO_LARGE},
    ]
    assert result.added_row_count == 3


def test_row_with_null_prefix_rejects_only_itself(table: tf.Table) -> None:
    """CP-24: it is unknown which message the row belongs to."""
    result = table.replace(rows_of(("a", 7, 1), (None, 8, 1)), prefix=["id"], on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 7, 1), ("b", 1, 0)]
    assert [row for row, _ in refused(result)] == [1]


def test_upsert_and_whole_key_replacement_reject_by_key(table: tf.Table) -> None:
    """CP-24: if the newest state of a key was rejected, an older state is not stored instead."""
    new = rows_of(("a", 1, 5), ("a", 2, 5), ("a", 1, TOO_LARGE))
    for verb in (table.upsert, table.replace):
        result = verb(new, on_refused="divert")
        assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 5), ("b", 1, 0)]
        assert [row for row, _ in refused(result)] == [0, 2]
    result = table.append(new, on_duplicate="replace", on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 5), ("b", 1, 0)]


def test_rejected_event_keeps_the_stored_row(table: tf.Table) -> None:
    """CP-24: its key is not deleted, and an older event of the key is not applied instead."""
    events = rows_of(("a", 1, 5), ("a", 1, TOO_LARGE), ("a", 2, 5), ("b", 1, None))
    events = events.append_column("_op", pa.array(["U", "U", "U", "D"])).append_column("_ts", pa.array([1, 2, 1, 1]))
    result = table.apply_changes(events, on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 5)]
    assert result.refused.select(["id", "n", "v"]).to_pylist() == [{"id": "a", "n": 1, "v": TOO_LARGE}]


@pytest.mark.parametrize("batched", [one_by_one, lambda rows: rows])
def test_rejected_events_have_their_input_index(table: tf.Table, batched: Any) -> None:
    """Earlier events of a key count as input rows, although its last event replaces them."""
    events = rows_of(("a", 1, 1), ("a", 1, 2), ("c", 1, 5), ("a", 1, TOO_LARGE), ("b", 1, 9), ("c", 1, TOO_LARGE))
    events = events.append_column("_op", pa.array(["U"] * 6)).append_column("_ts", pa.array(range(6)))
    with pytest.raises(RowsRefusedError) as caught:
        table.apply_changes(batched(events))
    assert caught.value.refused["row_index"].to_pylist() == [3, 5]
    result = table.apply_changes(batched(events), on_refused="divert")
    assert result.refused["_row_index"].to_pylist() == [3, 5]
    assert result.refused.column_names == ["id", "n", "v", "_row_index", "_refused_column", "_refused_reason"]
    assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 0), ("b", 1, 9)]


def test_transaction_does_not_split_messages(table: tf.Table) -> None:
    """CP-24."""
    with table.transaction() as tx:
        tx.delete_prefix({"id": "b"})
        tx.replace(NEW, prefix=["id"], on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 1, 0), ("a", 2, 0), ("b", 8, 1), ("b", 9, 1), ("c", 1, 1)]
    assert [row for row, _ in refused(tx.result)] == [0, 2]


# -- intervals


def test_rows_outside_the_interval_are_diverted_on_request(table: tf.Table) -> None:
    """The caller sets the interval, regardless of the rows: rows that do not fit or lie outside it are left out."""
    new = rows_of(("a", 1, 1), ("a", 99, 1), ("b", 2, TOO_LARGE))
    result = table.replace_interval(new, on="n", lower=1, upper=2, on_refused="divert")
    assert live_tuples(table.refresh()) == [("a", 1, 1), ("a", 2, 0)]
    assert [row for row, _ in refused(result)] == [1, 2]
    assert "is outside the interval 1 <= n < 2" in refused(result)[0][1]


# -- writers in other processes


def test_staged_replacement_does_not_split_messages(table: tf.Table) -> None:
    """CP-24."""
    write = table.new_write(kind="replace", prefix=["id"])
    result = table.commit(write, [write.write(NEW, on_refused="divert"), write.write(rows_of(("d", 1, 1)))])
    assert live_tuples(table.refresh()) == [
        ("a", 1, 0),
        ("a", 2, 0),
        ("b", 8, 1),
        ("b", 9, 1),
        ("c", 1, 1),
        ("d", 1, 1),
    ]
    assert [row for row, _ in refused(result)] == [0, 2]


def parts_of_one_message(write: Any) -> Iterator[list[Any]]:
    bad = write.write(rows_of(("a", 9, TOO_LARGE)), on_refused="divert")
    yield [bad, write.write(rows_of(("a", 7, 1)))]
    yield [bad, write.cover(pa.table({"id": ["a"]}))]


def test_message_split_between_writers_is_not_stored_partially(table: tf.Table) -> None:
    """CP-24: neither writer knows of the other's rows, the commit does."""
    write = table.new_write(kind="replace", prefix=["id"])
    for staged in parts_of_one_message(write):
        with pytest.raises(InvalidArgumentError, match=r"1 prefixes.*'id': 'a'.*one write call"):
            table.commit(write, staged)
        assert live_tuples(table.refresh()) == OLD
