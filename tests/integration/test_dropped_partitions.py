"""Engines that know nothing of this library read a table with dropped partitions, without a conversion."""

from __future__ import annotations

from pathlib import Path

import duckdb_iceberg_env
import pyarrow as pa
import pytest
from new_lakes import new_lake
from other_readers import READERS, outcome

import tableformat as tf
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("num_cal", pa.int32(), nullable=False),
        pa.field("payload", pa.string()),
    ]
)
ROWS = [(id1, id2, num_cal, f"{id1}{id2}.{num_cal}") for id1 in "AB" for id2 in range(20) for num_cal in range(4)]


def dropped(directory: Path, version: str) -> tf.Table:
    """Dropped, retired and restored, advanced and split partitions; every drop on borders of files."""
    catalog = new_lake(f"{directory}/lake")
    ranges = tf.RangePartitions(on=["id2"], bounds=[(0, 20)], step=5, retain=15, ahead=1)
    options = {"format-version": version}
    table = catalog.create_table(
        "db.t", SCHEMA, key=["id1", "id2", "num_cal"], range_partitions=ranges, properties=options
    )
    for part in (ROWS[::2], ROWS[1::2]):
        table.append(pa.table([pa.array(column) for column in zip(*part, strict=True)], schema=SCHEMA))
    changes = table.range_partitions
    tag = changes.retire(15, 20).tag
    assert changes.drop(5, 10, metadata_only=True).removed_row_count == 40
    assert changes.advance(now=20).dropped == ("[0, 5)",)
    assert changes.restore(tag or "").restored_data_files_count == 2
    return table


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("reader", ["pyiceberg", "polars", "duckdb"])
def test_other_readers_agree_after_dropped_partitions(tmp_path: Path, version: str, reader: str) -> None:
    """RP-12, RP-13: whole files are removed and restored; no delete file exists that other readers would reject."""
    if reader == "duckdb" and not duckdb_iceberg_env.is_complete():
        pytest.skip("run tests/integration/duckdb_iceberg_env.py to install DuckDB's Iceberg extension")
    table = dropped(tmp_path, version)
    left = [row for row in ROWS if row[1] >= 10]
    assert live_tuples(table) == sorted(left)
    answers = READERS[reader](table.iceberg.metadata_location, None)
    errors = {query: answer.error for query, answer in answers.items() if answer.error}
    assert outcome(answers, left) == "right", errors
