"""Writes Parquet files again without some of their rows. All other rows, columns and row groups stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tableformat.deletes.positions import PositionSet
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.metadata.row_lineage import ROW_ID
from tableformat.parquet.array_forms import as_type, is_list
from tableformat.parquet.bloom_filters.filter_options import FilterOption
from tableformat.parquet.parquet_columns import FIELD_ID, field_id_of
from tableformat.parquet.parquet_file import OpenedFile, leaf_values, unreadable_as_corrupt
from tableformat.parquet.parquet_output import DictionaryChoice, ParquetOutput, WrittenParquet
from tableformat.write.context import WriteContext

_ARROW_SCHEMA: Final = b"ARROW:schema"


@dataclass(frozen=True, slots=True)
class RewrittenParquet:
    """A finished file, and what its footer does not state."""

    written: WrittenParquet
    nan_counts: Mapping[int, int]
    """NaNs by field id, of the floating point columns outside of lists and maps."""


def rewrite_parquet(
    source: OpenedFile,
    erased: PositionSet,
    scope: ErasureScope,
    context: WriteContext,
    location: str,
    *,
    first_row_id: int | None = None,
    only_columns: Collection[int] | None = None,
    has_bloom_filters: bool = True,
) -> RewrittenParquet:
    """MT-113: the file without the erased rows. Holds one row group.

    With `first_row_id`, the inherited ids of rows are stored, because the remaining rows change their positions.
    `only_columns` keeps the top-level columns with these field ids. Values are read without dictionaries, so that no
    dictionary of the new file has a value that occurs in erased rows only. The caller removes a failed file.
    """
    output: ParquetOutput | None = None
    nan_counts: dict[int, int] = {}
    try:
        for rows in _remaining(source, erased, first_row_id, only_columns):
            if output is None:
                output = _opened(source, scope, context, location, rows, has_bloom_filters)
            output.write_row_group(rows)
            for field_id, count in _nan_counts(source, rows).items():
                nan_counts[field_id] = nan_counts.get(field_id, 0) + count
        assert output is not None, "a file without rows is not written"
        return RewrittenParquet(output.finish(), nan_counts)
    except BaseException:
        if output is not None:
            output.abandon()
        raise


def _remaining(
    source: OpenedFile, erased: PositionSet, first_row_id: int | None, only_columns: Collection[int] | None
) -> Iterator[pa.RecordBatch]:
    starts = source.row_group_starts.tolist()
    for group in range(source.row_group_count):
        start, count = starts[group], starts[group + 1] - starts[group]
        keep = ~erased.mask(start, count)
        if not keep.any():
            continue
        with unreadable_as_corrupt(source.location):
            rows = source.reader().reader.read_row_groups([group], use_threads=True)
        rows = _with_plain_types(rows, source.schema)
        if only_columns is not None:
            kept = [field.name for field in rows.schema if field_id_of(field) in only_columns]
            rows = rows.select(kept)
        if first_row_id is not None:
            rows = _with_row_ids(rows, first_row_id + start)
        rows = rows if keep.all() else rows.filter(pa.array(keep))
        yield rows.combine_chunks().to_batches()[0]


def _opened(
    source: OpenedFile,
    scope: ErasureScope,
    context: WriteContext,
    location: str,
    first_rows: pa.RecordBatch,
    has_bloom_filters: bool,
) -> ParquetOutput:
    described = {
        name: value
        for name, value in (source.metadata.metadata or {}).items()
        if name != _ARROW_SCHEMA and not scope.in_text(value.decode(errors="replace"))
    }
    return ParquetOutput(
        context.io,
        location,
        first_rows.schema,
        context.properties,
        key_value_metadata=described,
        dictionary_columns=DictionaryChoice(first_rows.schema).columns(first_rows),
        write_page_index=True,
        bloom_filters=_bloom_filters(source, context) if has_bloom_filters else (),
        first_rows=first_rows,
    )


def _bloom_filters(source: OpenedFile, context: WriteContext) -> list[FilterOption]:
    """FM-27: the filters of the table, for columns that the file has under the same name."""
    paths = {
        leaf.path for field_id, leaf in source.leaves.items() if context.schema.find_column_name(field_id) is not None
    }
    return [option for option in context.bloom_filters if option.path in paths]


def _with_row_ids(rows: pa.Table, first_row_id: int) -> pa.Table:
    inherited = pa.array(np.arange(first_row_id, first_row_id + len(rows)))
    position = next((at for at, field in enumerate(rows.schema) if field_id_of(field) == ROW_ID.field_id), None)
    if position is not None:
        filled = pc.coalesce(rows.column(position), inherited)
        return rows.set_column(position, rows.schema.field(position), filled)
    name = ROW_ID.name if ROW_ID.name not in rows.schema.names else f"{ROW_ID.name}_{ROW_ID.field_id}"
    field = pa.field(name, pa.int64(), metadata={FIELD_ID: str(ROW_ID.field_id).encode()})
    return rows.append_column(field, inherited)


def _with_plain_types(rows: pa.Table, with_ids: pa.Schema) -> pa.Table:
    """The rows without dictionaries, with the field ids of the file, which a name mapping may have given."""
    fields = [
        pa.field(
            field.name,
            plain_type(named.type if pat.is_nested(field.type) else field.type),
            field.nullable,
            named.metadata,
        )
        for field, named in zip(rows.schema, with_ids, strict=True)
    ]
    columns = [
        column if column.type == field.type else _as_plain(column, field.type)
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _as_plain(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    if pat.is_nested(target):
        return pa.chunked_array([as_type(chunk, target) for chunk in column.chunks], target)
    return column.cast(target)


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """The type without dictionaries at any depth."""
    if pat.is_dictionary(data_type):
        return plain_type(data_type.value_type)
    if pat.is_struct(data_type):
        return pa.struct([field.with_type(plain_type(field.type)) for field in data_type])
    if pat.is_map(data_type):
        return pa.map_(
            data_type.key_field.with_type(plain_type(data_type.key_type)),
            data_type.item_field.with_type(plain_type(data_type.item_type)),
        )
    if is_list(data_type):
        field = data_type.value_field.with_type(plain_type(data_type.value_type))
        return pa.large_list(field) if pat.is_large_list(data_type) else pa.list_(field)
    return data_type


def _nan_counts(source: OpenedFile, rows: pa.RecordBatch) -> dict[int, int]:
    table = pa.Table.from_batches([rows])
    return {
        field_id: pc.sum(pc.is_nan(leaf_values(table, leaf.path))).as_py() or 0
        for field_id, leaf in source.leaves.items()
        if pat.is_floating(leaf.arrow_type) and leaf.path[0] in rows.schema.names
    }


def values_of_dictionaries(source: OpenedFile, field_id: int) -> list[pa.Array]:
    """The dictionaries of a text or binary column: they may have values that no row has. Empty for other columns."""
    leaf = source.leaves.get(field_id)
    if leaf is None or not _has_bytes(leaf.arrow_type):
        return []
    name = ".".join(leaf.path)
    with unreadable_as_corrupt(source.location):
        rows = source.reader([name]).reader.read_row_groups(
            list(range(source.row_group_count)), column_indices=[leaf.index], use_threads=True
        )
        column: Any = leaf_values(rows, leaf.path)
    return [chunk.dictionary for chunk in column.chunks if pat.is_dictionary(chunk.type)]


def _has_bytes(data_type: pa.DataType) -> bool:
    plain = plain_type(data_type)
    return plain in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
