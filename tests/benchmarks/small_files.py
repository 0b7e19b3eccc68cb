"""A table of one large file and many small ones, and one reading of it in its own process.

`python small_files.py <reader> <catalog directory> <paths.json>` reads once and prints the time and the result.

    1,000,000 rows             50,000 messages of 20 rows
    N commits                  each replaces or upserts 100 adjacent messages, 1,500 rows
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

import tableformat as tf
from tableformat.scan.planner import plan_scan
from tableformat.storage.location import local_path

TABLE: Final = "bench.growing"
KEY: Final = ("id1", "id2", "num_cal")
_MESSAGES: Final = 50_000
_REPLACED: Final = 100
_DATES: Final = ("a_from", "a_to", "b_from", "b_to")
Found = tuple[int, float]
"""Number of rows and the sum of their amounts."""


def messages(first: int, count: int, rows_each: int, seed: int) -> pa.Table:
    """Rows of messages that follow each other, in key order."""
    return rows_of(np.arange(first, first + count), rows_each, seed)


def rows_of(numbers: NDArray[np.int64], rows_each: int, seed: int) -> pa.Table:
    """Rows of some messages, in key order if these are."""
    random = np.random.default_rng(seed)
    message = np.repeat(numbers, rows_each)
    dates = {name: random.integers(18_000, 20_000, len(message)).astype(np.int32) for name in _DATES}
    return pa.table(
        {
            "id1": pa.array([f"C{number:08d}" for number in (message // 100).tolist()]),
            "id2": message % 100,
            "num_cal": pa.array(np.tile(np.arange(rows_each), len(numbers)), pa.int32()),
            **{name: pa.array(days).cast(pa.date32()) for name, days in dates.items()},
            "amount": random.integers(0, 1000, len(message)).astype(np.float64),
        }
    )


def replaced_messages(commit: int, *, is_scattered: bool = False) -> NDArray[np.int64]:
    """The numbers of the messages that a commit replaces: neighbours, or some from all over the table; rising."""
    random = np.random.default_rng(commit)
    if is_scattered:
        return np.sort(random.choice(_MESSAGES, _REPLACED, replace=False))
    first = int(random.integers(0, _MESSAGES - 1_000))
    return np.arange(first, first + _REPLACED)


def grown(directory: Path, commits: int, change: Callable[[tf.Table, pa.Table], object]) -> tf.Table:
    """The table after this number of commits; each calls `change` with the rows of some messages."""
    catalog = tf.open_catalog(f"{directory}/")
    catalog.create_namespace("bench")
    base = messages(0, _MESSAGES, 20, seed=1)
    table = catalog.create_table(TABLE, base.schema, key=list(KEY))
    table.append(base)
    for number in range(commits):
        change(table, rows_of(replaced_messages(number), 15, seed=number))
    return table


def by_prefix(table: tf.Table, rows: pa.Table) -> object:
    return table.replace(rows, prefix=["id1", "id2"])


def by_key(table: tf.Table, rows: pa.Table) -> object:
    return table.upsert(rows)


def expected(commits: int, *, whole_messages: bool, is_scattered: bool = False) -> Found:
    """The expected content of the table, by a loop over its commits: the last rows of each message, or of each key."""
    base = messages(0, _MESSAGES, 20, seed=1)
    amounts = np.zeros((_MESSAGES, 20))
    amounts[:] = base["amount"].to_numpy().reshape(_MESSAGES, 20)
    is_there = np.ones((_MESSAGES, 20), np.bool_)
    for number in range(commits):
        replaced = replaced_messages(number, is_scattered=is_scattered)
        amounts[replaced, :15] = rows_of(replaced, 15, seed=number)["amount"].to_numpy().reshape(_REPLACED, 15)
        if whole_messages:
            is_there[replaced, 15:] = False
    return int(is_there.sum()), float(amounts[is_there].sum())


def data_paths(table: tf.Table) -> list[str]:
    """The data files that a full scan reads."""
    paths = [local_path(task.data_file.file_path) for task in plan_scan(table.view).tasks]
    return [path for path in paths if path is not None]


def _of(rows: pa.Table) -> Found:
    return rows.num_rows, pc.sum(rows["amount"]).as_py()


def _with_files(paths: list[str], read: Callable[[str], pa.Table]) -> Found:
    found = [_of(read(path)) for path in paths]
    return sum(count for count, _ in found), sum(total for _, total in found)


def _attached(catalog: tf.Catalog, query: str) -> Any:
    connection = duckdb.connect(config={"threads": pa.cpu_count()})
    tf.duckdb.attach(connection, catalog, name="lake")
    return connection.execute(query.format(table=f"lake.{TABLE}"))


READERS: Final[dict[str, Callable[[tf.Catalog, list[str]], Found]]] = {
    "scan": lambda catalog, _: _of(catalog.load_table(TABLE).scan().to_arrow()),
    "to_batches": lambda catalog, _: _of(catalog.load_table(TABLE).scan().to_batches().read_all()),
    "duckdb rows": lambda catalog, _: _of(_attached(catalog, "FROM {table}").to_arrow_table()),
    "duckdb sum": lambda catalog, _: _attached(catalog, "SELECT count(*), sum(amount) FROM {table}").fetchall()[0],
    "ParquetFile": lambda _, paths: _with_files(paths, lambda path: pq.ParquetFile(path).read()),
    "read_table": lambda _, paths: _with_files(paths, pq.read_table),
}
"""Each reads all rows. The last two read only the data files, one after another."""


def main() -> None:
    name, directory, paths_file = sys.argv[1:]
    paths = json.loads(Path(paths_file).read_text())
    # Imports on first use are not part of the measured reading.
    catalog = tf.open_catalog(f"{directory}/")
    started, cpu_started = time.perf_counter(), time.process_time()
    found = READERS[name](catalog, paths)
    took = {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_started}
    print(json.dumps({**took, "found": found}))


if __name__ == "__main__":
    main()
