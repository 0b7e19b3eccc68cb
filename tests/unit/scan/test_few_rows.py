"""A scan that needs few rows decodes few rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.scan import reader
from tableformat.scan.arrow_rows import limited

_ROWS, _GROUP = 200_000, 5_000


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """One file that is not read whole, of forty row groups."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
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


def test_the_first_row_group_is_decoded_alone(table: tf.Table, decoded: list[tuple[int, ...]]) -> None:
    assert table.scan(limit=3).to_arrow()["id"].to_pylist() == [0, 1, 2]
    with duckdb.connect() as connection:
        assert len(table.scan(limit=3).to_duckdb(connection).fetchall()) == 3
    assert decoded == [(0,), (0,)]


def test_all_row_groups_are_decoded_once_and_several_at_a_time(table: tf.Table, decoded: list[tuple[int, ...]]) -> None:
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(_ROWS))
    assert sorted(group for run in decoded for group in run) == list(range(_ROWS // _GROUP))
    assert decoded[0] == (0,)
    assert len(decoded) == 2


def test_of_an_object_store_row_groups_are_asked_for_together(
    table: tf.Table, decoded: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the first row group separately would be one more request for each file."""
    monkeypatch.setattr(reader.ReadContext, "has_local_files", False)
    assert table.scan().count() == _ROWS
    assert table.scan().to_arrow()["id"].to_pylist() == list(range(_ROWS))
    assert decoded == [tuple(range(_ROWS // _GROUP))]


def test_a_filter_that_nothing_of_the_first_row_group_passes(table: tf.Table, decoded: list[tuple[int, ...]]) -> None:
    found = table.scan("text LIKE '19999%'").to_arrow()
    assert found["id"].to_pylist() == [19_999, *range(199_990, 200_000)]
    assert decoded


def test_row_groups_that_are_decoded_together_follow_each_other(
    table: tf.Table, decoded: list[tuple[int, ...]]
) -> None:
    """A row group whose rows are all deleted is not decoded, and the rows after it keep their positions."""
    deleted = {3, *range(2 * _GROUP, 3 * _GROUP), 4 * _GROUP + 1, 7 * _GROUP}
    table.delete(
        f"id = 3 OR id >= {2 * _GROUP} AND id < {3 * _GROUP} OR id = {4 * _GROUP + 1} OR id = {7 * _GROUP}",
        mode="scan",
    )
    decoded.clear()
    found = table.scan().to_arrow()["id"].to_pylist()
    assert found == [number for number in range(_ROWS) if number not in deleted]
    assert 2 not in [group for run in decoded for group in run]
    assert all(run == tuple(range(run[0], run[-1] + 1)) for run in decoded)


@pytest.mark.parametrize("limit", [None, 0, 1, 2, 3, 4, 5, 8, 9, 10, 99])
def test_a_limit_is_over_all_tables_and_reads_none_that_it_does_not_need(limit: int | None) -> None:
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
