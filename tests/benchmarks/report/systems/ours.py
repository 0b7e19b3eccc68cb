"""tableformat."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa

import tableformat as tf
from report.systems.adapter import KEY, PREFIX, CommitLostError
from tableformat.errors import CommitConflictError
from tableformat.scan.planner import plan_scan
from tableformat.storage.location import local_path

_NAME = "db.t"


class Ours:
    """In a directory with a SQLite catalog; `upkeep` is the property of the table."""

    lacks: ClassVar[dict[str, str]] = {}

    def __init__(self, directory: Path, upkeep: str = "off") -> None:
        self._lake, self._upkeep = f"{directory}/lake", upkeep
        self._catalog = tf.open_catalog(self._lake)
        self._catalog.create_namespace("db", exist_ok=True)
        self._connection = duckdb.connect(config={"threads": pa.cpu_count()})
        tf.duckdb.attach(self._connection, self._catalog, name="lake")

    def versions(self) -> dict[str, str]:
        return {"tableformat": version("tableformat"), "pyarrow": pa.__version__, "duckdb": duckdb.__version__}

    def load(self, rows: pa.Table, amount: str) -> None:
        self._amount = amount
        properties = {"tableformat.upkeep": self._upkeep}
        self._table = self._catalog.create_table(_NAME, rows.schema, key=list(KEY), properties=properties)
        self._table.append(rows)

    def open(self, amount: str) -> None:
        self._amount = amount
        self._table = self._catalog.load_table(_NAME)

    def replace(self, rows: pa.Table) -> None:
        try:
            self._table.replace(rows, prefix=list(PREFIX))
        except CommitConflictError as error:
            raise CommitLostError(str(error)) from error

    def upsert(self, rows: pa.Table) -> None:
        self._table.upsert(rows)

    def delete_prefix(self, values: dict[str, Any]) -> None:
        self._table.delete_prefix(values)

    def delete_rows(self, keys: pa.Table) -> None:
        self._table.delete_rows(keys)

    def delete_where(self, column: str, below: float) -> None:
        self._table.delete(f"{column} < {below}")

    def scan(self) -> pa.Table:
        self._read = tf.open_catalog(self._lake).load_table(_NAME)
        return self._read.scan().to_arrow()

    def scan_again(self) -> pa.Table:
        return self._read.scan().to_arrow()

    def total(self) -> dict[str, Any]:
        tf.duckdb.refresh(self._connection)
        (row,) = self._connection.execute(f"SELECT count(*), sum({self._amount}) FROM lake.{_NAME}").fetchall()
        return {"rows": row[0], f"sum {self._amount}": float(row[1])}

    def get(self, key: list[Any]) -> pa.Table:
        row = self._table.get(tuple(key))
        return pa.Table.from_pylist([] if row is None else [row], schema=self._table.schema)

    def convert(self) -> None:
        self._table.maintenance.convert_deletes()

    def compact(self) -> None:
        self._table.maintenance.compact()

    def paths(self) -> list[str]:
        """The data files that a full scan reads."""
        planned = plan_scan(self._table.refresh().view).tasks
        return [path for task in planned if (path := local_path(task.data_file.file_path)) is not None]
