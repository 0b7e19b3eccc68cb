"""`db.t.branch_x`, `db.t.tag_x` and `db.t.snapshot_id_7`: a table at a ref or snapshot, as Iceberg's Spark tables are
named. A branch can be written to by this name."""

from __future__ import annotations

from typing import Final

from pyiceberg.table.refs import SnapshotRefType

from spark_ext.service.session import Pin
from tableformat.errors import SnapshotNotFoundError
from tableformat.table import Table

_SNAPSHOT: Final = "snapshot_id_"
_REFS: Final = {"branch_": SnapshotRefType.BRANCH, "tag_": SnapshotRefType.TAG}


def is_state(name: str) -> bool:
    """Whether a name behind that of a table says which of its states is meant."""
    return name.startswith(tuple(_REFS)) or (name.startswith(_SNAPSHOT) and name[len(_SNAPSHOT) :].isdecimal())


def pin_of_state(table: Table, identifier: tuple[str, ...], name: str) -> Pin:
    """ST-5: the state; SnapshotNotFoundError where the table has none of that name."""
    location, refs = table.iceberg.metadata_location, table.metadata.refs
    if name.startswith(_SNAPSHOT):
        snapshot = table.at(snapshot_id=int(name[len(_SNAPSHOT) :])).snapshot
        assert snapshot is not None, "a snapshot that was named is there"
        return Pin(identifier, location, snapshot.snapshot_id)
    prefix, kind = next((prefix, kind) for prefix, kind in _REFS.items() if name.startswith(prefix))
    ref = name[len(prefix) :]
    known = sorted(each for each, to in refs.items() if to.snapshot_ref_type == kind)
    if ref not in known:
        raise SnapshotNotFoundError(
            f"{'.'.join(identifier)} has no {kind.value} {ref!r}. It has: {', '.join(known) or 'none'}."
        )
    if kind == SnapshotRefType.BRANCH:
        return Pin(identifier, location, branch=ref)
    return Pin(identifier, location, refs[ref].snapshot_id)
