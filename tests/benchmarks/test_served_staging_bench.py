"""Staging of conversions beside a stream: what a load costs after each replacement of 100 messages."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measuring import Timing, heading, show

import tableformat as tf
from tableformat.server.served_tables import ServedTables

_FILES = 2_000
_MESSAGES_PER_FILE = 100
_REPLACED = 100
_ROUNDS = 30
_SCHEMA = pa.schema([pa.field("message", pa.int64(), nullable=False), pa.field("line", pa.int64(), nullable=False)])


def messages(numbers: Any) -> pa.Table:
    """Two rows for each message."""
    return pa.table({"message": np.repeat(numbers, 2), "line": np.tile(np.arange(2), len(numbers))}, schema=_SCHEMA)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_clustered", [True, False])
def test_staging_after_each_replacement(benchmark: Any, tmp_path: Path, version: int, is_clustered: bool) -> None:
    """Every data file has a pending delete from the beginning."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", _SCHEMA, key=["message", "line"], properties=properties)
    with table.transaction() as transaction:
        for first in range(0, _FILES * _MESSAGES_PER_FILE, _MESSAGES_PER_FILE):
            transaction.append(messages(np.arange(first, first + _MESSAGES_PER_FILE)))
    table.delete_rows(pa.table({"message": np.arange(_FILES) * _MESSAGES_PER_FILE, "line": np.zeros(_FILES, np.int64)}))
    tables = ServedTables(catalog.iceberg, 0)
    random = Random(_ROUNDS)

    def load() -> tuple[float, float]:
        started, cpu_started = time.perf_counter(), time.process_time()
        tables.load(("db", "t"))
        return time.perf_counter() - started, time.process_time() - cpu_started

    first = load()
    timing = Timing()
    for _ in range(_ROUNDS):
        begin = random.randrange(_FILES * _MESSAGES_PER_FILE - _REPLACED)
        chosen = range(begin, begin + _REPLACED)
        if not is_clustered:
            chosen = sorted(random.sample(range(_FILES * _MESSAGES_PER_FILE), _REPLACED))
        table.replace(messages(np.array(chosen)), prefix=["message"])
        wall, cpu = load()
        timing.wall_seconds.append(wall)
        timing.cpu_seconds.append(cpu)
    which = "consecutive" if is_clustered else "random"
    heading(f"load after each replacement of {_REPLACED} {which} messages, {_FILES:,} files, version {version}")
    show("first load", f"{first[0] * 1000:.0f} ms")
    show("after each replacement", timing)
    benchmark.pedantic(load, rounds=1)
