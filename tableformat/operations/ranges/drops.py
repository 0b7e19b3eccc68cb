"""The snapshots that dropped ranges, according to their summaries (RP-25)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.snapshot_choice import schema_of
from tableformat.range_partitions.cuts import Range
from tableformat.range_partitions.past import key_of_then
from tableformat.range_partitions.property_text import range_from_json
from tableformat.range_partitions.summary import COVERAGE_DROPPED, RESTORED_TAG, RETIRED_TAG


@dataclass(frozen=True, slots=True)
class RangeDrop:
    """The ranges that one snapshot dropped. It deleted all rows of these ranges, and no other rows."""

    snapshot: Snapshot
    key: KeyColumns
    ranges: tuple[Range, ...]
    tag: str | None
    """The tag that keeps the rows, if the ranges were retired."""


def drop_of(snapshot: Snapshot, metadata: TableMetadata) -> RangeDrop | None:
    """RP-25: the drop that the summary of the snapshot records, or None. The ranges are in the current columns, or in
    the columns of the snapshot if one of them was dropped."""
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    text = summary.get(COVERAGE_DROPPED)
    if text is None:
        return None
    value: dict[str, Any] = json.loads(text)
    key = key_of_then(value["field-ids"], metadata.schema(), schema_of(metadata, snapshot))
    ranges = tuple(range_from_json(key, each) for each in value["ranges"])
    return RangeDrop(snapshot, key, ranges, summary.get(RETIRED_TAG))


def restored_tag(snapshot: Snapshot) -> str | None:
    """RP-13: the tag that the snapshot restored. None for any other snapshot, and for one of an older version of the
    library."""
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(RESTORED_TAG)
