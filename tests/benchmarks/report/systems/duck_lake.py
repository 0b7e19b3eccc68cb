"""DuckLake, with its catalog in a DuckDB file that is attached once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
from ducklake_worker import connect

from report.systems.adapter import KEY


class DuckLake:
    """Deletes are position delete files."""

    lacks: ClassVar[dict[str, str]] = {
        "convert": "its deletes are positions already",
        "open": "its catalog is a file of DuckDB's, which one process opens",
    }

    def __init__(self, directory: Path) -> None:
        self._connection = connect(directory)

    def versions(self) -> dict[str, str]:
        ((version,),) = self._connection.execute(
            "SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'ducklake'"
        ).fetchall()
        return {"DuckLake": f"{version} in DuckDB {duckdb.__version__}"}

    def load(self, rows: pa.Table, amount: str) -> None:
        self._amount = amount
        self._connection.register("incoming", rows)
        self._connection.execute("CREATE TABLE lake.t AS FROM incoming")

    def replace(self, rows: pa.Table) -> None:
        self._connection.register("incoming", rows)
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM lake.t WHERE (id1, id2) IN (SELECT DISTINCT id1, id2 FROM incoming)")
        self._connection.execute("INSERT INTO lake.t FROM incoming")
        self._connection.execute("COMMIT")

    def upsert(self, rows: pa.Table) -> None:
        self._connection.register("incoming", rows)
        same = " AND ".join(f"t.{name} = s.{name}" for name in KEY)
        self._connection.execute(
            f"MERGE INTO lake.t t USING incoming s ON ({same}) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )

    def delete_prefix(self, values: dict[str, Any]) -> None:
        where = " AND ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"DELETE FROM lake.t WHERE {where}", list(values.values()))

    def delete_rows(self, keys: pa.Table) -> None:
        self._connection.register("gone", keys)
        names = ", ".join(KEY)
        self._connection.execute(f"DELETE FROM lake.t WHERE ({names}) IN (SELECT {names} FROM gone)")

    def delete_where(self, column: str, below: float) -> None:
        self._connection.execute(f"DELETE FROM lake.t WHERE {column} < {below}")

    def scan(self) -> pa.Table:
        return self._connection.sql("FROM lake.t").to_arrow_table()

    def scan_again(self) -> pa.Table:
        return self.scan()

    def total(self) -> dict[str, Any]:
        (row,) = self._connection.execute(f"SELECT count(*), sum({self._amount}) FROM lake.t").fetchall()
        return {"rows": row[0], f"sum {self._amount}": float(row[1])}

    def get(self, key: list[Any]) -> pa.Table:
        where = " AND ".join(f"{name} = ?" for name in KEY)
        return self._connection.sql(f"FROM lake.t WHERE {where}", params=key).to_arrow_table()

    def compact(self) -> None:
        self._connection.execute("CALL ducklake_rewrite_data_files('lake')")
        self._connection.execute("CALL ducklake_merge_adjacent_files('lake')")
