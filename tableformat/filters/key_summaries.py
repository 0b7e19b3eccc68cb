"""FM-26: summaries of the key columns of each manifest, so that a filter on the key opens few manifests.

Iceberg's manifest lists only have summaries of partition fields. Without ours, a filter on other columns would open
every manifest, even if the manifests are clustered by the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyiceberg.types import NestedField, PrimitiveType

from tableformat.errors import CorruptFileError
from tableformat.filters.file_statistics import column_statistics
from tableformat.filters.pruning import UNKNOWN, ColumnStatistics
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ColumnSummary, ManifestFile


def column_summaries(files: Iterable[DataFile], columns: Sequence[NestedField]) -> tuple[ColumnSummary, ...]:
    """FM-26: a summary for each column with a bound that is known in every file."""
    members = list(files)
    summaries = (_summary(members, column) for column in columns)
    return tuple(summary for summary in summaries if summary is not None)


def summary_of_column(manifest: ManifestFile, field: NestedField) -> ColumnStatistics:
    """The possible values of a column in the manifest's data files; all values without a summary."""
    for summary in manifest.columns or ():
        if summary.field_id == field.field_id:
            bounds = {field.field_id: summary.lower_bound} if summary.lower_bound is not None else {}
            uppers = {field.field_id: summary.upper_bound} if summary.upper_bound is not None else {}
            count = 1 if summary.contains_null else 0
            pretended = DataFile(
                file_path=manifest.manifest_path,
                file_format="",
                spec_id=manifest.partition_spec_id,
                record_count=0,
                file_size_bytes=0,
                null_value_counts={field.field_id: count},
                lower_bounds=bounds,
                upper_bounds=uppers,
            )
            return column_statistics(pretended, field.field_id, field.field_type)
    return UNKNOWN


def _summary(files: Sequence[DataFile], column: NestedField) -> ColumnSummary | None:
    column_type = column.field_type
    if not files or not isinstance(column_type, PrimitiveType):
        return None
    try:
        found = [column_statistics(data, column.field_id, column_type) for data in files]
    except CorruptFileError:
        return None  # Whoever reads the file is told which bound is none; a commit beside it is not in the way.
    lowers, uppers = [each.lower for each in found], [each.upper for each in found]
    lower = None if None in lowers else to_bound(min(lowers), column_type)
    upper = None if None in uppers else to_bound(max(uppers), column_type)
    if lower is None and upper is None:
        return None
    return ColumnSummary(column.field_id, any(each.may_be_null for each in found), lower, upper)
