"""Summary of a table: schema, key, partitions, snapshot, files; as data and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform
from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.grid import Column, facts, grid
from tableformat.errors import InvalidKeyError
from tableformat.metadata.metadata_tables import data_files_table, delete_files_table
from tableformat.metadata.snapshot_view import SnapshotView

if TYPE_CHECKING:
    from tableformat.table import Table

_KEYED_KINDS = ("equality", "range")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """A top-level column."""

    field_id: int
    name: str
    type: str
    required: bool
    key_position: int | None
    """1 for the most significant key column; None outside the key."""
    doc: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    """The snapshot that a summary describes."""

    snapshot_id: int
    sequence_number: int
    committed_at: str
    """ISO 8601, local time with its zone."""
    operation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKindSummary:
    """All live delete files of one kind."""

    kind: str
    file_count: int
    record_count: int
    """Positions, keys or spans."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """A table at one snapshot, from metadata only."""

    name: str
    location: str
    uuid: str
    format_version: int
    branch: str
    snapshot: SnapshotSummary | None
    snapshot_count: int
    columns: tuple[ColumnSummary, ...]
    key: tuple[str, ...]
    key_problem: str | None
    """Why the key cannot be used, if another writer changed it."""
    partition_by: tuple[str, ...]
    """Transforms of the default spec, in the form of `create_table(partition_by=...)`."""
    record_count: int
    """Rows in the data files, before deletes."""
    live_row_count: int | None
    """Rows that a reader sees. None if equality, range or position deletes make it impossible to know without reading.
    """
    data_file_count: int
    data_bytes: int
    delete_files: tuple[DeleteKindSummary, ...]
    refs: tuple[dict[str, Any], ...]
    properties: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def summarize(table: Table, view: SnapshotView | None = None) -> TableSummary:
    """The summary of a table at a view, by default the handle's own. Reads manifests, but no data or delete files."""
    view = view or table.view
    metadata = view.metadata
    data_files = data_files_table(view)
    deletes = _by_kind(delete_files_table(view))
    key, key_problem = _key(table)
    record_count = _sum(data_files, "record_count")
    return TableSummary(
        name=name_of(table),
        location=metadata.location,
        uuid=str(metadata.table_uuid),
        format_version=metadata.format_version,
        branch=table.branch,
        snapshot=_snapshot(view.snapshot),
        snapshot_count=len(metadata.snapshots),
        columns=_columns(view.schema, key),
        key=key,
        key_problem=key_problem,
        partition_by=tuple(partition_texts(metadata.spec(), metadata.schema())),
        record_count=record_count,
        live_row_count=None if deletes else record_count,
        data_file_count=data_files.num_rows,
        data_bytes=_sum(data_files, "file_size_in_bytes"),
        delete_files=deletes,
        refs=tuple(
            {"name": name, "type": ref.snapshot_ref_type.value, "snapshot_id": ref.snapshot_id}
            for name, ref in sorted(metadata.refs.items())
        ),
        properties=dict(sorted(metadata.properties.items())),
    )


def name_of(table: Table) -> str:
    """The table's displayed name: its identifier, or the location of its metadata if it was read without a catalog."""
    return table.name if table.catalog is not None else table.iceberg.metadata_location


