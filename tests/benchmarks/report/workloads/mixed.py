"""A mixed run modelled on LST-Bench (Camacho-Rodriguez and others, 2023): queries, refreshes, maintenance between them,
and time travel, on tables modelled on TPC-H. The rows come from our own generator, so no figure is a TPC-H result.

    load   queries   [refresh  queries  refresh  queries  maintenance  queries] ...   queries of the first version

A refresh deletes one order in fifty, with its lines, and adds as many new ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import duckdb

from report.workloads.contest import Contest, Setting, contest
from report.workloads.spark_statements import BARE, spark_systems

WORKLOAD = "mixed"
_ORDERS: Final = 150_000
_CUSTOMERS: Final = 15_000
_CYCLES_MAX: Final = 8
_TABLES: Final = ("lineitem", "orders")
_COLUMNS: Final = {
    "lineitem": (
        "l_orderkey BIGINT NOT NULL, l_linenumber INT NOT NULL, l_quantity INT, l_price BIGINT, l_discount INT, "
        "l_tax INT, l_flag STRING, l_status STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, "
        "l_mode STRING",
        "l_orderkey, l_linenumber",
    ),
    "orders": (
        "o_orderkey BIGINT NOT NULL, o_custkey BIGINT, o_orderdate DATE, o_priority STRING, o_shippriority INT",
        "o_orderkey",
    ),
}
QUERIES: Final = {
    "pricing summary": (
        "SELECT l_flag, l_status, sum(l_quantity), sum(l_price), sum(l_price * (100 - l_discount)), count(*) "
        "FROM {lineitem} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_flag, l_status ORDER BY 1, 2"
    ),
    "shipping priority": (
        "SELECT l_orderkey, sum(l_price * (100 - l_discount)) revenue, o_orderdate FROM {lineitem}, {orders}, customer "
        "WHERE c_segment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' "
        "GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, l_orderkey LIMIT 10"
    ),
    "order priority": (
        "SELECT o_priority, count(*) FROM {orders} WHERE o_orderdate >= DATE '1993-07-01' "
        "AND o_orderdate < DATE '1993-10-01' AND EXISTS (SELECT 1 FROM {lineitem} WHERE l_orderkey = o_orderkey "
        "AND l_commitdate < l_receiptdate) GROUP BY o_priority ORDER BY 1"
    ),
    "forecast": (
        "SELECT sum(l_price * l_discount) FROM {lineitem} WHERE l_shipdate >= DATE '1994-01-01' "
        "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 5 AND 7 AND l_quantity < 24"
    ),
    "one order": "SELECT l_linenumber, l_price FROM {lineitem} WHERE l_orderkey = 70000 ORDER BY 1",
}
_MADE: Final = {
    "orders": (
        "SELECT o AS o_orderkey, (hash(o, 'c') % {customers})::BIGINT o_custkey, "
        "DATE '1992-01-01' + (hash(o, 'd') % 2400)::INT AS o_orderdate, "
        "['1-URGENT', '2-HIGH', '3-MEDIUM', '4-LOW', '5-NONE'][(hash(o, 'p') % 5)::INT + 1] o_priority, "
        "0 o_shippriority "
        "FROM range({first}, {last}) r(o)"
    ),
    "lineitem": (
        "SELECT o AS l_orderkey, n::INT l_linenumber, (1 + hash(o, n, 'q') % 50)::INT l_quantity, "
        "(90000 + hash(o, n, 'e') % 10000000)::BIGINT l_price, (hash(o, n, 'd') % 11)::INT l_discount, "
        "(hash(o, n, 't') % 9)::INT l_tax, ['A', 'N', 'R'][(hash(o, n, 'f') % 3)::INT + 1] l_flag, "
        "['F', 'O'][(hash(o, n, 's') % 2)::INT + 1] l_status, s AS l_shipdate, "
        "s + (hash(o, n, 'c') % 60)::INT - 30 AS l_commitdate, s + (hash(o, n, 'r') % 30)::INT AS l_receiptdate, "
        "['AIR', 'MAIL', 'RAIL', 'SHIP'][(hash(o, n, 'm') % 4)::INT + 1] l_mode "
        "FROM (SELECT o, n, DATE '1992-01-01' + (hash(o, 'd') % 2400)::INT + (hash(o, n, 'h') % 121)::INT AS s "
        "FROM (SELECT o, unnest(range(1, 2 + (hash(o, 'l') % 7)::BIGINT)) n FROM range({first}, {last}) r(o)))"
    ),
}


def run(setting: Setting) -> None:
    """Run as many cycles as the time allows, then time travel."""
    setting.measurements.sizes[WORKLOAD] = (
        f"{_ORDERS:,} orders with four lines each; a refresh deletes and adds {_ORDERS // 50:,} orders; local[2]"
    )
    oracle = duckdb.connect()
    made = _make(oracle, setting.directory, "made", 0, _ORDERS)
    customers = setting.directory / "customer.parquet"
    oracle.execute(
        "CREATE TABLE customer AS SELECT c AS c_custkey, "
        "['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD'][(hash(c) % 5)::INT + 1] c_segment "
        f"FROM range({_CUSTOMERS}) r(c)"
    )
    oracle.execute(f"COPY customer TO '{customers}' (FORMAT parquet)")
    for table in _TABLES:
        oracle.execute(f"CREATE TABLE {table} AS FROM '{made[table]}'")
    systems = [system for system in spark_systems(setting.systems[0].python) if system.name != BARE]
    with contest(WORKLOAD, setting, systems, setting.directory) as entered:
        entered.each("view", "view", name="customer", path=str(customers), is_recorded=False)
        _load(entered, made)
        first = {table: entered.each("version", "version", name=table, is_recorded=False) for table in _TABLES}
        at_first = _answers(oracle)
        _query(entered, at_first, "queries after the load")
        _cycles(entered, oracle)
        for query, expected in at_first.items():
            entered.each(
                "queries of the first version",
                "sql",
                statement=QUERIES[query],
                tables=list(_TABLES),
                expected=expected,
                arguments_of=lambda name: {"at": {table: first[table][name] for table in _TABLES}},
            )
    oracle.close()


def _cycles(entered: Contest, oracle: duckdb.DuckDBPyConnection) -> None:
    deadline, took = entered.setting.deadline, 0.0
    for cycle in range(_CYCLES_MAX):
        before = deadline.left
        if cycle and before < 1.5 * took:
            entered.setting.measurements.note(WORKLOAD, f"There was time for {cycle} cycles.")
            return
        for half in range(2):
            _refresh(entered, oracle, 2 * cycle + half)
            _query(entered, _answers(oracle), f"queries after refresh {half + 1} of a cycle")
        for table in _TABLES:
            entered.each(f"compaction of {table}", "compact", name=table)
        _query(entered, _answers(oracle), "queries after maintenance")
        took = before - deadline.left


def _refresh(entered: Contest, oracle: duckdb.DuckDBPyConnection, number: int) -> None:
    """Delete orders all over the tables, and add new ones at the end."""
    count = _ORDERS // 50
    made = _make(
        oracle, entered.setting.directory, f"new{number}", _ORDERS + number * count, _ORDERS + (number + 1) * count
    )
    gone = entered.setting.directory / f"gone{number}.parquet"
    oracle.execute(f"CREATE OR REPLACE TABLE gone AS SELECT o FROM range({_ORDERS}) r(o) WHERE o % 50 = {number}")
    oracle.execute(f"COPY gone TO '{gone}' (FORMAT parquet)")
    entered.each("view", "view", name="gone", path=str(gone), is_recorded=False)
    for table, key in zip(_TABLES, ("l_orderkey", "o_orderkey"), strict=True):
        delete = f"DELETE FROM {{{table}}} WHERE {key} IN (SELECT o FROM gone)"
        oracle.execute(delete.format(**{table: table}))
        oracle.execute(f"INSERT INTO {table} FROM '{made[table]}'")
        entered.each(f"delete from {table}", "sql", statement=delete, tables=[table])
        entered.each("view", "view", name="incoming", path=made[table], is_recorded=False)
        entered.each(f"insert into {table}", "append", name=table, query="SELECT * FROM incoming")


def _load(entered: Contest, made: dict[str, str]) -> None:
    for table in _TABLES:
        columns, key = _COLUMNS[table]
        entered.each("table", "table", name=table, columns=columns, key=key, is_recorded=False)
        entered.each("view", "view", name="incoming", path=made[table], is_recorded=False)
        entered.each(f"load of {table}", "append", name=table, query="SELECT * FROM incoming")


def _query(entered: Contest, answers: dict[str, dict[str, Any]], when: str) -> None:
    for query, expected in answers.items():
        entered.each(when, "sql", statement=QUERIES[query], tables=list(_TABLES), expected=expected)


def _answers(oracle: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    names = {table: table for table in _TABLES}
    return {
        query: {"rows": [[_plain(value) for value in row] for row in oracle.execute(text.format(**names)).fetchall()]}
        for query, text in QUERIES.items()
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value)


def _make(oracle: duckdb.DuckDBPyConnection, directory: Path, name: str, first: int, last: int) -> dict[str, str]:
    """Parquet files of the orders from `first` to before `last`, and of their lines, in key order."""
    paths = {}
    for table, query in _MADE.items():
        paths[table] = str(directory / f"{name}-{table}.parquet")
        rows = query.format(first=first, last=last, customers=_CUSTOMERS)
        oracle.execute(f"COPY ({rows} ORDER BY ALL) TO '{paths[table]}' (FORMAT parquet, COMPRESSION zstd)")
    return paths
