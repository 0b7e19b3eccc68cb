"""Data files whose rows keep the order in which they were written (FM-28)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.keys.sort_marker import sorted_by
from tableformat.metadata.content_file import DataFile

SORT = "tableformat.write.sort"
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("value", pa.float64())])


def shuffled(row_count: int = 2_000) -> pa.Table:
    numbers = np.random.default_rng(7).permutation(row_count)
    return pa.table({"id": [f"m-{number % 50:03}" for number in numbers], "n": numbers, "value": numbers / 2}, SCHEMA)


def files(table: tf.Table) -> list[DataFile]:
    return [task.data_file for task in table.scan().plan().tasks]


def is_sorted(file: DataFile) -> bool:
    metadata = pq.read_metadata(file.file_path.removeprefix("file://"))
    return sorted_by(metadata.metadata) is not None


def test_unsorted_file_keeps_the_written_row_order(catalog: tf.Catalog) -> None:
    """FM-28: the file promises nothing, and is read as one of another writer."""
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], properties={SORT: "none"})
    rows = shuffled()
    table.append(rows)
    assert table.scan().to_arrow().to_pydict() == rows.to_pydict()
    (file,) = files(table)
    assert not is_sorted(file)
    assert file.sort_order_id is None
    sorted_table = catalog.create_table("db.sorted", SCHEMA, key=["id", "n"])
    sorted_table.append(rows)
    assert is_sorted(files(sorted_table)[0])
    assert files(sorted_table)[0].sort_order_id is not None


def test_operations_work_on_unsorted_files_and_compaction_sorts_them(catalog: tf.Catalog) -> None:
    """FM-28, RD-11: the same rows as in a table that is sorted."""
    tables = [
        catalog.create_table(f"db.{sort}", SCHEMA, key=["id", "n"], properties={SORT: sort}) for sort in ("key", "none")
    ]
    for table in tables:
        table.append(shuffled())
        table.delete_prefix({"id": "m-007"})
        table.delete_range(lower=("m-010",), upper=("m-012",))
        table.upsert(pa.table({"id": ["m-001", "m-009"], "n": [1, 9_999], "value": [-1.0, -2.0]}, SCHEMA))
        table.replace(pa.table({"id": ["m-020", "m-020"], "n": [5, 4], "value": [5.0, 4.0]}, SCHEMA), prefix=["id"])
        table.delete("value > 900")
    in_order = [("id", "ascending"), ("n", "ascending")]
    expected, found = (table.scan().to_arrow().sort_by(in_order) for table in tables)
    assert found == expected
    assert found.num_rows > 1_500
    tables[1].maintenance.compact(rewrite_all=True)
    assert all(is_sorted(file) and file.sort_order_id is not None for file in files(tables[1]))
    assert tables[1].scan().to_arrow().sort_by(in_order) == expected


def test_invalid_sort_property_is_rejected(catalog: tf.Catalog) -> None:
    """FM-25, FM-28."""
    with pytest.raises(InvalidArgumentError, match="one of key, none"):
        catalog.create_table("db.t", SCHEMA, key=["id"], properties={SORT: "value"})
