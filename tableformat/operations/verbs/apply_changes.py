"""`apply_changes`: change events of a source table, applied without reading the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError, InvalidKeyError
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.finding.kept_columns import stage_keeping
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete import stage_delete
from tableformat.operations.verbs.row_events import stage_row_events
from tableformat.operations.verbs.upsert import MISSING, deleting_older, lacking_columns, lacking_error
from tableformat.write.rows.change_codes import Change, kinds_of
from tableformat.write.rows.change_events import ChangeEvents, change_events
from tableformat.write.rows.distinct import PrefixCollector, rows_among
from tableformat.write.rows.last_per_key import last_row_per_key, refuse_incomparable
from tableformat.write.rows.numbered_rows import numbered, unused_name

TABLE_KEY: Final = "table"
"""The argument `key` for events that are about the rows with their key."""


def apply_changes(
    draft: Draft,
    *,
    changes: Any,
    op: str = "_op",
    order_by: str | Sequence[str] | None = "_ts",
    envelope: str | None = None,
    key: str | None = TABLE_KEY,
    on_refused: str = "fail",
    missing: str = "error",
) -> None:
    """Stage the last event of each key: deletes of all keys that occur, and the rows of those whose last event is not a
    delete. CF-13: events before the last truncate have no effect.

    CF-9: InvalidKeyError for a table without a key, unless `key` is None: then all columns identify a row
    (CF-15). Delete events may leave columns outside the key null or out.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    one_of(missing, MISSING, option="missing")
    if key is None:
        _check_row_events(on_refused, missing)
    elif key != TABLE_KEY:
        raise InvalidArgumentError(
            f"key={key!r}: events are about the rows with their key ({TABLE_KEY!r}), or with None about one row that "
            "is equal in all columns. Nothing was written."
        )
    elif not draft.has_key:
        raise InvalidKeyError(
            f"table {draft.name} has no key, so an event does not say which of several equal rows it is about. Nothing "
            "was written. apply_changes(..., key=None) takes one equal row for each delete, whose events have all "
            "columns; or name the columns that identify a row with set_key([...])."
        )
    events = change_events(changes, op=op, order_by=order_by, envelope=envelope, whole_images=key is None)
    if key is None:
        stage_row_events(draft, events)
    else:
        _stage_by_key(draft, events, on_refused, missing)


def _check_row_events(on_refused: str, missing: str) -> None:
    for option, value, known in (("on_refused", on_refused, "fail"), ("missing", missing, "error")):
        if value != known:
            raise InvalidArgumentError(
                f"key=None goes with {option}={known!r} only: a row is known by all its columns, and one event that is "
                "left out changes what the next one finds. Nothing was written."
            )


def _stage_by_key(draft: Draft, events: ChangeEvents, on_refused: str, missing: str) -> None:
    row_columns = events.row_columns([field.name for field in draft.schema.fields])
    lacking = lacking_columns(draft, row_columns)
    if missing == "keep" and on_refused == "divert":
        raise InvalidArgumentError(
            "missing='keep' goes with on_refused='fail' only: the rows are completed before they are checked. Nothing "
            "was written. Give all columns to divert rows."
        )
    draft.begin_verb()
    if missing == "error":
        draft.replaces_whole_rows()
    split = _SplitEvents(draft, events, row_columns, lacking if missing == "error" else [])
    if missing == "keep" and lacking:
        stage_keeping(draft, split.reader(split.kept()), lacking, numbered_by=split.number)
        rows = split.reader(iter(split.deleted_before))
    else:
        rows = split.reader(split.upserts())
    conformed = draft.conformed(rows, on_refused, numbered_by=split.number)
    draft.add_rows(conformed, deleting_older(draft, conformed, draft.key_names))


class _SplitEvents:
    """The last events of each key. Read once."""

    def __init__(self, draft: Draft, events: ChangeEvents, row_columns: Sequence[str], lacking: Sequence[str]) -> None:
        """CP-27: `lacking` columns are an error of events that insert or update."""
        self._draft = draft
        self._op = events.op
        self._key = list(draft.key_names)
        refuse_incomparable(events.reader.schema, self._key)
        self._lacking = lacking
        self.number = unused_name(events.reader.schema)
        """The column of the events' indexes in the input."""
        self._columns = [*row_columns, self.number]
        counted = numbered(events.reader, self.number)
        self._resets = unused_name(counted.schema)
        schema = counted.schema.append(pa.field(self._resets, pa.bool_()))
        self._deletes = PrefixCollector(schema, self._key)
        self._is_emptied = False
        self._newest = last_row_per_key(
            pa.RecordBatchReader.from_batches(schema, self._marked(counted, schema)),
            self._key,
            events.order_by,
            resets=self._resets,
        )
        self.deleted_before: list[pa.RecordBatch] = []
        """Of `kept`: the last events whose key was deleted by an earlier one, so that nothing of it is stored."""

    def _marked(self, events: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in events:
            kinds = kinds_of(batch.column(self._op), self._op)
            is_delete = kinds == Change.DELETE
            if is_delete.any():
                self._deletes.observe(batch.filter(pa.array(is_delete)))
            resets = pa.array(kinds == Change.TRUNCATE)
            self._is_emptied |= bool(np.any(kinds == Change.TRUNCATE))
            yield pa.RecordBatch.from_arrays([*batch.columns, resets], schema=schema)

    def reader(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        """Batches of rows as a reader."""
        schema = pa.schema([self._newest.schema.field(name) for name in self._columns])
        return pa.RecordBatchReader.from_batches(schema, batches)

    def upserts(self) -> Iterator[pa.RecordBatch]:
        """Stage the keys of deletes, and pass on the rows of the other events; their keys follow when the rows fit
        (CP-24), so that a refused event leaves the row that is there."""
        for batch in self._newest:
            kinds = kinds_of(batch.column(self._op), self._op)
            is_upsert = kinds == Change.UPSERT
            if self._lacking and is_upsert.any():
                raise lacking_error(
                    self._lacking,
                    "events that insert or update",
                    "apply_changes(changes, missing=...): 'keep' reads the stored rows and keeps their values, 'null'",
                )
            if (kinds == Change.TRUNCATE).any():
                stage_delete(self._draft, None, mode="auto")
            is_delete = (kinds == Change.DELETE) | (kinds == Change.BEFORE_IMAGE)
            if is_delete.any():
                keys = batch.select(self._key).filter(pa.array(is_delete))
                self._draft.add_keys(pa.Table.from_batches([keys]))
            yield batch.select(self._columns).filter(pa.array(is_upsert))

    def kept(self) -> Iterator[pa.RecordBatch]:
        """The upserts whose stored rows stay in columns that they lack. CF-16: a key that was deleted before has none;
        its events are held."""
        for batch in self.upserts():
            keys = pa.Table.from_batches([batch.select(self._key)])
            is_gone = np.full(batch.num_rows, self._is_emptied)
            if not self._is_emptied and len(self._deletes.prefixes):
                is_gone = rows_among(keys, self._deletes.prefixes)
            self.deleted_before.append(batch.filter(pa.array(is_gone)))
            yield batch.filter(pa.array(~is_gone))
