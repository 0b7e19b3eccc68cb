"""Removes deleted rows from a batch of consecutive rows of a data file."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from tableformat.deletes.positions import PositionSet

SLICE_MIN_ROWS: Final = 2_000
"""The average length of kept runs from which slices, which copy nothing, are faster than a filter. A slice costs about
a microsecond for each column here and again in the consumer of the chunk; a filter copies every row."""


def alive_rows(rows: pa.Table, deleted: PositionSet, start_row: int) -> pa.Table:
    """The rows whose positions, from `start_row` on, are not in the set; the same object if all rows are alive."""
    row_count = rows.num_rows
    starts, ends = deleted.runs(start_row, row_count)
    if len(starts) == 0:
        return rows
    kept_starts, kept_ends = np.append(0, ends), np.append(starts, row_count)
    is_kept = kept_starts < kept_ends
    kept_starts, kept_ends = kept_starts[is_kept], kept_ends[is_kept]
    if rows.num_columns == 0:
        # A concatenated table without columns loses its number of rows.
        return rows.slice(0, int(np.sum(kept_ends - kept_starts)))
    if len(kept_starts) * SLICE_MIN_ROWS > int(np.sum(kept_ends - kept_starts)) and len(kept_starts) > 1:
        return rows.filter(pa.array(~deleted.mask(start_row, row_count)))
    if len(kept_starts) == 0:
        return rows.slice(0, 0)
    runs = zip(kept_starts.tolist(), kept_ends.tolist(), strict=True)
    return pa.concat_tables([rows.slice(start, end - start) for start, end in runs])
