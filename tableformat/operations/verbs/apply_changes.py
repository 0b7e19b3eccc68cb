"""`apply_changes`: change events of a source table, applied without reading the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.kept_columns import stage_keeping
from tableformat.operations.row_lookup.stale_rows import check_has_order, check_on_stale, fresh_rows
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete import stage_delete
from tableformat.operations.verbs.delete_prefix import stage_ordered_deletes
from tableformat.operations.verbs.row_events import stage_row_events
from tableformat.operations.verbs.truncates import refuse_ordered_truncate, stage_truncates
from tableformat.operations.verbs.upsert import MISSING, deleting_older, lacking_columns, lacking_error
from tableformat.properties import ORDER_COLUMN
from tableformat.write.rows.change_codes import Change, kinds_of
from tableformat.write.rows.change_events import ChangeEvents, change_events
from tableformat.write.rows.conform import ConformedRows, Conformer
from tableformat.write.rows.distinct import PrefixCollector, rows_among
from tableformat.write.rows.last_per_key import last_row_per_key, refuse_incomparable
from tableformat.write.rows.numbered_rows import numbered, unused_name

TABLE_KEY: Final = "table"
"""The argument `key` for events that apply to the rows with their key."""


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
    on_stale: str = "ignore",
) -> None:
    """Stage the last event of each key: a delete of every key that occurs, and the row of every last event that is not
    a delete. CF-13: events before the last truncate have no effect.

    CF-9: raises InvalidKeyError for a table without a key, unless `key` is None: then all columns identify a row
    (CF-15). In delete events, columns outside the key may be null or missing. CP-69: on a table with an order column,
    events that are older than the stored rows of their keys are left out.
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    one_of(missing, MISSING, option="missing")
    if key is None:
        _check_row_events(on_refused, missing)
    elif key != TABLE_KEY:
        raise InvalidArgumentError(
            f"key={key!r} is not supported: events identify rows by their key ({TABLE_KEY!r}), or with None by all "
            "columns. Nothing was written."
        )
    elif not draft.has_key:
        raise InvalidKeyError(
            f"table {draft.name} has no key, so an event does not identify one of several equal rows. Nothing was "
            "written. Either set the columns that identify a row with set_key([...]), or pass apply_changes(..., "
            "key=None). With key=None, each delete removes one equal row, and events must have all columns."
        )
    column = draft.order.column()
    check_on_stale(on_stale, column, table=draft.name)
    if column is not None:
        _refuse_unordered(draft, column, key, missing, envelope)
    events = change_events(changes, op=op, order_by=order_by, envelope=envelope, whole_images=key is None)
    if key is None:
        stage_row_events(draft, events)
    else:
        _stage_by_key(draft, events, on_refused, missing, on_stale)


def _refuse_unordered(draft: Draft, column: NestedField, key: str | None, missing: str, envelope: str | None) -> None:
    """CP-71: raise InvalidArgumentError for arguments that do not allow to leave out stale events."""
    cases = (
        (key is None, "key=None", "an event applies to one of several equal rows", "Set a key"),
        (missing == "keep", "missing='keep'", "a stored row combines several events", "Pass events with all columns"),
        (
            envelope is not None,
            f"envelope={envelope!r}",
            "a before-image has the value of the row, not of the event",
            "Pass events that have this column themselves",
        ),
    )
    for is_given, given, reason, instead in cases:
        if is_given:
            raise InvalidArgumentError(
                f"{given}: {draft.name} compares events by its order column {column.name!r} ({ORDER_COLUMN}), and "
                f"{reason}. Nothing was written. {instead}, or remove the property."
            )


def _check_row_events(on_refused: str, missing: str) -> None:
    for option, value, known in (("on_refused", on_refused, "fail"), ("missing", missing, "error")):
        if value != known:
            raise InvalidArgumentError(
                f"key=None is only supported with {option}={known!r}: a row is identified by all its columns, and "
                "skipping one event changes which rows the next events match. Nothing was written."
            )


