"""Publish targets: branches to which other branches are published, and which accept only appends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import TableChange
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.properties import PUBLISH_TARGET_PREFIX, RANGE_PARTITIONS
from tableformat.range_partitions.summary import COVERAGE_DROPPED

CARRIED_UNTIL: Final = "tableformat.carried-until"
"""Summary key of a snapshot that carried files: the snapshot of the target whose files are now all on the branch."""

PUBLISHED_NUMBER: Final = "tableformat.published-sequence-number"
"""Summary key of a snapshot that only the target has: the sequence number of the branch snapshot with the same rows."""


def publish_target_of(metadata: TableMetadata, branch: str) -> str | None:
    """MT-30: the branch that publishing `branch` moves forward, according to the properties of the table."""
    return metadata.properties.get(f"{PUBLISH_TARGET_PREFIX}{branch}")


def published_to(metadata: TableMetadata, target: str) -> list[str]:
    """MT-30: the existing branches that have `target` as their publish target."""
    names = (
        name.removeprefix(PUBLISH_TARGET_PREFIX)
        for name, value in metadata.properties.items()
        if name.startswith(PUBLISH_TARGET_PREFIX) and value == target
    )
    return [name for name in names if name in metadata.refs]


def carried_tag(branch: str) -> str:
    """MT-31: the tag at the newest snapshot of the target whose files the branch has."""
    return f"carried.{branch}"


def publishing_tag(branch: str) -> str:
    """LK-16: the tag at the snapshot of the branch from which the target will be made."""
    return f"publishing.{branch}"


def carried_until(metadata: TableMetadata, branch: str, target: str) -> Snapshot | None:
    """MT-31: the newest snapshot of the target whose files the branch has, or had: the common ancestor of both
    branches, or the tagged snapshot. None if it is not known (any more)."""
    source, head = (metadata.refs.get(name) for name in (branch, target))
    if source is None or head is None:
        return None
    line = list(ancestors(metadata, snapshot_by_id(metadata, source.snapshot_id)))
    ids = {snapshot.snapshot_id for snapshot in line}
    on_target = ancestors(metadata, snapshot_by_id(metadata, head.snapshot_id))
    common = next((snapshot for snapshot in on_target if snapshot.snapshot_id in ids), None)
    tagged = _tagged(metadata, branch, line)
    known = [snapshot for snapshot in (common, tagged) if snapshot is not None]
    return max(known, key=lambda snapshot: snapshot.sequence_number or 0, default=None)


def _tagged(metadata: TableMetadata, branch: str, line: Sequence[Snapshot]) -> Snapshot | None:
    """MT-31: the snapshot of the branch's tag, unless the branch was rolled back to before the commit that carried
    files.

    That commit names the tagged snapshot in its summary and has a larger number. A snapshot that only the target has
    names the snapshot of the branch. If the history ends before that commit, older snapshots have expired, but the
    files are still on the branch.
    """
    ref = metadata.refs.get(carried_tag(branch))
    tagged = snapshot_by_id(metadata, ref.snapshot_id) if ref is not None else None
    if tagged is None:
        return None
    number = int(_said_by(tagged, PUBLISHED_NUMBER) or tagged.sequence_number or 0)
    for snapshot in line:
        if number == snapshot.sequence_number or _said_by(snapshot, CARRIED_UNTIL) == str(tagged.snapshot_id):
            return tagged
        if (snapshot.sequence_number or 0) <= number:
            return None
    return tagged


def _said_by(snapshot: Snapshot, name: str) -> str | None:
    return snapshot.summary.additional_properties.get(name) if snapshot.summary is not None else None


def publish_bases(metadata: TableMetadata) -> dict[str, int]:
    """MT-1: branch -> the snapshot since which the changes of its publish target are known."""
    bases: dict[str, int] = {}
    for name, target in metadata.properties.items():
        branch = name.removeprefix(PUBLISH_TARGET_PREFIX)
        base = carried_until(metadata, branch, target) if name.startswith(PUBLISH_TARGET_PREFIX) else None
        if base is not None:
            bases[branch] = base.snapshot_id
    return bases


def history_to_publish(metadata: TableMetadata) -> set[int]:
    """RP-26: the snapshots that publishing needs on branches of a table that has, or had, range partitions. These are
    the snapshots since the one from which publishing starts, plus that one or the one before. They record which ranges
    were dropped, and carried rows must be checked against those."""
    needed: set[int] = set()
    for branch, base_id in publish_bases(metadata).items():
        base = snapshot_by_id(metadata, base_id)
        assert base is not None, "publishing starts from an existing snapshot"
        line = ancestors(metadata, snapshot_by_id(metadata, metadata.refs[branch].snapshot_id))
        since = list(_until(line, base.sequence_number or 0))
        if RANGE_PARTITIONS in metadata.properties or any(_said_by(each, COVERAGE_DROPPED) for each in since):
            needed.update(each.snapshot_id for each in since)
    return needed


def _until(line: Iterable[Snapshot], number: int) -> Iterator[Snapshot]:
    """The snapshots with a larger sequence number, and the next one."""
    for snapshot in line:
        yield snapshot
        if (snapshot.sequence_number or 0) <= number:
            return


def check_publish_target(change: TableChange, metadata: TableMetadata, ref: str) -> None:
    """MT-30: refuse a change that publishing cannot carry to the branch: anything except added data files.

    Raises InvalidArgumentError, which names the branch to write to.
    """
    alters = change.coverage is not None and not change.added_data_files
    if not (change.added_delete_files or change.removed_data_files or change.removed_delete_files or alters):
        return
    sources = published_to(metadata, ref)
    if sources:
        raise InvalidArgumentError(
            f"branch {ref!r} is the publish target of branch {sources[0]!r}, so it accepts only appends: deletes and "
            f"rewrites could not be carried over to {sources[0]!r}. Make the change on {sources[0]!r} and publish "
            f"it, or remove the table property {PUBLISH_TARGET_PREFIX}{sources[0]}."
        )
