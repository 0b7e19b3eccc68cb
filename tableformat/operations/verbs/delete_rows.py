"""`delete_rows`: delete the rows that equal given values, without reading rows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.covered_rows import delete_covered
from tableformat.operations.staging.draft import Draft
from tableformat.write.delete_files.equality_deletes import delete_columns
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.rows.rows import as_reader

MODES: Final = ("equality", "scan")


def delete_rows(draft: Draft, *, keys: Any, mode: str = "equality") -> None:
    """Stage one equality delete on the columns of `keys`; null equals null (DA-4).

    With `mode="scan"`, the rows are found by spans of one value each and deleted by position. Raises InvalidKeyError
    for floating point and nested columns (DA-5), UnknownColumnError for columns that the table lacks.
    """
    one_of(mode, MODES, option="mode")
    reader = as_reader(keys, what="keys")
    names = draft.schema.column_names
    for name in reader.schema.names:
        if name not in names:
            raise UnknownColumnError(name, names, where="the columns of delete_rows")
    if len(set(reader.schema.names)) < len(reader.schema.names):
        raise InvalidKeyError(f"delete_rows does not accept a column twice: {', '.join(reader.schema.names)}.")
    if not reader.schema.names:
        raise InvalidKeyError("delete_rows needs at least one column; delete(where='true') deletes everything.")
    columns = delete_columns(draft.schema, reader.schema.names)
    draft.begin_verb()
    if mode == "scan":
        on = KeyColumns.of(draft.schema, [field.field_id for field in columns.fields])
        rows = pa.Table.from_batches(ConformedRows(reader, columns), table_arrow_schema(columns))
        if rows.num_rows:
            delete_covered(draft, sort_and_merge(spans_of_prefixes(on, distinct_rows(rows))))
        return
    for batch in reader:
        if batch.num_rows:
            draft.add_keys(pa.Table.from_batches([batch]))
