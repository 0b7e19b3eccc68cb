"""One HTML page about a table: schema, key, snapshots, causes of slow reads, layers, health, properties."""

from __future__ import annotations

from tableformat.display.summary import TableSummary, deletes_text, rows_text, summarize
from tableformat.maintenance.health.health import html_of_health
from tableformat.maintenance.health.health_findings import table_health
from tableformat.markup import figures, html
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.operations.table_page import schema_html, snapshots_html
from tableformat.snapshot_layers.layers import layers_of
from tableformat.table import Table


def table_report(table: Table) -> str:
    """The page, self-contained: no scripts and no external resources. Reads metadata, and range delete files like the
    planning of a scan."""
    summary, view = summarize(table), table.view
    health = table_health(view, table.iceberg.metadata_location, table=summary.name, branch=table.branch)
    refs = [(ref["name"], ref["type"], str(ref["snapshot_id"])) for ref in summary.refs]
    return html.page(
        summary.name,
        html.facts(_facts(summary)),
        html.headed("Health", html_of_health(health)),
        html.headed("Layers", html.part(layers_of(view, summary.name, table.branch)._repr_html_())),
        html.headed("Schema", schema_html(view)),
        html.headed("Snapshots", snapshots_html([*ancestors(view.metadata, view.snapshot)])),
        html.headed("Branches and tags", html.grid(("name", "type", "snapshot"), refs)),
        html.headed("Properties", html.grid(("property", "value"), list(summary.properties.items()))),
    )


def _facts(summary: TableSummary) -> list[tuple[str, object]]:
    snapshot = summary.snapshot
    at = "none yet" if snapshot is None else f"{snapshot.snapshot_id}, {snapshot.operation}, {snapshot.committed_at}"
    return [
        ("location", summary.location),
        ("format", f"Iceberg v{summary.format_version}"),
        ("key", summary.key_problem or ", ".join(summary.key) or "none"),
        ("partitions", ", ".join(summary.partition_by) or "none"),
        ("branch", summary.branch),
        ("snapshot", at),
        ("rows", rows_text(summary)),
        ("data files", f"{figures.count(summary.data_file_count)}, {figures.size(summary.data_bytes)}"),
        ("delete files", deletes_text(summary.delete_files)),
    ]
