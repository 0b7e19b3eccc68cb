"""`replace` and `replace_interval`: replace all rows of a key prefix or of an interval, without reading any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds
from tableformat.keys.key_columns import leading_columns
from tableformat.operations.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete_prefix import stage_prefixes
from tableformat.operations.verbs.delete_range import check_everything_is_meant, range_columns
from tableformat.write.rows.column_casts import Misfits
from tableformat.write.rows.distinct import PrefixCollector


def replace(draft: Draft, *, rows: Any, prefix: Sequence[str] | None = None, on_refused: str = "fail") -> None:
    """Stage the rows, and the delete of every prefix that occurs in them; `prefix` defaults to the whole key.

    Rows and delete carry one sequence number, and RD-2 is strict, so the new rows stay. A diverted row takes all rows
    of its prefix along, whose old rows stay (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    names = leading_columns(draft.key_names, prefix if prefix is not None else draft.key_names)
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused, whole_groups=names)
    collector = PrefixCollector(conformed.schema, names)
    draft.add_rows(conformed, collector.through(iter(conformed)))
    if collector.prefixes.num_rows:
        stage_prefixes(draft, collector.prefixes)


def replace_interval(
    draft: Draft,
    *,
    rows: Any,
    on: str | Sequence[str],
    lower: Any,
    upper: Any,
    everything: bool = False,
    on_refused: str = "fail",
) -> None:
    """Stage the rows, and the delete of the interval before(lower) .. before(upper) of the columns `on`.

    Sub-intervals without new rows become empty. A row outside the interval is refused: repeating the call would add it
    again. The interval is deleted whatever rows are diverted: its bounds are the caller's and not the rows'.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    check_everything_is_meant(lower, upper, everything=everything, consequence="every row would be replaced")
    columns = range_columns(draft, [on] if isinstance(on, str) else on)
    span = span_of_bounds(columns, _as_bound(lower), _as_bound(upper))
    draft.begin_verb()
    inside = _InsideInterval(span, f"{lower!r} <= {', '.join(columns.names)} < {upper!r}")
    draft.add_rows(draft.conformed(rows, on_refused, tests=(inside,)))
    if len(span):
        draft.add_spans(span)


@dataclass(frozen=True, slots=True)
class _InsideInterval:
    """What rows must fulfil to replace an interval."""

    span: SpanArray
    interval: str
    """For the message."""

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        names = self.span.key.names
        positions = np.flatnonzero(~deleted_mask([batch.column(name) for name in names], self.span))
        if not len(positions):
            return None
        return Misfits(
            positions,
            pa.repeat(pa.scalar(names[0], pa.large_string()), len(positions)),
            pa.repeat(pa.scalar(f"lies outside the interval {self.interval}", pa.large_string()), len(positions)),
        )


def _as_bound(value: Any) -> tuple[Any, ...] | None:
    """A bound as `span_of_bounds` takes it; a single value stands for a tuple of one, and None is open."""
    if value is None or isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)
