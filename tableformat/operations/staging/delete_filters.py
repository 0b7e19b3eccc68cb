"""Records deletes that scan for rows in the summary of their snapshot, while a range is retired (RP-13)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyiceberg.expressions import BooleanExpression

from tableformat.deletes.spans.spans import SpanArray
from tableformat.filters.bound_filter import bind_filter
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.ranges.later_deletes import DELETE_FILTERS, has_retired_ranges
from tableformat.range_partitions.retired import retired_from, touched_by, touched_by_spans


class RecordedDeletes:
    """The deletes of a draft that scanned for rows, in the form that `restore` reads. Empty if no range is retired."""

    def __init__(self, view: SnapshotView) -> None:
        self._view = view
        self._is_needed = has_retired_ranges(view)
        self._filters: list[Any] | None = None
        """None if no operation scanned."""
        self._is_unknown = False
        self.needs_snapshot = False
        """Whether a retired range may contain a row that a delete matches. Then the draft is committed even if it
        changes no file, so that `restore` finds the delete."""

    def add_filters(self, *filters: BooleanExpression) -> None:
        """Record the filters of the deletes. `restore` may apply them to the range. An UPDATE or MERGE has no filters,
        because it changes no retired row."""
        if self._is_needed:
            self._filters = [*(self._filters or ()), *(json.loads(each.model_dump_json()) for each in filters)]
            self.needs_snapshot |= any(self._may_match(each) for each in filters)

    def add_spans(self, found: Sequence[SpanArray]) -> None:
        """Record that the rows of these spans were found and deleted. The condition is not recorded, because there may
        be many spans."""
        if self._is_needed and any(touched_by_spans(spans, retired_from(self._view)) for spans in found):
            self._add_unknown()

    def add_unknown(self, where: BooleanExpression) -> None:
        """Record that rows were found and deleted by a condition that is not known, but implies `where`."""
        if self._is_needed and self._may_match(where):
            self._add_unknown()

    @property
    def summary(self) -> dict[str, str]:
        if self._is_unknown:
            return {DELETE_FILTERS: json.dumps(None)}
        return {} if self._filters is None else {DELETE_FILTERS: json.dumps(self._filters)}

    def _add_unknown(self) -> None:
        self._is_unknown = self.needs_snapshot = True

    def _may_match(self, where: BooleanExpression) -> bool:
        return bool(touched_by(bind_filter(where, self._view.schema), retired_from(self._view)))
