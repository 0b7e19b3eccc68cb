"""`Scope`: the rows that a draft deletes or reads, as spans and filters (CP-83)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tableformat.commit.change import UnchangedScope
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView

_NEWER_THAN_ALL: Final = 2**62


class Scope:
    """What the operations of a draft delete by, collected as they stage it."""

    def __init__(self, since: int) -> None:
        """`since`: the snapshot after which no row may have come."""
        self._since = since
        self._spans: list[SpanArray] = []

    def add_spans(self, spans: SpanArray) -> None:
        """The operations delete rows that these spans cover."""
        if len(spans):
            self._spans.append(spans)

    def on(self, head: SnapshotView, reads: Sequence[Callable[[DataFile], bool]]) -> UnchangedScope:
        """The scope for the head that the change meets; `reads` are the filters of what the operations read."""
        tests = [*reads, *(may_meet(spans, head) for spans in self._spans)]
        return UnchangedScope(self._since, lambda data: any(test(data) for test in tests))

    @property
    def has_spans(self) -> bool:
        return bool(self._spans)


def may_meet(spans: SpanArray, head: SnapshotView) -> Callable[[DataFile], bool]:
    """Whether a data file may hold a row that the spans cover. Bounds of a column that has another type by now are not
    compared: such a file may."""
    schema = head.metadata.schema()
    now = [
        schema.find_field(field_id).field_type if schema.find_column_name(field_id) else None
        for field_id in spans.key.field_ids
    ]
    if now != list(spans.key.types):
        return lambda _data: True
    merged = sort_and_merge(spans).with_sequence_number(_NEWER_THAN_ALL)
    return lambda data: classify(merged, data)[0] is not Coverage.CLEAN
