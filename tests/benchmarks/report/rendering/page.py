"""The report as Markdown, and its plots."""

from __future__ import annotations

from pathlib import Path

from report.figures import Measurements, in_order
from report.rendering.plots import PLOTS, draw
from report.rendering.tables import behind, table
from report.workloads.contest import LIMIT
from report.workloads.spark_statements import BARE

TITLES = {
    "growth": "Ingest by replacement",
    "scattered": "Ingest by replacement, messages in no order",
    "verbs": "Verbs and jobs, once each",
    "deletes": "Scans by kind and number of deletes",
    "planning": "Plans",
    "writers": "Several writers",
    "spark": "Statements in Spark",
    "mixed": "A mixed run in Spark",
}
_READING = f"""\
Written by `make bench-report`; do not edit. Figures are medians of CPU seconds of the processes that do the work, in
brackets of wall seconds; those of others are multiples of ours, more than 1 is slower than ours. Systems took turns
call by call in one run. What a scan, a sum, a lookup or a query gave was held against the answer of a plain table in
memory (DuckDB), and only right answers are in the tables.

`{LIMIT}`: pyarrow and DuckDB read the data files that our table has at that moment, deleted rows included, one after
another; for a write they write the same rows. It is what reading and writing cost without a table. `{BARE}` is the same
for Spark, on the rows as they were loaded. `tableformat, upkeep` has `tableformat.upkeep` = `writer`, with upkeep
inside of its commits. A replacement by PyIceberg, delta-rs or DuckLake is what those projects offer for it: an
overwrite by a filter; a MERGE that deletes, then an append (two commits); a transaction of DELETE and INSERT. For
`count and sum` ours and DuckLake stay attached to a connection of DuckDB, ours with a `refresh` before each query, and
PyIceberg and delta-rs open the table. Figures that differ by a tenth or two do not differ: the load of the machine
is stated.
"""


def write_report(measurements: Measurements, directory: Path) -> None:
    """`benchmarks.md` in the directory, and its plots in `pictures/benchmarks` there."""
    pictures = directory / "pictures" / "benchmarks"
    pictures.mkdir(parents=True, exist_ok=True)
    workloads = [name for name in TITLES if name in measurements.sizes]
    lines = ["# Beside other formats", "", _READING, *_machine(measurements), *_where_behind(measurements, workloads)]
    for workload in workloads:
        lines += ["", f"## {TITLES[workload]}", "", f"{measurements.sizes.get(workload, '')}.", ""]
        for plot in PLOTS:
            if plot.workload == workload and draw(plot, measurements, pictures):
                lines.append(f"![{plot.what}](pictures/benchmarks/{plot.file_name})")
        if measurements.of(workload):
            lines += ["", *table(measurements, workload), ""]
        lines += [f"- {text}" for of, text in measurements.notes if of == workload]
    (directory / "benchmarks.md").write_text("\n".join(lines).rstrip() + "\n")


def _machine(measurements: Measurements) -> list[str]:
    machine = [f"{name} {value}" for name, value in measurements.machine.items()]
    versions = in_order(text for each in measurements.versions.values() for text in each.split(", "))
    return [f"Machine: {'; '.join(machine)}.", "", f"Versions: {', '.join(versions)}."]


def _where_behind(measurements: Measurements, workloads: list[str]) -> list[str]:
    """The section comes first, so that readers find it at once."""
    lines = ["", "## Where we are behind", ""]
    for workload in workloads:
        lines += [f"- {TITLES[workload]}. {text}." for text in behind(measurements, workload, (LIMIT, BARE))]
    return lines
