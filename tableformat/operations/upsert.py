"""`upsert`: add rows in the place of the older rows with the same key, without reading any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tableformat.operations.draft import Draft
from tableformat.operations.options import one_of
from tableformat.write.last_per_key import last_row_per_key


def upsert(draft: Draft, *, rows: Any, on_refused: str = "fail") -> None:
    """Stage the last row of each key, and equality deletes of those keys: older rows with them disappear."""
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    key = draft.key_names
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused)
    newest = last_row_per_key(conformed.to_reader(), key)
    draft.add_rows(conformed, _deleting_older(draft, newest, key))


def _deleting_older(draft: Draft, batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The same batches; on the way their keys are staged as equality deletes."""
    for batch in batches:
        draft.add_keys(pa.Table.from_batches([batch.select(list(key))]))
        yield batch
