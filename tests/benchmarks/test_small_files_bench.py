"""A full scan of many small files, compared with pyarrow reading the same data files one after another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_files
from measuring import Timing, against_target, heading, show_all

import tableformat as tf

_ROUNDS = 5
_WORKER = Path(small_files.__file__)


def _once(reader: str, directory: Path, paths: Path, timing: Timing) -> small_files.Found:
    run = subprocess.run(
        [sys.executable, str(_WORKER), reader, str(directory), str(paths)], capture_output=True, text=True, check=True
    )
    answer = json.loads(run.stdout)
    timing.wall_seconds.append(answer["wall"])
    timing.cpu_seconds.append(answer["cpu"])
    count, total = answer["found"]
    return count, total


@pytest.mark.parametrize("commits", [100, 2_000])
@pytest.mark.parametrize(("change", "at_most"), [(small_files.by_prefix, 1.5), (small_files.by_key, 2.0)])
def test_scan_of_small_files_in_a_fresh_process(
    benchmark: Any, tmp_path: Path, commits: int, change: Callable[[tf.Table, Any], object], at_most: float
) -> None:
    """Every reading is a separate process, whose imports are not timed; answers are compared with a loop."""
    table = small_files.grown(tmp_path / "lake", commits, change)
    paths = tmp_path / "paths.json"
    paths.write_text(json.dumps(small_files.data_paths(table)))
    expected = small_files.expected(commits, whole_messages=change is small_files.by_prefix)
    timings = {reader: Timing() for reader in small_files.READERS}

    def in_turns() -> None:
        for reader, timing in timings.items():
            found = _once(reader, tmp_path / "lake", paths, timing)
            assert reader in ("ParquetFile", "read_table") or found == expected

    benchmark.pedantic(in_turns, rounds=_ROUNDS, iterations=1)
    heading(f"{commits:,} small files and their deletes {change.__name__.replace('_', ' ')}, fresh processes")
    show_all(timings)
    for bare in ("ParquetFile", "read_table"):
        for reader in ("scan", "to_batches", "duckdb rows", "duckdb sum"):
            for clock in ("wall", "cpu"):
                ratio = getattr(timings[reader], clock) / getattr(timings[bare], clock)
                against_target(f"{reader}, against pyarrow's {bare}, {clock}", ratio, at_most)
