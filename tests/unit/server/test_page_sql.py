"""The SQL box: results, limits, and what a query does not reach."""

from __future__ import annotations

import csv
import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from page_client import Browser, check_harmless

import tableformat as tf
from tableformat.errors import UnsupportedFeatureError
from tableformat.server.answers import RefusedRequestError
from tableformat.server.page.queries import Queries
from tableformat.server.page.query_limits import QueryLimits, QueryOutcome
from tableformat.server.page.query_pages import csv_text
from tableformat.server.page.read_only_sql import read_only_query
from tableformat.server.running import Server

LIMITS = QueryLimits()
SHORT = QueryLimits(seconds=0.3)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> tf.Catalog:
    catalog = tf.open_catalog(str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("db")
    schema = pa.schema([("account", pa.int64()), ("<b>note", pa.string())])
    table = catalog.create_table("db.orders", schema, key=["account"])
    table.append(pa.table({"account": range(1_500), "<b>note": ["=1+2", "<script>", *["plain"] * 1_498]}, schema))
    table.delete_prefix({"account": 7})
    return catalog


@pytest.fixture(scope="module")
def server(catalog: tf.Catalog) -> Iterator[Server]:
    with tf.serve(catalog) as server:
        yield server


def run(catalog: tf.Catalog, sql: str, limits: QueryLimits = LIMITS) -> QueryOutcome:
    return read_only_query(catalog, sql, limits)


def test_query_applies_deletes_and_the_row_limit(catalog: tf.Catalog) -> None:
    counted = run(catalog, "SELECT count(*) AS n FROM db.orders")
    assert (counted.rows.to_pydict(), counted.types, counted.is_cut) == ({"n": [1_499]}, ("BIGINT",), False)
    cut = run(catalog, "FROM db.orders")
    assert (cut.rows.num_rows, cut.is_cut) == (1_000, True)
    whole = run(catalog, "FROM db.orders LIMIT 1000")
    assert (whole.rows.num_rows, whole.is_cut) == (1_000, False)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH t AS (FROM db.orders) SELECT count(*) FROM t",
        "VALUES (1), (2)",
        "DESCRIBE db.orders",
        "SUMMARIZE db.orders",
        "SELECT * FROM range(3), unnest([1, 2]) ORDER BY 1;",
        "SELECT list_transform([1, 2], lambda x: x + 1), {'a': 1}.a, 'it''s'",
        "-- a comment\nSELECT 1 /* and another */",
    ],
)
def test_supported_query_forms_run(catalog: tf.Catalog, sql: str) -> None:
    outcome = run(catalog, sql)
    assert not outcome.problem
    assert outcome.rows.num_rows > 0


def test_tables_are_listed_and_read_at_a_snapshot(catalog: tf.Catalog) -> None:
    assert run(catalog, "SHOW TABLES").rows.to_pydict() == {"name": ["db.orders"]}
    first = catalog.load_table("db.orders").inspect.snapshots()["snapshot_id"][0].as_py()
    assert run(catalog, f"SELECT count(*) AS n FROM db.orders AT (VERSION => {first})").rows["n"].to_pylist() == [1_500]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT (SELECT count(*) FROM main.read_blob('/etc/passwd'))",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '/etc/hosts.csv'",
        "SELECT * FROM 'https://127.0.0.1:1/x.parquet'",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('db.orders')",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pandas_scan(NULL)",
        "SELECT * FROM python_map_function(NULL)",
        "SELECT * FROM parquet_metadata('/tmp/x.parquet')",
        "SELECT * FROM catalog",
        "SELECT getenv('HOME')",
        "SELECT current_setting('secret_directory')",
        "SELECT system.main.current_setting('secret_directory')",
        "SELECT json_serialize_plan('SELECT 1')",
        "WITH a AS (INSERT INTO db.orders VALUES (1, 'x') RETURNING *) SELECT * FROM a",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "COPY db.orders FROM '/etc/passwd'",
        "ATTACH '/tmp/x.db'",
        "ATTACH ':memory:' AS other",
        "DETACH lake",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/x'",
        "IMPORT DATABASE '/tmp/x'",
        "CREATE TABLE x (a INT)",
        "CREATE SECRET (TYPE s3)",
        "INSERT INTO db.orders VALUES (1, 'x')",
        "DELETE FROM db.orders",
        "DROP VIEW db.orders",
        "EXPLAIN ANALYZE SELECT 1",
        "CHECKPOINT",
        "BEGIN",
        "PREPARE x AS SELECT 1",
        "USE memory",
        "SELECT 1; SELECT 2",
        "PIVOT db.orders ON account USING count(*)",
        "",
        "SELECT ?",
    ],
)
def test_query_cannot_access_anything_but_tables(catalog: tf.Catalog, sql: str) -> None:
    outcome = run(catalog, sql)
    assert outcome.problem
    assert outcome.rows.num_columns == 0
    assert "root:" not in outcome.problem


def test_system_settings_do_not_reveal_paths_or_variables(catalog: tf.Catalog) -> None:
    listed = run(catalog, "SELECT * FROM pg_settings").rows.to_pylist()
    values = [str(row["setting"]) for row in listed]
    assert not [value for value in values if str(Path.home()) in value]
    assert not [value for value in values if len(value) > 8 and value in os.environ.values() and "/" in value]


