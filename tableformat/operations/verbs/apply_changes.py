"""`apply_changes`: change events of a source table, applied without reading the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.upsert import deleting_older, lacking_columns, lacking_error
from tableformat.write.rows.last_per_key import last_row_per_key
from tableformat.write.rows.numbered_rows import numbered, unused_name
from tableformat.write.rows.rows import as_reader

_UPSERTS: Final = ("I", "INSERT", "C", "CREATE", "R", "READ", "U", "UPDATE", "UPDATE_AFTER", "UPSERT")
_DELETES: Final = ("D", "DELETE", "UPDATE_BEFORE")
"""An update may change the key, so the image before it deletes the row that it names; the image after it follows."""


def apply_changes(
    draft: Draft,
    *,
    changes: Any,
    op: str = "_op",
    order_by: str | None = "_ts",
    on_refused: str = "fail",
    missing: str = "error",
) -> None:
    """Stage the last event of each key: deletes of all keys that occur, and the rows of those whose last event is no
    delete.

    CF-9: InvalidKeyError for a table without a key, whose equal rows an event cannot tell apart. Delete events may
    leave columns outside the key null or out.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    one_of(missing, ("error", "null"), option="missing")
    events = as_reader(changes, what="changes")
    for name, option in ((op, "op"), (order_by, "order_by")):
        if name is not None and name not in events.schema.names:
            raise UnknownColumnError(name, events.schema.names, where=f"the changes ({option}=)")
    if not draft.has_key:
        raise InvalidKeyError(
            f"table {draft.name} has no key, so an event does not say which of several equal rows it is about. Name "
            "the columns that identify a row with set_key([...]); or append() what was inserted, and where rows were "
            "deleted take all of them anew: overwrite(source.scan().to_arrow())."
        )
    columns = {field.name for field in draft.schema.fields}
    row_columns = [name for name in events.schema.names if name in columns or name not in (op, order_by)]
    lacking = lacking_columns(draft, row_columns) if missing == "error" else []
    key = draft.key_names
    draft.begin_verb()
    if missing == "error":
        draft.replaces_whole_rows()
    number = unused_name(events.schema)
    newest = last_row_per_key(numbered(events, number), key, order_by=order_by)
    row_columns.append(number)
    upserts = pa.RecordBatchReader.from_batches(
        pa.schema([newest.schema.field(name) for name in row_columns]),
        _split(draft, newest, op=op, key=key, row_columns=row_columns, lacking=lacking),
    )
    conformed = draft.conformed(upserts, on_refused, numbered_by=number)
    draft.add_rows(conformed, deleting_older(draft, conformed, key))


def _split(
    draft: Draft,
    events: pa.RecordBatchReader,
    *,
    op: str,
    key: Sequence[str],
    row_columns: Sequence[str],
    lacking: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Stage the keys of deletes, and pass on the rows of the other events; their keys follow when the rows fit (CP-24),
    so that a refused event leaves the row that is there. CP-27: `lacking` columns are an error of these."""
    for batch in events:
        is_upsert = _is_upsert(batch.column(op), op)
        if lacking and is_upsert.any():
            raise lacking_error(
                lacking, "events that insert or update", "apply_changes(changes, missing='null'), which"
            )
        if not is_upsert.all():
            draft.add_keys(pa.Table.from_batches([batch.select(list(key)).filter(pa.array(~is_upsert))]))
        yield batch.select(list(row_columns)).filter(pa.array(is_upsert))


def _is_upsert(codes: pa.Array, op: str) -> np.ndarray:
    """Whether each event leaves its row in the table; InvalidArgumentError for a code that means nothing."""
    if pa.types.is_dictionary(codes.type):
        codes = codes.dictionary_decode()
    if not (pa.types.is_string(codes.type) or pa.types.is_large_string(codes.type)):
        raise InvalidArgumentError(f"column {op!r} holds {codes.type}; operations are text such as 'I', 'U' or 'D'.")
    known = (*_UPSERTS, *_DELETES)
    positions = pc.index_in(pc.utf8_upper(codes), pa.array(known, codes.type))
    if positions.null_count:
        wrong = codes.filter(pc.is_null(positions))[0].as_py()
        raise InvalidArgumentError(f"column {op!r} holds {wrong!r}, which is no operation. Known: {', '.join(known)}.")
    return np.asarray(positions) < len(_UPSERTS)
