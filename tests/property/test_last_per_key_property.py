"""For all rows: the last row of each key is the row that a dictionary would keep, in memory and spilled."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tableformat.errors import DuplicateKeyError
from tableformat.write.rows.last_per_key import last_row_per_key, newest_rows
from tableformat.write.rows.unique_keys import with_unique_keys

KEY = st.tuples(st.sampled_from([None, "", "a", "a\0", "\U0001f600"]), st.sampled_from([None, 0, -1]))
ORDER = st.sampled_from([None, math.nan, -math.inf, -0.0, 0.0, 1.5])


def rank(value: float | None) -> tuple[int, float]:
    """Null, then NaN, then numbers."""
    if value is None:
        return (0, 0.0)
    return (1, 0.0) if math.isnan(value) else (2, value)


@settings(max_examples=examples(0.6), deadline=None)
@given(rows=st.lists(st.tuples(KEY, ORDER), max_size=30), batch_rows=st.integers(1, 7), ordered=st.booleans())
def test_last_row_per_key_agrees_with_a_dictionary(
    rows: list[tuple[tuple[str | None, int | None], float | None]], batch_rows: int, ordered: bool
) -> None:
    """DA-4: null keys equal each other."""
    table = pa.table(
        {
            "text": pa.array([key[0] for key, _ in rows], pa.string()),
            "number": pa.array([key[1] for key, _ in rows], pa.int64()),
            "order": pa.array([order for _, order in rows], pa.float64()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )
    winners: dict[tuple[str | None, int | None], int] = {}
    for row, (key, order) in enumerate(rows):
        if not ordered or key not in winners or rank(order) >= rank(rows[winners[key]][1]):
            winners[key] = row
    expected = sorted(winners.values())
    for memory_bytes in (1, 1 << 30):
        reader = last_row_per_key(
            table.to_reader(batch_rows), ["text", "number"], "order" if ordered else None, memory_bytes=memory_bytes
        )
        assert reader.read_all().column("row").to_pylist() == expected


@settings(max_examples=examples(0.6), deadline=None)
@given(rows=st.lists(st.tuples(KEY, ORDER, ORDER), max_size=30), batch_rows=st.integers(1, 7))
def test_newest_rows_per_prefix_agree_with_a_dictionary(
    rows: list[tuple[tuple[str | None, int | None], float | None, float | None]], batch_rows: int
) -> None:
    """CP-66: rows of equal order stay together."""
    table = pa.table(
        {
            "text": pa.array([key[0] for key, _, _ in rows], pa.string()),
            "number": pa.array([key[1] for key, _, _ in rows], pa.int64()),
            "first": pa.array([order for _, order, _ in rows], pa.float64()),
            "second": pa.array([order for _, _, order in rows], pa.float32()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )
    ranks = [(key, (rank(first), rank(second))) for key, first, second in rows]
    greatest = {key: max(of for other, of in ranks if other == key) for key, _ in ranks}
    expected = [row for row, (key, of) in enumerate(ranks) if of == greatest[key]]
    for memory_bytes in (1, 1 << 30):
        reader = newest_rows(
            table.to_reader(batch_rows), ["text", "number"], ["first", "second"], memory_bytes=memory_bytes
        )
        assert reader.read_all().column("row").to_pylist() == expected


@settings(max_examples=examples(0.6), deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([None, "", "a", "b"]), st.integers(0, 3), st.integers(0, 9)), max_size=12),
    columns=st.integers(1, 3),
    batch_rows=st.integers(1, 7),
    memory_bytes=st.sampled_from([1, 1 << 20]),
    is_sorted=st.booleans(),
)
def test_duplicate_key_is_detected(
    rows: list[tuple[str | None, int, int]], columns: int, batch_rows: int, memory_bytes: int, is_sorted: bool
) -> None:
    """CP-67"""
    if is_sorted:
        rows.sort(key=lambda row: (row[0] or "", *row[1:]))
    keys = [row[-columns:] for row in rows]
    names = ["text", "few", "many"][-columns:]
    table = pa.table({"text": [r[0] for r in rows], "few": [r[1] for r in rows], "many": [r[2] for r in rows]})
    table = table.cast(pa.schema([("text", pa.string()), ("few", pa.int64()), ("many", pa.int32())]))
    batches = table.to_batches(max_chunksize=batch_rows)
    passed = with_unique_keys(batches, names, table="db.t", memory_bytes=memory_bytes)
    if len(set(keys)) == len(keys):
        assert list(passed) == batches
    else:
        with pytest.raises(DuplicateKeyError):
            list(passed)
