"""Consumers of the change feed: named positions in the history of a branch that expiry respects (CF-11).

    snapshots   s1 --- s2 --- s3 --- s4 (head)
    consumer           ^ mart                     s3 and s4 are unread; expiry keeps s2, s3 and s4

A position is a table property. Programs that do not know it, such as Iceberg's own expiry, ignore it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate, TableRequirement, TableUpdate

from tableformat.arguments import checked_methods
from tableformat.commit.metadata_commit import assert_ref, commit_metadata
from tableformat.errors import ConsumerNotFoundError, InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.own_handle import calls_on_own_handles
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.properties import (
    CONSUMER_PREFIX,
    CONSUMERS_MAX_AGE_MS,
    CONSUMERS_MAX_AGE_MS_DEFAULT,
    positive_int,
)

_NAME: Final = re.compile(r"[\w.-]+")
_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("branch", pa.string()),
        ("snapshot_id", pa.int64()),
        ("advanced_at", pa.timestamp("ms", tz="UTC")),
        ("lag_snapshots_count", pa.int64()),
        ("lag_ms", pa.int64()),
        ("state", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Consumer:
    """One reader of the change feed."""

    name: str
    branch: str
    snapshot_id: int
    """The last snapshot whose changes the consumer has applied."""
    advanced_ms: int
    """The time at which the consumer reported that snapshot, in milliseconds since 1970-01-01 UTC."""

    def unread(self, metadata: TableMetadata) -> tuple[Snapshot, ...] | None:
        """The snapshots of its branch that the consumer has not applied, oldest first. None if the branch no longer
        leads back to its position: the branch was dropped or rolled back, or another program expired a snapshot in
        between."""
        head = metadata.refs.get(self.branch)
        line: list[Snapshot] = []
        for snapshot in ancestors(metadata, None if head is None else snapshot_by_id(metadata, head.snapshot_id)):
            if snapshot.snapshot_id == self.snapshot_id:
                return tuple(line[::-1])
            line.append(snapshot)
        return None


def consumers_of(metadata: TableMetadata) -> list[Consumer]:
    """All consumers, by name. Raises InvalidArgumentError if another program wrote a property that is not the position
    of a consumer."""
    names = sorted(name for name in metadata.properties if name.startswith(CONSUMER_PREFIX))
    return [_parsed(name, metadata.properties[name]) for name in names]


def consumer_of(metadata: TableMetadata, name: str) -> Consumer:
    """The consumer of this name. Raises ConsumerNotFoundError for a name that has not been advanced yet."""
    known = {consumer.name: consumer for consumer in consumers_of(metadata)}
    if name not in known:
        raise ConsumerNotFoundError(name, known)
    return known[name]


def snapshots_for_consumers(metadata: TableMetadata, now_ms: int) -> set[int]:
    """CF-11: the snapshots that expiry keeps: the position of each consumer that is not too far behind, and every
    snapshot after it."""
    kept: set[int] = set()
    for consumer in consumers_of(metadata):
        unread = consumer.unread(metadata)
        if unread is not None and _lag_ms(unread, now_ms) <= _max_age_ms(metadata):
            kept |= {consumer.snapshot_id, *(snapshot.snapshot_id for snapshot in unread)}
    return kept


@checked_methods
@calls_on_own_handles("_iceberg")
class TableConsumers:
    """The consumers of the change feed of a table, as returned by `Table.consumers`. Positions are on the branch of the
    handle.

    >>> table.consumers.advance("mart").snapshot_id == table.snapshot_id
    True
    >>> result = table.delete_prefix({"id1": "A"})
    >>> table.consumers.list().select(["name", "lag_snapshots_count", "state"]).to_pylist()
    [{'name': 'mart', 'lag_snapshots_count': 1, 'state': 'protected'}]
    >>> feed = table.changes(consumer="mart")
    >>> feed.count()
    2
    >>> table.consumers.advance("mart", feed.to_snapshot_id).name
    'mart'
    >>> table.consumers.drop("mart")
    >>> table.consumers.list().num_rows
    0
    """

    def __init__(self, iceberg: IcebergTable, branch: str) -> None:
        self._iceberg = iceberg
        self._branch = branch

    def __repr__(self) -> str:
        names = ", ".join(consumer.name for consumer in consumers_of(self._iceberg.metadata))
        return f"consumers of {'.'.join(self._iceberg.name())}: {names or 'none'}"

    def advance(self, name: str, snapshot_id: int | None = None) -> Consumer:
        """Record that the consumer has applied all changes up to and including a snapshot, by default the snapshot of
        this handle. The first call registers the consumer.

        Raises SnapshotNotFoundError if the snapshot is not in the history of the branch. Raises InvalidArgumentError
        for a position before the recorded one: drop the consumer to read changes again.
        """
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"consumer {name!r}: a name consists of letters, digits, '_', '-' and '.'.")
        applied = _head_id(self._iceberg.metadata, self._branch) if snapshot_id is None else snapshot_id
        advanced = Consumer(name, self._branch, applied, time.time_ns() // 1_000_000)

        def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
            metadata = table.metadata
            _check_advance(metadata, advanced)
            if any(_position(known) == _position(advanced) for known in consumers_of(metadata)):
                return (), ()
            update = SetPropertiesUpdate(updates={f"{CONSUMER_PREFIX}{name}": _text(advanced)})
            return (update,), (assert_ref(advanced.branch, _head_id(metadata, advanced.branch)),)

        commit_metadata(self._iceberg, prepare)
        return consumer_of(self._iceberg.metadata, name)

    def list(self) -> pa.Table:
        """One row for each consumer of the table: `name`, `branch`, `snapshot_id`, `advanced_at`,
        `lag_snapshots_count`, `lag_ms` (the age of the oldest unread snapshot, 0 if everything is read) and `state`.

        The state is one of:

        - "protected": expiry keeps the snapshots that the consumer needs.
        - "expiring": the consumer is further behind than the table property `tableformat.consumers.max-age-ms` allows.
        - "lost": the history of the branch no longer includes its position.
        """
        metadata, now_ms = self._iceberg.metadata, time.time_ns() // 1_000_000
        return pa.Table.from_pylist(list(_rows(metadata, now_ms)), schema=_SCHEMA)

    def drop(self, name: str) -> None:
        """Forget a consumer, so that expiry keeps no snapshots for it. Raises ConsumerNotFoundError for an unknown
        name."""

        def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
            consumer_of(table.metadata, name)
            return (RemovePropertiesUpdate(removals=[f"{CONSUMER_PREFIX}{name}"]),), ()

        commit_metadata(self._iceberg, prepare)


def _rows(metadata: TableMetadata, now_ms: int) -> Iterator[dict[str, object]]:
    for consumer in consumers_of(metadata):
        unread = consumer.unread(metadata)
        lag_ms = None if unread is None else _lag_ms(unread, now_ms)
        yield {
            "name": consumer.name,
            "branch": consumer.branch,
            "snapshot_id": consumer.snapshot_id,
            "advanced_at": datetime.fromtimestamp(consumer.advanced_ms / 1000, UTC),
            "lag_snapshots_count": None if unread is None else len(unread),
            "lag_ms": lag_ms,
            "state": "lost" if lag_ms is None else "protected" if lag_ms <= _max_age_ms(metadata) else "expiring",
        }


def _check_advance(metadata: TableMetadata, advanced: Consumer) -> None:
    unread = advanced.unread(metadata)
    if unread is None:
        raise SnapshotNotFoundError(
            f"snapshot {advanced.snapshot_id} is not in the history of branch {advanced.branch!r}, so consumer "
            f"{advanced.name!r} cannot be moved to it. Nothing was changed. `history()` lists the snapshots of the "
            "branch."
        )
    known = next((each for each in consumers_of(metadata) if each.name == advanced.name), None)
    if known is None:
        return
    if known.branch != advanced.branch:
        raise InvalidArgumentError(
            f"consumer {known.name!r} reads branch {known.branch!r}, not {advanced.branch!r}. Nothing was changed. "
            "Drop the consumer first, or use another name."
        )
    if any(snapshot.snapshot_id == known.snapshot_id for snapshot in unread):
        raise InvalidArgumentError(
            f"consumer {known.name!r} is at snapshot {known.snapshot_id} and cannot move back to "
            f"{advanced.snapshot_id}. Nothing was changed. To read changes twice, drop the consumer and advance it "
            "again."
        )


def _position(consumer: Consumer) -> tuple[str, str, int]:
    return consumer.name, consumer.branch, consumer.snapshot_id


def _lag_ms(unread: Sequence[Snapshot], now_ms: int) -> int:
    return max(now_ms - unread[0].timestamp_ms, 0) if unread else 0


def _max_age_ms(metadata: TableMetadata) -> int:
    return positive_int(metadata.properties, CONSUMERS_MAX_AGE_MS, CONSUMERS_MAX_AGE_MS_DEFAULT)


def _head_id(metadata: TableMetadata, branch: str) -> int:
    ref = metadata.refs.get(branch)
    if ref is None:
        raise SnapshotNotFoundError(f"branch {branch!r} has no snapshot yet, so there is no position to record.")
    return ref.snapshot_id


def _text(consumer: Consumer) -> str:
    value = {"branch": consumer.branch, "snapshot-id": consumer.snapshot_id, "advanced-ms": consumer.advanced_ms}
    return json.dumps(value, separators=(",", ":"))


def _parsed(property_name: str, text: str) -> Consumer:
    name = property_name.removeprefix(CONSUMER_PREFIX)
    try:
        value = json.loads(text)
        return Consumer(name, str(value["branch"]), int(value["snapshot-id"]), int(value["advanced-ms"]))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgumentError(
            f"the table property {property_name} is not the position of a consumer: {text!r:.60}. "
            f"remove_properties({property_name!r}) removes it."
        ) from error
