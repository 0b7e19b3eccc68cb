"""Converting a thousand prefix deletes reads less than the key columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from measuring import Contender, against_target, bytes_read_by_process, heading, race, show, show_all
from nine_million_rows import ROWS_PER_MESSAGE, NineMillionRows, loaded
from test_scan_bench import in_a_file_each, in_one_file

import tableformat as tf
from tableformat.demo.messages import KEY

_PREFIX_DELETES = 1_000
_ROUNDS = 5


@pytest.mark.parametrize("delete", [in_one_file, in_a_file_each])
def test_conversion_of_a_thousand_prefix_deletes(
    base: NineMillionRows, benchmark: Any, tmp_path: Path, delete: Callable[[tf.Table], None]
) -> None:
    homes = iter(tmp_path / str(number) for number in range(1_000))

    def with_deletes() -> tf.Table:
        home = next(homes)
        delete(base.copy(home))
        return loaded(home)

    contenders = {
        "convert_deletes": Contender(lambda table: table.maintenance.convert_deletes(), with_deletes),
        "pyarrow.parquet.read_table, key columns": Contender(lambda _: pq.read_table(base.paths, columns=list(KEY))),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    ours, keys = timings["convert_deletes"], timings["pyarrow.parquet.read_table, key columns"]
    heading(f"conversion of {_PREFIX_DELETES:,} prefix deletes {delete.__name__.replace('_', ' ')}")
    show_all(timings)
    against_target("convert_deletes against reading the key columns", ours.wall / keys.wall, 1.0)
    against_target("the same, CPU time", ours.cpu / keys.cpu, 1.0)

    table = with_deletes()
    read_before = bytes_read_by_process()
    result = table.maintenance.convert_deletes()
    read_after = bytes_read_by_process()
    if read_before is not None and read_after is not None:
        data_bytes = sum(data.file_size_bytes for data in base.data_files)
        show("read by the process", f"{read_after - read_before:,} of {data_bytes:,} bytes of data files")
    show("written", f"{result.rewritten_bytes:,} bytes of position deletes")
    assert result.deleted_row_count == _PREFIX_DELETES * ROWS_PER_MESSAGE
    assert table.scan().count() == 9_000_000 - result.deleted_row_count


def test_conversion_in_slices(base: NineMillionRows, benchmark: Any, tmp_path: Path) -> None:
    """MT-14: a commit for each data file costs the commits; no data file is read twice."""
    homes = iter(tmp_path / str(number) for number in range(1_000))

    def with_deletes() -> tf.Table:
        home = next(homes)
        in_a_file_each(base.copy(home))
        table = loaded(home)
        table.set_properties(**{"write.target-file-size-bytes": "1"})
        return table

    contenders = {
        "convert_deletes, a slice for each file": Contender(
            lambda table: table.maintenance.convert_deletes(max_commits=100), with_deletes
        ),
        "convert_deletes, one commit": Contender(
            lambda table: table.maintenance.convert_deletes(partial_progress=False), with_deletes
        ),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    sliced, whole = timings.values()
    heading(f"conversion of {_PREFIX_DELETES:,} prefix deletes in slices")
    show_all(timings)
    against_target("convert_deletes in slices against one commit", sliced.wall / whole.wall, 2.0)
    against_target("the same, CPU time", sliced.cpu / whole.cpu, 2.0)
