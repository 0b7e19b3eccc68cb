"""`upsert`: add rows and delete the older rows with the same key, without reading any unless their values are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.finding.kept_columns import stage_keeping
from tableformat.operations.options import one_of
from tableformat.write.rows.last_per_key import last_row_per_key
from tableformat.write.rows.rows import as_reader

_COPIES: Final = 2
"""What finds the last row of a key holds the rows, and their keys as often again."""


MISSING: Final = ("error", "null", "keep")


def upsert(draft: Draft, *, rows: Any, on_refused: str = "fail", missing: str = "error") -> None:
    """Stage the last row of each key, and equality deletes of those keys: older rows with them disappear.

    `missing`: what becomes of columns that the rows lack; only "keep" reads. A diverted row takes all rows of its key
    along, so that no older state of it is stored as the newest (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    one_of(missing, MISSING, option="missing")
    key = draft.key_names
    reader = as_reader(rows, schema=arrow_schema(draft.schema))
    draft.begin_verb()
    lacking = lacking_columns(draft, reader.schema.names)
    if missing == "keep" and lacking:
        if on_refused == "divert":
            raise InvalidArgumentError(
                "missing='keep' goes with on_refused='fail' only: the rows are completed before they are checked. "
                "Nothing was written. Give all columns to divert rows."
            )
        stage_keeping(draft, reader, lacking)
        return
    conformed = draft.conformed(reader, on_refused, whole_groups=key)
    if missing == "error":
        if lacking:
            raise lacking_error(
                lacking,
                "the rows to upsert",
                "upsert(rows, missing=...): 'keep' reads the stored rows and keeps their values, 'null'",
            )
        draft.replaces_whole_rows()
    # Rows are held here while others are written (MT-63).
    half = draft.context.memory_bytes // 2
    newest = last_row_per_key(conformed.to_reader(), key, memory_bytes=half // _COPIES)
    draft.add_rows(conformed, deleting_older(draft, newest, key), memory_bytes=half)


def lacking_columns(draft: Draft, given: Sequence[str]) -> list[str]:
    """The table's columns that rows do not have, those of the key apart, which are never left out."""
    known = {*given, *draft.key_names}
    return [name for field in draft.schema.fields if (name := field.name) not in known]


def lacking_error(lacking: Sequence[str], what: str, call: str) -> InvalidArgumentError:
    """CP-27: an upsert replaces whole rows, so a column left out would lose what is stored, and nobody said so."""
    return InvalidArgumentError(
        f"{what} lack {', '.join(map(repr, lacking))}, and an upsert replaces whole rows. Nothing was written. Call "
        f"{call} writes null, or the column's default, in their place. Or give the columns."
    )


def deleting_older(draft: Draft, batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The same batches; on the way their keys are staged as equality deletes."""
    for batch in batches:
        # A copy: columns of a batch may lie in one buffer, and the keys are kept longer than the rows.
        copied = batch.select(list(key)).take(pa.array(np.arange(batch.num_rows)))
        draft.add_keys(pa.Table.from_batches([copied]))
        yield batch
