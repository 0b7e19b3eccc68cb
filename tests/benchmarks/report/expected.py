"""The same changes in an in-memory DuckDB table, so that every answer is known before it is requested."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from report.digests import Digest, digest
from report.systems.adapter import KEY, PREFIX


class ExpectedRows:
    """The rows that the systems should have."""

    def __init__(self, rows: pa.Table) -> None:
        self._connection = duckdb.connect()
        self._connection.register("loaded", rows)
        self._connection.execute("CREATE TABLE t AS FROM loaded")
        self._connection.unregister("loaded")
        self._columns = rows.column_names

    def replace(self, rows: pa.Table) -> None:
        self._delete_matching(rows, PREFIX)
        self._insert(rows)

    def upsert(self, rows: pa.Table) -> None:
        self._delete_matching(rows, KEY)
        self._insert(rows)

    def delete_prefix(self, values: dict[str, Any]) -> None:
        where = " AND ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"DELETE FROM t WHERE {where}", list(values.values()))

    def delete_rows(self, keys: pa.Table) -> None:
        self._delete_matching(keys, KEY)

    def delete_where(self, column: str, below: float) -> None:
        self._connection.execute(f"DELETE FROM t WHERE {column} < {below}")

    def digest(self) -> Digest:
        return digest(self._connection.sql("FROM t").to_arrow_table())

    def total(self, amount: str) -> Digest:
        (row,) = self._connection.execute(f"SELECT count(*), sum({amount}) FROM t").fetchall()
        return {"rows": row[0], f"sum {amount}": float(row[1])}

    def row(self, key: list[Any]) -> Digest:
        where = " AND ".join(f"{name} = ?" for name in KEY)
        return digest(self._connection.sql(f"FROM t WHERE {where}", params=key).to_arrow_table())

    def close(self) -> None:
        self._connection.close()

    def _delete_matching(self, rows: pa.Table, columns: tuple[str, ...]) -> None:
        self._connection.register("incoming", rows)
        names = ", ".join(columns)
        self._connection.execute(f"DELETE FROM t WHERE ({names}) IN (SELECT DISTINCT {names} FROM incoming)")

    def _insert(self, rows: pa.Table) -> None:
        self._connection.register("incoming", rows.select(self._columns))
        self._connection.execute("INSERT INTO t FROM incoming")
