"""Refuses all rows of a group if one of its rows is refused, so that no message is stored partially (CP-24).

    replace, prefix id        a 1 | b 1 | a 2, which does not fit | b 2
    stored                    b 1, b 2
    diverted                  a 1, because of a 2; a 2

The bad row may come last, so the whole stream is read before the first row is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.write.rows.column_casts import Misfits
from tableformat.write.rows.distinct import PrefixCollector, rows_among


@dataclass(frozen=True, slots=True)
class SpoiledGroups:
    """A check that refuses the rows of groups with a refused row."""

    values: pa.Table
    """The distinct values of the group columns."""

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        """CP-24: the rows of these groups."""
        names = self.values.column_names
        positions = np.flatnonzero(rows_among(pa.Table.from_batches([batch.select(names)]), self.values))
        if not len(positions):
            return None
        reason = f"another row with the same {', '.join(names)} was rejected"
        return Misfits(
            positions,
            pa.repeat(pa.scalar(names[0], pa.large_string()), len(positions)),
            pa.repeat(pa.scalar(reason, pa.large_string()), len(positions)),
        )


class SpoiledGroupsCollector:
    """Collects the groups of refused rows."""

    def __init__(self, schema: pa.Schema, names: Sequence[str]) -> None:
        self._names = list(names)
        self._collector = PrefixCollector(schema, names)

    def observe(self, refused: pa.RecordBatch) -> None:
        """Add refused rows, in the table's schema. A row with a null in a group column is ignored: its group is
        unknown, because the value did not fit. Keys themselves are never null."""
        known = np.logical_and.reduce([np.asarray(pc.is_valid(refused.column(name))) for name in self._names])
        if known.any():
            self._collector.observe(refused.filter(pa.array(known)))

    @property
    def values(self) -> pa.Table:
        return self._collector.prefixes
