"""Writes whose files come from other processes: executors write them and the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.arguments import checked_methods
from tableformat.commit.required_columns import refuse_nulls_of_before
from tableformat.errors import InvalidArgumentError
from tableformat.keys.key_columns import leading_columns
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView, last_sequence_number
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.settled_messages import settle_messages
from tableformat.operations.row_lookup.stale_rows import check_on_stale
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import names_by_now
from tableformat.operations.verbs.delete_range import check_everything_is_meant, named_columns
from tableformat.operations.verbs.replace_interval import inside_interval
from tableformat.operations.verbs.stale_messages import stage_replaced
from tableformat.storage.location import one_spelling
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_data_files
from tableformat.write.rows.checks import refuse_changed_checks
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.distinct import PrefixCollector, rows_among
from tableformat.write.rows.order_column import order_column, with_order_column
from tableformat.write.rows.range_partition_checks import row_tests
from tableformat.write.rows.replaced_range_checks import RowsInSpans
from tableformat.write.rows.replacing_rows import ReplacingRows, covered_prefixes, order_columns
from tableformat.write.rows.rows import as_reader
from tableformat.write.rows.unique_keys import with_unique_keys
from tableformat.write.staged import StagedFiles, StagedMessages

KINDS: Final = ("append", "replace", "replace-interval")
_RANGES_NOTE: Final = (
    "The rows were checked against the range partitions that existed when this write began. new_write() begins a "
    "write with the current ones."
)


@checked_methods
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StagedWrite:
    """Writes data files of one table without committing. It is picklable; one instance serves any number of processes.

    >>> import pickle
    >>> write = pickle.loads(pickle.dumps(table.new_write()))  # for another process
    >>> staged = write.write(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
    >>> table.commit(write, [staged]).added_row_count
    1
    """

    context: WriteContext
    kind: str
    """"append"; "replace": the commit deletes the prefixes that occur in the rows; or "replace-interval"."""
    prefix: tuple[str, ...] = ()
    """The leading key columns of a replacement."""
    order_by: tuple[str, ...] = ()
    """CP-66: the columns that decide which message of a prefix is newer."""
    on_stale: str = "ignore"
    """CP-69: how messages that are older than the stored ones are handled."""
    inside: RowsInSpans | None = None
    """RP-19: the interval that is replaced, regardless of the rows."""
    table_uuid: str
    planned_sequence_number: int = 0
    """The last sequence number of the table before any file was written (CP-23)."""

    def __repr__(self) -> str:
        return f"StagedWrite({self.kind!r}, to {self.context.table_location})"

    @classmethod
    def of(
        cls,
        view: SnapshotView,
        *,
        kind: str,
        prefix: Sequence[str] | None,
        order_by: str | Sequence[str] | None = None,
        on: str | Sequence[str] | None = None,
        lower: Any = None,
        upper: Any = None,
        on_stale: str = "ignore",
    ) -> StagedWrite:
        """The writer for the table of a snapshot, as created by `Table.new_write`.

        Raises InvalidArgumentError for an unknown kind, for a prefix without kind "replace", and for an interval
        without kind "replace-interval". Raises InvalidKeyError or UnknownColumnError for a prefix that is not a leading
        part of the key.

        >>> write = StagedWrite.of(table.view, kind="replace", prefix=["id1"])
        >>> write.prefix
        ('id1',)
        """
        one_of(kind, KINDS, option="kind")
        schema = view.metadata.schema()
        key = key_names(schema, key_field_ids(schema, view.metadata.properties))
        stale = None if on_stale == "ignore" else on_stale
        for name, given in (("prefix", prefix), ("order_by", order_by), ("on_stale", stale)):
            if kind != "replace" and given is not None:
                raise InvalidArgumentError(f"{name} is only valid with kind='replace'.")
        if kind != "replace-interval" and any(each is not None for each in (on, lower, upper)):
            raise InvalidArgumentError("on, lower and upper are only valid with kind='replace-interval'.")
        names = leading_columns(key, prefix if prefix is not None else key) if kind == "replace" else ()
        context = WriteContext.of(view.metadata, view.io)
        column = order_column(context.properties, context.schema) if kind == "replace" else None
        if kind == "replace":
            check_on_stale(on_stale, column, table=context.table_location)
        return cls(
            context=context,
            kind=kind,
            prefix=names,
            order_by=with_order_column(order_columns(order_by, names), column),
            on_stale=on_stale,
            inside=_interval(schema, on, lower, upper) if kind == "replace-interval" else None,
            table_uuid=str(view.metadata.table_uuid),
            planned_sequence_number=last_sequence_number(view.metadata),
        )

    def write(self, batches: Any, *, on_refused: str = "fail") -> StagedFiles:
        """Write the rows to data files, sorted by the key. The result is small and picklable; pass it to `commit`.

        `batches` is any argument that `Table.append` accepts, or an iterable of record batches. Files of a failed call
        are removed.

        >>> write = table.new_write()
        >>> staged = write.write(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> staged.row_count, table.scan().count()
        (1, 3)
        """
        reader = as_reader(batches, schema=arrow_schema(self.context.schema))
        if self.kind != "replace":
            return write_data_files(self.context, self._conformed(reader, on_refused))
        key = key_names(self.context.schema, self.context.key_field_ids)
        chosen = ReplacingRows(
            reader,
            self.context.schema,
            key=key,
            prefix=self.prefix,
            order_by=self.order_by,
            memory_bytes=self.context.memory_bytes // 4,
        )
        rows = self._conformed(chosen.to_reader(), on_refused, numbered_by=chosen.numbered_by)
        collector = PrefixCollector(rows.schema, self.prefix)
        context = self.context.with_memory(self.context.memory_bytes // 2) if self.order_by else self.context

        def through(conformed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return collector.through(
                with_unique_keys(
                    conformed, key, table=self.context.table_location, memory_bytes=self.context.key_memory_bytes
                )
            )

        staged = write_data_files(context, rows, through=through)
        return StagedFiles.merge(
            [
                replace(staged, messages=self._messages(chosen, collector.prefixes, staged)),
                StagedFiles(prefixes=collector.prefixes, refused_prefixes=rows.spoiled_groups),
                StagedFiles(prefixes=chosen.marked),
            ]
        )

    def _conformed(
        self, rows: pa.RecordBatchReader, on_refused: str, *, numbered_by: str | None = None
    ) -> ConformedRows:
        conformed = ConformedRows(
            rows,
            self.context.schema,
            on_refused=on_refused,
            checks=(
                *row_tests(self.context, table=self.context.table_location),
                *(() if self.inside is None else (self.inside,)),
            ),
            whole_groups=self.prefix,
            numbered_by=numbered_by,
        )
        conformed.ranges_note = _RANGES_NOTE
        return conformed

    def _messages(self, chosen: ReplacingRows, written: pa.Table, staged: StagedFiles) -> tuple[StagedMessages, ...]:
        """CP-68: the prefixes and orders that are compared with other writers' messages. CP-71: they include empty
        messages, which have no file."""
        paths = tuple(file.file_path for file in staged.data_files)
        prefixes, orders = chosen.messages or (written, None)
        found = [(paths, np.ones(len(prefixes), np.bool_))]
        if chosen.marked is not None and self._is_ordered:
            found = [(paths, rows_among(prefixes, written)), ((), rows_among(prefixes, chosen.marked))]
        return tuple(
            StagedMessages(
                file_paths=files,
                prefixes=prefixes.filter(pa.array(chosen_rows)),
                orders=None if orders is None else orders.filter(pa.array(chosen_rows)),
            )
            for files, chosen_rows in found
            if chosen_rows.any()
        )

    @property
    def _is_ordered(self) -> bool:
        return order_column(self.context.properties, self.context.schema) is not None

    def cover(self, prefixes: Any) -> StagedFiles:
        """For a replacement: also delete these prefixes, which have no new rows. Nothing is written before the commit.

        >>> write = table.new_write(kind="replace", prefix=["id1"])
        >>> result = table.commit(write, [write.cover(pa.table({"id1": ["A"]}))])
        >>> table.scan().count()
        1
        """
        if self.kind != "replace":
            raise InvalidArgumentError("cover is only valid with kind='replace'.")
        return StagedFiles(covered=covered_prefixes(prefixes, self.prefix, self.context.schema))

    def abort(self, staged: Sequence[StagedFiles]) -> None:
        """Remove staged files that will not be committed. Never call it for files of a commit that succeeded, or may
        have succeeded.

        >>> write = table.new_write()
        >>> staged = write.write(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> write.abort([staged])
        >>> [table.iceberg.io.new_input(file.file_path).exists() for file in staged.data_files]
        [False]
        """
        for files in staged:
            files.delete_all(self.context.io)


def stage_written(draft: Draft, *, write: StagedWrite, staged: Sequence[StagedFiles]) -> None:
    """Stage files that other processes wrote. The files stay theirs, so a failed commit leaves them for another
    attempt. Raises AlreadyCommittedError for files that were committed before (CP-23)."""
    if isinstance(staged, StagedFiles):
        raise InvalidArgumentError("commit requires a list of staged files: commit(write, [staged]).")
    if write.table_uuid != str(draft.view.metadata.table_uuid):
        raise InvalidArgumentError("the staged files were written for another table.")
    _refuse_moved_table(write, draft)
    refuse_changed_checks(write.context.properties, draft.context.properties, table=write.context.table_location)
    merged = StagedFiles.merge(staged)
    refuse_nulls_of_before(merged.data_files, write.context.schema, draft.schema, table=draft.name)
    _refuse_parts(merged)
    _refuse_changed_key(write, draft)
    draft.begin_verb()
    draft.adopt_files(merged, since=write.planned_sequence_number, held_against=write.context.properties)
    settle_messages(draft, write.context, merged.messages, merged.data_files)
    if write.kind == "replace":
        stage_replaced(draft, write.context, merged, merged.prefixes, order_by=write.order_by, on_stale=write.on_stale)
    if write.inside is not None and len(write.inside.spans):
        names_by_now(write.inside.spans.key.names, write.context.schema, draft.schema)
        draft.replace_spans(write.inside.spans)


def _refuse_moved_table(write: StagedWrite, draft: Draft) -> None:
    """CP-23: raise InvalidArgumentError for files in another location. This is the table's location before its lake was
    moved, or the location of the table that this one is a copy of."""
    before, now = write.context.table_location, draft.context.table_location
    if one_spelling(before) != one_spelling(now):
        raise InvalidArgumentError(
            f"the staged files were written for {draft.name} at {before}, but the table is now at {now}. Either its "
            "lake was moved without them, or this table is a copy and the original may remove them. Nothing was "
            "changed. Stage the rows again."
        )


def _refuse_changed_key(write: StagedWrite, draft: Draft) -> None:
    """CP-36: raise InvalidArgumentError if the key was changed. Files that replace the rows of their keys were written
    for the key at that time."""
    schema, key = write.context.schema, write.context.key_field_ids
    by_key = write.kind == "replace" and {schema.find_field(name).field_id for name in write.prefix} == set(key)
    if by_key and set(key) != set(draft.context.key_field_ids):
        now = ", ".join(key_names(draft.schema, draft.context.key_field_ids)) or "nothing"
        raise InvalidArgumentError(
            f"the staged rows replace existing rows with the same {', '.join(key_names(schema, key))}, but the key "
            f"of {draft.name} was changed since then and is now {now}. Rows with other keys would be deleted. "
            "Nothing was changed. Stage the rows again."
        )


def _interval(schema: Schema, on: str | Sequence[str] | None, lower: Any, upper: Any) -> RowsInSpans:
    if on is None:
        raise InvalidArgumentError("kind='replace-interval' needs on=, the columns of the interval.")
    check_everything_is_meant(lower, upper, everything=False, consequence="every row would be replaced")
    return inside_interval(named_columns(schema, [on] if isinstance(on, str) else on), lower, upper)


def _refuse_parts(staged: StagedFiles) -> None:
    """CP-24: raise InvalidArgumentError if one writer diverted rows of a prefix and another writer staged its other
    rows."""
    replaced = [each for each in (staged.prefixes, staged.covered) if each is not None]
    if not replaced or staged.refused_prefixes is None:
        return
    prefixes = pa.concat_tables(replaced)
    shared = prefixes.filter(pa.array(rows_among(prefixes, staged.refused_prefixes)))
    if shared.num_rows:
        raise InvalidArgumentError(
            f"{shared.num_rows} prefixes have rows that one writer diverted and rows that another writer staged, the "
            f"first {shared.slice(0, 1).to_pylist()[0]}. A commit would replace these prefixes only partly. Nothing "
            "was changed. Pass all rows of a prefix to one write call."
        )
