"""A scan that needs few rows decodes few rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.scan import reader
from tableformat.scan.arrow_rows import limited

_ROWS, _GROUP = 200_000, 5_000


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """One file that is not read whole, of forty row groups."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    made = catalog.create_table("db.t", schema, properties={"write.parquet.row-group-limit": str(_GROUP)})
    numbers = pa.array(range(_ROWS))
    made.append(pa.table({"id": numbers, "text": numbers.cast(pa.string())}))
    return made


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The row groups of each read call, in the order in which they are decoded."""
    found: list[tuple[int, ...]] = []
    stored = reader.read_stored

    def noted(run: reader.RowGroupRun) -> pa.Table:
        found.append(run.row_groups)
        return stored(run)

    monkeypatch.setattr(reader, "read_stored", noted)
    return found


def test_small_limit_decodes_only_the_first_row_group(table: tf.Table, decoded: list[tuple[int, ...]]) -> None:
    assert table.scan(limit=3).to_arrow()["id"].to_pylist() == [0, 1, 2]
    with duckdb.connect() as connection:
        assert len(table.scan(limit=3).to_duckdb(connection).fetchall()) == 3
    assert decoded == [(0,), (0,)]


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 3, 4, 5, 8, 9, 10, 99])
def test_limit_spans_tables_and_reads_only_needed_ones(limit: int | None) -> None:
    parts = [[0, 1, 2], [], [3, 4], [5, 6, 7, 8]]
    read = []

    def tables() -> Iterator[pa.Table]:
        for part in parts:
            read.append(part)
            yield pa.table({"x": pa.array(part, pa.int64())})

    found = [number for table in limited(tables(), limit) for number in table["x"].to_pylist()]
    wanted = 9 if limit is None else min(limit, 9)
    assert found == list(range(wanted))
    assert sum(map(len, read[:-1])) < wanted or wanted == 0
    assert bool(read) is (limit != 0)
