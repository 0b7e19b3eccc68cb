"""`upsert`: add rows and delete the older rows with the same key, without reading any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tableformat.operations.draft import Draft
from tableformat.operations.options import one_of
from tableformat.write.rows.last_per_key import last_row_per_key

_COPIES: Final = 2
"""What finds the last row of a key holds the rows, and their keys as often again."""


def upsert(draft: Draft, *, rows: Any, on_refused: str = "fail") -> None:
    """Stage the last row of each key, and equality deletes of those keys: older rows with them disappear.

    A diverted row takes all rows of its key along, so that no older state of it is stored as the newest (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    key = draft.key_names
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused, whole_groups=key)
    # Rows are held here while others are written (MT-63).
    half = draft.context.memory_bytes // 2
    newest = last_row_per_key(conformed.to_reader(), key, memory_bytes=half // _COPIES)
    draft.add_rows(conformed, deleting_older(draft, newest, key), memory_bytes=half)


def deleting_older(draft: Draft, batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The same batches; on the way their keys are staged as equality deletes."""
    for batch in batches:
        # A copy: columns of a batch may lie in one buffer, and the keys are kept longer than the rows.
        copied = batch.select(list(key)).take(pa.array(np.arange(batch.num_rows)))
        draft.add_keys(pa.Table.from_batches([copied]))
        yield batch
