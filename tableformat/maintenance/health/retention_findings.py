"""Health findings about `tableformat.retain` (MT-110)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.apply_retention import due_files
from tableformat.maintenance.health.health import Finding
from tableformat.markup.figures import counted
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.retention import retention_of


def retention_findings(view: SnapshotView) -> Iterator[Finding]:
    """MT-110: rows that are older than the table's retention, and a property that does not fit the table."""
    try:
        rules = retention_of(view.metadata.properties, view.metadata.schema())
    except InvalidArgumentError as error:
        yield Finding(name="unknown-retention", what=str(error), command="table.maintenance.apply_retention()")
        return
    now = datetime.now(UTC)
    for rule in rules:
        due = due_files(view, rule, now)
        if due:
            rows = sum(task.data_file.record_count for task in due)
            yield Finding(
                name="overdue-retention",
                what=(
                    f"{counted(len(due), 'data file')} with {counted(rows, 'row')} may hold rows before "
                    f"{rule.cutoff_text(now)}, which {rule.text!r} no longer retains"
                ),
                command="table.maintenance.apply_retention()",
            )
