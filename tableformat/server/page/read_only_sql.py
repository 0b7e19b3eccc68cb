"""Runs one SELECT on the tables of a catalog, in a DuckDB that reaches nothing else.

settings     no file, no network, no extension, no Python variable; then the configuration is locked
statement    one SELECT, as DuckDB's own parser sees it
functions    table functions of a list, and no function that runs text as SQL or reads the configuration
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tableformat.engines.attachment import AttachableCatalog
from tableformat.engines.duckdb import attach_as_default
from tableformat.engines.listed_tables import with_listed_tables
from tableformat.engines.time_travel import with_past_states
from tableformat.errors import InvalidArgumentError, TableFormatError, UnsupportedFeatureError
from tableformat.server.page.query_limits import QueryLimits, QueryOutcome, without_result

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SETTINGS: Final[dict[str, Any]] = {
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    # The default is in the home directory, whose path a system view lists.
    "secret_directory": "none",
    "temp_directory": "",
}
_LAST_SETTINGS: Final = (
    "SET enable_progress_bar = false",
    "SET enable_external_access = false",
    "SET disabled_filesystems = 'LocalFileSystem'",
    "SET lock_configuration = true",
)
_TABLE_FUNCTIONS: Final = frozenset(
    {
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_keywords",
        "duckdb_types",
        "generate_series",
        "json_each",
        "json_tree",
        "pg_timezone_names",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
"""Table functions that read nothing but their arguments and DuckDB's own lists."""
_REFUSED_FUNCTIONS: Final = frozenset(
    {"current_setting", "getenv", "json_deserialize_sql", "json_serialize_plan", "query", "query_table", "write_log"}
)
_CHANGE: Final = re.compile(r"(INSERT|UPDATE|DELETE|MERGE)\w*_NODE")
_BATCH_ROWS: Final = 1_000
_INTERRUPT_SECONDS: Final = 0.2
_SELECT_ONLY: Final = "one SELECT is run at a time: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW TABLES."


def read_only_query(catalog: AttachableCatalog, sql: str, limits: QueryLimits) -> QueryOutcome:
    """The outcome of one query. Refused and failed queries are outcomes, too; only unexpected errors are raised."""
    import duckdb

    started = time.perf_counter()
    settings = {**_SETTINGS, "threads": limits.thread_count, "memory_limit": f"{limits.duckdb_bytes // 1024}KiB"}
    with duckdb.connect(config=settings) as connection:
        try:
            with _interrupted_after(limits.seconds, connection):
                return _outcome(connection, catalog, sql, limits, started)
        except duckdb.InterruptException:
            return without_result(f"The query was stopped after {limits.seconds:g} s.")
        except (duckdb.OutOfMemoryException, MemoryError):
            size = f"{limits.duckdb_bytes // (1024 * 1024)} MiB"
            return without_result(f"The query needs more than {size} of memory. Select fewer rows, or aggregate.")
        except (duckdb.Error, TableFormatError) as error:
            return without_result(str(error))


@contextmanager
def _interrupted_after(seconds: float, connection: DuckDBPyConnection) -> Iterator[None]:
    """Interrupt the connection after this time, again and again: an interrupt between two statements is lost."""
    is_over = Event()

    def interrupt() -> None:
        left = seconds
        while not is_over.wait(left):
            connection.interrupt()
            left = _INTERRUPT_SECONDS

    thread = Thread(target=interrupt, name="query-limit")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _outcome(
    connection: DuckDBPyConnection, catalog: AttachableCatalog, sql: str, limits: QueryLimits, started: float
) -> QueryOutcome:
    _check(connection, sql)
    attach_as_default(connection, catalog)
    for setting in _LAST_SETTINGS:
        connection.execute(setting)
    relation = connection.sql(with_past_states(connection, with_listed_tables(sql)))
    types = tuple(str(each).strip('"') for each in relation.types)
    rows, is_cut = _first_rows(relation.to_arrow_reader(_BATCH_ROWS), limits)
    return QueryOutcome(rows, types, is_cut, time.perf_counter() - started)


def _check(connection: DuckDBPyConnection, sql: str) -> None:
    """Raises UnsupportedFeatureError for a text that is not one SELECT, or that calls a refused function."""
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UnsupportedFeatureError(_SELECT_ONLY)
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree = json.loads(text)
    if tree["error"]:
        raise UnsupportedFeatureError(f"{_SELECT_ONLY} PIVOT is not supported here.")
    for node in _nodes(tree):
        if _CHANGE.fullmatch(str(node.get("type"))):
            raise UnsupportedFeatureError(_SELECT_ONLY)
        if node.get("type") == "TABLE_FUNCTION":
            for name in _names(node["function"]) - _TABLE_FUNCTIONS:
                raise UnsupportedFeatureError(
                    f"the table function {name!r:.80} is not available here: a query reads only the tables of the lake."
                )
        elif "function_name" in node:
            for name in _names(node) & _REFUSED_FUNCTIONS:
                raise UnsupportedFeatureError(f"the function {name!r} is not available here.")


def _names(function: dict[str, Any]) -> frozenset[str]:
    """The name of a function in a syntax tree. DuckDB 2.0 has it twice."""
    path = (function.get("qualified_name") or {}).get("path") or ()
    return frozenset(str(name).lower() for name in (function["function_name"], *path[-1:]))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _first_rows(reader: pa.RecordBatchReader, limits: QueryLimits) -> tuple[pa.Table, bool]:
    """The first rows within the limits, and whether there are more."""
    taken: list[pa.RecordBatch] = []
    rows_left, bytes_left, is_cut = limits.row_count, limits.result_bytes, False
    for batch in reader:
        fitting = _fitting(batch.slice(0, rows_left), bytes_left)
        taken.append(fitting)
        rows_left, bytes_left = rows_left - fitting.num_rows, bytes_left - fitting.nbytes
        is_cut = fitting.num_rows < batch.num_rows
        if is_cut:
            break
    rows = pa.Table.from_batches(taken, schema=reader.schema)
    if is_cut and rows.num_rows == 0:
        raise InvalidArgumentError("the first row is too large to display. Select fewer columns, or a part of a value.")
    return rows, is_cut


def _fitting(batch: pa.RecordBatch, byte_count: int) -> pa.RecordBatch:
    """The first rows of a batch, so many that their size is within the limit."""
    while batch.num_rows and batch.nbytes > byte_count:
        batch = batch.slice(0, batch.num_rows // 2)
    return batch
