"""The limit: pyarrow and DuckDB on data files, without a table. Deleted rows that are still in the files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from report.systems.adapter import KEY


class PlainParquet:
    """Reads the given files one after another."""

    lacks: ClassVar[dict[str, str]] = {}

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def versions(self) -> dict[str, str]:
        return {"pyarrow": pa.__version__, "duckdb": duckdb.__version__}

    def load(self, rows: pa.Table, amount: str) -> None:
        self._amount = amount
        pq.write_table(rows, self._directory / "loaded.parquet", compression="zstd")

    def write(self, rows: pa.Table) -> None:
        pq.write_table(rows, self._directory / "written.parquet", compression="zstd")

    def scan(self, paths: list[str]) -> pa.Table:
        return pa.concat_tables([pq.ParquetFile(path).read() for path in paths])

    def scan_keys(self, paths: list[str]) -> pa.Table:
        return pa.concat_tables([pq.ParquetFile(path).read(columns=list(KEY)) for path in paths])

    def total(self, paths: list[str]) -> dict[str, Any]:
        with duckdb.connect(config={"threads": pa.cpu_count()}) as connection:
            (row,) = connection.execute(
                f"SELECT count(*), sum({self._amount}) FROM read_parquet(?)", [paths]
            ).fetchall()
        return {"rows": row[0]}

    def rewrite(self, paths: list[str]) -> None:
        """The minimum work of a compaction: read all rows and write all rows."""
        self.write(self.scan(paths))
