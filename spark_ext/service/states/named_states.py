"""A table at a ref, a snapshot or a time, with the names of Iceberg's Spark tables: `db.t.branch_x`, `db.t.tag_x`,
`db.t.snapshot_id_7`, `db.t.at_timestamp_1700000000000`. Writes to a branch can use this name."""

from __future__ import annotations

from typing import Final

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from spark_ext.service.registry import Request
from spark_ext.service.session import Pin
from tableformat.errors import SnapshotNotFoundError
from tableformat.table import Table

_SNAPSHOT: Final = "snapshot_id_"
_MOMENT: Final = "at_timestamp_"
"""Followed by milliseconds since 1970-01-01 UTC."""
_REFS: Final = {"branch_": SnapshotRefType.BRANCH, "tag_": SnapshotRefType.TAG}


def is_state(name: str) -> bool:
    """Whether the name, as a suffix of a table name, selects one of its states."""
    return name.startswith(tuple(_REFS)) or any(
        name.startswith(prefix) and name[len(prefix) :].isdecimal() for prefix in (_SNAPSHOT, _MOMENT)
    )


def names_state(request: Request, pin: Pin) -> bool:
    """Whether the call names the table by one of its states and not by the table's own name."""
    return tuple(request.arguments.get("table", pin.table)) != pin.table


def pin_of_state(table: Table, identifier: tuple[str, ...], name: str) -> Pin:
    """ST-5: the state. Raises SnapshotNotFoundError if the table has no state of that name."""
    location, refs = table.iceberg.metadata_location, table.metadata.refs
    if name.startswith((_SNAPSHOT, _MOMENT)):
        number = int(name[len(_SNAPSHOT) :] if name.startswith(_SNAPSHOT) else name[len(_MOMENT) :])
        view = table.at(snapshot_id=number) if name.startswith(_SNAPSHOT) else table.at(as_of=number)
        assert view.snapshot is not None, "the chosen snapshot exists"
        return Pin(identifier, location, view.snapshot.snapshot_id)
    prefix, kind = next((prefix, kind) for prefix, kind in _REFS.items() if name.startswith(prefix))
    ref = name[len(prefix) :]
    known = sorted(each for each, to in refs.items() if to.snapshot_ref_type == kind)
    # The main branch of a new table exists before it has a snapshot.
    is_main = ref == MAIN_BRANCH and kind == SnapshotRefType.BRANCH
    if ref not in known and not is_main:
        raise SnapshotNotFoundError(
            f"{'.'.join(identifier)} has no {kind.value} {ref!r}. It has: {', '.join(known) or 'none'}."
        )
    if kind == SnapshotRefType.BRANCH:
        return Pin(identifier, location, branch=ref)
    return Pin(identifier, location, refs[ref].snapshot_id)
