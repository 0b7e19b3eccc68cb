"""Writes rows to stdout, as a grid, as one JSON document or as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tableformat.cli.output import Output

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema

TEXT_ROWS: Final = 100
"""Rows that are printed as text by default. Other formats have all rows."""


def limit_of(output: Output, limit: int | None) -> int | None:
    """The number of rows to print: as requested, otherwise all, or the first ones as text."""
    return limit if limit is not None or not output.is_text else TEXT_ROWS


class Taken:
    """The first rows of a stream, and whether there were more."""

    def __init__(self, reader: pa.RecordBatchReader, limit: int | None) -> None:
        self._reader = reader
        self._limit = limit
        self.schema: pa.Schema = reader.schema
        self.row_count = 0
        self.is_truncated = False

    def up_to(self, limit: int) -> Taken:
        """At most so many of the rows."""
        self._limit = limit
        return self

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            left = batch.num_rows if self._limit is None else self._limit - self.row_count
            self.is_truncated = batch.num_rows > left
            self.row_count += min(left, batch.num_rows)
            yield batch.slice(0, left)
            if self.is_truncated:
                return


def print_rows(
    output: Output,
    taken: Taken,
    names: Sequence[str],
    types: Sequence[str],
    *,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Print rows as a grid, as one JSON document that is written while the rows arrive, or as lines. `about` has
    additional fields of that document."""
    import pyarrow as pa

    from tableformat.cli.json_values import json_rows
    from tableformat.display.rows import Rows

    if output.is_json:
        output.write_rows(
            [{"name": name, "type": column_type} for name, column_type in zip(names, types, strict=True)],
            (json_rows(batch, names) for batch in taken),
            lambda: {"row_count": taken.row_count, "is_truncated": taken.is_truncated, **(about or {})},
        )
        return
    if output.format.has_only_rows:
        from tableformat.cli.row_formats import row_lines

        output.write(*row_lines(output.format, taken, names))
        return
    rows = pa.Table.from_batches(list(taken), schema=taken.schema).rename_columns(list(names))
    output.emit(dict, lambda: Rows.of(rows, types))
    if taken.row_count == 0:
        output.note("No rows.")
    if taken.is_truncated:
        output.note(f"The first {taken.row_count:,} rows; --limit N prints more.")


def iceberg_type(field: pa.Field, schema: Schema) -> str:
    """Iceberg's name of the column's type. Nested columns, which may be reduced to some fields, have Arrow's name."""
    known = next((column.field_type for column in schema.fields if column.name == field.name), None)
    return str(known) if known is not None and known.is_primitive else str(field.type)
