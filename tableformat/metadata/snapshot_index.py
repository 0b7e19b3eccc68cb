"""The snapshots of a table by id.

A model looks through all of them for each question, and a commit asks a dozen: beside some thousand retained snapshots
that was most of its time. Models are frozen, and the next state of a table shares the snapshots of the last one, so an
index of a state is that of the last one and what has come.
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
"""Of the state of each table that was asked last."""


def snapshot_by_id(metadata: TableMetadata, snapshot_id: int) -> Snapshot | None:
    """The snapshot, where the table retains it."""
    return snapshots_by_id(metadata).get(snapshot_id)


def snapshots_by_id(metadata: TableMetadata) -> Mapping[int, Snapshot]:
    """All snapshots that the table retains."""
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
    """Whether a list begins with all frozen objects of an older one.

    They are compared object by object, and what is the same object is not looked into. Lists of a table that was loaded
    anew share none, which the first one tells.
    """
    if not before:
        return True
    return len(before) <= len(now) and before[0] is now[0] and before == now[: len(before)]


def _by_id(snapshots: Sequence[Snapshot]) -> dict[int, Snapshot]:
    """Of snapshots that broken metadata gives the same id the first one, as models do."""
    return {snapshot.snapshot_id: snapshot for snapshot in reversed(snapshots)}
