"""`delete_ranges`: many half-open ranges in one blind snapshot (CP-86)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tableformat as tf
from tableformat.errors import InvalidArgumentError, InvalidKeyError, ScopeChangedError, UnknownColumnError

SCHEMA = pa.schema([("customer", pa.string()), ("order", pa.int64()), ("note", pa.int32())])
Row = tuple[str, int, int | None]
ROWS: list[Row] = [(name, number, note) for name in "abc" for number in range(4) for note in (None, 1, 2)]


def make(tmp_path: Path, given: list[Row] = ROWS, **properties: str) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    if not catalog.list_namespaces():
        catalog.create_namespace("db")
    table = catalog.create_table("db.orders", SCHEMA, key=["customer", "order"], properties=properties)
    table.append(pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA))
    return table


def stored(table: tf.Table) -> list[tuple[str, int]]:
    rows = table.scan().to_arrow().to_pylist()
    return sorted({(row["customer"], row["order"]) for row in rows})


PAIRS = [(name, number) for name in "abc" for number in range(4)]
CUTOFFS = pa.table(
    {
        "lower_customer": ["a", "b", None],
        "lower_order": pa.array([None, 2, None], pa.int64()),
        "upper_customer": ["a", "b", "a"],
        "upper_order": pa.array([2, None, 1], pa.int64()),
    }
)
"""Keys of a below 2, keys of b from 2 on, and all keys below (a, 1)."""
LEFT = [("a", 2), ("a", 3), ("b", 0), ("b", 1), *(("c", number) for number in range(4))]


@pytest.mark.parametrize("properties", [{}, {"format-version": "3"}, {"write.delete.blind": "off"}])
@pytest.mark.parametrize("mode", ["auto", "scan"])
def test_ranges_of_leading_values(tmp_path: Path, properties: dict[str, str], mode: str) -> None:
    """CP-86: one snapshot, and one range delete file if nothing is read."""
    table = make(tmp_path, **properties)
    is_blind = mode == "auto" and "write.delete.blind" not in properties
    snapshots = len(table.history())
    tried = table.delete_ranges(CUTOFFS, dry_run=True)
    assert (tried.deleted_row_count, stored(table)) == (12, PAIRS)
    result = table.delete_ranges(CUTOFFS, mode=mode)
    assert stored(table) == LEFT
    assert len(table.history()) == snapshots + 1
    assert (result.deleted_row_count, result.added_delete_files_count) == (None if is_blind else 12, 1)


def test_delete_ranges_in_transaction_with_commit_options(tmp_path: Path) -> None:
    table = make(tmp_path)
    read = table.snapshot_id
    with table.transaction() as tx:
        tx.delete_ranges(CUTOFFS)
        tx.append([{"customer": "a", "order": 0, "note": 9}])
    assert stored(table) == [("a", 0), *LEFT]
    with pytest.raises(ScopeChangedError):
        table.delete_ranges(CUTOFFS, if_unchanged_since=read)
    for expected in (False, True):
        assert table.delete_ranges(CUTOFFS, application_id="a", batch_id=1).already_applied is expected


def test_non_key_columns_and_open_sides_include_nulls(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.delete_ranges(pa.table({"upper_note": pa.array([2], pa.int32())}))
    notes = table.scan(columns=["note"]).to_arrow()["note"].to_pylist()
    assert notes == [2] * 12
    table.delete_ranges(
        pa.table({"lower_note": pa.array([3, 5], pa.int32()), "upper_note": pa.array([5, 5], pa.int32())})
    )
    assert table.scan().count() == 12


@pytest.mark.parametrize(
    ("ranges", "kind", "message"),
    [
        ({"customer": ["a"]}, InvalidArgumentError, "lower_<column> and upper_<column>"),
        ({"lower_custmer": ["a"]}, UnknownColumnError, "custmer"),
        ({"lower_customer": ["a", None]}, InvalidArgumentError, "row 1 of ranges.*has no bound"),
        ({"lower_customer": ["b"], "upper_customer": ["a"]}, InvalidArgumentError, "row 0 .* above its upper bound"),
        (
            {"lower_customer": pa.array([None], pa.string()), "lower_order": [3]},
            InvalidArgumentError,
            "a value after a null in its lower_columns",
        ),
        ({"lower_order": ["three"]}, InvalidKeyError, "lower_order"),
    ],
)
def test_invalid_ranges_change_nothing(
    tmp_path: Path, ranges: dict[str, Any], kind: type[Exception], message: str
) -> None:
    table = make(tmp_path)
    before = table.snapshot_id
    with pytest.raises(kind, match=message):
        table.delete_ranges(pa.table(ranges))
    assert table.refresh().snapshot_id == before


NAMES, NUMBERS = st.sampled_from("abc"), st.integers(0, 3)
BOUNDS = st.one_of(st.tuples(NAMES), st.tuples(NAMES, NUMBERS), st.just(()))


def is_inside(row: tuple[str, int], lower: tuple[Any, ...], upper: tuple[Any, ...]) -> bool:
    above = row[: len(lower)] >= lower
    return above and (row[: len(upper)] <= upper if len(upper) < 2 else row < upper)


@given(st.lists(st.tuples(BOUNDS, BOUNDS), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_delete_ranges_agrees_with_a_model(
    tmp_path_factory: pytest.TempPathFactory, bounds: list[tuple[tuple[Any, ...], ...]]
) -> None:
    """CP-86: a row is deleted if one of the ranges contains it."""
    kept = [
        (low, up)
        for low, up in bounds
        if (low or up) and (len(up) < 2 or low <= up) and (len(up) != 1 or low[:1] <= up)
    ]
    if not kept:
        return
    table = make(tmp_path_factory.mktemp("model"), [(name, number, 1) for name, number in PAIRS])
    columns = {
        f"{side}_{name}": [bound[side_index][index] if len(bound[side_index]) > index else None for bound in kept]
        for side_index, side in enumerate(("lower", "upper"))
        for index, name in enumerate(("customer", "order"))
    }
    types = pa.schema([(name, pa.int64() if name.endswith("order") else pa.string()) for name in columns])
    table.delete_ranges(pa.table(columns, schema=types))
    assert stored(table) == [row for row in PAIRS if not any(is_inside(row, low, up) for low, up in kept)]
