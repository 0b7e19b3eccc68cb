"""delta-rs: a delete rewrites the files that contain the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError

from report.systems.adapter import KEY, PREFIX, CommitLostError


class DeltaRs:
    """A table in a directory, without a catalog."""

    lacks: ClassVar[dict[str, str]] = {"convert": "its deletes leave nothing to convert"}

    def __init__(self, directory: Path) -> None:
        self._path = f"{directory}/t"

    def versions(self) -> dict[str, str]:
        return {"deltalake (delta-rs)": deltalake.__version__}

    def load(self, rows: pa.Table, amount: str) -> None:
        self._amount = amount
        write_deltalake(self._path, rows)

    def open(self, amount: str) -> None:
        self._amount = amount

    def replace(self, rows: pa.Table) -> None:
        """Two commits: MERGE has no clause that deletes all rows of a message and inserts others of the same."""
        keys = rows.group_by(list(PREFIX)).aggregate([])
        try:
            self._merge(keys, PREFIX).when_matched_delete().execute()
            write_deltalake(self._path, rows, mode="append")
        except CommitFailedError as error:
            raise CommitLostError(str(error)) from error

    def upsert(self, rows: pa.Table) -> None:
        self._merge(rows, KEY).when_matched_update_all().when_not_matched_insert_all().execute()

    def delete_prefix(self, values: dict[str, Any]) -> None:
        DeltaTable(self._path).delete(" AND ".join(f"{name} = {value!r}" for name, value in values.items()))

    def delete_rows(self, keys: pa.Table) -> None:
        self._merge(keys, KEY).when_matched_delete().execute()

    def delete_where(self, column: str, below: float) -> None:
        DeltaTable(self._path).delete(f"{column} < {below}")

    def scan(self) -> pa.Table:
        self._read = DeltaTable(self._path)
        return self._read.to_pyarrow_table()

    def scan_again(self) -> pa.Table:
        return self._read.to_pyarrow_table()

    def total(self) -> dict[str, Any]:
        query = QueryBuilder().register("t", DeltaTable(self._path))
        found = pa.table(query.execute(f"SELECT count(*) AS n, sum({self._amount}) AS s FROM t"))
        return {"rows": found["n"][0].as_py(), f"sum {self._amount}": float(found["s"][0].as_py())}

    def get(self, key: list[Any]) -> pa.Table:
        where = " AND ".join(f"{name} = {value!r}" for name, value in zip(KEY, key, strict=True))
        return pa.table(QueryBuilder().register("t", self._read).execute(f"SELECT * FROM t WHERE {where}"))

    def compact(self) -> None:
        DeltaTable(self._path).optimize.compact()

    def _merge(self, source: pa.Table, columns: tuple[str, ...]) -> Any:
        same = " AND ".join(f"t.{name} = s.{name}" for name in columns)
        return DeltaTable(self._path).merge(source, same, source_alias="s", target_alias="t")
