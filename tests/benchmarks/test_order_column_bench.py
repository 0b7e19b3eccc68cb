"""The cost of an order column: writes that look up stored rows, compared with blind writes (decision 59)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measuring import Contender, Timing, heading, race, show, show_all

import tableformat as tf

ROW_COUNT = 1_000_000
ROWS_PER_MESSAGE = 15
ROUNDS = 15
COLUMNS = pa.schema(
    [
        pa.field("customer", pa.int64(), nullable=False),
        pa.field("line", pa.int32(), nullable=False),
        ("note", pa.string()),
        ("ts", pa.int64()),
    ]
)
FILTER = {"write.parquet.bloom-filter-enabled.column.customer": "true"}
CUSTOMERS = ROW_COUNT // ROWS_PER_MESSAGE


def messages(customers: np.ndarray, ts: int) -> pa.Table:
    customer = np.repeat(customers, ROWS_PER_MESSAGE)
    line = np.tile(np.arange(ROWS_PER_MESSAGE, dtype=np.int32), len(customers))
    note = pa.array(customer % 1000).cast(pa.string())
    return pa.table([customer, line, note, np.full(len(customer), ts)], schema=COLUMNS)


def new_table(directory: Path, file_count: int, **properties: str) -> tf.Table:
    """A table with customers in random order, so that every file may hold each of them according to its bounds."""
    catalog = tf.open_catalog(f"{directory}/")
    catalog.create_namespace("db")
    table = catalog.create_table("db.lines", COLUMNS, key=["customer", "line"], properties=properties)
    for customers in np.array_split(np.random.default_rng(1).permutation(CUSTOMERS), file_count):
        table.append(messages(customers, 0))
    return table


@pytest.mark.parametrize(("message_count", "file_count"), [(100, 1), (100, 20), (10_000, 20)])
def test_order_column_writes_compared_with_blind_writes(
    benchmark: Any, tmp_path: Path, message_count: int, file_count: int
) -> None:
    tables = {
        "blind": new_table(tmp_path / "blind", file_count, **FILTER),
        "with an order column": new_table(
            tmp_path / "ordered", file_count, **FILTER, **{"tableformat.order-column": "ts"}
        ),
    }

    def drawn(seed: int, ts: Iterator[int]) -> Callable[[], pa.Table]:
        draws = np.random.default_rng(seed)
        return lambda: messages(draws.choice(CUSTOMERS, message_count, replace=False), next(ts))

    contenders = {}
    for name, table in tables.items():
        contenders[f"replace, {name}"] = Contender(
            lambda rows, table=table: table.replace(rows, prefix=["customer"]), drawn(2, count(1))
        )
        contenders[f"upsert, {name}"] = Contender(table.upsert, drawn(3, count(1)))
    timings = race(benchmark, contenders, rounds=ROUNDS)

    heading(f"{message_count:,} messages of {ROWS_PER_MESSAGE} rows into {ROW_COUNT:,} rows in {file_count} files")
    show_all(timings)
    for verb in ("replace", "upsert"):
        blind, ordered = (timings[f"{verb}, {name}"] for name in tables)
        show(f"{verb} with an order column against blind", f"{_ratio(ordered, blind):.2f} x")


def _ratio(one: Timing, other: Timing) -> float:
    """The median ratio of adjacent rounds, because the machine may be shared."""
    return statistics.median(a / b for a, b in zip(one.wall_seconds, other.wall_seconds, strict=True))
