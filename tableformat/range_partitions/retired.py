"""Retired ranges, as described by table properties (RP-30).

    tableformat.retired.<tag> = {"field-ids": [1], "branch": "main", "ranges": [[[0], [10]]], "retired-ms": 17672}

The rows remain in the tag's snapshot until the tag is dropped or expires.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import InvalidArgumentError, InvalidKeyError
from tableformat.filters.bound_filter import FALSE, BoundFilter, Comparison
from tableformat.filters.pruning import UNKNOWN, ColumnStatistics, decide, residual
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RETIRED_PREFIX
from tableformat.range_partitions.cuts import Range, range_text
from tableformat.range_partitions.property_text import range_from_json, range_to_json
from tableformat.range_partitions.summary import RETIRED_TAG


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredRange:
    """The ranges that one commit retired."""

    tag: str
    """The tag that keeps the rows."""
    branch: str
    key: KeyColumns
    """The range columns."""
    ranges: tuple[Range, ...]
    """Whole partitions, in order."""
    retired_ms: int | None = None
    """The time in milliseconds since 1970-01-01 UTC. None if an older version of the library retired the ranges."""

    @property
    def text(self) -> str:
        return ", ".join(range_text(self.key, each) for each in self.ranges)

    @property
    def retired_at(self) -> datetime | None:
        return None if self.retired_ms is None else datetime.fromtimestamp(self.retired_ms / 1000, UTC)

    @property
    def note(self) -> str:
        """A note that names the tag with the rows."""
        return f"{self.text} was retired, with its rows in the tag {self.tag!r}"


def retired_text(key: KeyColumns, branch: str, ranges: Sequence[Range], retired_ms: int) -> str:
    """The property value of a retired range."""
    value = {
        "field-ids": list(key.field_ids),
        "branch": branch,
        "ranges": [range_to_json(key, each) for each in ranges],
        "retired-ms": retired_ms,
    }
    return json.dumps(value, separators=(",", ":"))


def retired_in(properties: Mapping[str, str], schema: Schema) -> list[RetiredRange]:
    """The retired ranges of a table, by tag. A range whose columns no longer exist is omitted. A property of another
    program that does not describe a range is also omitted; `restore` reports it."""
    tags = sorted(name.removeprefix(RETIRED_PREFIX) for name in properties if name.startswith(RETIRED_PREFIX))
    parsed = (_parsed(tag, properties[RETIRED_PREFIX + tag], schema) for tag in tags)
    return [each for each in parsed if each is not None]


def retired_from(view: SnapshotView) -> list[RetiredRange]:
    """RP-30: the retired ranges that are missing in a snapshot and can be restored. A range is not missing if it was
    retired later, or on another branch."""
    metadata = view.metadata
    found = [each for each in retired_in(metadata.properties, metadata.schema()) if each.tag in metadata.refs]
    line = list(ancestors(metadata, view.snapshot)) if found else []
    return [each for each in found if _is_missing(each, metadata, line)]


def unneeded_retired_properties(properties: Mapping[str, str], tags: Mapping[str, object]) -> list[str]:
    """RP-31: the properties of retired ranges whose tag is not in `tags`, the remaining tags."""
    return [
        name for name in properties if name.startswith(RETIRED_PREFIX) and name.removeprefix(RETIRED_PREFIX) not in tags
    ]


def touched_by(bound: BoundFilter, retired: Sequence[RetiredRange]) -> list[RetiredRange]:
    """RP-30: the retired ranges that may contain a row matching the filter."""
    return [each for each in retired if any(_may_match(bound, each.key, given) for given in each.ranges)]


def touched_by_spans(spans: SpanArray, retired: Sequence[RetiredRange]) -> list[RetiredRange]:
    """RP-13: the retired ranges that may contain a row in the spans. Bounds are compared only if the columns of one
    begin with the columns of the other."""
    return [each for each in retired if _may_overlap(spans, each)]


def retired_note(retired: Sequence[RetiredRange], key: KeyColumns, files: Sequence[DataFile]) -> str:
    """RP-30: the retired ranges that may contain a row of these files, as the end of a sentence. Empty without such
    ranges."""
    bounds = [key_bounds(data, key) for data in files]
    notes = [
        each.note
        for each in retired
        if each.key == key
        and any(
            given.lower.encoded < file.upper and file.lower < given.upper.encoded
            for given in each.ranges
            for file in bounds
        )
    ]
    return "".join(f"; {note}" for note in notes)


def _parsed(tag: str, text: str, schema: Schema) -> RetiredRange | None:
    try:
        value = json.loads(text)
        key = KeyColumns.of(schema, value["field-ids"])
        ranges = tuple(range_from_json(key, each) for each in value["ranges"])
        return RetiredRange(tag=tag, branch=value["branch"], key=key, ranges=ranges, retired_ms=value.get("retired-ms"))
    except (InvalidKeyError, InvalidArgumentError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def retired_in_line(tag: str, kept_id: int, line: Sequence[Snapshot]) -> bool | None:
    """RP-13: whether a history, with the newest snapshot first, contains the retirement directly after the tag's
    snapshot. None if the history does not contain the tag's snapshot."""
    ids = [snapshot.snapshot_id for snapshot in line]
    if kept_id not in ids:
        return None
    newer = line[: ids.index(kept_id)]
    return bool(newer) and is_retirement(newer[-1], tag)


