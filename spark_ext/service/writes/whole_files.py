"""Detects filters that match whole data files, so that the delete only changes metadata."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.expressions import BooleanExpression
from pyiceberg.transforms import VoidTransform

from tableformat.commit.publish_target import publish_target_of
from tableformat.filters.bound_filter import TRUE, AllOf, AnyOf, BoundFilter, Comparison, bind_filter
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import plan_scan


def takes_whole_files(view: SnapshotView, where: BooleanExpression, branch: str) -> bool:
    """Whether every row of every file with matching rows matches, judged by the files' partitions and bounds. False on
    a branch that is published, because its target may also have such rows (RP-17).

    A filter with a column that is not a source of the partition spec is rejected immediately. It could be a blind
    delete, whose cost must not depend on the number of files.
    """
    if publish_target_of(view.metadata, branch) is not None:
        return False
    bound = bind_filter(where, view.schema)
    sources = {
        field.source_id for field in view.metadata.spec().fields if not isinstance(field.transform, VoidTransform)
    }
    if bound is not TRUE and not set(_columns(bound)) <= sources:
        return False
    plan = plan_scan(view, where)
    return all(bind_filter(task.residual, view.schema) is TRUE for task in plan.tasks)


def _columns(bound: BoundFilter) -> Iterator[int]:
    if isinstance(bound, Comparison):
        yield bound.field.field_id
    elif isinstance(bound, AllOf | AnyOf):
        for term in bound.terms:
            yield from _columns(term)
