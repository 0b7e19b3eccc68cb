"""Replacements keep the newest message of each prefix, and no write contains a key twice."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import DuplicateKeyError, InvalidArgumentError, RowsRefusedError, UnknownColumnError
from tableformat.write.context import WriteContext

NAN = float("nan")
SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        pa.field("line", pa.int32(), nullable=False),
        ("item", pa.string()),
    ]
)
PREFIX = ["customer", "order"]


@pytest.fixture(params=every(2, [3, 2]))
def table(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[tf.Table]:
    """Orders ann 1, of two lines, ann 2 and bob 1."""
    with new_lake(tmp_path / "lake") as catalog:
        created = catalog.create_table(
            "db.lines", SCHEMA, key=[*PREFIX, "line"], properties={"format-version": str(request.param)}
        )
        created.append(lines("ann 1 1 old", "ann 1 2 old", "ann 2 1 old", "bob 1 1 old"))
        yield created


def lines(*texts: str, **more: list[Any]) -> pa.Table:
    """Rows from texts of the form "customer order line item"; a line without a number is a marker."""
    split = [text.split() for text in texts]
    columns = {
        "customer": pa.array([each[0] for each in split], pa.string()),
        "order": pa.array([int(each[1]) for each in split], pa.int64()),
        "line": pa.array([None if each[2] == "-" else int(each[2]) for each in split], pa.int32()),
        "item": pa.array([each[3] if len(each) > 3 else None for each in split], pa.string()),
    }
    return pa.table({**columns, **{name: pa.array(values) for name, values in more.items()}})


def rows(table: tf.Table) -> list[str]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted(f"{row['customer']} {row['order']} {row['line']} {row['item']}" for row in found)


Replace = Callable[..., None]


def by_table(table: tf.Table, given: pa.Table, **options: Any) -> None:
    table.replace(given, prefix=PREFIX, **options)


def by_transaction(table: tf.Table, given: pa.Table, **options: Any) -> None:
    with table.transaction() as tx:
        tx.replace(given, prefix=PREFIX, **options)


def by_one_writer(table: tf.Table, given: pa.Table, **options: Any) -> None:
    by_writers(table, given, given.num_rows, **options)


def by_a_writer_for_each_row(table: tf.Table, given: pa.Table, **options: Any) -> None:
    by_writers(table, given, 1, **options)


def by_writers(table: tf.Table, given: pa.Table, size: int, **options: Any) -> None:
    write = pickle.loads(pickle.dumps(table.new_write(kind="replace", prefix=PREFIX, order_by=options["order_by"])))
    parts = [given.slice(start, size) for start in range(0, given.num_rows, size)]
    staged = [pickle.loads(pickle.dumps(write.write(part))) for part in parts]
    table.commit(write, [*staged, *([write.cover(options["cover"])] if "cover" in options else [])])


WAYS = pytest.mark.parametrize("replace", [by_table, by_transaction, by_one_writer, by_a_writer_for_each_row])


@WAYS
def test_newest_message_of_each_prefix_is_kept(table: tf.Table, replace: Replace) -> None:
    """CP-66, CP-68: whichever writers held the rows."""
    given = lines("ann 1 1 a", "ann 1 2 a", "ann 1 1 b", "bob 1 1 x", "bob 1 5 y", offset=[7, 7, 8, 9, 3])
    replace(table, given, order_by="offset")
    assert rows(table) == ["ann 1 1 b", "ann 2 1 old", "bob 1 1 x"]


def by_two_rows_each(table: tf.Table, given: pa.Table, **options: Any) -> None:
    by_writers(table, given, 2, **options)


@pytest.mark.parametrize("seed", range(2))
def test_many_writers_agree_with_one_writer(table: tf.Table, seed: int) -> None:
    """CP-68: whichever writers held the rows. No message has a key twice."""
    random = np.random.default_rng(seed)
    for _ in range(10):
        keys = {(random.choice(["ann", "bob"]), *random.integers(1, 4, 2).tolist()): None for _ in range(8)}
        texts = [f"{customer} 1 {line} {offset}" for customer, line, offset in keys]
        given = lines(*texts, offset=[offset for *_, offset in keys])
        results = []
        for replace in (by_table, by_two_rows_each):
            replace(table, given, order_by="offset")
            results.append(rows(table))
        assert results[0] == results[1], given.to_pylist()


@WAYS
def test_order_by_several_columns_sorts_null_and_nan_first(table: tf.Table, replace: Replace) -> None:
    """CP-66"""
    given = lines(
        *("ann 1 1 null", "ann 1 2 nan", "ann 1 3 number", "ann 2 4 nan", "ann 2 5 null", "bob 1 6 new", "bob 1 7 old"),
        partition=[1, 1, 1, 1, 1, 2, 1],
        at=[None, NAN, -1.5, NAN, None, 0.0, 99.0],
    )
    replace(table, given, order_by=["partition", "at"])
    assert rows(table) == ["ann 1 3 number", "ann 2 4 nan", "bob 1 6 new"]


@WAYS
def test_newest_empty_message_marker_empties_its_prefix(table: tf.Table, replace: Replace) -> None:
    """CP-66: the row that `posexplode_outer` returns for a message without lines."""
    given = lines("ann 1 1 a", "ann 1 - ", "ann 2 - ", "ann 2 3 b", "bob 1 - ", offset=[1, 2, 1, 2, 1])
    replace(table, given, order_by="offset")
    assert rows(table) == ["ann 2 3 b"]


@WAYS
def test_duplicate_key_in_newest_message_is_rejected(table: tf.Table, replace: Replace) -> None:
    """CP-67, CP-68"""
    before = rows(table)
    given = lines("ann 1 1 a", "bob 1 1 x", "ann 1 1 b", offset=[7, 7, 7])
    for order_by in (None, "offset"):
        with pytest.raises(DuplicateKeyError):
            replace(table, given if order_by else given.drop_columns("offset"), order_by=order_by)
    assert rows(table) == before


def test_row_with_some_null_key_columns_is_rejected(table: tf.Table) -> None:
    """CP-66, FM-4"""
    given = lines("ann 1 - ", "ann 2 4 a").set_column(0, "customer", pa.array([None, "ann"]))
    with pytest.raises(RowsRefusedError):
        table.replace(given, prefix=PREFIX)
    with pytest.raises(RowsRefusedError):
        table.replace(lines("ann 1 - "), prefix=[*PREFIX, "line"])


def test_invalid_order_columns_are_rejected(table: tf.Table) -> None:
    given = lines("ann 1 1 a")
    for order_by in ([], ["order"], ["item", "item"]):
        with pytest.raises(InvalidArgumentError, match="order_by"):
            table.replace(given, prefix=PREFIX, order_by=order_by)
    with pytest.raises(UnknownColumnError) as error:
        table.replace(given, prefix=PREFIX, order_by="offset")
    assert "Valid names: customer, order, line, item." in str(error.value)
    with pytest.raises(InvalidArgumentError, match="cover has the columns"):
        table.replace(given, prefix=PREFIX, cover=pa.table({"customer": ["ann"]}))
    with pytest.raises(InvalidArgumentError, match="order_by is only valid"):
        table.new_write(order_by="item")


def test_upsert_rejects_duplicate_keys(table: tf.Table) -> None:
    """CP-67"""
    given = lines("ann 1 1 a", "ann 1 1 b", "bob 1 1 c", offset=[2, 1, 1])
    for call in (table.upsert, lambda given: table.append(given, on_duplicate="replace")):
        with pytest.raises(DuplicateKeyError):
            call(given.drop_columns("offset"))
    with pytest.raises(DuplicateKeyError), table.transaction() as tx:
        tx.upsert(given.drop_columns("offset"))
    table.upsert(given, order_by="offset")
    assert rows(table) == ["ann 1 1 a", "ann 1 2 old", "ann 2 1 old", "bob 1 1 c"]
    table.upsert(given.drop_columns("item"), order_by="offset", missing="keep")
    with pytest.raises(DuplicateKeyError):
        table.upsert(given.drop_columns(["item", "offset"]), missing="keep")
    assert rows(table) == ["ann 1 1 a", "ann 1 2 old", "ann 2 1 old", "bob 1 1 c"]


def test_duplicate_keys_are_detected_across_files_and_spills(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-67: partitions and spilled keys."""
    monkeypatch.setattr(WriteContext, "key_memory_bytes", 1)
    with new_lake(tmp_path / "lake") as catalog:
        columns = pa.schema([("id", pa.int64()), ("day", pa.int64()), ("v", pa.int64())])
        table = catalog.create_table("db.t", columns, key=["id"], partition_by=["day"])
        given = pa.table({"id": [*range(500), 7], "day": [*(n % 5 for n in range(500)), 4], "v": [0] * 501})
        batches = given.to_batches(max_chunksize=50)
        with pytest.raises(DuplicateKeyError):
            table.replace(pa.RecordBatchReader.from_batches(given.schema, batches))
        assert not list(tmp_path.rglob("*.parquet")), "files of a write that failed are removed"
        assert table.upsert(given.slice(0, 500)).added_row_count == 500