def is_retirement(snapshot: Snapshot, tag: str) -> bool:
    return snapshot.summary is not None and snapshot.summary.additional_properties.get(RETIRED_TAG) == tag


def _is_missing(retired: RetiredRange, metadata: TableMetadata, line: Sequence[Snapshot]) -> bool:
    kept = snapshot_by_id(metadata, metadata.refs[retired.tag].snapshot_id)
    if kept is None or not line:
        return False
    known = retired_in_line(retired.tag, kept.snapshot_id, line)
    if known is not None:
        return known
    # The snapshot is older than the tag's, is on another branch, or snapshots between them have expired.
    head = metadata.refs.get(retired.branch)
    descendants = ancestors(metadata, None if head is None else snapshot_by_id(metadata, head.snapshot_id))
    is_of_branch = any(each.snapshot_id == line[0].snapshot_id for each in descendants)
    return is_of_branch and (line[0].sequence_number or 0) > (kept.sequence_number or 0)


def _may_match(bound: BoundFilter, key: KeyColumns, given: Range) -> bool:
    def decide_leaf(leaf: Comparison) -> BoundFilter:
        # Bounds are known only for the first range column.
        return decide(leaf, _statistics(key, given) if leaf.field.field_id == key.field_ids[0] else UNKNOWN)

    return residual(bound, decide_leaf) is not FALSE


def _may_overlap(spans: SpanArray, retired: RetiredRange) -> bool:
    if any(a != b for a, b in zip(spans.key.field_ids, retired.key.field_ids, strict=False)):
        return len(spans) > 0
    lower, upper = spans.lower.encoded, spans.upper.encoded
    return any(
        pc.any(
            pc.and_(
                pc.less(lower, pa.scalar(given.upper.encoded, lower.type)),
                pc.greater(upper, pa.scalar(given.lower.encoded, upper.type)),
            )
        ).as_py()
        for given in retired.ranges
    )


def _statistics(key: KeyColumns, given: Range) -> ColumnStatistics:
    """The values of the first range column in a range. An excluded end of a string column counts as included."""
    lower = None if given.lower.is_open else given.lower.values[0]
    upper = None if given.upper.is_open else given.upper.values[0]
    if len(key) == 1 and family_of(key.types[0]) is KeyFamily.INTEGER:
        lower = lower if lower is None else lower + given.lower.after
        upper = upper if upper is None else upper - (not given.upper.after)
    return ColumnStatistics(may_be_null=False, may_be_nan=False, lower=lower, upper=upper)
