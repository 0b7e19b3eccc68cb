"""Compares the rows of data files and equality delete files with their manifest entries (MT-74)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.maintenance.verification.row_checks import ColumnCheck, OrderCheck, PartitionCheck, RowCheck
from tableformat.maintenance.verification.stored_files import flaw_of
from tableformat.metadata.content_file import ContentFile, DataFile
from tableformat.parquet.page_checksums import has_page_checksums
from tableformat.parquet.parquet_file import OpenedFile, open_parquet, unreadable_as_corrupt
from tableformat.parquet.projection import FileProjection, identity_constants
from tableformat.properties import name_mapping

_BATCH_BYTES: Final = 8 * 1024 * 1024
_BATCH_ROWS_MAX: Final = 16_384
"""Rows with dictionary codes are far larger when decoded than by the footer."""
_BUFFER_BYTES: Final = 1024 * 1024


@dataclass(slots=True)
class FileReport:
    """The findings in one file."""

    flaws: list[Flaw] = field(default_factory=list)
    row_count: int = 0
    """Rows that were read."""
    has_checksums: bool = True


@dataclass(frozen=True, slots=True)
class RowContext:
    """The table whose files are read."""

    metadata: TableMetadata
    io: FileIO
    fields: Mapping[int, NestedField]
    """Every field in the history of the table (DA-6)."""


def verify_rows(file: ContentFile, context: RowContext, field_ids: Collection[int] | None = None) -> FileReport:
    """MT-74: read every page of every column, and compare the rows with the entry.

    `field_ids` limits the columns that are compared: for an equality delete file only its delete columns. Holds one
    batch of rows, regardless of the size of the row groups.
    """
    report = FileReport()
    try:
        with open_parquet(
            context.io, file, name_mapping=name_mapping(context.metadata.properties), verify_checksums=True
        ) as opened:
            report.has_checksums = has_page_checksums(opened.metadata, opened.source)
            if opened.row_count != file.record_count:
                what = f"its entry states {file.record_count:,} rows, but its footer states {opened.row_count:,}"
                report.flaws.append(Flaw(FindingKind.WRONG_COUNT, file.file_path, what))
            checks = [
                *_column_checks(file, opened, context, field_ids),
                *(_data_checks(file, opened, context, report) if isinstance(file, DataFile) else ()),
            ]
            for batch in checked_batches(opened):
                report.row_count += batch.num_rows
                with unreadable_as_corrupt(file.file_path):
                    for check in checks:
                        check.add(batch)
            for check in checks:
                report.flaws += check.flaws()
    except (CorruptFileError, UnsupportedFeatureError) as error:
        report.flaws.append(flaw_of(context.io, error, file.file_path))
    return report


def checked_batches(file: OpenedFile) -> Iterator[pa.RecordBatch]:
    """All columns of all rows, in batches. Raises CorruptFileError for a page whose checksum does not match."""
    for group in range(file.row_group_count):
        row_group = file.metadata.row_group(group)
        stored_width = row_group.total_byte_size / max(row_group.num_rows, 1)
        row_count = min(max(int(_BATCH_BYTES / max(stored_width, 1)), 1), _BATCH_ROWS_MAX)
        with unreadable_as_corrupt(file.location):
            reader = file.reader(buffer_bytes=_BUFFER_BYTES).reader
            yield from reader.iter_batches(row_count, row_groups=[group], use_threads=False)


def _column_checks(
    file: ContentFile, opened: OpenedFile, context: RowContext, field_ids: Collection[int] | None
) -> Iterator[RowCheck]:
    for field_id in field_ids or ():
        if field_id not in opened.leaves:
            raise CorruptFileError(file.file_path, f"the delete column with field id {field_id} is not in the file.")
    for field_id, leaf in opened.leaves.items():
        known = context.fields.get(field_id)
        is_wanted = field_ids is None or field_id in field_ids
        if is_wanted and known is not None and isinstance(known.field_type, PrimitiveType):
            yield ColumnCheck(file, field_id, known.name, known.field_type, leaf.path)


def _data_checks(file: DataFile, opened: OpenedFile, context: RowContext, report: FileReport) -> Iterator[RowCheck]:
    sorted_by = [field_id for field_id in opened.sorted_by or () if field_id in opened.leaves]
    if sorted_by:
        # A column that the file does not have has the same value in all its rows.
        names = [context.fields[each].name if each in context.fields else f"field {each}" for each in sorted_by]
        yield OrderCheck(file, [opened.leaves[each].path for each in sorted_by], names)
    spec = context.metadata.specs()[file.spec_id]
    if is_unpartitioned(spec):
        return
    source_ids = [each.source_id for each in spec.fields]
    schema = _schema_with(context.metadata, source_ids)
    if schema is None:
        what = f"its partition: no schema has all the source columns of partition spec {file.spec_id}"
        report.flaws.append(Flaw(FindingKind.NOT_CHECKED, file.file_path, what))
        return
    constants = identity_constants(file, spec)
    projection = FileProjection.of(opened.schema, schema, file.file_path, constants)
    yield PartitionCheck(file, spec, schema, projection)


def _schema_with(metadata: TableMetadata, field_ids: Sequence[int]) -> Schema | None:
    """The complete top-level columns that contain these fields, from the newest schema that has all of them."""
    older = sorted(metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
    for schema in (metadata.schema(), *older):
        names = [schema.find_column_name(field_id) for field_id in field_ids]
        if None not in names:
            tops = {name.partition(".")[0] for name in names if name is not None}
            columns = [each for each in schema.fields if each.name in tops or each.field_id in field_ids]
            return Schema(*columns, schema_id=schema.schema_id)
    return None
