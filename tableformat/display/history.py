"""Renders the snapshots of a branch, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.display import text
from tableformat.display.grid import Column, grid
from tableformat.metadata.metadata_tables import history_table
from tableformat.metadata.snapshot_index import snapshots_by_id
from tableformat.metadata.summary_names import DELETED_ROWS, JOB

if TYPE_CHECKING:
    from tableformat.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A moment at which a snapshot became current."""

    made_current_at: str
    """ISO 8601, local time with its zone."""
    snapshot_id: int
    parent_id: int | None
    operation: str | None
    """None for an expired snapshot."""
    is_current: bool
    is_rolled_back: bool
    """Not an ancestor of the current snapshot."""
    is_retained: bool
    refs: tuple[str, ...]
    """Branches and tags that point to the snapshot. They are shown once, at the last time when it became current."""
    job: str | None
    """The maintenance job that made the snapshot."""
    changes_no_row: bool
    """The snapshot stores the same rows as its parent in other files."""
    summary: dict[str, str]
    """The writer's summary, under Iceberg's names such as `added-records`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def history_of(table: Table) -> list[HistoryEntry]:
    """The history of the table's branch, newest first."""
    metadata = table.metadata
    refs: dict[int, list[str]] = {}
    for name, ref in sorted(metadata.refs.items()):
        refs.setdefault(ref.snapshot_id, []).append(name)
    snapshots = snapshots_by_id(metadata)
    log = history_table(metadata, table.branch).to_pylist()
    entries = []
    for number, row in enumerate(reversed(log)):
        snapshot = snapshots.get(row["snapshot_id"])
        summary = snapshot.summary if snapshot else None
        entries.append(
            HistoryEntry(
                made_current_at=text.moment(row["made_current_at"]),
                snapshot_id=row["snapshot_id"],
                parent_id=row["parent_id"],
                operation=summary.operation.value if summary else None,
                is_current=number == 0,
                is_rolled_back=not row["is_current_ancestor"],
                is_retained=snapshot is not None,
                refs=tuple(refs.pop(row["snapshot_id"], ())),
                job=summary.additional_properties.get(JOB) if summary else None,
                changes_no_row=snapshot is not None and changes_no_row(snapshot),
                summary=dict(summary.additional_properties) if summary else {},
            )
        )
    return entries


def render_history(entries: Sequence[HistoryEntry]) -> RenderableType:
    """One line for each snapshot, if the terminal is wide enough."""
    if not entries:
        return Text("No snapshots yet.")
    columns = [
        Column("made current at"),
        Column("snapshot", is_number=True),
        Column("change", wraps=True),
    ]
    return grid(columns, [_row(entry) for entry in entries])


def change_text(summary: Mapping[str, str]) -> str:
    """The changes of a snapshot, such as `+24 rows, +1 range delete`."""
    added = int(summary.get("added-records", 0))
    deleted = int(summary.get(DELETED_ROWS, summary.get("deleted-records", 0)))
    told = [f"+{text.counted(added, 'row')}"] if added else []
    told += [f"-{text.counted(deleted, 'row')}"] if deleted else []
    return ", ".join([*told, *_delete_file_texts(summary)])


def _delete_file_texts(summary: Mapping[str, str]) -> list[str]:
    kinds = {kind: int(summary.get(f"added-{kind}-delete-files", 0)) for kind in ("position", "equality", "range")}
    # For other readers, range deletes count as equality deletes. Here they are counted only once.
    kinds["equality"] -= kinds["range"]
    told = [f"+{text.counted(number, f'{kind} delete')}" for kind, number in kinds.items() if number > 0]
    vectors = int(summary.get("added-dvs", 0))
    told += [f"+{text.counted(vectors, 'deletion vector')}"] if vectors else []
    removed = int(summary.get("removed-delete-files", 0))
    told += [f"-{text.counted(removed, 'delete')}"] if removed else []
    return told


def no_row_text(summary: Mapping[str, str]) -> str:
    """The changes of a snapshot with the same rows, such as `no row changed, 3 data files became 1`."""
    removed, added = (int(summary.get(f"{kind}-data-files", 0)) for kind in ("deleted", "added"))
    told = ["no row changed"]
    told += [f"{text.counted(removed, 'data file')} became {added:,}"] if removed and added else []
    return ", ".join([*told, *_delete_file_texts(summary)])


def _row(entry: HistoryEntry) -> list[str | Text]:
    style = "dim" if entry.is_rolled_back or not entry.is_retained else ""
    change_told = no_row_text(entry.summary) if entry.changes_no_row else change_text(entry.summary)
    told = [entry.job or entry.operation or "", change_told] if entry.is_retained else ["expired"]
    change = Text(": ".join(part for part in told if part), style=style)
    if entry.is_rolled_back:
        change.append(" (rolled back)")
    for ref in entry.refs:
        change.append(" ").append(f"[{ref}]", style="bold green" if entry.is_current else "cyan")
    return [
        Text(entry.made_current_at, style=style),
        Text(str(entry.snapshot_id), style=style),
        change,
    ]
