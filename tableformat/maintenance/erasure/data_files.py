"""Finds the rows of the scope in data files, and writes these files again without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from tableformat.cached_property import cached_property
from tableformat.deletes.positions import PositionSet
from tableformat.maintenance.erasure.outcome import ErasedRows
from tableformat.maintenance.erasure.parquet_files import RewrittenParquet, rewrite_parquet, values_of_dictionaries
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.merge_on_read.delete_columns import history_schema
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.column_bounds import BOUND_WIDTH, from_bound
from tableformat.metadata.content_file import ContentFile, DataFile
from tableformat.parquet.parquet_metrics import Metrics, data_file_metrics
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.scan.context import ReadContext
from tableformat.scan.matching_positions import matching_positions
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles


@dataclass(frozen=True)
class ErasureContext:
    """One state of a table, for reading its files and writing them again."""

    metadata: TableMetadata
    io: FileIO
    scope: ErasureScope
    created: CreatedFiles
    """All files that the erasure writes, except metadata."""

    @cached_property
    def write(self) -> WriteContext:
        return WriteContext.of(self.metadata, self.io)

    @cached_property
    def merge(self) -> MergeContext:
        return MergeContext(self.metadata, self.io)

    @cached_property
    def read(self) -> ReadContext:
        schema = self.metadata.schema()
        return ReadContext(self.merge, schema, schema.select())

    @cached_property
    def every_column(self) -> Schema:
        """The primitive columns of all schemas of the table."""
        return history_schema(self.metadata)

    def names_path(self, path: str | None) -> bool:
        """Whether the path, below the location of the table, has the identifier."""
        return path is not None and self.scope.in_path(path.removeprefix(self.metadata.location))

    def in_partition(self, file: ContentFile) -> bool | None:
        return self.scope.in_partition(self.metadata.specs()[file.spec_id], file.partition)


def find_rows(file: DataFile, context: ErasureContext, *, by_bounds: bool = True) -> PositionSet | None:
    """MT-112: the rows of the scope in the file, whether a snapshot has deleted them or not. None if the file has no
    trace of the scope; an empty set if it has traces, but no row.

    With `by_bounds`, a file whose bounds exclude the scope is not opened.
    """
    is_inside = context.in_partition(file)
    if is_inside:
        return PositionSet.every(file.record_count)
    if is_inside is False or (by_bounds and not context.scope.may_hold(file)):
        return None
    task = FileScanTask(data_file=file, residual=context.scope.expression)
    found = matching_positions(task, context.read)
    return found if found or bounds_name(file, context) or dictionaries_name(file, context) else None


def bounds_name(file: ContentFile, context: ErasureContext) -> bool:
    """Whether a bound of the file is the only value of the scope."""
    single = context.scope.single
    if single is None:
        return False
    kind = context.every_column.find_type(single.field.field_id)
    stated = [(bounds or {}).get(single.field.field_id) for bounds in (file.lower_bounds, file.upper_bounds)]
    return any(
        context.scope.names_bound(from_bound(bound, kind, location=file.file_path))  # type: ignore[arg-type]
        for bound in stated
        if bound is not None
    )


def dictionaries_name(file: DataFile, context: ErasureContext) -> bool:
    """Whether a dictionary of the file has a value of the scope, which may be one that no row has."""
    single = context.scope.single
    if single is None:
        return False
    field_id = single.field.field_id
    with context.merge.open_data_file(file) as opened:
        return any(_names(values, field_id, context.scope) for values in values_of_dictionaries(opened, field_id))


def _names(values: pa.Array, field_id: int, scope: ErasureScope) -> bool:
    mask = scope.matching({field_id: values}, len(values))
    return mask is not None and bool(mask.true_count)


def rewrite_data_file(file: DataFile, erased: PositionSet, context: ErasureContext) -> ErasedRows:
    """MT-113: the file without the erased rows, in the same partition, with the same age and sort order."""
    outcome = ErasedRows(file, erased)
    if outcome.is_dropped:
        return outcome
    location = context.created.new_location("", file.spec_id, file.partition)
    with context.merge.open_data_file(file) as opened:
        rewritten = rewrite_parquet(
            opened, erased, context.scope, context.write, location, first_row_id=file.first_row_id
        )
    metrics = new_metrics(file, rewritten, context)
    after = replace(
        file, file_path=location, file_size_bytes=rewritten.written.size_bytes, key_metadata=None, **metrics
    )
    return ErasedRows(file, erased, after)


def new_metrics(
    file: ContentFile, rewritten: RewrittenParquet, context: ErasureContext, *, width: int = BOUND_WIDTH
) -> dict[str, Any]:
    """The fields of the entry that follow from the rows. A column gets the metrics that it had before."""
    metrics = data_file_metrics(
        rewritten.written.metadata,
        context.every_column,
        nan_value_counts=rewritten.nan_counts,
        modes=context.write.metrics_modes,
        bound_width=width,
    )
    return entry_metrics(_as_before(file, metrics))


def _as_before(file: ContentFile, metrics: Metrics) -> Metrics:
    return replace(
        metrics,
        value_counts=_known(metrics.value_counts, file.value_counts),
        null_value_counts=_known(metrics.null_value_counts, file.null_value_counts),
        nan_value_counts=_known(metrics.nan_value_counts or {}, file.nan_value_counts),
        lower_bounds=_known(metrics.lower_bounds, file.lower_bounds),
        upper_bounds=_known(metrics.upper_bounds, file.upper_bounds),
    )


def _known(found: Mapping[int, Any], before: Mapping[int, Any] | None) -> dict[int, Any]:
    columns: Iterable[int] = () if before is None else before.keys()
    return {field_id: found[field_id] for field_id in columns if field_id in found}
