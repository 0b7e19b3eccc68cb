"""Counts the distinct values of the columns of a snapshot, and registers a statistics file for it (SP-39).

data files -> alive rows -> a sketch a column -> united -> one Puffin file -> `statistics` of the table's metadata
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.statistics import BlobMetadata as RegisteredBlob
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.table.update import SetStatisticsUpdate, TableRequirement, TableUpdate
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.metadata_commit import commit_metadata, refresh
from tableformat.errors import CommitConflictError, InvalidArgumentError, UnknownColumnError
from tableformat.maintenance.running.executors import LOCAL, Executor, task_runner
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.maintenance.running.tasks import Work
from tableformat.markup.results import HtmlResult
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.puffin import BlobMetadata, encode_puffin, read_blob, read_footer
from tableformat.metadata.sketches.theta_sketch import NDV, THETA_V1, ThetaSketch
from tableformat.metadata.snapshot_choice import head_view, view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.storage.location_provider import location_provider
from tableformat.storage.storage import delete_if_present, write_bytes

logger = logging.getLogger(__name__)

_TASK_BYTES: Final = 512 * 1024 * 1024
"""The most bytes of data files that one task reads, unless a single file is larger."""
_AT_ONCE: Final = 1
"""One task at a time, because reading within a task is parallel."""

Blob = tuple[BlobMetadata, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeTableStatsResult(HtmlResult):
    """The counts. With `dry_run`: the columns that would be counted."""

    snapshot_id: int | None
    """The snapshot that was counted; None for a table without a snapshot."""
    statistics_file: str | None = None
    """Location of the new Puffin file; None with `dry_run`, and without a snapshot."""
    columns: tuple[str, ...] = ()
    distinct_counts: tuple[int, ...] = ()
    """The approximate number of distinct values of each column, without nulls; empty with `dry_run`."""
    duration_seconds: float = 0.0
    dry_run: bool = False


def compute_table_stats(
    iceberg: IcebergTable,
    branch: str,
    columns: Sequence[str] | None = None,
    *,
    snapshot_id: int | None = None,
    dry_run: bool = False,
    executor: Executor = LOCAL,
    progress: Progress | None = None,
) -> ComputeTableStatsResult:
    """Read the columns of a snapshot, the branch's head by default, and commit a statistics file for it.

    Raises UnknownColumnError for columns that do not exist, InvalidArgumentError for columns that are not primitive,
    SnapshotNotFoundError for an unknown snapshot, CommitConflictError if the snapshot was expired in the meantime.
    """
    started = time.perf_counter()
    runner = task_runner(executor)
    refresh(iceberg)
    metadata, io = iceberg.metadata, iceberg.io
    view = head_view(metadata, io, branch) if snapshot_id is None else view_at(metadata, io, snapshot_id)
    fields = _fields(view.schema, columns)
    names = tuple(field.name for field in fields)
    snapshot = view.snapshot
    if snapshot is None or dry_run:
        return ComputeTableStatsResult(
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            columns=names,
            duration_seconds=time.perf_counter() - started,
            dry_run=dry_run,
        )
    tasks = _tasks(plan_scan(view).tasks)
    work: Work[tuple[FileScanTask, ...], ReadContext, tuple[ThetaSketch, ...]] = Work(
        sketches_of, ReadContext.of(view, names), _nothing_to_discard
    )
    sketches = [ThetaSketch.empty()] * len(fields)
    tell = progress or silent
    tell(0, len(tasks), "groups of data files")
    with closing(runner.run(work, tasks, at_once=_AT_ONCE)) as results:
        for done, (_, found) in enumerate(results, 1):
            sketches = [ThetaSketch.united(pair) for pair in zip(sketches, found, strict=True)]
            tell(done, len(tasks), "groups of data files")
    blobs = [_blob(field, sketch, view) for field, sketch in zip(fields, sketches, strict=True)]
    file = _write(view, [*_kept_blobs(view, {field.field_id for field in fields}), *blobs])
    _register(iceberg, file)
    return ComputeTableStatsResult(
        snapshot_id=snapshot.snapshot_id,
        statistics_file=file.statistics_path,
        columns=names,
        distinct_counts=tuple(sketch.estimate for sketch in sketches),
        duration_seconds=time.perf_counter() - started,
    )


def sketches_of(tasks: Sequence[FileScanTask], context: ReadContext) -> tuple[ThetaSketch, ...]:
    """A sketch of each selected column over the alive rows of the tasks."""
    sketches = [ThetaSketch.empty() for _ in context.selected.fields]
    for rows in read_tables(tasks, context):
        sketches = [
            ThetaSketch.united((sketch, _sketch(rows, field)))
            for sketch, field in zip(sketches, context.selected.fields, strict=True)
        ]
    return tuple(sketches)


def _sketch(rows: pa.Table, field: NestedField) -> ThetaSketch:
    assert isinstance(field.field_type, PrimitiveType), "other types were rejected"
    return ThetaSketch.of(rows[field.name], field.field_type)


def _fields(schema: Schema, columns: Sequence[str] | None) -> list[NestedField]:
    """The columns with these names, or all primitive columns."""
    if isinstance(columns, str):
        raise InvalidArgumentError(f"columns must be a list of names: columns=[{columns!r}].")
    if columns is None:
        return [field for field in schema.fields if isinstance(field.field_type, PrimitiveType)]
    known = {field.name: field for field in schema.fields}
    chosen = []
    for name in dict.fromkeys(columns):
        if name not in known:
            raise UnknownColumnError(name, known, where="statistics")
        if not isinstance(known[name].field_type, PrimitiveType):
            raise InvalidArgumentError(
                f"column {name!r} has the type {known[name].field_type}, but statistics support only primitive columns."
            )
        chosen.append(known[name])
    if not chosen:
        raise InvalidArgumentError("columns is empty; omit it to use all columns.")
    return chosen


def _tasks(tasks: Sequence[FileScanTask]) -> list[tuple[FileScanTask, ...]]:
    """Consecutive files in groups of about the same size."""
    groups: list[list[FileScanTask]] = []
    size = _TASK_BYTES
    for task in tasks:
        if size + task.data_file.file_size_bytes > _TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(task)
        size += task.data_file.file_size_bytes
    return list(map(tuple, groups))


def _nothing_to_discard(_sketches: tuple[ThetaSketch, ...]) -> None:
    """Sketches have no files."""


def _blob(field: NestedField, sketch: ThetaSketch, view: SnapshotView) -> Blob:
    assert view.snapshot is not None, "a snapshot was read"
    metadata = BlobMetadata(
        type=THETA_V1,
        fields=(field.field_id,),
        snapshot_id=view.snapshot.snapshot_id,
        sequence_number=view.sequence_number,
        offset=0,
        length_bytes=0,
        properties={NDV: str(sketch.estimate)},
    )
    return metadata, sketch.to_bytes()


def _kept_blobs(view: SnapshotView, counted: set[int]) -> list[Blob]:
    """The statistics of other columns in the existing statistics file of the snapshot, which the new file replaces.
    Compressed blobs, which other writers create, are left out, and a warning is logged."""
    assert view.snapshot is not None, "a snapshot was read"
    known = next((each for each in view.metadata.statistics if each.snapshot_id == view.snapshot.snapshot_id), None)
    if known is None:
        return []
    location, size = known.statistics_path, known.file_size_in_bytes
    others = [blob for blob in read_footer(view.io, location, size).blobs if not counted.intersection(blob.fields)]
    blobs = [blob for blob in others if blob.compression_codec is None]
    if len(blobs) < len(others):
        logger.warning(
            "%d compressed statistics of other columns in %s are not carried over; compute these columns again",
            len(others) - len(blobs),
            location,
        )
    return [
        (blob, read_blob(view.io, location, offset=blob.offset, length_bytes=blob.length_bytes, file_size_bytes=size))
        for blob in blobs
    ]


def _write(view: SnapshotView, blobs: Sequence[Blob]) -> StatisticsFile:
    """Writes the Puffin file, with a name in Iceberg's form, and returns its entry for the metadata."""
    assert view.snapshot is not None, "a snapshot was read"
    content, footer = encode_puffin(blobs, {"created-by": "tableformat"})
    metadata, snapshot_id = view.metadata, view.snapshot.snapshot_id
    provider = location_provider(metadata.location, metadata.properties)
    location = provider.new_metadata_location(f"{snapshot_id}-{uuid.uuid4()}.stats")
    write_bytes(view.io, location, content)
    last = max((blob.offset + blob.length_bytes for blob in footer.blobs), default=4)
    return StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot_id,
            "statistics-path": location,
            "file-size-in-bytes": len(content),
            "file-footer-size-in-bytes": len(content) - last,
            "blob-metadata": [
                RegisteredBlob.model_validate(
                    {
                        "type": blob.type,
                        "snapshot-id": blob.snapshot_id,
                        "sequence-number": blob.sequence_number,
                        "fields": list(blob.fields),
                        "properties": dict(blob.properties),
                    }
                )
                for blob in footer.blobs
            ],
        }
    )


def _register(iceberg: IcebergTable, file: StatisticsFile) -> None:
    """Registers the file. It is removed if it is not registered, unless the outcome is unknown."""

    def updates(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        if snapshot_by_id(table.metadata, file.snapshot_id) is None:
            raise CommitConflictError(
                f"snapshot {file.snapshot_id} of {'.'.join(table.name())} expired while its values were counted. "
                "Nothing was changed. Run the job again."
            )
        return [SetStatisticsUpdate.model_validate({"statistics": file})], ()

    status = CommitStatus()
    with removing_on_failure(status, lambda: delete_if_present(iceberg.io, file.statistics_path)):
        commit_metadata(iceberg, updates, status=status)
