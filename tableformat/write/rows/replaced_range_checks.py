"""Refuses rows outside of the replaced range: a repeated operation would add them again (RP-19, RP-24)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.deletes.spans.spans import SpanArray
from tableformat.filters.bound_filter import BoundFilter, comparisons
from tableformat.filters.row_filter import matching_rows
from tableformat.write.rows.column_casts import Misfits, Positions


@dataclass(frozen=True, slots=True)
class RowsInSpans:
    """RP-19: rows must lie in the spans."""

    spans: SpanArray
    told: str
    """The replaced range, for the message."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are checked."""
        return self.spans.key.names

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        columns = [batch.column(name) for name in self.columns]
        return _outside(np.flatnonzero(~deleted_mask(columns, self.spans)), self.columns[0], self.told)


@dataclass(frozen=True, slots=True)
class RowsMatchFilter:
    """RP-24: rows must match the filter."""

    bound: BoundFilter
    told: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.path[0] for leaf in comparisons(self.bound)))

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        mask = matching_rows(self.bound, batch)
        if isinstance(mask, bool):
            outside = np.arange(0 if mask else batch.num_rows)
        else:
            outside = np.flatnonzero(~np.asarray(mask.fill_null(False)))
        return _outside(outside, next(iter(self.columns), ""), self.told)


def _outside(positions: Positions, column: str, told: str) -> Misfits | None:
    if not len(positions):
        return None
    return Misfits(
        positions,
        pa.repeat(pa.scalar(column, pa.large_string()), len(positions)),
        pa.repeat(pa.scalar(f"is outside {told}", pa.large_string()), len(positions)),
    )
