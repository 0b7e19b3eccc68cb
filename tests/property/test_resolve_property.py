"""Reading as little as possible gives the same result as reading everything."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.types import NestedField, PrimitiveType
from test_equality_property import VALUES, columns_of, keys_of

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.deletes.spans.spans import spans_of_prefixes
from tableformat.keys.encoding import encode_rows
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.sort_marker import SORTED_BY, marker_bytes
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent

Rows = list[tuple[Any, ...]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[PrimitiveType], Rows, Rows, int, int, bool]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*[st.sampled_from([None, *VALUES[kind]]) for kind in types])
    rows = draw(st.lists(row, min_size=1, max_size=40))
    keys = draw(st.lists(row, min_size=1, max_size=4))
    return types, rows, keys, draw(st.integers(1, 9)), draw(st.integers(1, len(types))), draw(st.booleans())


def table_of(types: list[PrimitiveType], rows: Rows) -> pa.Table:
    columns = columns_of(rows, types)
    fields = [
        pa.field(f"c{index}", column.type, metadata={b"PARQUET:field_id": str(index + 1).encode()})
        for index, column in enumerate(columns)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def context_of(types: list[PrimitiveType]) -> tuple[MergeContext, Schema]:
    schema = Schema(*[NestedField(index + 1, f"c{index}", kind) for index, kind in enumerate(types)], schema_id=0)
    metadata = TableMetadataV2(
        location="/nowhere",
        last_column_id=len(types),
        schemas=[schema],
        current_schema_id=0,
        partition_specs=[PartitionSpec(spec_id=0)],
        default_spec_id=0,
        last_partition_id=999,
    )
    return MergeContext(metadata, PyArrowFileIO()), schema


@settings(max_examples=examples(0.6), deadline=None)
@given(cases())
def test_delete_resolution_with_statistics_agrees_with_full_reads(case) -> None:
    """RD-10, RD-11, DA-2: row group verdicts, binary search and look-ups agree with comparing every row."""
    types, rows, keys, group_size, depth, is_sorted = case
    context, schema = context_of(types)
    key = KeyColumns.of(schema, range(1, len(types) + 1))
    if is_sorted:
        encoded = encode_rows(columns_of(rows, types), types).to_pylist()
        rows = [rows[index] for index in sorted(range(len(rows)), key=encoded.__getitem__)]
    spans = spans_of_prefixes(key, table_of(types, keys).select(range(depth)))
    with tempfile.TemporaryDirectory() as directory:
        table = table_of(types, rows)
        if is_sorted:
            table = table.replace_schema_metadata({SORTED_BY: marker_bytes(key.field_ids)})
        data_path, delete_path = Path(directory, "data.parquet"), Path(directory, "deletes.parquet")
        pq.write_table(table, data_path, row_group_size=group_size)
        pq.write_table(table_of(types, keys), delete_path)
        entry = {"spec_id": 0, "file_format": "PARQUET"}
        data = DataFile(
            file_path=str(data_path),
            record_count=len(rows),
            file_size_bytes=data_path.stat().st_size,
            sequence_number=1,
            **entry,
        )
        delete = DeleteFile(
            file_path=str(delete_path),
            record_count=len(keys),
            file_size_bytes=delete_path.stat().st_size,
            sequence_number=2,
            content=FileContent.EQUALITY_DELETES,
            equality_ids=key.field_ids,
            **entry,
        )
        by_range = deleted_positions(FileScanTask(data_file=data, range_deletes=(spans,)), context)
        by_equality = deleted_positions(FileScanTask(data_file=data, equality_deletes=(delete,)), context)
    columns = columns_of(rows, types)
    assert by_range.mask(0, len(rows)).tolist() == deleted_mask(columns, spans).tolist()
    assert by_equality.mask(0, len(rows)).tolist() == keys_of(types, [(keys, 2)]).deleted_mask(columns, 1).tolist()
