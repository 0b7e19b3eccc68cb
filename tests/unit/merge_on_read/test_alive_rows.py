"""The remaining rows of a contiguous range of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.alive_rows import SLICE_MIN_ROWS, alive_rows

START = 7
"""Position of the first row."""


@pytest.mark.parametrize("row_count", [1, 5, 4 * SLICE_MIN_ROWS])
@pytest.mark.parametrize(
    "deleted",
    [
        lambda row: row < 0,
        lambda row: row >= 0,
        lambda row: row == 0,
        lambda row: row > 0,
        lambda row: row % 2 == 0,
        lambda row: row % (SLICE_MIN_ROWS + 1) == 3,
    ],
    ids=["none", "all", "the first", "all but the first", "every second", "few"],
)
def test_live_rows_are_returned_in_order(deleted, row_count: int) -> None:
    """DA-1: whether rows are sliced or filtered; also the number of rows if no column is requested."""
    gone = [row for row in range(row_count) if deleted(row)]
    # Positions before and behind are of other rows.
    positions = PositionSet.from_array(np.array([0, START - 1, *(START + row for row in gone), START + row_count]))
    rows = pa.table({"row": range(row_count)})
    left = [row for row in range(row_count) if row not in set(gone)]
    assert alive_rows(rows, positions, START)["row"].to_pylist() == left
    assert alive_rows(rows.select([]), positions, START).num_rows == len(left)
