"""Data files of other writers that store binary columns as Parquet strings, or the reverse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import PARQUET, DataFile

VALUES = ["a", "b", "é", "z", None]


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("k = {}", [1]),
        ("k > {}", [2, 3]),
        ("k <> {}", [0, 2, 3]),
        ("k IN ({}, {})", [1]),
        ("k IS NULL", [4]),
    ],
)
@pytest.mark.parametrize(
    ("in_table", "in_file", "literal"),
    [(pa.binary(), pa.string(), "'b'::BLOB"), (pa.string(), pa.binary(), "'b'")],
    ids=["bytes", "text"],
)
def test_filter_uses_the_table_type_of_binary_columns(
    tmp_path: Path, where: str, numbers: list[int], in_table: pa.DataType, in_file: pa.DataType, literal: str
) -> None:
    """The statistics of a row group are compared in the same way as the values of the column."""
    key = pa.array(VALUES, pa.string()).cast(in_file)
    columns = [key, pa.array(range(len(VALUES)), pa.int64())]
    fields = [
        pa.field(name, column.type, metadata={b"PARQUET:field_id": str(field_id).encode()})
        for field_id, (name, column) in enumerate(zip(["k", "n"], columns, strict=True), 1)
    ]
    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path, row_group_size=2)
    data = DataFile(
        file_path=f"file://{path}",
        file_format=PARQUET,
        spec_id=0,
        record_count=len(VALUES),
        file_size_bytes=path.stat().st_size,
    )
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", pa.schema([("k", in_table), ("n", pa.int64())]))
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(data,)))
        table.refresh()
        found = table.scan(where=where.replace("{}", literal)).to_arrow()["n"].to_pylist()
        assert sorted(found) == numbers
