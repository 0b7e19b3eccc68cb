"""Whatever the rows: the last row of each key is the one that a dictionary would keep, in memory and spilled."""

from __future__ import annotations

import math

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from tableformat.write.rows.last_per_key import last_row_per_key

KEY = st.tuples(st.sampled_from([None, "", "a", "a\0", "\U0001f600"]), st.sampled_from([None, 0, -1]))
ORDER = st.sampled_from([None, math.nan, -math.inf, -0.0, 0.0, 1.5])


def rank(value: float | None) -> tuple[int, float]:
    """Null, then NaN, then numbers."""
    if value is None:
        return (0, 0.0)
    return (1, 0.0) if math.isnan(value) else (2, value)


@settings(max_examples=examples(0.6), deadline=None)
@given(rows=st.lists(st.tuples(KEY, ORDER), max_size=30), batch_rows=st.integers(1, 7), ordered=st.booleans())
def test_both_paths_keep_what_a_dictionary_would(
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
