"""`Scope`: the rows that a draft deletes or reads, as spans and filters (CP-83)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema

from tableformat.commit.change import UnchangedScope
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.staging.head_filter import filter_at

_NEWER_THAN_ALL: Final = 2**62


class Scope:
    """The spans and filters of a draft's deletes, collected as its operations stage them."""

    def __init__(self, since: int) -> None:
        """`since` is the snapshot after which no row may have been added."""
        self._since = since
        self._spans: list[SpanArray] = []
        self._filters: list[BooleanExpression | None] = []
        self._is_stated = False
        """Whether the current operation has a filter, which is more precise than the resulting spans."""

    def begin_verb(self) -> None:
        """Start the next operation: everything added from now on belongs to it."""
        self._is_stated = False

    def state(self, where: BooleanExpression | None) -> None:
        """Add a filter that all rows deleted by the current operation match."""
        self._filters.append(where)
        self._is_stated = True

    def add_spans(self, spans: SpanArray) -> None:
        """Add spans whose rows the operations delete."""
        if len(spans) and not self._is_stated:
            self._spans.append(spans)

    def on(self, head: SnapshotView, reads: Sequence[Callable[[DataFile], bool]], planned: Schema) -> UnchangedScope:
        """The scope for the head of the commit. `reads` tests whether the operations read a data file. `planned` is the
        schema of the filters."""
        stated = [filter_at(head, where, planned) for where in self._filters]
        tests = [*reads, *stated, *(may_meet(spans, head) for spans in self._spans)]
        return UnchangedScope(self._since, lambda data: any(test(data) for test in tests))

    @property
    def spans(self) -> tuple[SpanArray, ...]:
        """The spans of the deletes, each array over its own columns."""
        return tuple(self._spans)

    @property
    def filters(self) -> tuple[BooleanExpression | None, ...]:
        """The filters that were added."""
        return tuple(self._filters)

    def __bool__(self) -> bool:
        return bool(self._spans or self._filters)


def may_meet(spans: SpanArray, head: SnapshotView) -> Callable[[DataFile], bool]:
    """Whether a data file may hold a row that the spans cover. Bounds of a column with another type in the head are not
    compared; then the answer is True."""
    schema = head.metadata.schema()
    now = [
        schema.find_field(field_id).field_type if schema.find_column_name(field_id) else None
        for field_id in spans.key.field_ids
    ]
    if now != list(spans.key.types):
        return lambda _data: True
    merged = sort_and_merge(spans).with_sequence_number(_NEWER_THAN_ALL)
    return lambda data: classify(merged, data)[0] is not Coverage.CLEAN