def partition_texts(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Transforms in the form for creating a table: `bucket(16, id1)`, `day(ts)`, `country`."""
    texts = []
    for field in spec.fields:
        column = schema.find_column_name(field.source_id) or f"field {field.source_id}"
        transform, _, argument = str(field.transform).partition("[")
        if isinstance(field.transform, IdentityTransform):
            texts.append(column)
        else:
            texts.append(f"{transform}({argument.rstrip(']')}, {column})" if argument else f"{transform}({column})")
    return texts


def render_summary(summary: TableSummary) -> RenderableType:
    """The summary as text."""
    parts: list[RenderableType] = [Text(summary.name, style="bold"), facts(_facts(summary)), Text(), _schema(summary)]
    if summary.refs:
        refs = ((str(ref["name"]), str(ref["type"]), str(ref["snapshot_id"])) for ref in summary.refs)
        parts += [Text(), grid([Column("ref"), Column("type"), Column("snapshot")], refs)]
    if summary.properties:
        columns = [Column("property"), Column("value", wraps=True)]
        parts += [Text(), grid(columns, summary.properties.items())]
    return Group(*parts)


def rows_text(summary: TableSummary) -> str:
    """The number of rows, as far as metadata shows it."""
    if summary.live_row_count is not None:
        return text.count(summary.live_row_count)
    return f"at most {text.count(summary.record_count)}: deletes are applied when rows are read"


def deletes_text(kinds: Sequence[DeleteKindSummary]) -> str:
    """`1 range (2 spans, 1.4 KB), 2 position (...)`; `none`."""
    told = (
        f"{kind.file_count:,} {kind.kind} ({text.counted(kind.record_count, _RECORD_NOUNS[kind.kind])}, "
        f"{text.size(kind.size_bytes)})"
        for kind in kinds
    )
    return ", ".join(told) or "none"


_RECORD_NOUNS = {"range": "span", "equality": "key", "position": "row", "deletion-vector": "row"}


def _facts(summary: TableSummary) -> list[tuple[str, str | Text]]:
    snapshot = summary.snapshot
    key: str | Text = ", ".join(summary.key) or "none"
    if summary.key_problem is not None:
        key = Text(summary.key_problem, style="yellow")
    at = "none yet"
    if snapshot is not None:
        at = f"{snapshot.snapshot_id}, {snapshot.operation or 'unknown operation'}, {snapshot.committed_at}"
    return [
        ("location", summary.location),
        ("format", f"Iceberg v{summary.format_version}"),
        ("key", key),
        ("partitions", ", ".join(summary.partition_by) or "none"),
        ("snapshot", at),
        ("history", f"{text.counted(summary.snapshot_count, 'snapshot')} retained; branch {summary.branch}"),
        ("rows", rows_text(summary)),
        ("data files", f"{text.count(summary.data_file_count)}, {text.size(summary.data_bytes)}"),
        ("delete files", deletes_text(summary.delete_files)),
    ]


def _schema(summary: TableSummary) -> RenderableType:
    columns = [
        Column("id", is_number=True),
        Column("column"),
        Column("type", wraps=True),
        Column("null"),
        Column("key"),
        *([Column("doc", wraps=True)] if any(column.doc for column in summary.columns) else []),
    ]
    rows = []
    for column in summary.columns:
        key = "" if column.key_position is None else f"key {column.key_position}"
        row = [str(column.field_id), column.name, column.type, "" if column.required else "yes", key]
        rows.append([*row, column.doc or ""][: len(columns)])
    return grid(columns, rows)


def _columns(schema: Schema, key: tuple[str, ...]) -> tuple[ColumnSummary, ...]:
    return tuple(
        ColumnSummary(
            field_id=field.field_id,
            name=field.name,
            type=str(field.field_type),
            required=field.required,
            key_position=key.index(field.name) + 1 if field.name in key else None,
            doc=field.doc,
        )
        for field in schema.fields
    )


def _key(table: Table) -> tuple[tuple[str, ...], str | None]:
    try:
        return table.key, None
    except InvalidKeyError as error:
        # A table whose key cannot be used can still be displayed.
        return (), str(error)


def _snapshot(snapshot: Snapshot | None) -> SnapshotSummary | None:
    if snapshot is None:
        return None
    return SnapshotSummary(
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number or 0,
        committed_at=text.moment_of_ms(snapshot.timestamp_ms),
        operation=snapshot.summary.operation.value if snapshot.summary else None,
    )


def _by_kind(deletes: pa.Table) -> tuple[DeleteKindSummary, ...]:
    sums = deletes.group_by("kind").aggregate(
        [("file_path", "count"), ("record_count", "sum"), ("file_size_in_bytes", "sum")]
    )
    return tuple(
        DeleteKindSummary(
            kind=row["kind"],
            file_count=row["file_path_count"],
            record_count=row["record_count_sum"],
            size_bytes=row["file_size_in_bytes_sum"],
        )
        for row in sums.sort_by("kind").to_pylist()
    )


def _sum(files: pa.Table, column: str) -> int:
    return pc.sum(files[column]).as_py() or 0
