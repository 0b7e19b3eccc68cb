"""Answers for a streaming read: its first offset, the end of each micro-batch, and its files.

The Java side keeps the answer of `stream_open` and sends it with every call. Spark keeps the offsets in the checkpoint
of the query. No state is kept here, so another process can continue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.table.snapshots import Snapshot

from spark_ext.service.reads.file_list import FileList
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states.change_bounds import snapshot_before
from spark_ext.service.states.option_values import SNAPSHOT_ID
from spark_ext.service.streams.stream_appends import Appends
from spark_ext.service.streams.stream_changes import ChangesOf
from spark_ext.service.streams.stream_history import History
from spark_ext.service.streams.stream_offset import BEGIN, StreamOffset, batch_start
from spark_ext.service.streams.stream_options import START_SNAPSHOT_ID, StreamOptions
from spark_ext.service.streams.stream_part import Feed, Part, Piece
from tableformat.errors import InvalidArgumentError, TableFormatError, UnsupportedFeatureError
from tableformat.metadata.snapshot_choice import ancestors, head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.table import Table


@method("stream_open")
def stream_open(session: Session, request: Request) -> dict[str, Any]:
    """Open a stream. `stream` describes it, `begin` is the first offset, `limit` is the limit of a micro-batch from the
    options, `has_consumer` is whether micro-batches are committed.

    `changes` is null for a stream of appends. Otherwise it has the `bounds`, and whether Spark derives updates from the
    rows.
    """
    pin, given = Pin.from_json(request.arguments["pin"]), request.arguments["options"]
    name, changes = ".".join(pin.table), request.arguments["changes"]
    options = StreamOptions.parse(given, table=name, default_branch=pin.branch, has_changes=changes is not None)
    table = session.pinned(pin)
    view = head_view(table.metadata, table.iceberg.io, options.branch)
    _check_goes_on(session, pin, options, view, has_changes=changes is not None)
    return {
        "stream": {
            "table": pin.table,
            "branch": options.branch,
            "schema_id": view.schema.schema_id,
            "sequence_number": view.sequence_number,
            "options": given,
            "changes": changes,
        },
        "begin": BEGIN,
        "limit": {"files": options.max_files, "rows": options.max_rows},
        "has_consumer": options.consumer is not None,
    }


def _check_goes_on(
    session: Session, pin: Pin, options: StreamOptions, head: SnapshotView, *, has_changes: bool
) -> None:
    """SS-2: reject a stream that is limited to one state, and a start at a snapshot (`snapshot-id`) with columns that
    are not the current ones."""
    name = ".".join(pin.table)
    if pin.snapshot_id is None:
        return
    if has_changes:
        raise InvalidArgumentError(
            f"a stream from the changes of {name} has no end. Remove the end of the range, or read the range with "
            "spark.read.changes."
        )
    if pin.snapshot_id != options.snapshot_id:
        raise InvalidArgumentError(
            f"a stream from {name} needs a table or branch that grows, not snapshot {pin.snapshot_id}. To begin with "
            f"this snapshot, pass it with the option {SNAPSHOT_ID}."
        )
    if session.view(pin).schema.schema_id != head.schema.schema_id:
        raise UnsupportedFeatureError(
            f"a stream from {name}: {SNAPSHOT_ID} {pin.snapshot_id} has other columns than the current table. A "
            "query with a checkpoint continues without the option. For a new query, read the snapshot with VERSION "
            f"AS OF, and begin after it with {START_SNAPSHOT_ID}."
        )


@method("stream_head")
def stream_head(session: Session, request: Request) -> Mapping[str, Any]:
    """The offset after all current data."""
    return _Stream.load(session, request).head()


@method("stream_latest")
def stream_latest(session: Session, request: Request) -> dict[str, Any]:
    """`end` is the end of the next micro-batch, which begins at `start`. `head` is the answer of `stream_head`.

    If nothing is left to read, `end` is `start`, or null if that is the beginning: with any offset, Spark would run a
    first batch. `limit` has the maximum number of `files` and `rows`. `stop` is null or a head at which to end.
    """
    stream, arguments = _Stream.load(session, request), request.arguments
    start, until = StreamOffset.from_json(arguments["start"]), stream.until(arguments["stop"])
    end: Any = None if start is None else arguments["start"]
    if until is not None:
        origin = start or stream.begin(until)
        reached = stream.batch_end(origin, until, _Budget(**arguments["limit"]))
        if reached != origin:
            end = reached.to_json(since=origin if start is None else None)
    return {"end": end, "head": stream.head()}


@method("stream_files")
def stream_files(session: Session, request: Request) -> Answer:
    """The files between two offsets, in the form of `scan_files`."""
    stream, arguments = _Stream.load(session, request), request.arguments
    start, end = batch_start(arguments["start"], arguments["end"]), StreamOffset.from_json(arguments["end"])
    assert end is not None, "a batch has an end"
    return stream.files(start, end, arguments["columns"])


@method("stream_commit")
def stream_commit(session: Session, request: Request) -> None:
    """SS-15: advance the consumer to `end`, because the query has stored everything before it. Inside a snapshot, the
    consumer is not advanced."""
    end = StreamOffset.from_json(request.arguments["end"])
    if end is not None and end.file_index is None:
        _Stream.load(session, request).advance_consumer(end)


@dataclass
class _Budget:
    """The remaining capacity of a micro-batch; None is unlimited."""

    files: int | None
    rows: int | None
    is_untouched: bool = True

    def take(self, piece: Piece) -> bool:
        """SS-5: take the piece if it fits. The first piece always fits."""
        fits = self.is_untouched or (
            (self.files is None or self.files >= piece.file_count)
            and (self.rows is None or self.rows >= piece.row_count)
        )
        if fits:
            self.is_untouched = False
            self.files = None if self.files is None else self.files - piece.file_count
            self.rows = None if self.rows is None else self.rows - piece.row_count
        return fits


@dataclass(frozen=True)
class _Stream:
    """A stream with the current state of its table."""

    table: Table
    state: Mapping[str, Any]
    options: StreamOptions
    history: History
    feed: Feed
    session: Session

    @classmethod
    def load(cls, session: Session, request: Request) -> _Stream:
        state = request.arguments["stream"]
        name, changes = ".".join(state["table"]), state["changes"]
        options = StreamOptions.parse(state["options"], table=name, has_changes=changes is not None)
        table = session.load(tuple(state["table"]), branch=state["branch"])
        history = History(name, table.metadata, table.iceberg.io, table.view.snapshot)
        feed = ChangesOf(session, name, changes["derives"]) if changes else Appends(session, name, options)
        return cls(table, state, options, history, feed, session)

    def begin(self, head: Snapshot) -> StreamOffset:
        """SS-15: the start of a stream that has not read anything yet. Its consumer retains the snapshots after the
        start."""
        origin = self._origin(head)
        self.advance_consumer(origin)
        return origin

    def advance_consumer(self, offset: StreamOffset) -> None:
        """CF-11: record the snapshot of the offset. Nothing is recorded if the snapshot has expired, or if the offset
        is before the first one: expiry needs an existing snapshot."""
        line = ancestors(self.table.metadata, self.history.head)
        if self.options.consumer is not None and any(each.snapshot_id == offset.snapshot_id for each in line):
            self.table.consumers.advance(self.options.consumer, offset.snapshot_id)

    def _origin(self, head: Snapshot) -> StreamOffset:
        changes = self.state["changes"]
        if changes is None or changes["bounds"]["start"] is None:
            return self.history.initial(self.options, head)
        return StreamOffset(snapshot_before(self.table.metadata, head, changes["bounds"]))

    def head(self) -> Mapping[str, Any]:
        head = self.history.head
        return BEGIN if head is None else StreamOffset(head.snapshot_id).to_json()

    def until(self, stop: Mapping[str, Any] | None) -> Snapshot | None:
        """The last snapshot to read: the one in `stop`, or the head if that is null."""
        if stop is None:
            return self.history.head
        offset = StreamOffset.from_json(stop)
        return None if offset is None else self.table.at(snapshot_id=offset.snapshot_id).snapshot

    def batch_end(self, start: StreamOffset, until: Snapshot, budget: _Budget) -> StreamOffset:
        """The end of the batch, limited by the budget. The batch also ends before a snapshot that cannot be read, so
        that earlier ones are returned first."""
        end = start
        for part in self.history.parts(start, until.snapshot_id):
            try:
                pieces = self._pieces(part)
            except TableFormatError:
                if end == start:
                    raise
                return end
            for index in range(part.first, len(pieces)):
                if not budget.take(pieces[index]):
                    if index == part.first:
                        return end
                    return StreamOffset(part.snapshot.snapshot_id, index, part.is_initial)
            end = StreamOffset(part.snapshot.snapshot_id)
        return end

    def files(self, start: StreamOffset, end: StreamOffset, columns: Sequence[str]) -> Answer:
        """The files of a batch. All columns are returned without filters, because Spark reads streams this way."""
        files = None
        for part in self.history.parts(start, end.snapshot_id):
            view = self._view(part.snapshot)
            is_last = part.snapshot.snapshot_id == end.snapshot_id and part.is_initial == end.is_initial
            index = slice(part.first, end.file_index if is_last else None)
            if files is None:
                files = FileList(view, self.session.merge_context(view), columns, predicates=())
            self.feed.add(files, view, part, index)
        assert files is not None, "a batch is between two offsets"
        return files.answer()

    def _pieces(self, part: Part) -> Sequence[Piece]:
        self._check_schema(part.snapshot)
        return self.feed.pieces(self._view(part.snapshot), part)

    def _view(self, snapshot: Snapshot) -> SnapshotView:
        """The snapshot in the schema with which the query was started."""
        schema = self.table.metadata.schema_by_id(self.state["schema_id"])
        if schema is None:
            raise UnsupportedFeatureError(
                f"a stream from {self.history.table}: schema {self.state['schema_id']}, with which the query was "
                "started, was removed from the table. Start the query again, with the same checkpoint."
            )
        return SnapshotView(self.table.metadata, self.table.iceberg.io, snapshot, schema)

    def _check_schema(self, snapshot: Snapshot) -> None:
        """SS-7: raise UnsupportedFeatureError for a newer snapshot with other columns. A query keeps its initial
        columns until it is restarted."""
        is_new = (snapshot.sequence_number or 0) > self.state["sequence_number"]
        if is_new and snapshot.schema_id not in (None, self.state["schema_id"]):
            raise UnsupportedFeatureError(
                f"a stream from {self.history.table}: the columns of the table were changed while the query ran, "
                f"before snapshot {snapshot.snapshot_id}, which was not read. Start the query again, with the same "
                "checkpoint. It continues from there with the current columns."
            )
