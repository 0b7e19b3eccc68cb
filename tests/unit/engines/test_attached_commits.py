"""Queries over several tables of an attached catalog, while a writer changes the tables together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

NAMES = ("shop.lines", "shop.orders")
SCHEMA = pa.schema([pa.field("message", pa.int64(), nullable=False)])
SUMS = "SELECT (SELECT sum(message) FROM lake.shop.orders), (SELECT sum(message) FROM lake.shop.lines)"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    with tf.open_catalog(str(tmp_path / "lake")) as opened:
        opened.create_namespace("shop")
        for name in NAMES:
            opened.create_table(name, SCHEMA, key=["message"])
        write(opened, 1)
        yield opened


def write(catalog: tf.Catalog, message: int) -> None:
    with catalog.transaction() as tx:
        for name in NAMES:
            tx.table(name).overwrite(pa.table({"message": [message]}, schema=SCHEMA))


def sums(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    found = connection.execute(SUMS).fetchone()
    assert found is not None
    return found


@contextmanager
def writing(directory: Path) -> Iterator[list[int]]:
    """A writer that commits one message after another; yields the numbers that it has committed."""
    ended = threading.Event()
    written = [1]

    def work() -> None:
        with tf.open_catalog(str(directory / "lake")) as own:
            while not ended.is_set():
                write(own, written[-1] + 1)
                written.append(written[-1] + 1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield written
    finally:
        ended.set()
        thread.join()


def test_query_reads_both_tables_at_one_commit(catalog: tf.Catalog, tmp_path: Path) -> None:
    """CP-80: at each `attach` and each `refresh`, for the current state and for a past time."""
    with writing(tmp_path) as written, duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        seen = [sums(connection)]
        while len(written) < 12 or len(seen) < 12:
            tf.duckdb.refresh(connection)
            seen.append(sums(connection))
        newest = catalog.load_table(NAMES[0])
    assert [orders == lines for orders, lines in seen] == [True] * len(seen)
    assert seen[-1][0] > seen[0][0], "the writer went on"
    assert sorted(seen) == seen
    moments = {entry.timestamp_ms for entry in newest.metadata.snapshot_log}
    for moment in sorted(moments)[-4:]:
        with duckdb.connect() as connection:
            tf.duckdb.attach(connection, catalog, as_of=moment)
            orders, lines = sums(connection)
            assert orders == lines


def test_tables_are_loaded_at_one_catalog_state(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-80: a commit, a new table, and one that is dropped, between the tables that a reader loads."""
    table_at = EmbeddedCatalog.table_at
    others = [lambda: write(catalog, 2), lambda: catalog.create_table("shop.more", SCHEMA)]

    def late(self: EmbeddedCatalog, identifier: tuple[str, ...], location: str) -> object:
        found = table_at(self, identifier, location)
        if others:
            others.pop(0)()
        return found

    monkeypatch.setattr(EmbeddedCatalog, "table_at", late)
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        assert sums(connection) == (1, 1)
        monkeypatch.undo()
        changed = tf.duckdb.refresh(connection)
        assert sums(connection) == (2, 2)
        assert sorted(changed) == ["lake.shop.lines", "lake.shop.more", "lake.shop.orders"]
