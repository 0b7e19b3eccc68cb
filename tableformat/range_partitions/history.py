"""Changes of the range partitions of a table, from its metadata log (RP-33).

    metadata log    v1: [0, 10)    v2: [0, 10), [10, 20)    v3: [10, 20), snapshot 7
    history         [0, 10) defined    [10, 20) added       [0, 10) retired by snapshot 7

For the time before the oldest metadata file in the log, drops follow from the summaries of snapshots. Additions are
unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from tableformat.metadata.metadata_log import logged_documents
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.alteration import without
from tableformat.range_partitions.cuts import Cut, range_text, values_text
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.past import key_of_then, partitions_of_text
from tableformat.range_partitions.property_text import range_from_json
from tableformat.range_partitions.summary import COVERAGE_BEFORE, COVERAGE_DROPPED, RESTORED_TAG, RETIRED_TAG

HISTORY_SCHEMA: Final = pa.schema(
    [
        ("changed_at", pa.timestamp("ms", tz="UTC")),
        ("snapshot_id", pa.int64()),
        ("change", pa.string()),
        ("partition", pa.large_string()),
        ("border", pa.large_string()),
        ("tag", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeChange:
    """One change of one range."""

    change: str
    """One of defined, existing, added, dropped, split, merged, retired, restored and removed, or changed for other
    settings."""
    changed_at: int | None = None
    """Milliseconds since 1970-01-01 UTC; None if the change is older than the log."""
    snapshot_id: int | None = None
    """None if the commit changed only the property."""
    partition: str | None = None
    border: str | None = None
    """The border at which a partition was split, or two were merged."""
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """The state of the table in one metadata file."""

    document: Mapping[str, Any]

    @property
    def text(self) -> str | None:
        text: str | None = (self.document.get("properties") or {}).get(RANGE_PARTITIONS)
        return text

    @property
    def updated_ms(self) -> int:
        return int(self.document["last-updated-ms"])

    @property
    def snapshots(self) -> list[Mapping[str, Any]]:
        return list(self.document.get("snapshots") or ())

    @property
    def is_first(self) -> bool:
        """Whether this metadata file created the table."""
        return not self.document.get("metadata-log") and not self.snapshots

    def schema(self) -> Schema:
        wanted = self.document["current-schema-id"]
        return Schema.model_validate(next(each for each in self.document["schemas"] if each["schema-id"] == wanted))


def range_partition_history(metadata: TableMetadata, io: FileIO) -> pa.Table:
    """RP-33: a row for each change of a range, oldest first."""
    states = [_State(document) for document in (*logged_documents(metadata, io), _current_document(metadata))]
    now = metadata.schema()
    changes = [*_before_the_log(states[0], now), *_first(states[0], now)]
    for before, after in pairwise(states):
        changes += _between(before, after, now)
    rows = [{name: getattr(each, name) for name in HISTORY_SCHEMA.names} for each in changes]
    return pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)


def _current_document(metadata: TableMetadata) -> dict[str, Any]:
    """The parts of the current metadata file that `_State` reads. PyIceberg does not serialize metadata of format
    version 3."""
    schema = metadata.schema()
    return {
        "properties": metadata.properties,
        "last-updated-ms": metadata.last_updated_ms,
        "metadata-log": metadata.metadata_log,
        "current-schema-id": schema.schema_id,
        "schemas": [json.loads(schema.model_dump_json())],
        "snapshots": [
            {
                "snapshot-id": each.snapshot_id,
                "timestamp-ms": each.timestamp_ms,
                "summary": {} if each.summary is None else each.summary.additional_properties,
            }
            for each in metadata.snapshots
        ],
    }


def _before_the_log(oldest: _State, now: Schema) -> Iterator[RangeChange]:
    """Changes in the summaries of snapshots that are not newer than the oldest metadata file."""
    for snapshot in sorted(oldest.snapshots, key=lambda each: int(each["timestamp-ms"])):
        summary = snapshot.get("summary") or {}
        if COVERAGE_BEFORE not in summary:
            continue
        known = RangeChange(
            change="restored" if RESTORED_TAG in summary else "changed",
            changed_at=snapshot["timestamp-ms"],
            snapshot_id=snapshot["snapshot-id"],
            tag=summary.get(RETIRED_TAG) or summary.get(RESTORED_TAG),
        )
        if COVERAGE_DROPPED not in summary:
            yield known
            continue
        dropped = json.loads(summary[COVERAGE_DROPPED])
        key = key_of_then(dropped["field-ids"], now, oldest.schema())
        for each in dropped["ranges"]:
            text = range_text(key, range_from_json(key, each))
            yield replace(known, change="retired" if RETIRED_TAG in summary else "dropped", partition=text)


def _first(oldest: _State, now: Schema) -> Iterator[RangeChange]:
    defined = _defined(oldest, now)
    if defined is None:
        return
    at = RangeChange(change="existing")
    if oldest.is_first:
        at = RangeChange(change="defined", changed_at=oldest.updated_ms)
    for each in defined.bounds:
        yield replace(at, partition=range_text(defined.key, each))


def _between(before: _State, after: _State, now: Schema) -> Iterator[RangeChange]:
    """The changes of one commit."""
    if before.text == after.text:
        return
    known = {snapshot["snapshot-id"] for snapshot in before.snapshots}
    made = (each for each in after.snapshots if each["snapshot-id"] not in known)
    snapshot = next((each for each in made if COVERAGE_BEFORE in (each.get("summary") or {})), None)
    summary = {} if snapshot is None else snapshot["summary"]
    changed_at = after.updated_ms if snapshot is None else snapshot["timestamp-ms"]
    snapshot_id = None if snapshot is None else snapshot["snapshot-id"]
    for each in _differences(_defined(before, now), _defined(after, now)):
        change, tag = each.change, None
        if change == "dropped" and RETIRED_TAG in summary:
            change, tag = "retired", summary[RETIRED_TAG]
        elif change == "added" and RESTORED_TAG in summary:
            change, tag = "restored", summary[RESTORED_TAG]
        yield replace(each, change=change, changed_at=changed_at, snapshot_id=snapshot_id, tag=tag)


def _defined(state: _State, now: Schema) -> DefinedPartitions | None:
    return None if state.text is None else partitions_of_text(state.text, now, state.schema())


def _differences(before: DefinedPartitions | None, after: DefinedPartitions | None) -> list[RangeChange]:
    if before is None or after is None or before.key != after.key:
        return [
            RangeChange(change=change, partition=defined.text(each))
            for change, defined in (("removed", before), ("defined", after))
            if defined is not None
            for each in defined.bounds
        ]
    found = [
        *(RangeChange(change="dropped", partition=text) for text in _missing(before, after)),
        *(RangeChange(change="added", partition=text) for text in _missing(after, before)),
        *(_border("split", cut, before) for cut in _new_borders(before, after)),
        *(_border("merged", cut, after) for cut in _new_borders(after, before)),
    ]
    return found or [RangeChange(change="changed")]


def _missing(one: DefinedPartitions, other: DefinedPartitions) -> list[str]:
    """The ranges that exist in `one` and not in `other`."""
    return [one.text(part) for bound in one.bounds for part in without(bound, other.bounds)]


def _new_borders(one: DefinedPartitions, other: DefinedPartitions) -> Sequence[Cut]:
    """The splits of `other` that are inside a bound of `one` and are not borders there."""
    return [
        cut
        for cut in other.splits
        if any(bound.lower < cut < bound.upper and cut not in one.borders_of(bound) for bound in one.bounds)
    ]


def _border(change: str, cut: Cut, defined: DefinedPartitions) -> RangeChange:
    """The change of a border, in the partition that does not have the border."""
    whole = next(each for each in defined.partitions() if each.lower < cut < each.upper)
    return RangeChange(change=change, partition=defined.text(whole), border=values_text(defined.key, cut.values))
