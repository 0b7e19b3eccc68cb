"""Checks the contents of delete files: positions, vectors, keys and spans (MT-75)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from tableformat.deletes.codecs.inline_spans import decode_spans
from tableformat.deletes.codecs.position_rows import (
    FILE_PATH,
    FILE_PATH_FIELD_ID,
    POSITION,
    POSITION_FIELD_ID,
    positions_by_path,
)
from tableformat.deletes.codecs.range_file import spans_from_parquet
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number, shares_partition
from tableformat.deletes.spans.bounds import entry_bounds
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.verification.data_rows import FileReport, RowContext, checked_batches, verify_rows
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.maintenance.verification.row_checks import leaf_values
from tableformat.maintenance.verification.stored_files import flaw_of
from tableformat.merge_on_read.delete_columns import history_schema
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.merge_on_read.delete_loader import POSITION_DELETE_COLUMNS, DeleteLoader
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.puffin import CARDINALITY, DELETION_VECTOR_V1, REFERENCED_DATA_FILE, read_footer
from tableformat.parquet.page_checksums import has_page_checksums
from tableformat.parquet.parquet_file import OpenedFile, open_parquet, unreadable_as_corrupt


def verify_deletes(
    deletes: Sequence[DeleteFile], context: RowContext, data_files: Mapping[str, DataFile]
) -> FileReport:
    """MT-75: check the delete files at one location: a single one, or the vectors of one Puffin file.

    `data_files` are the data files of all verified snapshots, by location.
    """
    report = FileReport()
    try:
        match deletes[0].kind:
            case DeleteKind.DELETION_VECTOR:
                report.flaws += _vector_flaws(deletes, context, data_files)
            case DeleteKind.POSITION:
                report.has_checksums, flaws = _opened(deletes[0], context, _position_flaws(deletes[0], data_files))
                report.flaws += flaws
            case DeleteKind.EQUALITY:
                report = verify_rows(deletes[0], context, deletes[0].equality_ids)
                report.row_count = 0
            case DeleteKind.RANGE:
                report.has_checksums, flaws = _opened(deletes[0], context, _span_flaws(deletes[0], context))
                report.flaws += flaws
    except (CorruptFileError, UnsupportedFeatureError) as error:
        report.flaws.append(flaw_of(context.io, error, deletes[0].file_path))
    return report


def _opened(
    delete: DeleteFile, context: RowContext, ask: Callable[[OpenedFile], Iterator[Flaw]]
) -> tuple[bool, list[Flaw]]:
    """Whether the file has checksums, and the flaws found in it."""
    name_mapping = POSITION_DELETE_COLUMNS if delete.kind is DeleteKind.POSITION else None
    with open_parquet(context.io, delete, name_mapping=name_mapping) as file:
        has_checksums = has_page_checksums(file.metadata, file.source)
        flaws = list(ask(file))
        if file.row_count != delete.record_count:
            what = f"its entry states {delete.record_count:,} rows, but its footer states {file.row_count:,}"
            flaws.append(Flaw(FindingKind.WRONG_COUNT, delete.file_path, what))
    return has_checksums, flaws


def _position_flaws(delete: DeleteFile, data_files: Mapping[str, DataFile]) -> Callable[[OpenedFile], Iterator[Flaw]]:
    """DA-10: checks that the rows that it names exist. Data files that are not live are ignored."""

    def ask(file: OpenedFile) -> Iterator[Flaw]:
        ends: dict[str, int] = {}
        for field_id in (FILE_PATH_FIELD_ID, POSITION_FIELD_ID):
            if field_id not in file.leaves:
                raise CorruptFileError(delete.file_path, f"the column with field id {field_id} is not in the file.")
        for batch in checked_batches(file):
            with unreadable_as_corrupt(delete.file_path):
                columns = {
                    name: leaf_values(batch, file.leaves[field_id].path)
                    for name, field_id in ((FILE_PATH, FILE_PATH_FIELD_ID), (POSITION, POSITION_FIELD_ID))
                }
                for path, positions in positions_by_path(pa.table(columns)).items():
                    ends[path] = max(ends.get(path, 0), _end(positions))
        named = delete.referenced_data_file
        if named is not None and set(ends) - {named}:
            other = min(set(ends) - {named})
            what = f"its entry names only {named}, but it names {other}"
            yield Flaw(FindingKind.WRONG_POSITION, delete.file_path, what)
        for path, end in ends.items():
            yield from _beyond(delete, end, data_files.get(path))
            data = data_files.get(path)
            if named_data_file(delete) is None and data is not None and not shares_partition(delete, data):
                what = f"it deletes rows of {path}, which is in another partition"
                yield Flaw(FindingKind.WRONG_PARTITION, delete.file_path, what)

    return ask


def _vector_flaws(
    vectors: Sequence[DeleteFile], context: RowContext, data_files: Mapping[str, DataFile]
) -> Iterator[Flaw]:
    """DA-7: checks that each vector is at a position where the Puffin footer has a vector of its data file, and that
    the rows that it names exist."""
    location = vectors[0].file_path
    loader = DeleteLoader.of(context.metadata, context.io)
    blobs = {(blob.offset, blob.length_bytes): blob for blob in read_footer(context.io, location).blobs}
    for vector in vectors:
        data = data_files.get(vector.referenced_data_file or "")
        try:
            yield from _beyond(vector, _end(loader.vector(vector)), data)
        except CorruptFileError as error:
            yield flaw_of(context.io, error, location)
        where = f"at {vector.content_offset}, {vector.content_size_bytes} bytes"
        blob = blobs.get((vector.content_offset or 0, vector.content_size_bytes or 0))
        if blob is None or blob.type != DELETION_VECTOR_V1:
            yield Flaw(FindingKind.WRONG_POSITION, location, f"its footer has no deletion vector {where}")
            continue
        stated = blob.properties.get(REFERENCED_DATA_FILE), blob.properties.get(CARDINALITY)
        entry = vector.referenced_data_file, str(vector.record_count)
        if stated != entry:
            what = f"its footer states file and positions {stated} of the vector {where}, but its entry states {entry}"
            yield Flaw(FindingKind.WRONG_POSITION, location, what)


def _span_flaws(delete: DeleteFile, context: RowContext) -> Callable[[OpenedFile], Iterator[Flaw]]:
    """RD-7, RD-8, RD-13: checks that the spans are sorted and disjoint, not newer than the file, equal to the spans in
    the entry, and within its bounds."""

    def ask(file: OpenedFile) -> Iterator[Flaw]:
        number = committed_sequence_number(delete)
        batches = list(checked_batches(file))
        schema = history_schema(context.metadata)
        with unreadable_as_corrupt(delete.file_path):
            stored = file.reader().schema_arrow
            rows = pa.Table.from_batches(batches, batches[0].schema if batches else stored)
            rows = rows.replace_schema_metadata(file.metadata.metadata)
            spans = spans_from_parquet(rows, delete.file_path, schema).with_sequence_number(number)
            written = spans_from_parquet(rows, delete.file_path)
        if spans.key.field_ids != delete.equality_ids:
            what = f"its entry states delete columns {delete.equality_ids}, but its footer states {spans.key.field_ids}"
            yield Flaw(FindingKind.WRONG_SPANS, delete.file_path, what)
            return
        largest = 0 if spans.sequence_numbers is None else int(spans.sequence_numbers.max(initial=0))
        if largest > number:
            what = f"it has a span with number {largest}, but its entry has number {number}"
            yield Flaw(FindingKind.WRONG_SPANS, delete.file_path, what)
        if delete.range_spans is not None:
            yield from _carried_flaws(delete, context, spans)
        yield from _bound_flaws(delete, written)

    return ask


def _carried_flaws(delete: DeleteFile, context: RowContext, spans: SpanArray) -> Iterator[Flaw]:
    (carried,) = decode_spans([delete], history_schema(context.metadata))
    is_same = carried.lower.encoded.equals(spans.lower.encoded) and carried.upper.encoded.equals(spans.upper.encoded)
    if not is_same:
        what = f"its entry carries {len(carried)} spans that differ from the {len(spans)} in the file"
        yield Flaw(FindingKind.WRONG_SPANS, delete.file_path, what)


def _bound_flaws(delete: DeleteFile, spans: SpanArray) -> Iterator[Flaw]:
    """Checks that the bounds in the entry include every key that the spans delete: they are the bounds of the spans, or
    wider."""
    lowest, highest = entry_bounds(spans)
    for field_id, column_type in zip(spans.key.field_ids, spans.key.types, strict=True):
        for stated, found, is_upper in (
            ((delete.lower_bounds or {}).get(field_id), lowest.get(field_id), False),
            ((delete.upper_bounds or {}).get(field_id), highest.get(field_id), True),
        ):
            if stated is None:
                continue
            bound = from_bound(stated, column_type, location=delete.file_path)
            extreme = None if found is None else from_bound(found, column_type)
            if extreme is None or (extreme > bound if is_upper else extreme < bound):
                side = "upper" if is_upper else "lower"
                what = f"the {side} bound {bound!r} of field {field_id} in its entry excludes keys of its spans"
                yield Flaw(FindingKind.WRONG_BOUNDS, delete.file_path, what)


def _beyond(delete: DeleteFile, end: int, data: DataFile | None) -> Iterator[Flaw]:
    """Checks that the positions are row numbers of the data file, from 0."""
    if data is not None and end > data.record_count:
        what = f"it names position {end - 1:,} of {data.file_path}, which has {data.record_count:,} rows"
        yield Flaw(FindingKind.WRONG_POSITION, delete.file_path, what)


def _end(positions: PositionSet) -> int:
    """The position after the last."""
    return int(positions.ends[-1]) if len(positions.ends) else 0
