"""Coverage of data files by the range deletes of a snapshot, before any data file is opened (decision 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.rules import partition_of
from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.delete_index import EVERYWHERE, ColumnTypes, KeyDeleteIndex, by_scope_and_columns
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.metadata.content_file import DataFile, DeleteFile


@dataclass(frozen=True, slots=True)
class RangeCoverage:
    """By index of the data file in the list that was asked about."""

    covered: set[int] = field(default_factory=set)
    """Files of which every row is deleted (RD-10)."""
    spans: dict[int, list[SpanArray]] = field(default_factory=dict)
    """Files of which rows decide: one array of spans for each scope and column list that touches their bounds."""
    files: dict[int, tuple[DeleteFile, ...]] = field(default_factory=dict)
    """Where the spans were too many to load: the range delete files that may matter to a data file."""


def range_coverage(
    deletes: Sequence[DeleteFile],
    data_files: Sequence[DataFile],
    *,
    specs: dict[int, PartitionSpec],
    column_types: ColumnTypes,
    loader: DeleteLoader,
    span_budget: int,
) -> RangeCoverage:
    """RD-3, RD-10: one skyline for each scope and column list, asked about every data file in its scope.

    With more spans than `span_budget` in all files together none is loaded; tasks carry the delete files instead.
    """
    found = RangeCoverage()
    if not deletes:
        return found
    if sum(delete.record_count for delete in deletes) > span_budget:
        index = KeyDeleteIndex(deletes, specs, column_types)
        candidates = ((data_index, index.deletes_of(data)) for data_index, data in enumerate(data_files))
        found.files.update({data_index: applying for data_index, applying in candidates if applying})
        return found
    for (scope, _), members in by_scope_and_columns(deletes, specs).items():
        data_indexes = [
            data_index
            for data_index, data in enumerate(data_files)
            if data_index not in found.covered and scope in (EVERYWHERE, partition_of(data))
        ]
        if not data_indexes:
            continue
        results = classify_many(
            loader.range_fragments(members), [data_files[data_index] for data_index in data_indexes]
        )
        for data_index, (coverage, spans) in zip(data_indexes, results, strict=True):
            if coverage is Coverage.COVERED:
                found.covered.add(data_index)
            elif coverage is Coverage.PARTIAL:
                found.spans.setdefault(data_index, []).append(spans)
    return found
