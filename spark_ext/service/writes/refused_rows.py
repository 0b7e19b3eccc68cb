"""Rows that tasks rejected: raise an error with their count, or divert them to another table (RP-21, RP-22).

Rows outside of a replaced interval or condition are found here, before the commit (RP-19, RP-24). Files that are inside
by their bounds have no such rows and are not opened.

    tasks             rows that are covered -> data files        the others -> a separate file, or only a count
    before a commit   the rows of that file are staged with reasons in the other table; data files with rows of a
                      rejected prefix are rewritten without them, and those rows are diverted as well
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema

from spark_ext.service.writes.diverted_rows import StagedRows, stage_rows
from spark_ext.service.writes.task_reports import TaskReport, refused_samples_of
from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import RowsRefusedError, UncoveredRowsError
from tableformat.filters.bound_filter import TRUE, bind_filter, to_expression
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.options import CommitOptions
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import StagedFilesOnTop, plan_scan
from tableformat.scan.reader import read_task
from tableformat.table import Table
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_data_files
from tableformat.write.rows.checks import RowTest
from tableformat.write.rows.conform import REPORT_SCHEMA, ConformedRows, Conformer
from tableformat.write.rows.distinct import PrefixCollector
from tableformat.write.rows.range_partition_checks import CoveredRows
from tableformat.write.rows.refused_groups import SpoiledGroups
from tableformat.write.rows.replaced_range_checks import RowsInSpans, RowsMatchFilter
from tableformat.write.staged import StagedFiles

_REASON_COLUMNS: Final = pa.schema([("_refused_column", pa.large_string()), ("_refused_reason", pa.large_string())])
"""Filled in if the table for rejected rows has these columns."""
_SHOWN_MAX: Final = 5


def check_takes_refused_rows(refused: Table, schema: Schema) -> None:
    """Check before any row is written. Raises UnknownColumnError or SchemaMismatchError if rows of the schema do not
    fit into the table."""
    Conformer(_told(refused, arrow_schema(schema)), refused.metadata.schema())


def is_any_refused(reports: Sequence[TaskReport]) -> bool:
    return any(report.refused is not None for report in reports)


def uncovered_rows_error(reports: Sequence[TaskReport], context: WriteContext, *, table: str) -> UncoveredRowsError:
    """RP-21: an error with the number of rows of all tasks that are outside of existing ranges, and the reasons for
    some of them."""
    defined = context.range_partitions
    assert defined is not None, "tasks reject rows by range partitions"
    samples = refused_samples_of(reports, defined.key.names, context.schema).combine_chunks().to_batches()[0]
    misfits = CoveredRows(defined, context).misfits(samples)
    assert misfits is not None, "tasks and commit agree about the existing ranges"
    refused_count = sum(report.refused.refused_count for report in reports if report.refused is not None)
    row_count = sum(_row_count(report) for report in reports)
    shown = list(dict.fromkeys(misfits.reasons.to_pylist()))[:_SHOWN_MAX]
    report = pa.table(
        [pa.nulls(len(samples), pa.int64()), misfits.columns, misfits.reasons], schema=REPORT_SCHEMA
    ).append_column("row", samples.to_struct_array())
    return UncoveredRowsError(
        f"{refused_count:,} of {row_count:,} rows are outside all range partitions of {table}: {'; '.join(shown)}. "
        f"Nothing was committed. {_room(misfits.retired_tags)}; the options on-refused = 'divert' and "
        "refused-rows-table write the other rows.",
        report,
        refused_count,
    )


def _room(retired_tags: Sequence[str]) -> str:
    """The procedures that make the rows fit. RP-30: a retired range can be restored."""
    add = "CALL system.add_range_partition(...) adds a range"
    if not retired_tags:
        return add
    restore = f"CALL system.restore_range_partition(..., {retired_tags[0]!r})"
    return f"{restore} restores the retired range; {add}"


def _row_count(report: TaskReport) -> int:
    """The rows of a task, rejected or not. Without rejected rows, all of them are in its files."""
    return report.refused.row_count if report.refused is not None else report.written_row_count


@dataclass(frozen=True, slots=True)
class Outside:
    """Rows of new files that are outside of the part that the write replaces."""

    test: RowsInSpans | RowsMatchFilter
    files: tuple[DataFile, ...]
    """The files with such rows."""
    row_count: int
    samples: pa.Table
    """The checked columns of some of these rows."""

    def error(self, reports: Sequence[TaskReport], *, table: str) -> RowsRefusedError:
        """RP-19, RP-24: an error with the number of rows outside, and some of them."""
        total = sum(_row_count(report) for report in reports)
        some = "; ".join(
            ", ".join(f"{name} = {value}" for name, value in row.items()) for row in self.samples.to_pylist()
        )
        # A condition without columns has no values to show.
        some = f": {some}" if self.samples.column_names else ""
        count = len(self.samples)
        columns = [pa.nulls(count, pa.int64()), pa.nulls(count, pa.large_string())]
        reasons = pa.repeat(pa.scalar(f"is outside {self.test.told}", pa.large_string()), count)
        return RowsRefusedError(
            f"{self.row_count:,} of {total:,} rows for {table} are outside {self.test.told}{some}. Nothing was "
            "committed. Remove these rows. Or write the other rows with the options on-refused = 'divert' and "
            "refused-rows-table. In an overwrite by a condition, allow-outside = 'true' accepts them.",
            pa.table([*columns, reasons], schema=REPORT_SCHEMA).append_column("row", self.samples.to_struct_array()),
            self.row_count,
        )


def rows_outside(
    test: RowsInSpans | RowsMatchFilter, files: Sequence[DataFile], view: SnapshotView, context: WriteContext
) -> Outside | None:
    """The rows that the test rejects; None if it rejects none. A file is opened only if its bounds are inconclusive."""
    view = replace(view, schema=context.schema, snapshot=None)
    found, row_count, samples = [], 0, []
    for data in _not_inside(test, files, view):
        misfits = [(batch, refused) for batch in _read([data], view, test.columns) if (refused := test.misfits(batch))]
        if misfits:
            found.append(data)
            row_count += sum(len(refused.positions) for _, refused in misfits)
            samples += [batch.take(pa.array(refused.positions[:_SHOWN_MAX])) for batch, refused in misfits]
    return Outside(test, tuple(found), row_count, pa.Table.from_batches(samples)[:_SHOWN_MAX]) if found else None


def _not_inside(
    test: RowsInSpans | RowsMatchFilter, files: Sequence[DataFile], view: SnapshotView
) -> Sequence[DataFile]:
    """The files that may have a rejected row, judged by their bounds."""
    if isinstance(test, RowsInSpans):
        numbered = [replace(data, sequence_number=1) for data in files]
        places = classify_many(sort_and_merge(test.spans).with_sequence_number(2), numbered)
        return [data for data, (place, _) in zip(files, places, strict=True) if place is not Coverage.COVERED]
    staged = StagedFilesOnTop(tuple(replace(data, sequence_number=1) for data in files))
    tasks = plan_scan(view, to_expression(test.bound), staged=staged).tasks
    inside = {task.data_file.file_path for task in tasks if bind_filter(task.residual, view.schema) is TRUE}
    return [data for data in files if data.file_path not in inside]


@dataclass(frozen=True, slots=True)
class Diversion:
    """The commit that remains when the rejected rows are staged in the other table."""

    staged: StagedFiles
    refused: StagedRows
    """The rejected rows in the other table, which are published after the commit."""
    spoiled: pa.Table | None
    """CP-24: the prefixes with a rejected row. They are not replaced."""
    written_anew: StagedFiles
    """The staged files that this process wrote."""
    anew: Mapping[str, tuple[str, ...]]
    """For each file of a task that lost rows, the files with its other rows. Two files may hold rows of one key, of
    which one is deleted later (CP-68), so their rows are not mixed."""
    unused_paths: tuple[str, ...]
    """Files that are not needed after the rows are committed."""


def divert(
    refused_table: Table,
    view: SnapshotView,
    context: WriteContext,
    reports: Sequence[TaskReport],
    staged: StagedFiles,
    *,
    prefix: Sequence[str],
    outside: Outside | None,
    options: CommitOptions,
) -> Diversion:
    """RP-22: stage the rejected rows in the table for them. They are published after the accepted rows are committed.

    With a `prefix`, all rows of a prefix with a rejected row are diverted (CP-24).
    """
    view = replace(view, schema=context.schema, snapshot=None)
    refused = [file for report in reports if report.refused and (file := report.refused.data_file(context))]
    spoiled = _prefixes_in(refused, view, prefix) if prefix else None
    files = () if outside is None else outside.files
    test: RowTest | None = None if outside is None else outside.test
    if spoiled is not None:
        files, test = _files_with(spoiled, staged.data_files, view, context), SpoiledGroups(spoiled)
    rewritten = {} if test is None else _without(files, view, context, test)
    written_anew = StagedFiles.merge(rewritten.values())
    try:
        staged_rows = _stage(refused_table, _diverted(refused, view, context, written_anew.refused), context, options)
    except BaseException:
        written_anew.delete_all(context.io)
        raise
    return Diversion(
        staged=replace(StagedFiles.merge([_less(staged, files), written_anew]), refused=None),
        refused=staged_rows,
        spoiled=spoiled,
        written_anew=written_anew,
        anew={path: each.file_paths for path, each in rewritten.items()},
        unused_paths=tuple(file.file_path for file in (*refused, *files)),
    )


def _stage(table: Table, rows: Iterator[pa.RecordBatch], context: WriteContext, options: CommitOptions) -> StagedRows:
    schema = _told(table, arrow_schema(context.schema))
    return stage_rows(table, schema, (batch.select(schema.names).cast(schema) for batch in rows), options)


def _less(staged: StagedFiles, files: Sequence[DataFile]) -> StagedFiles:
    """The staged files without these data files."""
    paths = {data.file_path for data in files}
    return StagedFiles(
        data_files=tuple(data for data in staged.data_files if data.file_path not in paths),
        row_count=staged.row_count - sum(data.record_count for data in files),
        written_bytes=staged.written_bytes - sum(data.file_size_bytes for data in files),
    )


def _told(refused: Table, columns: pa.Schema) -> pa.Schema:
    """The columns of rejected rows: the columns of the table, and the reason columns that exist in the other table."""
    known = set(refused.metadata.schema().column_names)
    return pa.schema([*columns, *(field for field in _REASON_COLUMNS if field.name in known)])


def _diverted(
    files: Sequence[DataFile], view: SnapshotView, context: WriteContext, mates: pa.Table | None
) -> Iterator[pa.RecordBatch]:
    """The rejected rows with their reasons: rows that no range covers, and rows that share a prefix with one."""
    defined = context.range_partitions
    for batch in _read(files, view):
        assert defined is not None, "tasks reject rows by range partitions"
        misfits = CoveredRows(defined, context).misfits(batch)
        assert misfits is not None, "tasks and commit agree about the existing ranges"
        assert len(misfits.positions) == batch.num_rows, "tasks and commit agree about the existing ranges"
        reasons = zip(_REASON_COLUMNS.names, (misfits.columns, misfits.reasons), strict=True)
        for name, values in reasons:
            batch = batch.append_column(name, values)  # noqa: PLW2901 (two columns wider)
        yield batch
    if mates is not None:
        yield from mates.to_batches()


def _prefixes_in(files: Sequence[DataFile], view: SnapshotView, names: Sequence[str]) -> pa.Table:
    """The distinct prefixes of the rows, in the types of the table's schema."""
    collector = PrefixCollector(arrow_schema(view.schema), names)
    for batch in _read(files, view):
        collector.observe(batch)
    prefixes = Schema(*(view.schema.find_field(name) for name in names))
    return ConformedRows(collector.prefixes.to_reader(), prefixes).to_reader().read_all()


