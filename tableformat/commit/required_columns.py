"""Columns that became required after rows were written without them (LK-9)."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tableformat.errors import CommitConflictError
from tableformat.metadata.content_file import DataFile


def newly_required(written_under: Schema, now: Schema) -> list[NestedField]:
    """The columns that are required now, but allowed nulls in the schema that rows were written under."""
    could_be_null = {field.field_id for field in written_under.fields if not field.required}
    return [field for field in now.fields if field.required and field.field_id in could_be_null]


def refuse_nulls_of_before(added: Sequence[DataFile], written_under: Schema, now: Schema, *, table: str) -> None:
    """LK-9: raise CommitConflictError if files written under that schema may have a null in a column that is now
    required. Filters rely on the column having no nulls, and would not find the row."""
    for field in newly_required(written_under, now):
        unfit = [data.file_path for data in added if (data.null_value_counts or {}).get(field.field_id) != 0]
        if unfit:
            raise CommitConflictError(
                f"column {field.name!r} of {table} was made required while rows were written, and {len(unfit)} data "
                f"files may contain nulls in it ({', '.join(unfit[:3])}). Nothing was changed. Run the operation "
                "again; it rejects rows without a value."
            )
