"""Tables of other writers, with the rows that another reader returns for them.

`make foreign-tables` writes the tables under tests/foreign/tables with Iceberg's Java library. Each has an
`expected.json` with the rows of the library's generic reader. Tables of Spark, Flink and older releases of Iceberg in
`../shared/fixtures/iceberg` are included if that folder exists; the tests do not need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyiceberg.schema import Schema

import tableformat as tf
from tableformat.testing.json_values import rows_from_json

TABLES: Final = Path(__file__).parents[1] / "foreign" / "tables"
VECTORS: Final = TABLES / "vectors"
"""Deletion vectors, and maps of 64-bit values, as the bytes of a blob."""
SHARED: Final = Path(__file__).parents[3] / "shared" / "fixtures" / "iceberg"
FLINK: Final[Mapping[str, Sequence[Sequence[Any]]]] = {
    "mytable": [[4, "d", "2025-01-04"], [5, "e", "2025-01-05"]],
    "mytable_partitioned": [[1, "a", "2025-01-01"], [4, "d", "2025-01-04"], [5, "e", "2025-01-05"]],
}


@dataclass(frozen=True)
class ForeignTable:
    directory: Path
    expected: Mapping[str, Any]
    """Columns and rows; of most tables also the delete files and the number of data files."""

    @property
    def name(self) -> str:
        return self.directory.name

    def open(self) -> tf.Table:
        return tf.read_metadata(self.directory)

    def rows(self, schema: Schema) -> list[dict[str, Any]]:
        return rows_from_json(self.expected["rows"], schema, self.expected["columns"])


def _written_here() -> Iterable[ForeignTable]:
    for path in sorted(TABLES.rglob("expected.json")):
        yield ForeignTable(path.parent, json.loads(path.read_text()))


def _shared() -> Iterable[ForeignTable]:
    if not SHARED.is_dir():
        return
    for name, expected in json.loads((SHARED / "reference" / "expected.json").read_text()).items():
        yield ForeignTable(SHARED / "reference" / "wh" / "db" / name, expected)
    for name, rows in FLINK.items():
        directory = SHARED / "duckdb" / "equality_deletes" / "warehouse" / "mydb" / name
        yield ForeignTable(directory, {"columns": ["id", "name", "bir"], "rows": rows})


WRITTEN_HERE: Final = tuple(_written_here())
EVERY_TABLE: Final = (*WRITTEN_HERE, *_shared())
assert WRITTEN_HERE, f"no tables in {TABLES}; make foreign-tables writes them"


def each_of(tables: Iterable[ForeignTable], *needed: str) -> pytest.MarkDecorator:
    """Runs a test with each table whose expectations have the needed parts."""
    chosen = [table for table in tables if table.expected.keys() >= set(needed)]
    return pytest.mark.parametrize("foreign", chosen, ids=lambda table: table.name)


def written_here(name: str) -> ForeignTable:
    (found,) = [table for table in WRITTEN_HERE if table.name == name]
    return found
