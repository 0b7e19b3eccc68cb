"""What the range deletes of a snapshot mean for its data files, decided before any data file is opened (D7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.rules import partition_of
from tableformat.deletes.spans.coverage import Verdict, classify_many
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.delete_index import EVERYWHERE, ColumnTypes, KeyDeleteIndex, by_scope_and_columns
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.metadata.content_file import DataFile, DeleteFile


@dataclass(frozen=True, slots=True)
class RangeVerdicts:
    """By place of the data file in the list that was asked about."""

    covered: set[int] = field(default_factory=set)
    """Files of which every row is deleted (RD-10)."""
    spans: dict[int, list[SpanArray]] = field(default_factory=dict)
    """Files of which rows decide: one array of spans for each scope and column list that touches their bounds."""
    files: dict[int, tuple[DeleteFile, ...]] = field(default_factory=dict)
    """Where the spans were too many to load: the range delete files that may matter to a data file."""


def range_verdicts(
    deletes: Sequence[DeleteFile],
    data_files: Sequence[DataFile],
    *,
    specs: dict[int, PartitionSpec],
    column_types: ColumnTypes,
    loader: DeleteLoader,
    span_budget: int,
) -> RangeVerdicts:
    """RD-3, RD-10: one skyline for each scope and column list, asked about every data file in its scope.

    With more spans than `span_budget` in all files together none is loaded; tasks carry the delete files instead.
    """
    verdicts = RangeVerdicts()
    if not deletes:
        return verdicts
    if sum(delete.record_count for delete in deletes) > span_budget:
        index = KeyDeleteIndex(deletes, specs, column_types)
        candidates = ((place, index.deletes_of(data)) for place, data in enumerate(data_files))
        verdicts.files.update({place: found for place, found in candidates if found})
        return verdicts
    for (scope, _), members in by_scope_and_columns(deletes, specs).items():
        places = [
            place
            for place, data in enumerate(data_files)
            if place not in verdicts.covered and scope in (EVERYWHERE, partition_of(data))
        ]
        if not places:
            continue
        results = classify_many(loader.range_fragments(members), [data_files[place] for place in places])
        for place, (verdict, spans) in zip(places, results, strict=True):
            if verdict is Verdict.COVERED:
                verdicts.covered.add(place)
            elif verdict is Verdict.PARTIAL:
                verdicts.spans.setdefault(place, []).append(spans)
    return verdicts
