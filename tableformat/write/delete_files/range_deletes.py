"""Range delete files: spans of one column list under one spec and partition."""

from __future__ import annotations

from typing import Any

from tableformat.deletes.codecs.inline_spans import encode_spans
from tableformat.deletes.codecs.range_file import spans_to_parquet_table, write_span_table
from tableformat.deletes.spans.bounds import entry_bounds
from tableformat.deletes.spans.neighbours import joined_neighbours
from tableformat.deletes.spans.spans import INHERITED, SpanArray, sort_and_merge
from tableformat.errors import InvalidKeyError
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DeleteFile, FileContent
from tableformat.storage.storage import open_output
from tableformat.write.context import WriteContext
from tableformat.write.created_files import removed_on_failure
from tableformat.write.delete_files.delete_files import checked_partition, delete_file


def write_range_delete_file(
    context: WriteContext, spans: SpanArray, *, spec_id: int, partition: tuple[Any, ...] = ()
) -> DeleteFile:
    """RD-6: one delete file whose manifest entry other readers refuse: equality ids in key order, and our own file
    format.

    Spans without sequence numbers may be unsorted and overlap. They are merged (RD-7) and inherit the number of the
    commit. Spans with numbers must be sorted and disjoint (`skyline`), and the entry has the largest number (RD-8).
    Adjacent spans without a possible key between them are joined (RD-14). Under an unpartitioned spec the file applies
    to every partition (RD-3). After a failure no file is left.
    """
    if len(spans) == 0:
        raise InvalidKeyError("a range delete needs at least one span.")
    partition = checked_partition(context, spec_id, partition)
    numbers = spans.sequence_numbers
    if numbers is None or bool((numbers == INHERITED).all()):
        spans = sort_and_merge(spans)
        largest = None
    else:
        largest = int(numbers.max())
    spans = joined_neighbours(spans)
    lower_bounds, upper_bounds = entry_bounds(spans)
    table = spans_to_parquet_table(spans)
    with removed_on_failure(context) as created:
        location = created.new_location("-range-deletes", spec_id, partition)
        with open_output(context.io, location) as sink:
            write_span_table(table, sink)
            size = sink.tell()
        return delete_file(
            location,
            size,
            content=FileContent.EQUALITY_DELETES,
            file_format=RANGE_DELETES_PARQUET,
            spec_id=spec_id,
            partition=partition,
            record_count=len(spans),
            sequence_number=largest,
            equality_ids=spans.key.field_ids,
            lower_bounds=lower_bounds or None,
            upper_bounds=upper_bounds or None,
            range_spans=encode_spans(spans, table),
        )