def test_duckdb_error_shows_the_position_in_the_text(catalog: tf.Catalog) -> None:
    problem = run(catalog, "SELECT * FRM db.orders").problem
    assert "LINE 1" in problem
    assert "^" in problem


def test_query_is_stopped_at_its_time_limit(catalog: tf.Catalog) -> None:
    started = time.perf_counter()
    outcome = run(catalog, "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b", SHORT)
    assert outcome.problem == "The query was stopped after 0.3 s."
    assert time.perf_counter() - started < 10


def test_query_is_stopped_if_time_is_over_before_start(catalog: tf.Catalog) -> None:
    """An interrupt between two statements has no effect in DuckDB."""
    sql = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    assert "was stopped" in run(catalog, sql, QueryLimits(seconds=0)).problem


def test_query_beyond_memory_limit_is_rejected(catalog: tf.Catalog) -> None:
    limits = QueryLimits(duckdb_bytes=16 * 1024 * 1024)
    assert "16 MiB of memory" in run(catalog, "SELECT * FROM range(50000000) ORDER BY hash(range)", limits).problem


def test_large_rows_truncate_the_result_and_larger_ones_are_rejected(catalog: tf.Catalog) -> None:
    limits = QueryLimits(result_bytes=100_000)
    cut = run(catalog, "SELECT repeat('x', 1000) FROM range(900)", limits)
    assert cut.is_cut
    assert 50 < cut.rows.num_rows <= 100
    assert "too large" in run(catalog, "SELECT repeat('x', 1000000)", limits).problem


def test_query_outcome_round_trips_between_processes() -> None:
    rows = pa.table([[1], ["x"]], names=["a", "a"])
    outcome = QueryOutcome(rows, ("INTEGER", "VARCHAR"), True, 0.5)
    read = QueryOutcome.from_bytes(outcome.to_bytes())
    assert read.rows.equals(rows)
    assert (read.types, read.is_cut, read.seconds, read.problem) == (("INTEGER", "VARCHAR"), True, 0.5, "")


def test_csv_escapes_spreadsheet_formulas() -> None:
    texts = ["=1+2", "+1", "-5", "@x", "\tx", "plain", 'a "quote"\n', None]
    rows = pa.table([texts, [-5, *[1] * 7]], names=["=name", "n"])
    read = list(csv.reader(io.StringIO(csv_text(QueryOutcome(rows)))))
    assert read[0] == ["'=name", "n"]
    assert [row[0] for row in read[1:]] == ["'=1+2", "'+1", "'-5", "'@x", "'\tx", "plain", 'a "quote"\n', ""]
    assert read[1][1] == "-5"


def test_results_are_an_escaped_table_and_a_csv_file(server: Server) -> None:
    browser = Browser(server)
    page = browser.submit("/sql", {"sql": "FROM db.orders ORDER BY account", "as": "page"})
    document = check_harmless(page.text)
    assert page.status_code == 200
    assert "The first 1,000 rows; the result has more" in " ".join(document.text.split())
    assert "<script>" in document.text
    assert "<b>note" in document.text
    file = browser.submit("/sql", {"sql": "FROM db.orders ORDER BY account", "as": "csv"})
    assert file.headers["Content-Type"].startswith("text/csv")
    assert file.headers["Content-Disposition"].startswith("attachment")
    assert file.headers["X-Content-Type-Options"] == "nosniff"
    read = list(csv.reader(io.StringIO(file.text)))
    assert read[:3] == [["account", "<b>note"], ["0", "'=1+2"], ["1", "<script>"]]
    assert len(read) == 1_001
    wrong = browser.submit("/sql", {"sql": "SELECT '<img src=x>' FROM", "as": "csv"})
    assert wrong.status_code == 400
    check_harmless(wrong.text)


def test_concurrent_queries_are_limited_per_session_and_in_total(catalog: tf.Catalog) -> None:
    queries = Queries(catalog, QueryLimits(seconds=3))
    queries.prepare()
    slow = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    outcomes: list[QueryOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(queries.run("one", slow)))
    thread.start()
    deadline = time.monotonic() + 30
    while not queries._running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(RefusedRequestError, match="still running"):
        queries.run("one", "SELECT 1")
    queries._running |= {"two", "three"}
    with pytest.raises(RefusedRequestError, match="3 queries are running"):
        queries.run("four", "SELECT 1")
    thread.join()
    assert outcomes[0].problem.startswith("The query was ")


@pytest.mark.skipif("sys.platform != 'linux'")
def test_query_that_exhausts_memory_ends_only_its_process(catalog: tf.Catalog) -> None:
    queries = Queries(catalog, QueryLimits(seconds=10))
    outcome = queries.run("one", "SELECT list_sum(range(1000000000))")
    assert "memory" in outcome.problem


def test_unpicklable_catalog_is_rejected(catalog: tf.Catalog) -> None:
    with pytest.raises(UnsupportedFeatureError, match="open_catalog"):
        Queries(tf.Catalog(catalog.iceberg)).run("one", "SELECT 1")
