"""The ranges that existed at an earlier snapshot (RP-32)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.metadata_log import logged_since
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.summary import COVERAGE_BEFORE


def partitions_at(view: SnapshotView, branch: str) -> DefinedPartitions | None:
    """RP-32: the range partitions at a snapshot. The head of the branch that is read has the current ones. None if the
    table had no range partitions."""
    text = _property_at(view, branch)
    return None if text is None else partitions_of_text(text, view.metadata.schema(), view.schema)


def partitions_listed_at(view: SnapshotView, branch: str) -> DefinedPartitions:
    """RP-32: the same for a list. Raises InvalidArgumentError if the table had no range partitions."""
    defined = partitions_at(view, branch)
    if defined is None:
        is_now = RANGE_PARTITIONS in view.metadata.properties
        raise InvalidArgumentError(
            f"the table {'had no range partitions at this snapshot' if is_now else 'has no range partitions'}, so it "
            f"{'accepted' if is_now else 'accepts'} rows with any key."
        )
    return defined


def partitions_of_text(text: str, now: Schema, then: Schema) -> DefinedPartitions:
    """The range partitions of an earlier property. They have the current columns, or the earlier ones if one of them
    was dropped."""
    defined = range_partitions_of({RANGE_PARTITIONS: text}, _schema_with(_field_ids(text), now, then))
    assert defined is not None, "there is a property"
    return defined


def key_of_then(field_ids: Sequence[int], now: Schema, then: Schema) -> KeyColumns:
    """The range columns of an earlier state, under their current names if they still exist."""
    return KeyColumns.of(_schema_with(field_ids, now, then), field_ids)


def _schema_with(field_ids: Sequence[int], now: Schema, then: Schema) -> Schema:
    is_gone = any(now.find_column_name(field_id) is None for field_id in field_ids)
    return then if is_gone else now


def _coverage_before(summary: Mapping[str, str]) -> str | None:
    """The property before the commit of a snapshot with this summary. "" if the table had none, None if the commit did
    not change it."""
    return summary.get(COVERAGE_BEFORE)


def _property_at(view: SnapshotView, branch: str) -> str | None:
    metadata, snapshot = view.metadata, view.snapshot
    head = metadata.refs.get(branch)
    if snapshot is None or (head is not None and head.snapshot_id == snapshot.snapshot_id):
        return metadata.properties.get(RANGE_PARTITIONS)
    oldest = _oldest_with(snapshot, view)
    later = [each for each in oldest.snapshots if _number(each) > _number(snapshot)]
    for change in sorted(later, key=_number):
        before = _coverage_before({} if change.summary is None else change.summary.additional_properties)
        if before is not None:
            return before or None
    return oldest.properties.get(RANGE_PARTITIONS)


def _oldest_with(snapshot: Snapshot, view: SnapshotView) -> TableMetadata:
    """The oldest readable metadata that contains the snapshot. Its commit wrote this metadata, unless the log is too
    short."""
    for _, logged in logged_since(view.metadata, view.io, snapshot.timestamp_ms):
        if logged is not None and snapshot_by_id(logged, snapshot.snapshot_id) is not None:
            return logged
    return view.metadata


def _number(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or 0


def _field_ids(text: str) -> list[int]:
    try:
        return list(json.loads(text)["field-ids"])
    except (ValueError, TypeError, KeyError) as error:
        raise UnsupportedFeatureError(f"an earlier {RANGE_PARTITIONS} of the table cannot be read: {error}.") from error
