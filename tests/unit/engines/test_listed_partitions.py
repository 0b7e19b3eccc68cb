"""Range partitions as a table of DuckDB."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
from new_lakes import new_lake

import tableformat as tf
from tableformat.engines import listed_partitions

SCHEMA = pa.schema([("year", pa.int32()), ("id", pa.int64())])
LIST = 'lake.db."t$range_partitions"'


def test_partition_list_is_a_duckdb_table_of_its_snapshot(tmp_path: Path) -> None:
    """RP-27: nothing is listed when the catalog is attached; a table without range partitions has no list."""
    catalog = new_lake(tmp_path / "lake")
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2023)], step=1)
    table = catalog.create_table("db.t", SCHEMA, key=["year", "id"], range_partitions=years)
    catalog.create_table("db.plain", SCHEMA)
    table.append(pa.table({"year": [2020, 2020, 2021], "id": [1, 2, 3]}, SCHEMA))
    connection = duckdb.connect()
    with patch.object(listed_partitions, "partition_list", side_effect=AssertionError):
        tf.duckdb.attach(connection, catalog)
    wanted = f'SELECT "partition", lower, record_count FROM {LIST} WHERE file_count > 0 ORDER BY upper DESC'
    assert connection.sql(wanted).fetchall() == [("[2021, 2022)", 2021, 1), ("[2020, 2021)", 2020, 2)]
    assert connection.sql(f"SELECT count(*) FROM {LIST}").fetchall() == [(3,)]
    table.range_partitions.alter(add=[(2030, 2031)], drop=[(2020, 2021)])
    assert connection.sql(f"SELECT count(*) FROM {LIST}").fetchall() == [(3,)]
    assert tf.duckdb.refresh(connection) == {"lake.db.t": table.snapshot_id}
    names = connection.sql(f'SELECT list("partition") FROM {LIST}').fetchall()
    assert names == [(["[2021, 2022)", "[2022, 2023)", "[2030, 2031)"],)]
    shown = connection.sql("SELECT view_name FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal")
    assert sorted(shown.fetchall()) == [("plain",), ("t",), ("t$range_partitions",)]
    catalog.drop_table("db.t")
    tf.duckdb.refresh(connection)
    assert connection.sql(
        "SELECT count(*) FROM duckdb_views() WHERE database_name = 'lake' AND view_name LIKE 't%'"
    ).fetchall() == [(0,)]
    tf.duckdb.detach(connection)
