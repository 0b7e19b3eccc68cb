"""Merging sorted runs is the same as sorting their rows, for all runs, windows and fan-ins."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import LongType, StringType

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.keys.encoding import AFTER_MARKER
from tableformat.keys.key_columns import KeyColumns
from tableformat.maintenance.compaction import sorted_merge
from tableformat.maintenance.compaction.sorted_merge import MergeOrder, SortedRun, merged

ORDER = MergeOrder(KeyColumns((1, 2), ("a", "b"), (StringType(), LongType())))
ROWS = st.lists(st.tuples(st.sampled_from(["", "a", "a\0", "b", "ab"]), st.integers(-3, 3)), max_size=30)


def as_run(rows: list[tuple[str, int]], piece: int, knows_bounds: bool) -> SortedRun:
    ordered = sorted(rows)
    whole = pa.record_batch(
        [pa.array([row[0] for row in ordered], pa.string()), pa.array([row[1] for row in ordered], pa.int64())],
        names=["a", "b"],
    )
    bounds = KeyBounds(b"", AFTER_MARKER)
    if knows_bounds and ordered:
        bounds = KeyBounds(ORDER.encoded(whole, 0), ORDER.encoded(whole, len(ordered) - 1) + AFTER_MARKER)
    return SortedRun(bounds, lambda: iter([whole.slice(start, piece) for start in range(0, len(ordered), piece)]))


@settings(max_examples=examples(0.6), deadline=None)
@given(
    parts=st.lists(st.tuples(ROWS, st.integers(1, 7), st.booleans()), max_size=6),
    fan_in=st.integers(2, 6),
    window=st.sampled_from([1, 64, 4096]),
)
def test_merging_sorted_runs_equals_sorting(
    parts: list[tuple[list[tuple[str, int]], int, bool]], fan_in: int, window: int
) -> None:
    """MT-43"""
    smallest = sorted_merge.WINDOW_BYTES_MIN
    sorted_merge.WINDOW_BYTES_MIN = window  # type: ignore[misc]
    try:
        with tempfile.TemporaryDirectory() as directory:
            batches = list(merged([as_run(*part) for part in parts], ORDER, window, Path(directory), fan_in=fan_in))
    finally:
        sorted_merge.WINDOW_BYTES_MIN = smallest  # type: ignore[misc]
    found = [row for batch in batches for row in zip(batch["a"].to_pylist(), batch["b"].to_pylist(), strict=True)]
    assert found == sorted(row for rows, _, _ in parts for row in rows)
