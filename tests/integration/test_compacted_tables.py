"""Engines that know nothing of this library read the same rows from compacted tables."""

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
ALL_ROWS = [(id1, id2, num_cal, f"{id1}{id2}.{num_cal}") for id1 in "AB" for id2 in range(1, 6) for num_cal in range(4)]
LIVE_ROWS = [row for row in ALL_ROWS if row[:2] != ("A", 1) and row[2] != 3]


def compacted(directory: Path, version: str) -> tf.Table:
    """Six files with deletes of every kind, converted, compacted, and clustered manifests; then one more delete."""
    catalog = new_lake(f"{directory}/lake")
    table = catalog.create_table(
        "db.t",
        SCHEMA,
        key=["id1", "id2", "num_cal"],
        partition_by=["bucket(2, id2)"],
        properties={"format-version": version},
    )
    for start in range(6):
        part = ALL_ROWS[start::6]
        table.append(pa.table([pa.array(column) for column in zip(*part, strict=True)], schema=SCHEMA))
    table.delete_prefix({"id1": "A", "id2": 1})
    table.delete("num_cal = 3 and id1 = 'A'", mode="scan")
    assert table.maintenance.compact(min_input_files=2).group_count == 2
    table.delete_rows(pa.table({"id1": ["B"], "num_cal": pa.array([3], pa.int32())}))
    table.maintenance.convert_deletes()
    table.maintenance.rewrite_manifests()
    return table


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("reader", ["pyiceberg", "polars", "duckdb"])
def test_other_readers_agree_on_compacted_tables(tmp_path: Path, version: str, reader: str) -> None:
    """MT-43, MT-46, MT-48: data files with an older sequence number, position deletes on them, rewritten manifests."""
    if reader == "duckdb" and not duckdb_iceberg_env.is_complete():
        pytest.skip("run tests/integration/duckdb_iceberg_env.py to install DuckDB's Iceberg extension")
    table = compacted(tmp_path, version)
    assert live_tuples(table) == sorted(LIVE_ROWS)
    answers = READERS[reader](table.iceberg.metadata_location, None)
    result = outcome(answers, LIVE_ROWS)
    errors = {query: answer.error for query, answer in answers.items() if answer.error}
    assert result == "right", errors
