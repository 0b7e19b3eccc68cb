"""Errors of `revert` and `restore_rows` if restored rows do not fit the table, and of operations with `on_refused`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every

import tableformat as tf
from tableformat.errors import RowsRefusedError, UncoveredRowsError

LINES = pa.schema([pa.field("year", pa.int32()), pa.field("line", pa.int64()), pa.field("price", pa.float64())])
Undo = Callable[[tf.Table, int, int], object]


def by_revert(table: tf.Table, good: int, mistake: int) -> None:
    del good
    table.revert(mistake)


def by_restore_rows(table: tf.Table, good: int, mistake: int) -> None:
    del mistake
    table.restore_rows("true", snapshot_id=good)


@pytest.fixture(params=every(2, ["3", "2"]))
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("shop")
    return catalog.create_table(
        "shop.lines",
        LINES,
        key=["year", "line"],
        range_partitions=tf.RangePartitions(on=["year"], bounds=[(2020, 2030)], splits=[2024]),
        properties={"format-version": request.param},
    )


def rows(*years: int) -> pa.Table:
    return pa.Table.from_pylist([{"year": year, "line": 1, "price": 1.0} for year in years], schema=LINES)


def deleted_by_mistake(table: tf.Table) -> tuple[int, int]:
    """The snapshots before and after the mistake."""
    good = table.append(rows(2021, 2025)).snapshot_id
    mistake = table.delete("line = 1").snapshot_id
    assert good is not None
    assert mistake is not None
    return good, mistake


@pytest.mark.parametrize("undo", [by_revert, by_restore_rows])
def test_restored_rows_in_retired_range_error_names_its_tag(table: tf.Table, undo: Undo) -> None:
    good, mistake = deleted_by_mistake(table)
    tag = table.range_partitions.retire(2020, 2024).tag
    assert tag is not None
    with pytest.raises(UncoveredRowsError) as refused:
        undo(table, good, mistake)
    assert "on_refused" not in str(refused.value)
    assert f"range_partitions.restore({tag!r})" in str(refused.value)
    assert table.scan().count() == 0
    table.range_partitions.restore(tag)
    undo(table, good, mistake)
    assert table.scan().count() == 2


@pytest.mark.parametrize("undo", [by_revert, by_restore_rows])
def test_restored_rows_that_violate_a_constraint_are_rejected(table: tf.Table, undo: Undo) -> None:
    good, mistake = deleted_by_mistake(table)
    table.add_check("recent", "year >= 2024")
    with pytest.raises(RowsRefusedError) as refused:
        undo(table, good, mistake)
    assert "on_refused" not in str(refused.value)
    assert table.scan().count() == 0


def test_only_operations_with_on_refused_mention_it(table: tf.Table) -> None:
    table.append(rows(2021))
    outside = rows(2040)
    for write in (table.append, table.upsert, table.replace, table.overwrite, table.new_write().write):
        with pytest.raises(UncoveredRowsError) as refused:
            write(outside)
        assert "range_partitions.add(lower, upper)" in str(refused.value)
    table.add_check("cheap", "price < 5")
    for call in (
        lambda: table.update("true", set={"price": 9.0}),
        lambda: table.merge(outside, on=["year", "line"]).when_not_matched_insert_all().execute(),
        lambda: table.upsert(outside.drop_columns(["price"]), missing="keep"),
    ):
        with pytest.raises(RowsRefusedError) as other:
            call()
        assert "on_refused" not in str(other.value)
