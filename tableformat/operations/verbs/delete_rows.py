"""`delete_rows`: delete the rows that equal given values, without reading any."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.operations.draft import Draft
from tableformat.write.rows.rows import as_reader


def delete_rows(draft: Draft, *, keys: Any) -> None:
    """Stage one equality delete on the columns of `keys`; null equals null (DA-4).

    Raises InvalidKeyError for floating point and nested columns, UnknownColumnError for others that the table lacks.
    """
    reader = as_reader(keys)
    names = draft.schema.column_names
    for name in reader.schema.names:
        if name not in names:
            raise UnknownColumnError(name, names, where="the columns of delete_rows")
    if not reader.schema.names:
        raise InvalidKeyError("delete_rows needs at least one column; delete(where='true') deletes everything.")
    draft.begin_verb()
    for batch in reader:
        if batch.num_rows:
            draft.add_keys(pa.Table.from_batches([batch]))
