"""The report as Markdown, and its plots."""

from __future__ import annotations

import re
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
_SUMMARY = """\
A delete or replacement costs this library a fraction of the CPU time of the others, because it reads no stored row.
Readers pay a part of that, until a job has converted or compacted the table.
"""
_READING = f"""\
## How to read the tables

`make bench-report` writes this page. Figures of tableformat are medians of CPU seconds of the processes that do the
work, with wall seconds in brackets. Figures of others are multiples of ours: more than 1 is slower. The systems took
turns, call by call, in one run. Every result was compared with a plain table in memory (DuckDB), and only equal results
are listed.

- `{LIMIT}`: pyarrow and DuckDB read the data files of our table, deleted rows included, one after another, or write the
  same rows. This is the cost without a table. `{BARE}` is the same for Spark, on the rows as they were loaded.
- `tableformat, upkeep`: with `tableformat.upkeep` = `writer`, which maintains the table inside of commits.
- A replacement by PyIceberg is an overwrite by a filter. By delta-rs it is a MERGE that deletes and an append, in two
  commits, and by DuckLake a transaction of DELETE and INSERT.
- `count and sum`: ours and DuckLake stay attached to a connection of DuckDB, ours with a `refresh` before each query.
  PyIceberg and delta-rs open the table.
- Differences of 10 to 20 % are within the noise. The load of the machine is stated.
"""
_FIRST_PLOT = "growth-commit.svg"
_REASONS = {
    r"count and sum": "DuckDB receives our rows as a stream of Arrow batches. It reads the files of DuckLake itself, "
    "and delta-rs has a reader of its own; both aggregate without a transfer (decisions 25 and 35).",
    r"(scan|scan again) after (three|the|prefixes|20|by)": "The other table rewrote its files when rows were deleted "
    "or replaced, which the figures of those changes show. Ours applies the deletes while it reads.",
    r"scan clean|scan, a fresh handle": "The bare files alone take about 0.7 times as long as ours. The rest is the "
    "catalog and the plan.",
    r"\. compaction": "The other table had rewritten its files with each change, so that little was left.",
    r"append": "Rows are sorted by the key, and pages have checksums (decision 39).",
    r"load of": "Rows are sorted by the key before they are written.",
    r"lookup": "A handle of ours asks the catalog for the table. delta-rs reads a directory.",
}
"""Why figures are behind, by a pattern of their names; the first that is found counts."""


def write_report(measurements: Measurements, directory: Path) -> None:
    """`benchmarks.md` in the directory, and its plots in `pictures/benchmarks` there."""
    pictures = directory / "pictures" / "benchmarks"
    pictures.mkdir(parents=True, exist_ok=True)
    workloads = [name for name in TITLES if name in measurements.sizes]
    lines = ["# Beside other formats", "", _SUMMARY, f"![commit](pictures/benchmarks/{_FIRST_PLOT})"]
    lines += [*_where_behind(measurements, workloads), "", _READING, *_machine(measurements)]
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
    lines = ["", "## Where we are behind", "", "By more than 15 % of the CPU time:"]
    found = [f"{TITLES[name]}. {text}" for name in workloads for text in behind(measurements, name, (LIMIT, BARE))]
    for reason in dict.fromkeys(map(_reason, found)):
        lines += ["", f"**{reason}**", "", *(f"- {text}." for text in found if _reason(text) == reason)]
    return lines


def _reason(text: str) -> str:
    return next((reason for pattern, reason in _REASONS.items() if re.search(pattern, text)), "Not explained yet.")
