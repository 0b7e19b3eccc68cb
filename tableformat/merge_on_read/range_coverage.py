"""Coverage of data files by the range deletes of a snapshot, before any data file is opened (decision 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.spans.coverage import Coverage, classify_for_plan
from tableformat.deletes.spans.fragment_range import RangeDeletes
from tableformat.deletes.spans.key_bound_columns import KeyBoundColumns, key_bound_columns
from tableformat.merge_on_read.delete_index import ColumnTypes, KeyDeleteIndex, by_scope_and_columns, in_scope
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.metadata.columns.data_columns import DataColumns
from tableformat.metadata.columns.data_file_rows import data_files
from tableformat.metadata.content_file import DeleteFile


@dataclass(frozen=True, slots=True)
class RangeCoverage:
    """By index of the data file in the given list."""

    covered: set[int] = field(default_factory=set)
    """Files in which every row is deleted (RD-10)."""
    spans: dict[int, list[RangeDeletes]] = field(default_factory=dict)
    """Partially covered files: the spans of each scope and column list that overlap their bounds."""
    files: dict[int, tuple[DeleteFile, ...]] = field(default_factory=dict)
    """If there were too many spans to load: the range delete files that may reach a data file."""


def range_coverage(
    deletes: Sequence[DeleteFile],
    files: DataColumns,
    *,
    specs: dict[int, PartitionSpec],
    column_types: ColumnTypes,
    loader: DeleteLoader,
    span_budget: int,
) -> RangeCoverage:
    """RD-3, RD-10: one skyline for each scope and column list, joined with the key bounds of all files in its scope.

    If all files together have more spans than `span_budget`, no spans are loaded, and tasks contain the delete files.
    """
    found = RangeCoverage()
    if not deletes or len(files) == 0:
        return found
    if sum(delete.record_count for delete in deletes) > span_budget:
        index = KeyDeleteIndex(deletes, specs, column_types)
        candidates = ((data_index, index.deletes_of(data)) for data_index, data in enumerate(data_files(files)))
        found.files.update({data_index: applying for data_index, applying in candidates if applying})
        return found
    is_covered = np.zeros(len(files), np.bool_)
    numbers = files.sequence_numbers
    assert (numbers >= 0).all(), "a data file has no sequence number before it is committed"
    for (scope, _), members in by_scope_and_columns(deletes, specs).items():
        reached = np.flatnonzero(in_scope(files, scope) & ~is_covered)
        fragments = loader.range_fragments(members) if len(reached) else None
        if fragments is None or len(fragments) == 0:
            continue
        bounds = key_bound_columns(files, fragments.key)
        if len(reached) < len(files):
            chosen = pa.array(reached)
            bounds = KeyBoundColumns(bounds.lower.take(chosen), bounds.upper.take(chosen))
        for position, (coverage, spans) in classify_for_plan(fragments, bounds, numbers[reached]).items():
            data_index = int(reached[position])
            if coverage is Coverage.COVERED:
                found.covered.add(data_index)
                is_covered[data_index] = True
            else:
                found.spans.setdefault(data_index, []).append(spans)
    return found
