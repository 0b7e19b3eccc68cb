"""`replace_interval` and `replace_partition`: replace all rows of an interval, or of a range partition (RP-19)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tableformat.deletes.spans.spans import span_of_bounds
from tableformat.errors import InvalidArgumentError, nearest_hint
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.options import one_of
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_range import check_everything_is_meant, range_columns
from tableformat.range_partitions.alteration import check_whole_partitions
from tableformat.range_partitions.cuts import Range, spans_of
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.definition import range_of
from tableformat.range_partitions.files import default_ranges
from tableformat.range_partitions.model import BoundLike, as_bound
from tableformat.write.rows.replaced_range_checks import RowsInSpans


def replace_interval(
    draft: Draft,
    *,
    rows: Any,
    on: str | Sequence[str],
    lower: Any,
    upper: Any,
    everything: bool = False,
    blind: bool = False,
    on_refused: str = "fail",
) -> None:
    """Stage the rows, and the delete of the interval from before `lower` to before `upper` of the columns `on`.

    Sub-intervals without new rows become empty. A row outside the interval is rejected, because repeating the call
    would add it again. The interval is deleted even if rows are diverted: its bounds come from the caller, not from the
    rows. `blind` writes a range delete without checking any file; a draft of several operations requires it.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    check_everything_is_meant(lower, upper, everything=everything, consequence="every row would be replaced")
    inside = inside_interval(range_columns(draft, [on] if isinstance(on, str) else on), lower, upper)
    _stage(draft, rows, inside, blind=blind, on_refused=on_refused)


def inside_interval(columns: KeyColumns, lower: Any, upper: Any) -> RowsInSpans:
    """RP-19: the interval that must contain the rows."""
    span = span_of_bounds(columns, _as_bound(lower), _as_bound(upper))
    return RowsInSpans(span, f"the interval {lower!r} <= {', '.join(columns.names)} < {upper!r}")


def replace_partition(
    draft: Draft, *, rows: Any, partition: str | BoundLike, blind: bool = False, on_refused: str = "fail"
) -> None:
    """Stage the rows, and the delete of one range partition; see `replace_interval`. `partition` is its name in the
    list (RP-14), or its bound."""
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    defined = draft.context.range_partitions
    if defined is None:
        raise InvalidArgumentError(
            f"table {draft.name} has no range partitions, so it accepts rows with any key. Use "
            "replace_interval(rows, on=, lower=, upper=) to replace an interval."
        )
    ranges = _ranges_of(defined, partition)
    told = f"the partition {defined.text(ranges[0])}" if partition != "default" else "the default partition"
    inside = RowsInSpans(spans_of(defined.key, ranges), told)
    _stage(draft, rows, inside, blind=blind, on_refused=on_refused)


def _stage(draft: Draft, rows: Any, inside: RowsInSpans, *, blind: bool, on_refused: str) -> None:
    draft.begin_verb()
    draft.add_rows(draft.conformed(rows, on_refused, tests=(inside,)))
    if blind:
        draft.add_spans(inside.spans)
    elif len(inside.spans):
        draft.replace_spans(inside.spans)


def _ranges_of(defined: DefinedPartitions, partition: str | BoundLike) -> list[Range]:
    """The ranges that a partition covers: one range, or all uncovered ranges for the default partition. Raises
    InvalidArgumentError if the partition does not exist."""
    if partition == "default" and defined.has_default:
        return default_ranges(defined)
    if isinstance(partition, str):
        found = next((each for each in defined.partitions() if defined.text(each) == partition), None)
        if found is None:
            names = [defined.text(each) for each in defined.partitions()]
            raise InvalidArgumentError(
                f"the range partition {partition!r} does not exist.{nearest_hint(partition, names)} Nothing was "
                "changed. range_partitions.list() shows the existing ones."
            )
        return [found]
    ranges = check_whole_partitions(defined, range_of(defined.key, as_bound(partition)))
    if len(ranges) > 1:
        raise InvalidArgumentError(
            f"{partition!r} covers {len(ranges)} range partitions: {', '.join(map(defined.text, ranges[:3]))}, ... "
            "Nothing was changed. Pass one of them, or replace an interval with replace_interval()."
        )
    return ranges


def _as_bound(value: Any) -> tuple[Any, ...] | None:
    """A bound for `span_of_bounds`. A single value means a tuple of one value, and None is open."""
    if value is None or isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)
