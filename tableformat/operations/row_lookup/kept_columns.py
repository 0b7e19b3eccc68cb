"""`upsert(missing="keep")`: completes rows that lack columns with the values of the stored rows with the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import DuplicateKeyError
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.key_matches import key_matches
from tableformat.operations.row_lookup.covered_rows import take_covered
from tableformat.operations.row_lookup.key_rows import portions, within_bounds
from tableformat.operations.staging.draft import Draft
from tableformat.parquet.array_forms import rows_as
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.nested_casts import default_column
from tableformat.write.rows.unique_keys import with_unique_keys


def stage_keeping(draft: Draft, rows: pa.RecordBatchReader, missing: Sequence[str], *, numbered_by: str) -> None:
    """Stage the rows, with the values that the table has in the columns `missing`. `numbered_by` is a column with the
    indexes of the rows in the caller's input. CP-67: raises DuplicateKeyError if two rows have the same key.

    The stored rows are deleted by position, as rows that are written again (CP-6). If a key is not stored, its row gets
    the values that `append` sets. Raises DuplicateKeyError for a key that is stored more than once.
    """
    kept = [field for field in table_arrow_schema(draft.schema) if field.name in missing]
    schema = pa.schema([*rows.schema, *kept])
    completed = pa.RecordBatchReader.from_batches(schema, _completed(draft, rows, schema, missing, numbered_by))
    conformed = draft.conformed(completed, numbered_by=numbered_by)
    unique = with_unique_keys(conformed, draft.key_names, table=draft.name, memory_bytes=draft.context.key_memory_bytes)
    draft.add_rows(conformed, unique, memory_bytes=draft.context.memory_bytes // 2)


def _completed(
    draft: Draft, rows: pa.RecordBatchReader, schema: pa.Schema, missing: Sequence[str], number: str
) -> Iterator[pa.RecordBatch]:
    for portion in portions(rows):
        keys = _keys(draft, portion, number)
        stored = _take_stored(draft, keys, missing)
        at = _stored_row_of_each(keys, stored.select(keys.column_names))
        kept = [_kept(draft, stored, at, schema.field(name)) for name in missing_in_order(draft.schema, missing)]
        yield from pa.table([*portion.columns, *kept], schema=schema).to_batches()


def missing_in_order(schema: Schema, missing: Sequence[str]) -> list[str]:
    """The names in the order of the table's columns."""
    return [field.name for field in schema.fields if field.name in missing]


def _keys(draft: Draft, portion: pa.Table, number: str) -> pa.Table:
    """The keys in the types of the table. Raises RowsRefusedError for a row with an invalid key."""
    names = list(draft.key_names)
    columns = Schema(*(draft.schema.find_field(name) for name in names))
    reader = portion.select([*names, number]).to_reader()
    return pa.Table.from_batches(ConformedRows(reader, columns, numbered_by=number), table_arrow_schema(columns))


def _take_stored(draft: Draft, keys: pa.Table, missing: Sequence[str]) -> pa.Table:
    names = keys.column_names
    spans = sort_and_merge(spans_of_prefixes(KeyColumns.of(draft.schema, draft.key_field_ids), keys))
    columns = [*names, *missing]
    wanted = pa.schema([table_arrow_schema(draft.schema).field(name) for name in columns])
    within = within_bounds(keys.column(names[0]), draft.schema.find_field(names[0]))
    found = [rows_as(rows, wanted) for rows in take_covered(draft, spans, within, columns)]
    return pa.concat_tables(found) if found else pa.Table.from_batches([], wanted)


def _stored_row_of_each(keys: pa.Table, stored: pa.Table) -> np.ndarray:
    """For each key, the number of the stored row that has it; -1 if no row does."""
    given, found = key_matches(keys, stored)
    repeated = np.flatnonzero(given[1:] == given[:-1])
    if len(repeated):
        example = keys.slice(int(given[repeated[0]]), 1).to_pylist()[0]
        raise DuplicateKeyError(
            f"{len(np.unique(given[repeated])):,} keys are in the table more than once, the first {example}, so the "
            "values to keep are ambiguous. Nothing was committed. Pass all columns, or upsert complete rows with "
            "these keys first."
        )
    at = np.full(len(keys), -1, np.int64)
    at[given] = found
    return at


def _kept(draft: Draft, stored: pa.Table, at: np.ndarray, target: pa.Field) -> pa.ChunkedArray:
    is_new = at < 0
    values = stored.column(target.name).take(pa.array(at, mask=is_new))
    field = draft.schema.find_field(target.name)
    if field.write_default is None or not is_new.any():
        return values
    return pc.if_else(pa.array(is_new), default_column(field, target, len(at)), values)
