"""Deletes that keep the value of the order column, and the history in which they are found (FM-34).

snapshot 1   rows
snapshot 2   delete of a, ts 50          summary: ordered deletes up to 50
snapshot 3   conversion of the delete    summary: before: up to 50

The file of snapshot 2 is found as long as snapshot 2 is retained. Once it has expired, snapshot 3 still has the 50.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.commit.table_diff import manifests_of_snapshot
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.properties import ORDER_COLUMN
from tableformat.range_partitions.cuts import value_from_json, value_to_json

OWN: Final = "tableformat.ordered-deletes"
"""In a summary: the snapshot has deletes with values of the order column, and the greatest of these."""
BEFORE: Final = "tableformat.ordered-deletes-before"
"""In a summary: the greatest value of the order column in the deletes of all earlier snapshots of the branch."""

STALE_ROWS: Final = "tableformat.stale-rows"
"""In a summary: how many rows and change events were left out (CP-69)."""


@dataclass(frozen=True, slots=True)
class NewestDelete:
    """The greatest value of an order column in some deletes."""

    field_id: int
    value: Any
    """An internal value; None if all values are null."""

    def to_text(self, kind: PrimitiveType) -> str:
        value = None if self.value is None else value_to_json(self.value, kind)
        return json.dumps({"field-id": self.field_id, "value": value}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | None, field: NestedField) -> NewestDelete | None:
        """The newest delete in the text; None if there is no text, or if it names another column."""
        stated = {} if text is None else json.loads(text)
        if stated.get("field-id") != field.field_id:
            return None
        assert isinstance(field.field_type, PrimitiveType), "the order column is not nested"
        value = stated["value"]
        return cls(field.field_id, None if value is None else value_from_json(value, field.field_type))


def with_ordered_deletes(
    properties: Mapping[str, str], metadata: TableMetadata, parent: Snapshot | None
) -> dict[str, str]:
    """FM-34: the properties of a new snapshot, with the greatest value in the deletes of the snapshots before it."""
    field = _field(metadata.schema(), metadata.properties)
    if field is None:
        return dict(properties)
    stating = next(_stating(ancestors(metadata, parent), field), None)
    if stating is None:
        return dict(properties)
    own, before = stating
    newest = _greater(own, before)
    assert isinstance(field.field_type, PrimitiveType), "the order column is not nested"
    return {**properties, **({} if newest is None else {BEFORE: newest.to_text(field.field_type)})}


def newest_forgotten_delete(metadata: TableMetadata, head: Snapshot | None, field: NestedField) -> Any:
    """FM-34: the greatest value of the order column in deletes whose snapshots have expired; None without any."""
    retained = list(ancestors(metadata, head))
    if not retained or retained[-1].parent_snapshot_id is None:
        return None
    oldest = next(_stating(reversed(retained), field), None)
    return None if oldest is None or oldest[1] is None else oldest[1].value


def snapshots_with_ordered_deletes(
    snapshots: Iterable[Snapshot], field: NestedField, *, above: Any = None
) -> Iterator[Snapshot]:
    """FM-34: the snapshots that added deletes with values of the order column, and with `above` those with a greater
    value. No file is read."""
    for snapshot in snapshots:
        own = NewestDelete.parse(_summary(snapshot).get(OWN), field)
        if own is not None and (above is None or (own.value is not None and own.value > above)):
            yield snapshot


def ordered_delete_files(
    io: FileIO, metadata: TableMetadata, snapshots: Iterable[Snapshot], field: NestedField
) -> Iterator[DeleteFile]:
    """FM-34: the delete files with values of the order column that these snapshots added, converted or not."""
    for snapshot in snapshots:
        for manifest in manifests_of_snapshot(io, snapshot):
            if manifest.content is ManifestContent.DELETES and manifest.added_snapshot_id == snapshot.snapshot_id:
                for entry in read_manifest(io, manifest, metadata):
                    file = entry.file
                    if (
                        entry.status is EntryStatus.ADDED
                        and isinstance(file, DeleteFile)
                        and file.kind is DeleteKind.EQUALITY
                        and field.field_id in (file.value_counts or {})
                        and field.field_id not in (file.equality_ids or ())
                    ):
                        yield file


def _field(schema: Schema, properties: Mapping[str, str]) -> NestedField | None:
    name = properties.get(ORDER_COLUMN)
    return next((field for field in schema.fields if field.name == name), None)


def _stating(
    snapshots: Iterable[Snapshot], field: NestedField
) -> Iterator[tuple[NewestDelete | None, NewestDelete | None]]:
    """The entries of summaries that have one: the snapshot's own deletes, and earlier deletes. A snapshot of another
    program has neither, and no such deletes."""
    for snapshot in snapshots:
        summary = _summary(snapshot)
        own, before = (NewestDelete.parse(summary.get(name), field) for name in (OWN, BEFORE))
        if own is not None or before is not None:
            yield own, before


def _greater(one: NewestDelete | None, other: NewestDelete | None) -> NewestDelete | None:
    if one is None or one.value is None:
        return other if other is not None else one
    return one if other is None or other.value is None or one.value > other.value else other


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
