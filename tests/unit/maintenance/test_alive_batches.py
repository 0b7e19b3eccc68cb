"""Rows of a data file in batches of bounded size: every row once and in order, even if its deletes are resolved on the
way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from maintenance_tables import KEYED, keyed_table

from tableformat.maintenance.compaction.alive_batches import alive_batches
from tableformat.maintenance.compaction.rewrite_group import RewriteContext
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.scan.planner import plan_scan

BATCH_BYTES = 20_000


def payloads(kind: str) -> list[str]:
    return {
        "short": [str(number) for number in range(5_000)],
        "repeated, wide": ["x" * 500 + str(number % 7) for number in range(5_000)],
        "repeated, wider later": ["x" * (20 if number < 2_500 else 2_000) for number in range(5_000)],
        "wider than a batch": [str(number) * 10_000 for number in range(5)],
    }[kind]


@pytest.mark.parametrize("kind", ["short", "repeated, wide", "repeated, wider later", "wider than a batch"])
def test_every_row_once_in_batches_of_the_size(tmp_path: Path, kind: str) -> None:
    """MT-63"""
    values = payloads(kind)
    ids = list(range(len(values)))
    rows = pa.table({"id1": ["a"] * len(ids), "id2": ids, "payload": values}, schema=KEYED)
    table = keyed_table(tmp_path, properties={"write.parquet.row-group-limit": "3000"})
    table.append(rows)
    table.delete(where="id2 = 3", mode="scan")
    context = RewriteContext.of(table.view).read
    (task,) = plan_scan(table.view).tasks
    batches = list(alive_batches(task, deleted_positions(task, context.merge), context, BATCH_BYTES))
    found = pa.Table.from_batches(batches)
    assert found["id2"].to_pylist() == [number for number in ids if number != 3]
    assert found["payload"].to_pylist() == [value for number, value in enumerate(values) if number != 3]
    sizes = np.array([batch.nbytes for batch in batches])
    widest = max(map(len, values)) + 40
    assert np.median(sizes) <= max(2 * BATCH_BYTES, widest)
