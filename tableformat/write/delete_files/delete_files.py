"""Common parts of the writers of delete files: one Parquet file, one manifest entry."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import PARQUET, DeleteFile, FileContent
from tableformat.parquet.parquet_output import ParquetOutput, WrittenParquet
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles


def checked_partition(context: WriteContext, spec_id: int, partition: tuple[Any, ...]) -> tuple[Any, ...]:
    """The partition in the form of the spec: a spec with only void fields has a null for each, and no other partition.

    Raises InvalidArgumentError for an unknown spec or a wrong number of values.
    """
    spec = context.spec_of(spec_id)
    if not partition and is_unpartitioned(spec):
        return (None,) * len(spec.fields)
    if len(partition) != len(spec.fields):
        raise InvalidArgumentError(
            f"a delete file of partition spec {spec_id} needs {len(spec.fields)} partition values, "
            f"not {len(partition)}."
        )
    return partition


def write_parquet_file(
    context: WriteContext,
    created: CreatedFiles,
    table: pa.Table,
    *,
    spec_id: int,
    partition: tuple[Any, ...],
    dictionary_columns: list[str] | bool = False,
) -> tuple[str, WrittenParquet]:
    """A new file with row groups of the table's limit, and its location. `created` removes it after a failure."""
    location = created.new_location("-deletes", spec_id, partition)
    output = ParquetOutput(
        context.io,
        location,
        table.schema,
        context.properties,
        dictionary_columns=dictionary_columns,
    )
    try:
        for start in range(0, max(len(table), 1), context.row_group_limit):
            output.write_row_group(table.slice(start, context.row_group_limit))
    except BaseException:
        output.abandon()
        raise
    return location, output.finish()


def delete_file(
    location: str,
    size_bytes: int,
    *,
    content: FileContent,
    spec_id: int,
    partition: tuple[Any, ...],
    record_count: int,
    file_format: str = PARQUET,
    **fields: Any,
) -> DeleteFile:
    """The manifest entry of a new delete file. The commit assigns sequence numbers (DA-9)."""
    return DeleteFile(
        file_path=location,
        file_format=file_format,
        content=content,
        spec_id=spec_id,
        partition=partition,
        record_count=record_count,
        file_size_bytes=size_bytes,
        **fields,
    )
