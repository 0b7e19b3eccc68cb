"""Runs the demo, from messages to a table that every Iceberg engine can read.

messages -> stream that replaces -> DuckDB -> time travel -> conversion -> plain PyIceberg
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import duckdb as duckdb_engine
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from tableformat.catalogs.catalog import Catalog
from tableformat.catalogs.open_catalog import open_catalog
from tableformat.demo import stream_local
from tableformat.demo.messages import KEY, TABLE_SCHEMA, MessagePlan, write_messages
from tableformat.demo.report import BatchFigures, DemoReport, print_report
from tableformat.engines import duckdb
from tableformat.errors import InvalidArgumentError
from tableformat.table import Table

WRITERS: Final = ("auto", "spark", "local")
DIRECTORY: Final = Path("demo-lake")
TABLE: Final = "db.calendars"
MARKER: Final = ".tableformat-demo"
"""Marker file in directories that a demo created."""


def run_demo(
    directory: Path | None = None, writer: str = "auto", console: Console | None = None, plan: MessagePlan | None = None
) -> DemoReport:
    """Run the job in a directory, by default `demo-lake`. The table of an earlier demo there is removed first.

    "auto" streams with Spark if PySpark and Java are installed, otherwise in this process, and reports the choice.
    Raises InvalidArgumentError for a directory with anything other than an earlier demo.
    """
    console = console or Console()
    plan = plan or MessagePlan()
    directory = (directory or DIRECTORY).resolve()
    writer = _choose_writer(writer, console)
    _clear(directory)
    report = DemoReport(writer=writer, directory=str(directory), batch_count=plan.batch_count)
    job = _Job(directory, plan, report, console)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARKER).write_text("This directory was created by a demo of tableformat. The next demo removes it.\n")
    with job.step("make messages"):
        report.message_count = write_messages(directory / "messages", plan)
    catalog = open_catalog(str(directory / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table(TABLE, TABLE_SCHEMA, key=KEY)
    job.stream(table, writer)
    job.query(catalog)
    job.travel(table)
    job.convert(table)
    job.compare(table)
    print_report(report, console)
    return report


class _Job:
    """The steps of one run, and their figures."""

    def __init__(self, directory: Path, plan: MessagePlan, report: DemoReport, console: Console) -> None:
        self._directory = directory
        self._plan = plan
        self._report = report
        self._console = console
        self._rows: pa.Table | None = None

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        with self._console.status(f"{name} ..."):
            yield
        self._finish_step(name, started)

    def stream(self, table: Table, writer: str) -> None:
        """Replace the rows of every message: one snapshot for each batch, without reading the table."""
        started = time.perf_counter()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        results: list[BatchFigures] = []
        with Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        ) as progress:
            bar = progress.add_task(f"stream with {writer}, batches", total=self._plan.batch_count)

            def on_batch(result: BatchFigures) -> None:
                results.append(result)
                progress.update(bar, advance=1)
                self._console.print(
                    f"    batch {len(results) - 1}: {result.added_row_count:,} rows in "
                    f"{result.added_data_files_count} files, "
                    f"{result.added_delete_files_count} delete file",
                    highlight=False,
                )

            _streams()[writer](table, self._directory, on_batch)
        self._finish_step(f"stream with {writer}", started)
        report = self._report
        report.written_row_count = sum(result.added_row_count for result in results)
        deletes = table.inspect.delete_files()
        report.written_bytes_per_message = sum(result.written_bytes for result in results) / report.message_count
        report.delete_bytes_per_message = sum(deletes["file_size_in_bytes"].to_pylist()) / report.message_count
        report.data_file_count = table.inspect.data_files().num_rows
        report.delete_file_counts = _kinds(table)

    def query(self, catalog: Catalog) -> None:
        """Run any SQL over the table, merged on read."""
        with self.step("query with DuckDB"), duckdb_engine.connect() as connection:
            duckdb.attach(connection, catalog, name="lake")
            answer = connection.sql(
                f"""
                SELECT id1 AS partner, count(DISTINCT id2) AS sites, count(*) AS dates, max(open_on) AS last_opening
                FROM lake.{TABLE} GROUP BY id1 ORDER BY dates DESC, id1 LIMIT 5
                """
            ).fetchall()
        self._console.print("    partner       sites  dates  last opening", highlight=False)
        for partner, sites, dates, last_opening in answer:
            self._console.print(f"    {partner}  {sites:>5}  {dates:>5}  {last_opening}", highlight=False)

    def travel(self, table: Table) -> None:
        """Read the rows from before the last batch."""
        with self.step("time travel"):
            previous = table.history()["snapshot_id"][-2].as_py()
            self._report.row_count_before_last_batch = table.scan(snapshot_id=previous).count()
            self._report.row_count = table.scan().count()

    def convert(self, table: Table) -> None:
        """Convert range deletes to position deletes. Before that, all other readers refuse the table."""
        self._report.refused_before_conversion = _refusal(table)
        self._rows = _sorted(table.scan().to_arrow())
        with self.step("convert_deletes"):
            result = table.maintenance.convert_deletes()
        self._report.converted_row_count = result.deleted_row_count
        self._report.delete_file_counts_after = _kinds(table)

    def compare(self, table: Table) -> None:
        """Check that plain PyIceberg reads the same rows as this library before the conversion."""
        with self.step("read with PyIceberg"):
            plain = _sorted(table.iceberg.scan().to_arrow().cast(TABLE_SCHEMA))
        self._report.is_consistent = plain.equals(self._rows) and bool(self._report.refused_before_conversion)

    def _finish_step(self, name: str, started: float) -> None:
        spent = time.perf_counter() - started
        self._report.step_seconds[name] = spent
        told = Text.assemble("  ", ("done", "green"), f" {name} ", (f"{spent:.1f} s", "dim"))
        self._console.print(told, highlight=False)


def _streams() -> dict[str, Callable[[Table, Path, Callable[[BatchFigures], None]], None]]:
    return {"spark": _stream_with_spark, "local": _stream_locally}


def _stream_with_spark(table: Table, directory: Path, on_batch: Callable[[BatchFigures], None]) -> None:
    from tableformat.demo import stream_spark

    with stream_spark.local_spark(directory / "lake") as spark:
        stream_spark.run_stream(spark, table, directory / "messages", directory / "checkpoint", on_batch)


def _stream_locally(table: Table, directory: Path, on_batch: Callable[[BatchFigures], None]) -> None:
    stream_local.run_stream(table, directory / "messages", on_batch)


def _choose_writer(writer: str, console: Console) -> str:
    if writer not in WRITERS:
        raise InvalidArgumentError(f"writer must be one of {', '.join(WRITERS)}, not {writer!r}.")
    if writer == "local":
        return writer
    missing = _what_spark_lacks()
    if missing is None:
        return "spark"
    if writer == "spark":
        raise InvalidArgumentError(f"Spark cannot run here. {missing}")
    told = Text.assemble(("Spark is skipped; the local writer does the same work.", "yellow"), f" {missing}")
    console.print(told, highlight=False)
    return "local"


def _what_spark_lacks() -> str | None:
    from importlib.util import find_spec

    from tableformat.demo.java_runtime import INSTALL_HINT, find_java

    if find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'tableformat[spark]'."
    return None if find_java() else INSTALL_HINT


def _clear(directory: Path) -> None:
    """Remove the files of an earlier demo, and nothing else."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise InvalidArgumentError(f"{directory} is not a directory. Choose another one{_elsewhere(directory)}.")
    found = {path.name for path in directory.iterdir()}
    foreign = found - {"messages", "checkpoint", "lake", MARKER}
    if foreign or (found and MARKER not in found):
        raise InvalidArgumentError(
            f"{directory} contains {', '.join(sorted(foreign or found))}, which was not created by a demo. Nothing "
            f"was removed. Choose another directory{_elsewhere(directory)}."
        )
    shutil.rmtree(directory)


def _elsewhere(directory: Path) -> str:
    names = (directory.with_name(f"{directory.name}-demo-{number}") for number in count(1))
    return f", such as {next(path for path in names if not path.exists())}"


def _kinds(table: Table) -> dict[str, int]:
    kinds = table.inspect.delete_files()["kind"].to_pylist()
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def _refusal(table: Table) -> str:
    """PyIceberg's error for range deletes; empty if it ignores them and reads the table."""
    try:
        table.iceberg.scan().to_arrow()
    except ValueError as error:
        return str(error)
    return ""


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in KEY]).combine_chunks()
