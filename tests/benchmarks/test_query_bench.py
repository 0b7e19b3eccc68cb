"""Sums through an attached DuckDB catalog, compared with DuckDB's own reader on the same data files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from measuring import Contender, heading, race, show, show_all
from nine_million_rows import KEY, NineMillionRows, rows_of_messages, some_messages

import tableformat as tf
from tableformat.scan.planner import plan_scan
from tableformat.storage.location import local_path

_ROUNDS = 15
_ROWS = 1_400_000
_DELETED = 20_000
_COMMITS = 100
_TABLES = 50


def test_repeated_sums_on_clean_deleted_and_maintained_tables(
    benchmark: Any, tmp_path: Path, base: NineMillionRows
) -> None:
    rows = base.table.scan(limit=_ROWS).to_arrow()
    catalog = tf.open_catalog(f"{tmp_path}/")
    catalog.create_namespace("db")
    tables = {name: _loaded(catalog, name, rows) for name in ("clean", "positions", "replaced")}
    chosen = np.random.default_rng(0).choice(len(rows), _DELETED, replace=False)
    tables["positions"].delete_rows(rows.select(KEY).take(pa.array(chosen)))
    tables["positions"].maintenance.convert_deletes()
    for number in range(_COMMITS):
        tables["replaced"].replace(rows_of_messages(some_messages(100, seed=number), seed=number), prefix=KEY[:2])
    with duckdb.connect(config={"threads": pa.cpu_count()}) as connection:
        tf.duckdb.attach(connection, catalog)
        contenders = {}
        for name, table in tables.items():
            paths = [local_path(task.data_file.file_path) for task in plan_scan(table.view).tasks]
            sources = {name: f"lake.db.{name}", f"{name}, read_parquet": f"read_parquet({paths})"}
            assert _sum(connection, sources[name])[0] == table.scan().count()
            contenders |= {key: Contender(lambda _, source=of: _sum(connection, source)) for key, of in sources.items()}
        timings = race(benchmark, contenders, rounds=_ROUNDS)
        heading(
            f"count and sum, warm: {_ROWS:,} rows, {_DELETED:,} deleted by position, {_COMMITS} replacements and upkeep"
        )
        show_all(timings)
        for name in tables:
            ratio = timings[name].cpu / timings[f"{name}, read_parquet"].cpu
            show(f"{name}, CPU against read_parquet", f"{ratio:.2f} x")


def test_refresh_of_many_tables(benchmark: Any, tmp_path: Path) -> None:
    catalog = tf.open_catalog(f"{tmp_path}/")
    catalog.create_namespace("db")
    tables = [catalog.create_table(f"db.t{number}", pa.schema([("id", pa.int64())])) for number in range(_TABLES)]
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        contenders = {
            "none changed": Contender(lambda _: tf.duckdb.refresh(connection)),
            "one changed": Contender(lambda _: tf.duckdb.refresh(connection), lambda: tables[0].append([{"id": 1}])),
        }
        timings = race(benchmark, contenders, rounds=_ROUNDS)
        heading(f"refresh of an attached catalog of {_TABLES} tables")
        show_all(timings)


def _loaded(catalog: tf.Catalog, name: str, rows: pa.Table) -> tf.Table:
    upkeep = {"tableformat.upkeep": "writer"} if name == "replaced" else {}
    table = catalog.create_table(f"db.{name}", rows.schema, key=KEY, properties=upkeep)
    table.append(rows)
    return table


def _sum(connection: duckdb.DuckDBPyConnection, source: str) -> Any:
    return connection.execute(f"SELECT count(*), sum(num_cal) FROM {source}").fetchone()
