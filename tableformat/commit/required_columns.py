"""Columns that cannot be null any more, and rows that were written when they could (LK-9)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tableformat.errors import CommitConflictError
from tableformat.metadata.content_file import DataFile


def newly_required(written_under: Schema, now: Schema) -> list[NestedField]:
    """The columns that may have no nulls now, and could when rows were written under that schema."""
    could_be_null = {field.field_id for field in written_under.fields if not field.required}
    return [field for field in now.fields if field.required and field.field_id in could_be_null]


def refuse_nulls_of_before(added: Sequence[DataFile], written_under: Schema, now: Schema, *, table: str) -> None:
    """LK-9: CommitConflictError where files that were written under that schema may have a null in a column that is
    required now: filters of the table say that it has none, and would not find the row."""
    for field in newly_required(written_under, now):
        unfit = [data.file_path for data in added if (data.null_value_counts or {}).get(field.field_id) != 0]
        if unfit:
            raise CommitConflictError(
                f"column {field.name!r} of {table} was made required while rows were written, and {len(unfit)} data "
                f"files may have nulls in it ({', '.join(unfit[:3])}). Nothing was changed. Run the operation again; "
                "rows without a value are refused."
            )
