"""Compaction compared with its minimum work (reading, sorting and writing the rows), and its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import compaction_memory
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measuring import Contender, against_target, heading, race, show, show_all
from nine_million_rows import NineMillionRows, adopt, local_path, new_table

import tableformat as tf
from tableformat.demo.messages import KEY
from tableformat.metadata.content_file import DataFile
from tableformat.scan.planner import plan_scan

_FILES = 8
_ROUNDS = 5
_ROWS = 3_000_000
_MEMORY_BYTES = 64 * 1024 * 1024


def data_files(table: tf.Table) -> list[DataFile]:
    """The data files as described by the commits that added them."""
    planned = (task.data_file for task in plan_scan(table.view).tasks)
    return [replace(data, sequence_number=None, file_sequence_number=None) for data in planned]


@pytest.fixture(scope="module", params=["overlapping", "neighbours"])
def scattered(
    request: pytest.FixtureRequest, base: NineMillionRows, tmp_path_factory: pytest.TempPathFactory
) -> tf.Table:
    """Three million rows in eight files: each over the whole key space, or one behind the other."""
    rows = pq.read_table(base.paths).slice(2_000_000, _ROWS)
    table = new_table(tmp_path_factory.mktemp(request.param))
    if request.param == "overlapping":
        file_of_row = np.random.default_rng(1).integers(0, _FILES, _ROWS)
        parts = [rows.filter(pa.array(file_of_row == number)) for number in range(_FILES)]
    else:
        parts = [rows.slice(number * _ROWS // _FILES, _ROWS // _FILES) for number in range(_FILES)]
    for part in parts:
        table.append(part)
    return table


def test_compaction_compared_with_read_sort_write(scattered: tf.Table, benchmark: Any, tmp_path: Path) -> None:
    """At least 0.8 of the throughput of pyarrow on the same rows."""
    files = data_files(scattered)
    paths = [local_path(data) for data in files]
    homes = iter(tmp_path / str(number) for number in range(1_000))

    def copy() -> tf.Table:
        copied = new_table(next(homes))
        for data in files:
            adopt(copied, [data])
        return copied

    def read_sort_write(home: Path) -> None:
        rows = pq.read_table(paths).sort_by([(name, "ascending") for name in KEY])
        pq.write_table(rows, home, compression="zstd", row_group_size=131_072)

    contenders = {
        "compact": Contender(lambda table: table.maintenance.compact(rewrite_all=True), copy),
        "pyarrow: read_table, sort_by, write_table": Contender(read_sort_write, lambda: next(homes)),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    ours, theirs = timings["compact"], timings["pyarrow: read_table, sort_by, write_table"]
    heading(f"compaction of {_ROWS:,} rows in {len(files)} files")
    show_all(timings)
    against_target("time against pyarrow's (0.8 of its throughput)", ours.wall / theirs.wall, 1.25)
    against_target("the same, CPU time", ours.cpu / theirs.cpu, 1.25)
    table = copy()
    result = table.maintenance.compact(rewrite_all=True)
    assert (result.added_data_files_count, table.scan().count()) == (1, _ROWS)


@pytest.mark.parametrize("scattered", ["overlapping"], indirect=True)
def test_compaction_peak_memory(scattered: tf.Table) -> None:
    """`tableformat.write.memory-bytes` bounds Arrow's memory, regardless of the number of rows."""
    heading(f"peak memory of a compaction, {_MEMORY_BYTES:,} bytes allowed")
    home = Path(scattered.location.removeprefix("file://")).parents[1]
    command = [sys.executable, compaction_memory.__file__, str(home), str(_MEMORY_BYTES)]
    peaks = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    show("rows as Arrow", f"{peaks['all_rows']:>13,} bytes")
    show("growth of the process", f"{peaks['process_growth']:>13,} bytes")
    against_target("peak of Arrow's memory pool", peaks["arrow"] / _MEMORY_BYTES, 1.1)
    assert peaks["arrow"] < 1.5 * _MEMORY_BYTES
