"""A full scan with a thousand pending prefix deletes costs about as much as reading the data files alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measuring import Contender, against_target, heading, race, show, show_all
from nine_million_rows import ROWS_PER_MESSAGE, NineMillionRows, loaded, some_messages

import tableformat as tf

_PREFIX_DELETES = 1_000
_ROUNDS = 7
_PEAK_MEMORY = Path(__file__).with_name("peak_memory.py")


def in_one_file(table: tf.Table) -> None:
    """A batch that names all of them."""
    table.delete_prefix(some_messages(_PREFIX_DELETES, seed=11))


def in_a_file_each(table: tf.Table) -> None:
    """The same number of small deletes; in one snapshot, because the cost of a scan depends on the files."""
    with table.transaction() as transaction:
        for prefix in some_messages(_PREFIX_DELETES, seed=11).to_pylist():
            transaction.delete_prefix(prefix)


@pytest.mark.parametrize("delete", [in_one_file, in_a_file_each])
def test_full_scan_with_a_thousand_prefix_deletes(
    base: NineMillionRows, benchmark: Any, tmp_path: Path, delete: Callable[[tf.Table], None]
) -> None:
    delete(base.copy(tmp_path))
    warm = loaded(tmp_path)
    contenders = {
        "scan, its first in a handle": Contender(lambda table: table.scan().to_arrow(), lambda: loaded(tmp_path)),
        "scan, repeated": Contender(lambda _: warm.scan().to_arrow()),
        "scan of the table without deletes": Contender(lambda _: base.table.scan().to_arrow()),
        "pyarrow.parquet.read_table": Contender(lambda _: pq.read_table(base.paths)),
    }
    assert warm.scan().to_arrow().num_rows == 9_000_000 - _PREFIX_DELETES * ROWS_PER_MESSAGE

    timings = race(benchmark, contenders, rounds=_ROUNDS)
    bare = timings["pyarrow.parquet.read_table"]
    heading(
        f"full scan of 9,000,000 rows, {_PREFIX_DELETES:,} prefix deletes pending {delete.__name__.replace('_', ' ')}"
    )
    show_all(timings)
    for name in contenders:
        if name.startswith("scan"):
            against_target(f"{name}, against pyarrow", timings[name].wall / bare.wall, 1.15)
            against_target(f"{name}, CPU time", timings[name].cpu / bare.cpu, 1.15)


def test_first_scan_after_an_upsert_of_a_million_rows(base: NineMillionRows, benchmark: Any, tmp_path: Path) -> None:
    """Every ninth row, all over the table, against the same table with its deletes converted."""
    chosen = np.sort(np.random.default_rng(5).choice(9_000_000, 1_000_000, replace=False))
    rows = base.table.scan().to_arrow().take(pa.array(chosen))
    for name in ("upserted", "converted"):
        base.copy(tmp_path / name).upsert(rows)
    loaded(tmp_path / "converted").maintenance.convert_deletes()
    contenders = {
        f"scan, {name}, its first in a handle": Contender(
            lambda table: table.scan().to_arrow(), lambda name=name: loaded(tmp_path / name)
        )
        for name in ("upserted", "converted")
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading("first scan after an upsert of 1,000,000 rows into 9,000,000")
    show_all(timings)
    ours, converted = timings.values()
    against_target("upserted against converted", ours.wall / converted.wall, 1.5)
    against_target("upserted against converted, CPU time", ours.cpu / converted.cpu, 1.5)


def test_peak_memory_of_to_batches_does_not_grow_with_the_table(base: NineMillionRows, tmp_path: Path) -> None:
    """Tables of one, four and all files of a million rows, with pending deletes, each in its own process."""
    by_size = sorted(base.data_files, key=lambda data: data.record_count, reverse=True)
    peaks: dict[int, dict[str, int]] = {}
    heading("peak memory of to_batches")
    for file_count in (1, 4, len(by_size)):
        home = tmp_path / str(file_count)
        in_one_file(base.copy(home, files=by_size[:file_count]))
        run = subprocess.run([sys.executable, str(_PEAK_MEMORY), str(home)], capture_output=True, text=True, check=True)
        peak = peaks[file_count] = json.loads(run.stdout)
        show(
            f"{file_count} files, {peak['rows']:,} rows of {peak['all_rows'] / 1e6:,.1f} MB",
            f"Arrow {peak['arrow'] / 1e6:6.1f} MB, process {peak['process_growth'] / 1e6:6.1f} MB above its start",
        )
    few, many = peaks[4], peaks[len(by_size)]
    against_target("all files against four, Arrow memory", many["arrow"] / few["arrow"], 1.25)
    against_target("all files against four, process", many["process_growth"] / few["process_growth"], 1.25)
    assert many["arrow"] < 1.5 * few["arrow"]
    assert many["arrow"] < many["all_rows"] / 3
