"""PyIceberg: a delete rewrites the files that contain the rows."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, In, LessThan, Or
from pyiceberg.table import Table

from report.systems.adapter import KEY, CommitLostError


class PyIceberg:
    """With its own SQLite catalog."""

    lacks: ClassVar[dict[str, str]] = {
        "convert": "its deletes leave nothing to convert",
        "compact": "PyIceberg 0.12 has no rewrite of data files",
    }

    def __init__(self, directory: Path) -> None:
        (directory / "warehouse").mkdir(exist_ok=True)
        self._catalog = SqlCatalog("c", uri=f"sqlite:///{directory}/c.db", warehouse=f"file://{directory}/warehouse")
        self._catalog.create_namespace_if_not_exists("db")

    def versions(self) -> dict[str, str]:
        return {"pyiceberg": pyiceberg.__version__}

    def load(self, rows: pa.Table, amount: str) -> None:
        self._amount = amount
        properties = {"write.parquet.compression-codec": "zstd"}
        self._table = self._catalog.create_table("db.t", rows.schema, properties=properties)
        self._table.append(rows)

    def open(self, amount: str) -> None:
        self._amount = amount
        self._table = self._fresh()

    def replace(self, rows: pa.Table) -> None:
        where = _one_of_messages(rows)
        try:
            self._fresh().overwrite(rows, overwrite_filter=where)
        except CommitFailedException as error:
            raise CommitLostError(str(error)) from error

    def upsert(self, rows: pa.Table) -> None:
        self._fresh().upsert(rows, join_cols=list(KEY))

    def delete_prefix(self, values: dict[str, Any]) -> None:
        self._fresh().delete(_all_of([EqualTo(name, value) for name, value in values.items()]))

    def delete_rows(self, keys: pa.Table) -> None:
        each = [_all_of([EqualTo(name, row[name]) for name in KEY]) for row in keys.to_pylist()]
        self._fresh().delete(each[0] if len(each) == 1 else Or(*each))

    def delete_where(self, column: str, below: float) -> None:
        self._fresh().delete(LessThan(column, below))

    def scan(self) -> pa.Table:
        self._read = self._fresh()
        return self._read.scan().to_arrow()

    def scan_again(self) -> pa.Table:
        return self._read.scan().to_arrow()

    def total(self) -> dict[str, Any]:
        amounts = self._fresh().scan(selected_fields=(self._amount,)).to_arrow()
        return {"rows": amounts.num_rows, f"sum {self._amount}": float(pc.sum(amounts[self._amount]).as_py())}

    def get(self, key: list[Any]) -> pa.Table:
        where = _all_of([EqualTo(name, value) for name, value in zip(KEY, key, strict=True)])
        return self._read.scan(row_filter=where).to_arrow()

    def _fresh(self) -> Table:
        return self._catalog.load_table("db.t")


def _all_of(each: list[BooleanExpression]) -> BooleanExpression:
    return each[0] if len(each) == 1 else And(*each)


def _one_of_messages(rows: pa.Table) -> BooleanExpression:
    """Exactly the prefixes that occur, with bounds of the first column that rule out files."""
    sites = defaultdict(set)
    for row in rows.group_by(["id1", "id2"]).aggregate([]).to_pylist():
        sites[row["id1"]].add(row["id2"])
    each = [And(EqualTo("id1", partner), In("id2", numbers)) for partner, numbers in sites.items()]
    one = each[0] if len(each) == 1 else Or(*each)
    return And(GreaterThanOrEqual("id1", min(sites)), one)
