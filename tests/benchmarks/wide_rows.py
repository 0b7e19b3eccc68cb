"""The table of the Spark benchmarks: two strings, two longs, a double and a timestamp, in key order, and its deletes.

    id1    id2     name           qty        val       ts
    c000   0       name 7919      1          12.31     a second later in each row
    c000   0       name 846 123   5 283 713  ...       50 rows of each (id1, id2)
    ...
    c099   1 999   ...            every number from 0 to the row count once, in no order

Its files are never copied: each kind of delete is pending in its own table over the same files.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import tableformat as tf
from tableformat.metadata.content_file import DataFile
from tableformat.scan.planner import plan_scan

TABLE: Final = "bench.wide"
KEY: Final = ("id1", "id2")
SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("qty", pa.int64()),
        pa.field("val", pa.float64()),
        pa.field("ts", pa.timestamp("us", "UTC")),
    ]
)
ROWS_PER_KEY: Final = 50
RANGE_COUNT: Final = 2_000

_LAYOUT: Final = 1
"""Raise it when what is generated changes: a cached table of another layout is not used."""
_FILES: Final = 8
_CUSTOMERS: Final = 100
_NAMES: Final = 1_000_000
_DELETED_SHARE: Final = 100
"""One row in so many is deleted."""
_MANY_DELETED_SHARE: Final = 10
_MEAN_VALUE: Final = 100
_VALUE_DEVIATION: Final = 20
_LOWEST_HUNDREDTH: Final = 53.47
"""Below it lies one in a hundred of the values."""
_FIRST_SECOND: Final = 1_767_225_600
"""2026-01-01."""


def row_count() -> int:
    """TABLEFORMAT_BENCH_SPARK_ROWS, for a quick look, or ten million."""
    return int(os.environ.get("TABLEFORMAT_BENCH_SPARK_ROWS", "10_000_000"))


@dataclass(frozen=True)
class WideRows:
    """The table, written once; nothing changes it."""

    table: tf.Table
    row_count: int

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        planned = (task.data_file for task in plan_scan(self.table.view).tasks)
        return tuple(replace(data, sequence_number=None, file_sequence_number=None) for data in planned)

    @property
    def paths(self) -> list[str]:
        return [data.file_path for data in self.data_files]

    @property
    def size_bytes(self) -> int:
        return sum(data.file_size_bytes for data in self.data_files)

    def copy(self, catalog: tf.Catalog, name: str) -> tf.Table:
        """Another table over the same data files."""
        copied = catalog.create_table(name, SCHEMA, key=KEY)
        files = self.data_files
        copied.commit(copied.new_write(), [tf.StagedFiles(data_files=files, row_count=self.row_count)])
        return copied


def wide_rows(directory: Path) -> WideRows:
    """The table in `directory`; it is written if it does not exist."""
    rows = row_count()
    with tf.open_catalog(f"{directory}/wide-rows-{_LAYOUT}-{rows}/") as catalog:
        catalog.create_namespace("bench", exist_ok=True)
        if catalog.table_exists(TABLE):
            table = catalog.load_table(TABLE)
            if table.scan().count() == rows:
                return WideRows(table, rows)
            catalog.drop_table(TABLE)
        table = catalog.create_table(TABLE, SCHEMA, key=KEY)
        for part in parts(rows):
            table.append(part)
    return WideRows(table, rows)


def parts(rows: int) -> Iterator[pa.Table]:
    """All rows in key order, in as many pieces as there are files."""
    quantities = _quantities(rows)
    bounds = np.linspace(0, rows, _FILES + 1).astype(np.int64)
    for first, last in itertools.pairwise(bounds):
        yield _rows(np.arange(first, last), quantities[first:last], rows)


def delete_positions(rows: WideRows, table: tf.Table) -> None:
    """One row in a hundred, scattered over all files, by position."""
    table.delete(f"val < {_LOWEST_HUNDREDTH}", mode="scan")


def delete_by_long(rows: WideRows, table: tf.Table) -> None:
    """Delete as many rows by the values of a column that the files are not sorted by."""
    table.delete_rows(pa.table({"qty": _some_quantities(rows)}))


def delete_by_string_and_long(rows: WideRows, table: tf.Table) -> None:
    """The same rows by two columns."""
    quantities = _some_quantities(rows)
    table.delete_rows(pa.table({"name": _names(quantities), "qty": quantities}))


def delete_many_by_long(rows: WideRows, table: tf.Table) -> None:
    """One row in ten, by the values of a column that the files are not sorted by."""
    table.delete_rows(pa.table({"qty": _some_quantities(rows, _MANY_DELETED_SHARE)}))


def delete_many_by_string_and_long(rows: WideRows, table: tf.Table) -> None:
    """The same rows by two columns."""
    quantities = _some_quantities(rows, _MANY_DELETED_SHARE)
    table.delete_rows(pa.table({"name": _names(quantities), "qty": quantities}))


def delete_ranges(rows: WideRows, table: tf.Table) -> None:
    """Two thousand prefixes of the key, each of fifty rows."""
    keys = np.random.default_rng(3).choice(rows.row_count // ROWS_PER_KEY, RANGE_COUNT, replace=False)
    id1, id2 = _keys(keys, rows.row_count)
    table.delete_prefix(pa.table({"id1": id1, "id2": id2}))


DELETES: Final[dict[str, Callable[[WideRows, tf.Table], None] | None]] = {
    "no deletes": None,
    "1% positions": delete_positions,
    "1% equality, long": delete_by_long,
    "1% equality, (string, long)": delete_by_string_and_long,
    "2,000 ranges": delete_ranges,
}


MANY_DELETES: Final[dict[str, Callable[[WideRows, tf.Table], None]]] = {
    "2,000 ranges": delete_ranges,
    "10% equality, long": delete_many_by_long,
    "10% equality, (string, long)": delete_many_by_string_and_long,
}


def _some_quantities(rows: WideRows, share: int = _DELETED_SHARE) -> np.ndarray:
    """One row in so many, scattered over all files and over all values."""
    return np.random.default_rng(5).choice(rows.row_count, rows.row_count // share, replace=False)


def _rows(numbers: np.ndarray, quantities: np.ndarray, rows: int) -> pa.Table:
    random = np.random.default_rng(int(numbers[0]))
    id1, id2 = _keys(numbers // ROWS_PER_KEY, rows)
    seconds = _FIRST_SECOND + numbers
    columns = {
        "id1": id1,
        "id2": id2,
        "name": _names(quantities),
        "qty": quantities,
        "val": np.round(random.normal(_MEAN_VALUE, _VALUE_DEVIATION, len(numbers)), 2),
        "ts": pa.array(seconds * 1_000_000 + random.integers(0, 1_000_000, len(numbers))).cast(SCHEMA.field("ts").type),
    }
    return pa.table(columns, schema=SCHEMA)


def _keys(numbers: np.ndarray, rows: int) -> tuple[pa.Array, np.ndarray]:
    """The key of each number, in key order."""
    keys_per_customer = -(-rows // (ROWS_PER_KEY * _CUSTOMERS))
    customers = pa.array([f"c{number:03}" for number in range(_CUSTOMERS)])
    return customers.take(pa.array(numbers // keys_per_customer)), numbers % keys_per_customer


def _quantities(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).permutation(rows)


def _names(quantities: np.ndarray) -> pa.Array:
    numbers = pa.array(quantities * 7_919 % _NAMES).cast(pa.string())
    return pa.compute.binary_join_element_wise("name", numbers, " ")
