"""An index of a table's snapshots by id.

PyIceberg's models search all snapshots for each lookup, and a commit makes a dozen lookups: with some thousand retained
snapshots that was most of its time. Models are frozen, and the next state of a table shares the snapshots of the
previous one. So its index is the previous index plus the new snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.storage.bounded_cache import BoundedCache

_TABLES_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class _Index:
    snapshots: Sequence[Snapshot]
    by_id: Mapping[int, Snapshot]


_indexes: Final[BoundedCache[UUID | None, _Index]] = BoundedCache(_TABLES_MAX)
"""The index of each table's state that was used last."""


def snapshot_by_id(metadata: TableMetadata, snapshot_id: int) -> Snapshot | None:
    """The snapshot, if the table retains it."""
    return snapshots_by_id(metadata).get(snapshot_id)


def snapshots_by_id(metadata: TableMetadata) -> Mapping[int, Snapshot]:
    """All retained snapshots."""
    snapshots = metadata.snapshots
    index = _indexes.get(metadata.table_uuid)
    if index is not None and index.snapshots is snapshots:
        return index.by_id
    if index is not None and continues(index.snapshots, snapshots):
        by_id = {**_by_id(snapshots[len(index.snapshots) :]), **index.by_id}
    else:
        by_id = _by_id(snapshots)
    _indexes.put(metadata.table_uuid, _Index(snapshots, by_id), 1)
    return by_id


def continues(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether a list begins with all frozen objects of an older list.

    Objects are compared by identity only. The lists of a table that was loaded again share none, which the first object
    shows.
    """
    if not before:
        return True
    return len(before) <= len(now) and before[0] is now[0] and before == now[: len(before)]


def _by_id(snapshots: Sequence[Snapshot]) -> dict[int, Snapshot]:
    """If invalid metadata gives several snapshots one id, the first counts, as in the models."""
    return {snapshot.snapshot_id: snapshot for snapshot in reversed(snapshots)}
