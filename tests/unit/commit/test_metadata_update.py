"""Metadata updates: applying an update gives the same metadata as in PyIceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)

from tableformat.commit.metadata_update import apply_updates
from tableformat.errors import SnapshotNotFoundError


@pytest.fixture(params=[2, 3])
def metadata(request: pytest.FixtureRequest, tmp_path: Path) -> TableMetadata:
    """Metadata of a table with two snapshots, a branch and a tag."""
    with new_lake(tmp_path / "lake") as catalog:
        properties = {"format-version": str(request.param)}
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=properties)
        for number in range(2):
            table.append([{"id": number}])
        table.create_branch("audit")
        table.create_tag("first", snapshot_id=table.history()["snapshot_id"][0].as_py())
        return table.metadata


def ref(snapshot_id: int, name: str = "main", kind: str = "branch", **retention: int) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate(ref_name=name, type=kind, snapshot_id=snapshot_id, **retention)


def added(metadata: TableMetadata) -> AddSnapshotUpdate:
    """The next snapshot, of five rows."""
    newest = metadata.snapshots[-1]
    changes: dict[str, Any] = {
        "snapshot_id": 77,
        "parent_snapshot_id": newest.snapshot_id,
        "sequence_number": metadata.last_sequence_number + 1,
        "timestamp_ms": metadata.last_updated_ms + 5,
    }
    if metadata.format_version > 2:
        changes |= {"first_row_id": metadata.next_row_id, "added_rows": 5}
    return AddSnapshotUpdate(snapshot=newest.model_copy(update=changes))


def by_pyiceberg(metadata: TableMetadata, updates: list[TableUpdate]) -> TableMetadata:
    context = _TableMetadataUpdateContext()
    for update in updates:
        metadata = _apply_table_update(update, metadata, context)
    return metadata


@pytest.mark.parametrize("name", ["main", "audit", "new"])
def test_metadata_updates_agree_with_pyiceberg(metadata: TableMetadata, name: str) -> None:
    for updates in ([added(metadata)], [added(metadata), ref(77, name, max_snapshot_age_ms=9)]):
        ours = apply_updates(metadata, "before", updates)
        theirs = by_pyiceberg(metadata, updates)
        for field in type(metadata).model_fields:
            if field not in ("metadata_log", "last_updated_ms"):
                assert getattr(ours, field) == getattr(theirs, field), field
        assert ours.last_updated_ms == metadata.last_updated_ms + 5
        assert ours.metadata_log[-1].metadata_file == "before"


@pytest.mark.parametrize(("name", "kind"), [("main", "branch"), ("audit", "branch"), ("second", "tag")])
def test_ref_moved_to_an_old_snapshot(metadata: TableMetadata, name: str, kind: str) -> None:
    first = metadata.snapshots[0].snapshot_id
    ours = apply_updates(metadata, "before", [ref(first, name, kind)])
    theirs = by_pyiceberg(metadata, [ref(first, name, kind)])
    assert ours.refs == theirs.refs
    assert ours.current_snapshot_id == theirs.current_snapshot_id
    assert [entry.snapshot_id for entry in ours.snapshot_log] == [entry.snapshot_id for entry in theirs.snapshot_log]
    assert ours.last_updated_ms >= metadata.last_updated_ms


def test_duplicate_snapshot_id_is_rejected(metadata: TableMetadata) -> None:
    once = apply_updates(metadata, "before", [added(metadata)])
    with pytest.raises(CommitFailedException):
        apply_updates(once, "before", [added(once)])


def next_of(metadata: TableMetadata, **changes: Any) -> AddSnapshotUpdate:
    made = added(metadata)
    return AddSnapshotUpdate(snapshot=made.snapshot.model_copy(update={"snapshot_id": 78, **changes}))


def test_snapshot_with_stale_sequence_number_is_rejected(metadata: TableMetadata) -> None:
    """CP-2: regardless of the ref, and although only its sequence number shows it."""
    once = apply_updates(metadata, "before", [added(metadata), ref(77)])
    with pytest.raises(CommitFailedException, match=f"number {once.last_sequence_number} is taken"):
        apply_updates(once, "before", [ref(77, "other"), next_of(metadata)])
    assert apply_updates(once, "before", [next_of(once)]).snapshots[-1].snapshot_id == 78
    if metadata.format_version > 2:
        for row_id, words in ((metadata.next_row_id, f"row id {metadata.next_row_id} is taken"), (None, "upgraded")):
            with pytest.raises(CommitFailedException, match=words):
                apply_updates(once, "before", [next_of(once, first_row_id=row_id)])


def test_table_upgrade_is_idempotent(metadata: TableMetadata) -> None:
    """CP-19: what it has stays; the rows that exist get their ids with the next commit."""
    upgrade = UpgradeFormatVersionUpdate(format_version=3)
    upgraded = apply_updates(metadata, "before", [upgrade])
    if metadata.format_version == 3:
        assert upgraded is metadata
        return
    assert (upgraded.format_version, upgraded.next_row_id) == (3, 0)  # type: ignore[union-attr]
    changed = {"format_version", "metadata_log", "last_updated_ms"}
    for field in set(type(metadata).model_fields) - changed:
        assert getattr(upgraded, field) == getattr(metadata, field), field
    assert apply_updates(upgraded, "again", [upgrade]) is upgraded


def test_snapshot_keeps_the_id_of_its_expired_parent(metadata: TableMetadata) -> None:
    """A reader that follows a table snapshot by snapshot notices that history is missing."""
    first, second = metadata.snapshots
    updates = [RemoveSnapshotRefUpdate(ref_name="first"), RemoveSnapshotsUpdate(snapshot_ids=[first.snapshot_id])]
    after = apply_updates(metadata, "before", updates)
    assert [(each.snapshot_id, each.parent_snapshot_id) for each in after.snapshots] == [
        (second.snapshot_id, first.snapshot_id)
    ]


def test_ref_to_unknown_snapshot_is_rejected(metadata: TableMetadata) -> None:
    with pytest.raises(SnapshotNotFoundError):
        apply_updates(metadata, "before", [ref(4711, "audit")])
