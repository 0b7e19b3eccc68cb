"""Refuses rows outside of all range partitions (RP-5)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError
from tableformat.range_partitions.cuts import Range
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.retired import retired_in
from tableformat.range_partitions.rows import covered, missing_steps, refusals, retired_tags
from tableformat.write.context import WriteContext
from tableformat.write.rows.checks import RowTest, row_checks
from tableformat.write.rows.column_casts import Misfits, Positions


def coverage_tests(context: WriteContext) -> tuple[RowTest, ...]:
    """The checks of a table's range partitions; empty if they accept every row."""
    defined = context.range_partitions
    return () if defined is None or defined.takes_every_row else (CoveredRows(defined, context),)


def row_tests(context: WriteContext, *, table: str) -> tuple[RowTest, ...]:
    """The conditions that rows are checked against: the constraints of the table, and its range partitions."""
    return (*row_checks(context.properties, context.schema, table=table), *coverage_tests(context))


class CoveredRows:
    """RP-5: refuses rows that no bound covers. With partitions on demand, only rows outside of their limits (RP-9)."""

    def __init__(self, defined: DefinedPartitions, context: WriteContext) -> None:
        self._defined = defined
        self._context = context
        self._demanded = np.zeros(0, np.int64)

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        """Raises InvalidArgumentError if the rows need more new steps than one commit may add."""
        defined = self._defined
        columns = [batch.column(name) for name in defined.key.names]
        inside = covered(defined, columns)
        if inside is None:
            return None
        positions, where, end = np.flatnonzero(~inside), defined.bounds, ""
        if defined.on_demand is not None:
            positions = self._outside_of_limits(columns, positions)
            limits = defined.on_demand.limits
            where, end = ((limits,), ", where steps are added on demand") if limits is not None else (where, end)
        if not len(positions):
            return None
        refused = [column.take(pa.array(positions)) for column in columns]
        retired = retired_in(self._context.properties, self._context.schema)
        return Misfits(
            positions,
            pa.repeat(pa.scalar(defined.key.names[0], pa.large_string()), len(positions)),
            refusals(defined, refused, where, end, retired),
            uncovered=True,
            retired_tags=retired_tags(defined, refused, retired),
        )

    def _outside_of_limits(self, columns: list[pa.Array], positions: Positions) -> Positions:
        """The positions of rows for which no step may be added."""
        defined = self._defined
        assert defined.steps is not None
        assert defined.on_demand is not None
        missing = [column.take(pa.array(positions)) for column in columns]
        may_be_added = np.asarray(missing[0].is_valid())
        if defined.on_demand.limits is not None:
            within = covered(_only(defined, defined.on_demand.limits), missing)
            may_be_added = may_be_added if within is None else may_be_added & within
        demanded = missing[0].filter(pa.array(may_be_added))
        if len(demanded):
            steps = missing_steps(defined.steps, demanded, defined.key.types[0])
            self._demanded = np.union1d(self._demanded, steps)
        if len(self._demanded) > defined.on_demand.max_new_per_commit:
            raise InvalidArgumentError(
                f"the rows require {len(self._demanded):,} new range partitions, but a commit adds at most "
                f"{defined.on_demand.max_new_per_commit:,} (max_new_per_commit). Nothing was written. Check for "
                f"wrong values of {defined.key.names[0]!r}, or add the range with range_partitions.add(lower, upper)."
            )
        outside: Positions = positions[~may_be_added]
        return outside


def _only(defined: DefinedPartitions, limits: Range) -> DefinedPartitions:
    return DefinedPartitions(key=defined.key, bounds=(limits,))
