"""`replace` and `replace_interval`: new rows in the place of all that a prefix or an interval held, without reading
any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds
from tableformat.errors import InvalidArgumentError
from tableformat.operations.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete_prefix import leading_columns, stage_prefixes
from tableformat.operations.verbs.delete_range import range_columns
from tableformat.write.rows.distinct import PrefixCollector


def replace(draft: Draft, *, rows: Any, prefix: Sequence[str] | None = None, on_refused: str = "fail") -> None:
    """Stage the rows, and the delete of every prefix that occurs in them; `prefix` defaults to the whole key.

    Rows and delete carry one sequence number, and RD-2 is strict, so the new rows stay.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    names = leading_columns(draft.key_names, prefix if prefix is not None else draft.key_names)
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused)
    collector = PrefixCollector(conformed.schema, names)
    draft.add_rows(conformed, collector.through(iter(conformed)))
    if collector.prefixes.num_rows:
        stage_prefixes(draft, collector.prefixes)


def replace_interval(
    draft: Draft, *, rows: Any, on: str | Sequence[str], lower: Any, upper: Any, on_refused: str = "fail"
) -> None:
    """Stage the rows, and the delete of the interval before(lower) .. before(upper) of the columns `on`.

    Sub-intervals without new rows become empty. A row outside the interval is an InvalidArgumentError: repeating the
    call would add it again.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    columns = range_columns(draft, [on] if isinstance(on, str) else on)
    span = span_of_bounds(columns, _as_bound(lower), _as_bound(upper))
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused)
    draft.add_rows(conformed, _inside(conformed, span, interval=f"{lower!r} <= {columns} < {upper!r}"))
    if len(span):
        draft.add_spans(span)


def _inside(rows: Iterable[pa.RecordBatch], span: SpanArray, *, interval: str) -> Iterator[pa.RecordBatch]:
    """The same batches; a row outside the span stops them."""
    first_row = 0
    for batch in rows:
        inside = deleted_mask([batch.column(name) for name in span.key.names], span)
        if not inside.all():
            position = int(inside.argmin())
            values = {name: batch.column(name)[position].as_py() for name in span.key.names}
            raise InvalidArgumentError(
                f"row {first_row + position} with {values} lies outside the interval {interval}. Nothing was changed."
            )
        first_row += batch.num_rows
        yield batch


def _as_bound(value: Any) -> tuple[Any, ...] | None:
    """A bound as `span_of_bounds` takes it; a single value stands for a tuple of one, and None is open."""
    if value is None or isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)
