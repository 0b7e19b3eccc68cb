"""The cost of `tableformat.write.sync` = `commit`: the same writes, with and without waiting for the disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measuring import Contender, heading, race, show_all

import tableformat as tf
from tableformat.properties import WRITE_SYNC, WRITE_SYNCS

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("value", pa.float64())])


@pytest.mark.parametrize(("row_count", "rounds"), [(1_000, 60), (5_000_000, 7)])
def test_append_with_and_without_disk_sync(benchmark: Any, tmp_path: Path, row_count: int, rounds: int) -> None:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    rows = pa.table({"id": np.arange(row_count), "value": np.random.default_rng(0).random(row_count)}, schema=SCHEMA)
    tables = {
        sync: catalog.create_table(f"db.{sync}", SCHEMA, key=["id"], properties={WRITE_SYNC: sync})
        for sync in WRITE_SYNCS
    }
    contenders = {sync: Contender(partial(append, table, rows)) for sync, table in tables.items()}
    timings = race(benchmark, contenders, rounds=rounds)
    heading(f"append of {row_count:,} rows, {rounds} commits of each kind")
    show_all(timings)
    print(f"  commit / none: {timings['commit'].wall / timings['none'].wall:.2f}")
    assert all(table.scan().count() == rounds * row_count for table in tables.values())


def append(table: tf.Table, rows: pa.Table, _prepared: None) -> None:
    table.append(rows)
