"""Data files of other writers with nanoseconds in a microsecond column: deletes compare the value that a scan
returns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.scan.planner import plan_scan
from tableformat.table import Table

SCHEMA = pa.schema([("at", pa.timestamp("us")), ("n", pa.int64())])
NANOSECONDS = [-(2**63), -2_001, -2_000, -1_999, -1_000, -999, -1, 0, 1, 999, 1_000, 1_999, 2_001, 5_999]
MICROSECONDS = [each // 1000 for each in NANOSECONDS]
ROWS_OF_A_FILE_READ_IN_PARTS = 30_000
EPOCH = dt.datetime(1970, 1, 1)


def moment(microseconds: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=microseconds)


@pytest.fixture(params=["small", "large", "codes", "several"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table of one file with two of the tested rows in each row group. A large file has many more, later rows after
    them."""
    more = ROWS_OF_A_FILE_READ_IN_PARTS if request.param == "large" else 0
    numbers = pa.array([*NANOSECONDS, *range(10**18, 10**18 + more)], pa.int64())
    at = numbers.cast(pa.timestamp("ns"))
    n = pa.array(np.random.default_rng(0).permutation(len(NANOSECONDS) + more) + 100)
    columns = [at.dictionary_encode() if request.param == "codes" else at, n]
    fields = [
        pa.field(name, column.type, metadata={b"PARQUET:field_id": str(field_id).encode()})
        for field_id, (name, column) in enumerate(zip(["at", "n"], columns, strict=True), 1)
    ]
    path = tmp_path / "theirs.parquet"
    with pq.ParquetWriter(path, pa.schema(fields), version="2.6") as writer:
        rows = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        writer.write_table(rows.slice(0, len(NANOSECONDS)), row_group_size=2)
        if more:
            writer.write_table(rows.slice(len(NANOSECONDS)))
    copies = [path.with_name(f"{number}.parquet") for number in range(2 if request.param == "several" else 1)]
    added = []
    for copy in copies:
        copy.write_bytes(path.read_bytes())
        added.append(
            DataFile(
                file_path=f"file://{copy}",
                file_format=PARQUET,
                spec_id=0,
                record_count=len(numbers),
                file_size_bytes=path.stat().st_size,
            )
        )
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["at"])
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=tuple(added)))
        table.refresh()
        yield table


def read(table: Table) -> list[int]:
    """The moments of the rows that matter, in the order of the file; each of several files has the same."""
    rows = table.scan().to_arrow()["at"].cast(pa.int64()).to_pylist()
    found = [each for each in rows if each < 10**12]
    count = len({task.data_file.file_path for task in plan_scan(table.view).tasks})
    one = found[: len(found) // count]
    assert found == one * count
    return one


@pytest.mark.parametrize(("lower", "upper"), [(-2, 0), (-1, 1), (0, 2), (0, 10), (-3, -1), (-10, -2)])
def test_range_delete_truncates_finer_timestamps(table: Table, lower: int, upper: int) -> None:
    """RD-1, DA-6: digits beyond the column's precision are rounded down, also before 1970."""
    assert read(table) == MICROSECONDS
    table.delete_range(lower=(moment(lower),), upper=(moment(upper),))
    assert read(table) == [each for each in MICROSECONDS if not lower <= each < upper]


def test_change_feed_truncates_finer_timestamps(table: Table) -> None:
    """CF-3, DA-6."""
    before = table.scan().count()
    table.delete_range(lower=(moment(-1),), upper=(moment(1),))
    deleted = [each for each in table.changes().to_arrow().to_pylist() if each["_change_type"] == "delete"]
    assert {each["at"] for each in deleted} == {moment(-1), moment(0)}
    assert len(deleted) == before - table.scan().count()


@pytest.mark.parametrize("deleted", [-3, -2, -1, 0, 1, 5, 7])
def test_equality_delete_truncates_finer_timestamps(table: Table, deleted: int) -> None:
    """DA-2, DA-6."""
    table.delete_rows([{"at": moment(deleted)}])
    assert read(table) == [each for each in MICROSECONDS if each != deleted]
