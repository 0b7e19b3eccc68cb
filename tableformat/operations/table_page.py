"""A table as part of a page, using only its metadata file: a notebook displays it without reading a manifest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import InvalidKeyError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.markup import figures, html
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView

_COUNTS = (
    ("data files", "total-data-files"),
    ("delete files", "total-delete-files"),
    ("rows in data files, before deletes", "total-records"),
)


def table_html(iceberg: IcebergTable, view: SnapshotView, branch: str) -> str:
    """The display of a handle in a notebook: schema, key, snapshots, and how to find causes of slow reads."""
    return html.fragment(
        ".".join(iceberg.name()),
        html.facts(_facts(view, branch)),
        schema_html(view),
        snapshots_html([*ancestors(view.metadata, view.snapshot)]),
        html.quiet("table.maintenance.health() shows what slows reads; table.layers() draws the files."),
    )


def schema_html(view: SnapshotView) -> html.Html:
    """The columns of the view's schema; key columns with their position in the key."""
    key = _key(view)
    rows = [
        (
            field.name,
            field.field_type,
            "" if field.required else "yes",
            _key_place(field.field_id, key),
            field.doc or "",
        )
        for field in view.schema.fields
    ]
    return html.grid(("column", "type", "null", "key", "doc"), rows)


def snapshots_html(snapshots: Sequence[Snapshot]) -> html.Html:
    """Snapshots in the given order: time, operation, and added and removed rows and files."""
    rows = [
        (str(each.snapshot_id), _moment(each.timestamp_ms), _operation(each), *_changed(each)) for each in snapshots
    ]
    columns = ("snapshot", "committed at", "operation", "rows added", "files deleted", "delete files added")
    return html.grid(columns, rows, numbers=columns[3:]) if rows else html.quiet("no snapshot yet")


def _facts(view: SnapshotView, branch: str) -> list[tuple[str, object]]:
    metadata, snapshot = view.metadata, view.snapshot
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
    told: list[tuple[str, object]] = [
        ("location", metadata.location),
        ("format", f"Iceberg v{metadata.format_version}"),
        ("key", _key_text(view)),
        ("branch", branch),
        ("snapshot", "none yet" if snapshot is None else snapshot.snapshot_id),
    ]
    return told + [
        (name, figures.count(int(summary[each]))) for name, each in _COUNTS if summary.get(each, "").isdigit()
    ]


def _key(view: SnapshotView) -> tuple[int, ...]:
    """The field ids of the key; empty if another writer made the key invalid, so that the table is displayed anyway."""
    schema: Schema = view.metadata.schema()
    try:
        return key_field_ids(schema, view.metadata.properties)
    except InvalidKeyError:
        return ()


def _key_text(view: SnapshotView) -> str:
    schema: Schema = view.metadata.schema()
    try:
        return ", ".join(key_names(schema, key_field_ids(schema, view.metadata.properties))) or "none"
    except InvalidKeyError as error:
        return str(error)


def _key_place(field_id: int, key: Sequence[int]) -> str:
    return f"key {key.index(field_id) + 1}" if field_id in key else ""


def _moment(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(" ", "seconds")


def _operation(snapshot: Snapshot) -> str:
    return "unknown" if snapshot.summary is None else snapshot.summary.operation.value


def _changed(snapshot: Snapshot) -> list[str]:
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    return [summary.get(name, "") for name in ("added-records", "deleted-data-files", "added-delete-files")]
