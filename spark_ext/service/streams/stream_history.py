"""The snapshots that a stream has not read yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from spark_ext.service.states.option_values import SNAPSHOT_ID
from spark_ext.service.streams.stream_offset import StreamOffset
from spark_ext.service.streams.stream_options import FROM_TIMESTAMP, START_SNAPSHOT_ID, StreamOptions
from spark_ext.service.streams.stream_part import Part
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.snapshot_choice import ancestors

_START_ANEW = (
    "Start the query with a new checkpoint. Without options it begins with the current table, with "
    f"{START_SNAPSHOT_ID} after a snapshot whose rows are known."
)


@dataclass(frozen=True, slots=True)
class History:
    """The current snapshots of one branch."""

    table: str
    metadata: TableMetadata
    io: FileIO
    head: Snapshot | None

    def initial(self, options: StreamOptions, head: Snapshot) -> StreamOffset:
        """SS-1: the start of a stream that has not read anything yet."""
        if options.start_snapshot_id is not None:
            return StreamOffset(options.start_snapshot_id)
        if options.from_timestamp_ms is not None:
            return StreamOffset(self._last_before(options.from_timestamp_ms, head))
        snapshot_id = head.snapshot_id if options.snapshot_id is None else options.snapshot_id
        if all(each.snapshot_id != snapshot_id for each in ancestors(self.metadata, head)):
            raise SnapshotNotFoundError(
                f"a stream from {self.table}: {SNAPSHOT_ID} {snapshot_id} is not a retained snapshot of the branch. "
                "The metadata table `history` lists them."
            )
        return StreamOffset(snapshot_id, 0, is_initial=True)

    def parts(self, offset: StreamOffset, until_id: int | None) -> Iterator[Part]:
        """The parts after the offset, oldest first, up to and including the snapshot `until_id`."""
        line = self._after(offset.snapshot_id)
        ids = [snapshot.snapshot_id for snapshot in line]
        if until_id == offset.snapshot_id:
            line = []
        elif until_id in ids:
            line = line[: ids.index(until_id) + 1]
        else:
            raise self._rolled_back(until_id)
        if offset.file_index is not None:
            snapshot = self.metadata.snapshot_by_id(offset.snapshot_id or 0)
            if snapshot is None:
                raise SnapshotNotFoundError(
                    f"a stream from {self.table}: snapshot {offset.snapshot_id} expired after the stream had read "
                    f"{offset.file_index} of its files. {_START_ANEW}"
                )
            yield Part(snapshot, offset.is_initial, offset.file_index)
        for snapshot in line:
            yield Part(snapshot, False, 0)

    def _after(self, snapshot_id: int | None) -> list[Snapshot]:
        """SS-6: the snapshots after this one, oldest first. The snapshot itself may have expired, but no later one."""
        newer: list[Snapshot] = []
        for snapshot in ancestors(self.metadata, self.head):
            if snapshot.snapshot_id == snapshot_id:
                return newer[::-1]
            newer.append(snapshot)
        if not newer:
            if snapshot_id is None:
                return []
            raise self._rolled_back(snapshot_id)
        oldest = newer[-1]
        is_first = not had_parent(self.io, oldest)
        if is_first if snapshot_id is None else oldest.parent_snapshot_id == snapshot_id:
            return newer[::-1]
        known = self.metadata.snapshot_by_id(snapshot_id or 0)
        if is_first or (known is not None and known.timestamp_ms > oldest.timestamp_ms):
            raise self._rolled_back(snapshot_id)
        raise SnapshotNotFoundError(
            f"a stream from {self.table}: snapshots after {snapshot_id} expired before the stream read them. The "
            f"oldest retained snapshot is {oldest.snapshot_id} of {_text(oldest.timestamp_ms)}. {_START_ANEW} To "
            "keep snapshots for longer, set history.expire.max-snapshot-age-ms."
        )

    def _last_before(self, timestamp_ms: int, head: Snapshot) -> int | None:
        """The last snapshot before a time; None if the table's first snapshot is not before it."""
        for snapshot in ancestors(self.metadata, head):
            if snapshot.timestamp_ms < timestamp_ms:
                return snapshot.snapshot_id
            oldest = snapshot
        if had_parent(self.io, oldest) and oldest.timestamp_ms > timestamp_ms:
            raise InvalidArgumentError(
                f"a stream from {self.table}: {FROM_TIMESTAMP} {_text(timestamp_ms)} is before the oldest retained "
                f"snapshot, {oldest.snapshot_id} of {_text(oldest.timestamp_ms)}, and commits between them may have "
                f"expired. Pass {oldest.timestamp_ms} or later, or read the table first: "
                f"{SNAPSHOT_ID}={oldest.snapshot_id}."
            )
        return oldest.parent_snapshot_id

    def _rolled_back(self, snapshot_id: int | None) -> SnapshotNotFoundError:
        return SnapshotNotFoundError(
            f"a stream from {self.table}: snapshot {snapshot_id}, after which the stream continues, is not in the "
            f"history of the branch: it was rolled back, or the table was replaced. {_START_ANEW}"
        )


def _text(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