def _stage_by_key(draft: Draft, events: ChangeEvents, on_refused: str, missing: str, on_stale: str) -> None:
    row_columns = events.row_columns([field.name for field in draft.schema.fields])
    lacking = lacking_columns(draft, row_columns)
    if missing == "keep" and on_refused == "divert":
        raise InvalidArgumentError(
            "missing='keep' is only supported with on_refused='fail': rows are completed before they are checked. "
            "Nothing was written. Pass all columns to divert rows."
        )
    no_key = [name for name in draft.key_names if name not in events.reader.schema.names]
    if no_key:
        where = "the events that insert, update or delete: they must have the key columns"
        stage_truncates(draft, events, UnknownColumnError(no_key[0], row_columns, where=where))
        return
    column = draft.order.column()
    if column is not None:
        check_has_order(events.reader.schema.names, column, "the changes")
    draft.begin_verb()
    if missing == "error":
        draft.replaces_whole_rows()
    given = [events.reader.schema.field(name) for name in row_columns]
    needed = lacking if missing == "error" else []
    split = _SplitEvents(draft, events, row_columns, needed, on_refused=on_refused, on_stale=on_stale)
    if missing == "error" and lacking:
        # Such events add no row, or are an error. The columns that they have are checked here, because the table's
        # required columns may be among those that they lack.
        Conformer(pa.schema(given), Schema(*(field for field in draft.schema.fields if field.name not in lacking)))
        for _ in split.upserts():
            pass
        return
    if missing == "keep" and lacking:
        stage_keeping(draft, split.reader(split.kept()), lacking, numbered_by=split.number)
        rows = split.reader(iter(split.deleted_before))
    else:
        rows = split.reader(split.upserts())
    conformed = draft.conformed(rows, on_refused, numbered_by=split.number)
    draft.add_rows(conformed, deleting_older(draft, conformed, draft.key_names))


class _SplitEvents:
    """The last event of each key. It can be read once."""

    def __init__(
        self,
        draft: Draft,
        events: ChangeEvents,
        row_columns: Sequence[str],
        lacking: Sequence[str],
        *,
        on_refused: str,
        on_stale: str,
    ) -> None:
        """CP-27: events that insert or update raise an error if there are `lacking` columns."""
        self._draft = draft
        self._order = draft.order.column()
        self._op = events.op
        self._key = list(draft.key_names)
        refuse_incomparable(events.reader.schema, self._key)
        self._lacking = lacking
        self._on_refused = on_refused
        self.number = unused_name(events.reader.schema)
        """The name of the column with the indexes of the events in the input."""
        self._columns = [*row_columns, self.number]
        counted = numbered(events.reader, self.number)
        self._resets = unused_name(counted.schema)
        schema = counted.schema.append(pa.field(self._resets, pa.bool_()))
        self._deletes = PrefixCollector(schema, self._key)
        self._is_emptied = False
        newest = last_row_per_key(
            pa.RecordBatchReader.from_batches(schema, self._marked(counted, schema)),
            self._key,
            events.order_by,
            resets=self._resets,
        )
        fresh = fresh_rows(draft, self._key, self._order, on_stale)
        self._newest = newest if fresh is None else fresh(newest, self.number)
        self.deleted_before: list[pa.RecordBatch] = []
        """Filled by `kept`: the last events of keys that an earlier event deleted, so that no stored row remains."""

    def _marked(self, events: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in events:
            kinds = kinds_of(batch.column(self._op), self._op)
            is_delete = kinds == Change.DELETE
            if is_delete.any():
                self._deletes.observe(batch.filter(pa.array(is_delete)))
            resets = kinds == Change.TRUNCATE
            if resets.any():
                refuse_ordered_truncate(self._draft)
            self._is_emptied |= bool(resets.any())
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(resets)], schema=schema)

    def reader(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        """Batches of rows as a reader."""
        schema = pa.schema([self._newest.schema.field(name) for name in self._columns])
        return pa.RecordBatchReader.from_batches(schema, batches)

    def upserts(self) -> Iterator[pa.RecordBatch]:
        """Stage the keys of deletes, and yield the rows of the other events. The keys of these rows are staged later,
        after the rows were checked (CP-24), so that a refused event does not delete the stored row."""
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
                self._stage_deletes(pa.Table.from_batches([batch.filter(pa.array(is_delete))]))
            yield batch.select(self._columns).filter(pa.array(is_upsert))

    def _stage_deletes(self, events: pa.Table) -> None:
        """CP-24: an event whose key does not fit the table is an error, or is diverted."""
        names = [*self._key, *([] if self._order is None else [self._order.name])]
        columns = Schema(*(self._draft.schema.find_field(name) for name in names))
        reader = events.select([*names, self.number]).to_reader()
        conformed = ConformedRows(reader, columns, on_refused=self._on_refused, numbered_by=self.number)
        keys = conformed.to_reader().read_all()
        self._draft.note_refused(conformed)
        if self._order is None:
            self._draft.add_keys(keys)
        else:
            stage_ordered_deletes(self._draft, keys, self._order)

    def kept(self) -> Iterator[pa.RecordBatch]:
        """The upserts that keep the stored values of the columns that they lack. CF-16: a key that was deleted before
        has no stored values; its events are held in `deleted_before`."""
        for batch in self.upserts():
            keys = pa.Table.from_batches([batch.select(self._key)])
            is_gone = np.full(batch.num_rows, self._is_emptied)
            if not self._is_emptied and len(self._deletes.prefixes):
                is_gone = rows_among(keys, self._deletes.prefixes)
            self.deleted_before.append(batch.filter(pa.array(is_gone)))
            yield batch.filter(pa.array(~is_gone))