def _files_with(
    prefixes: pa.Table, files: Sequence[DataFile], view: SnapshotView, context: WriteContext
) -> tuple[DataFile, ...]:
    """The files that may have rows of the prefixes, judged by their bounds."""
    spans = sort_and_merge(spans_of_prefixes(KeyColumns.of(view.schema, context.key_field_ids), prefixes))
    places = classify_many(spans.with_sequence_number(2), [replace(data, sequence_number=1) for data in files])
    return tuple(data for data, (place, _) in zip(files, places, strict=True) if place is not Coverage.CLEAN)


def _without(
    files: Sequence[DataFile], view: SnapshotView, context: WriteContext, test: RowTest
) -> dict[str, StagedFiles]:
    """For each file, its rows that pass the test, in new files. The other rows are returned with the reason."""
    rewritten: dict[str, StagedFiles] = {}
    try:
        for file in files:
            reader = pa.RecordBatchReader.from_batches(arrow_schema(view.schema), _read([file], view))
            rows = ConformedRows(reader, view.schema, on_refused="divert", checks=(test,))
            rewritten[file.file_path] = write_data_files(context, rows)
    except BaseException:
        StagedFiles.merge(rewritten.values()).delete_all(context.io)
        raise
    return rewritten


def _read(
    files: Sequence[DataFile], view: SnapshotView, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of files that are not in a snapshot yet."""
    numbered = tuple(replace(data, sequence_number=1) for data in files)
    context = ReadContext.of(view, columns)
    for task in plan_scan(view, staged=StagedFilesOnTop(numbered)).tasks:
        yield from read_task(task, context)
