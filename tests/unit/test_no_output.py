"""The library prints nothing, neither in long calls nor in failing ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake

from tableformat.errors import TableFormatError


def test_operations_and_jobs_print_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))]), key=["id"])
    numbers = pa.array(range(200_000), pa.int64())
    table.append(pa.table({"id": numbers, "ts": numbers.cast(pa.timestamp("us"))}))
    table.append(pa.table({"id": numbers, "ts": numbers.cast(pa.timestamp("us"))}), on_duplicate="ignore")
    table.update("id < 100000", set={"ts": "ts + INTERVAL 1 DAY"})
    table.merge(pa.table({"id": numbers}), on="id").when_matched_delete("target.id % 2 = 0").execute()
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    zoned = tmp_path / "zoned.parquet"
    pq.write_table(pa.table({"id": [1], "ts": pa.array([1], pa.timestamp("us", "UTC"))}), zoned)
    with pytest.raises(TableFormatError):
        table.add_files([str(zoned)])
    with pytest.raises(TableFormatError):
        table.update("true", set={"ts": "no_such_function(ts)"})
    assert capfd.readouterr() == ("", "")


def test_duckdb_connections_show_no_progress_bar() -> None:
    from tableformat.storage.duckdb_connection import duckdb_connection

    with duckdb_connection() as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
