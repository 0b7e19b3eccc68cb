"""Applies a filter that was given for one snapshot to the data files of a later head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import file_filter


def filter_at(head: SnapshotView, where: BooleanExpression | None, planned: Schema) -> Callable[[DataFile], bool]:
    """Whether a data file of the head may hold a matching row. Columns are found by their names in the planned schema,
    and compared in their current types."""
    view = replace(head, schema=_in_types_of(planned, head.metadata.schema()))
    try:
        return file_filter(view, where)
    except InvalidArgumentError:
        # A column of the filter has another shape in the head, so no file can be excluded.
        return lambda _data: True


def _in_types_of(planned: Schema, current: Schema) -> Schema:
    """The planned columns in their current types; a dropped column keeps its type."""
    now = {field.field_id: field.field_type for field in current.fields}
    return Schema(
        *(
            field.model_copy(update={"field_type": now.get(field.field_id, field.field_type)})
            for field in planned.fields
        ),
        schema_id=planned.schema_id,
    )
