"""The dataset that DuckDB reads: counts without rows, filters that this library cannot express, and queries that stop
early."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.storage.location import local_path
from tableformat.testing.table_files import live_data_files

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("__row0", pa.string()), ("__ROW1", pa.float64())])
NAN = float("nan")
ROWS = [{"id": number, "__row0": f"v{number}", "__ROW1": [1.5, NAN, None][number % 3]} for number in range(12)]
CONDITIONS = (
    "true",
    "id = 5",
    "id IN (1, 4, 8)",
    '"__ROW1" > 1',
    "\"__ROW1\" = 'NaN'",
    'NOT ("__ROW1" <= 1)',
    "\"__row0\" LIKE 'v1%'",
    "\"__row0\" > 'v3' OR id + 1 = 3",
    "id = 99",
)
_STOPS_EARLY = """
import sys, duckdb, tableformat as tf
connection, catalog = duckdb.connect(), tf.open_catalog(sys.argv[1])
tf.duckdb.attach(connection, catalog)
print(connection.execute("SELECT count(*) FROM (FROM lake.db.t LIMIT 3)").fetchall())
"""

_ONE_THREAD_FOR_FILES = """
import sys, pyarrow as pa, tableformat as tf
pa.set_io_thread_count(1)
print(tf.open_catalog(sys.argv[1]).load_table("db.t").scan().to_dataset().to_table().num_rows)
"""


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """Ids 0 to 11 in three files. Id 2 is deleted from the first file, and ids 6 and 7 from the second."""
    catalog = new_lake(tmp_path / "lake")
    made = catalog.create_table("db.t", SCHEMA, key=["id"])
    for start in range(0, 12, 4):
        made.append(pa.Table.from_pylist(ROWS[start : start + 4], schema=SCHEMA))
    made.delete_rows([{"id": 2}, {"id": 6}, {"id": 7}])
    return made


@pytest.fixture
def connection(table: tf.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        assert table.catalog is not None
        tf.duckdb.attach(made, table.catalog)
        made.register("plain", table.scan().to_arrow())
        table.scan().to_duckdb(made, name="scanned")
        yield made


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("columns", ["count(*)", "count(*), sum(id)", 'count("__ROW1"), list(id ORDER BY id)'])
def test_duckdb_dataset_agrees_with_in_memory_table(
    connection: duckdb.DuckDBPyConnection, columns: str, condition: str
) -> None:
    def found(source: str) -> list[object]:
        return connection.execute(f"SELECT {columns} FROM {source} WHERE {condition}").fetchall()

    assert found("lake.db.t") == found("scanned") == found("plain")


def test_dataset_shows_only_table_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """The marker column is visible only inside DuckDB; its name differs from every column in any spelling."""
    for source in ("lake.db.t", "scanned"):
        assert connection.sql(f"FROM {source}").columns == SCHEMA.names
        assert [row[0] for row in connection.sql(f"DESCRIBE {source}").fetchall()] == SCHEMA.names
    assert connection.sql('SELECT "__row0", count(*) FROM lake.db.t WHERE id = 3 GROUP BY ALL').fetchall() == [
        ("v3", 1)
    ]


def test_count_of_files_without_deletes_opens_no_file(table: tf.Table, connection: duckdb.DuckDBPyConnection) -> None:
    counts = ("SELECT count(*) FROM lake.db.t", "SELECT count(*) FROM lake.db.t WHERE id >= 0")
    before = [connection.execute(query).fetchall() for query in counts]
    assert before == [[(9,)]] * 2
    table.maintenance.compact(rewrite_all=True)
    tf.duckdb.refresh(connection)
    for file in live_data_files(table.refresh()):
        path = local_path(file.file_path)
        assert path is not None
        Path(path).unlink()
    assert connection.execute(counts[0]).fetchall() == [(9,)]
    with pytest.raises(duckdb.Error, match="does not exist"):
        connection.execute("SELECT sum(id) FROM lake.db.t").fetchall()


@pytest.mark.parametrize("above", [2, 99])
def test_struct_uuid_columns_with_an_empty_filter_result(tmp_path: Path, above: int) -> None:
    """If no row of a batch was left, PyArrow could not create the empty batch."""
    catalog = new_lake(tmp_path / "uuids")
    schema = pa.schema([("id", pa.int64()), ("inner", pa.struct([("key", pa.uuid())]))])
    storage = pa.schema([("id", pa.int64()), ("inner", pa.struct([("key", pa.binary(16))]))])
    made = catalog.create_table("db.u", schema)
    made.append(pa.Table.from_pylist([{"id": id, "inner": {"key": b"k" * 16}} for id in (1, 2, 3)], schema=storage))
    found = made.scan().to_duckdb(duckdb.connect()).filter(f"id + 1 > {above}").to_arrow_table()
    assert found["id"].to_pylist() == [id for id in (1, 2, 3) if id + 1 > above]
    rows = DuckDBDataset(made.scan()).scanner(filter=pc.field("id") + 1 > above).to_reader().read_all()
    assert rows["id"].to_pylist() == found["id"].to_pylist()


@pytest.mark.slow
def test_process_exits_after_unfinished_queries(table: tf.Table, tmp_path: Path) -> None:
    """pyarrow's scanner reads ahead on its own thread, which calls Python after the interpreter has ended."""
    numbers = pa.array(range(100, 2_000_000))
    table.append(pa.table({"id": numbers, "__row0": numbers.cast(pa.string())}))
    command = [sys.executable, "-c", _STOPS_EARLY, str(tmp_path / "lake")]
    for _ in range(2):
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (ended.returncode, ended.stdout) == (0, "[(3,)]\n"), ended.stderr


@pytest.mark.slow
def test_dataset_read_does_not_deadlock_on_io_threads(table: tf.Table, tmp_path: Path) -> None:
    """pyarrow's scanner occupies one of its eight I/O threads while it waits for rows. Eight scanners used to wait for
    each other for ever."""
    table.append(pa.table({"id": range(100, 200_000)}))
    command = [sys.executable, "-c", _ONE_THREAD_FOR_FILES, str(tmp_path / "lake")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "199909\n"), ended.stderr
