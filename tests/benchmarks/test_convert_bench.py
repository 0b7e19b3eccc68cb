"""Converting prefix and equality deletes, compared with reading the key columns; files that bounds rule out are not
read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measuring import Contender, against_target, bytes_read_by_process, heading, race, show, show_all
from nine_million_rows import ROWS_PER_MESSAGE, NineMillionRows, loaded, some_messages
from opened_files import OpenedFiles
from test_scan_bench import in_a_file_each, in_one_file

import tableformat as tf
from tableformat.demo.messages import KEY

_PREFIX_DELETES = 1_000
_EQUALITY_DELETES = 100_000
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


def test_conversion_with_one_commit_per_data_file(base: NineMillionRows, benchmark: Any, tmp_path: Path) -> None:
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
    table = with_deletes()
    commit_count = table.maintenance.convert_deletes(max_commits=100).commit_count
    for label, in_slices, in_one in (
        ("each further commit against the whole conversion", sliced.wall, whole.wall),
        ("the same, CPU time", sliced.cpu, whole.cpu),
    ):
        against_target(label, (in_slices - in_one) / (commit_count - 1) / in_one, 0.5)


def some_rows() -> pa.Table:
    """Whole keys, one row each, of messages that no prefix delete names."""
    named = set(map(tuple, (row.values() for row in some_messages(_PREFIX_DELETES, seed=11).to_pylist())))
    messages = some_messages(_EQUALITY_DELETES + _PREFIX_DELETES, seed=12)
    others = [tuple(row.values()) not in named for row in messages.to_pylist()]
    chosen = messages.filter(pa.array(others)).slice(0, _EQUALITY_DELETES)
    numbers = np.random.default_rng(13).integers(1, ROWS_PER_MESSAGE + 1, _EQUALITY_DELETES).astype(np.int32)
    return chosen.append_column("num_cal", pa.array(numbers))


@pytest.mark.parametrize("format_version", [2, 3], ids="v{}".format)
@pytest.mark.parametrize("equality_file_count", [1, 100], ids="{} equality files".format)
def test_conversion_of_prefix_and_equality_deletes(
    base: NineMillionRows, benchmark: Any, tmp_path: Path, equality_file_count: int, format_version: int
) -> None:
    """In one conversion: 1,000 prefixes and 100,000 keys, each key with one row, all over the table."""
    homes = iter(tmp_path / str(number) for number in range(1_000))
    rows = some_rows()
    per_file = _EQUALITY_DELETES // equality_file_count

    def with_deletes() -> tf.Table:
        home = next(homes)
        table = base.copy(home, **{"format-version": str(format_version)})
        in_one_file(table)
        with table.transaction() as transaction:
            for start in range(0, _EQUALITY_DELETES, per_file):
                transaction.delete_rows(rows.slice(start, per_file))
        return loaded(home)

    contenders = {
        "convert_deletes": Contender(lambda table: table.maintenance.convert_deletes(), with_deletes),
        "pyarrow.parquet.read_table, key columns": Contender(lambda _: pq.read_table(base.paths, columns=list(KEY))),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    ours, keys = timings["convert_deletes"], timings["pyarrow.parquet.read_table, key columns"]
    heading(
        f"conversion of {_PREFIX_DELETES:,} prefix and {_EQUALITY_DELETES:,} equality deletes in {equality_file_count} "
        f"equality files, v{format_version}"
    )
    show_all(timings)
    against_target("convert_deletes against reading the key columns", ours.wall / keys.wall, 1.5)
    against_target("the same, CPU time", ours.cpu / keys.cpu, 1.5)
    table = with_deletes()
    result = table.maintenance.convert_deletes()
    assert result.removed_equality_delete_files_count == equality_file_count
    assert result.deleted_row_count == _PREFIX_DELETES * ROWS_PER_MESSAGE + _EQUALITY_DELETES


@pytest.mark.parametrize("format_version", [2, 3], ids="v{}".format)
@pytest.mark.parametrize(("partner", "file_count"), [("zz-nobody", 0), ("heavy-100k", 1)])
def test_conversion_does_not_open_files_excluded_by_bounds(
    base: NineMillionRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    partner: str,
    file_count: int,
    format_version: int,
) -> None:
    """Only files that may contain the partner are read, regardless of the rest of the table."""
    table = base.copy(tmp_path, **{"format-version": str(format_version)})
    table.delete_prefix({"id1": partner, "id2": 5})
    table.delete_rows(pa.table({"id1": [partner], "id2": [7], "num_cal": pa.array([1], pa.int32())}))
    opened = OpenedFiles()
    opened.watch(monkeypatch)
    result = loaded(tmp_path).maintenance.convert_deletes()
    read = {location.removeprefix("file://") for location in opened.locations} & set(base.paths)
    heading(f"deletes of {partner}, v{format_version}")
    show("opened", f"{len(read)} of {len(base.paths)} data files")
    assert len(read) == file_count
    assert result.deleted_row_count == (ROWS_PER_MESSAGE + 1 if file_count else 0)
    assert result.clean_data_files_count == len(base.paths) - file_count
