"""DuckDB's syntax for time travel: `FROM db.t AT (VERSION => n)`.

DuckDB accepts this clause only for tables of catalogs that are written in C++. So the statement is parsed by DuckDB
(`json_serialize_sql`), each table with the clause is replaced by a registered dataset of the snapshot, and DuckDB turns
the tree into a statement again (`json_deserialize_sql`). Both functions support only SELECT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tableformat.engines.attachment import attached_table, attachments, dataset_name
from tableformat.engines.statement import StatementReader
from tableformat.errors import InvalidArgumentError
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.scan.scan import Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tableformat.table import Table

_CLAUSE: Final = re.compile(r"\bAT\s*\(", re.IGNORECASE)

_ENDING_WITH_A_QUERY: Final = ("CREATE", "DESCRIBE", "EXPLAIN", "INSERT", "SUMMARIZE")


def with_past_states(connection: DuckDBPyConnection, sql: str) -> str:
    """The statement with a dataset in place of each table of an attached catalog that has an `AT` clause.

    `VERSION => n` is a snapshot id, `VERSION => 'name'` a tag or a branch, and `TIMESTAMP => t` the snapshot that was
    current at that time, in the connection's time zone if `t` has no offset. The statement is a SELECT, or ends with
    one and keeps only its rows: EXPLAIN, CREATE TABLE AS, INSERT.

    If no table has the clause, and for all other statements, the text is returned unchanged, and DuckDB reports errors.
    """
    if not _CLAUSE.search(sql):
        return sql
    zero = _stand_in(sql)
    written = sql.replace("\0", zero)
    start, tree = _query(connection, written)
    found = [node for node in _nodes(tree) if node.get("at_clause")]
    taken_back = [_take_back(connection, node) for node in found]
    if not any(taken_back):
        return sql
    query = _text(connection, tree)
    past = written[:start] + (f"({query})" if written[start] == "(" else query)
    return past.replace(zero, "\0")


def _stand_in(sql: str) -> str:
    """A text that does not occur in the statement, as a placeholder for zero bytes. DuckDB drops the rest of a literal
    after a zero byte when it turns a syntax tree into text."""
    return next(text for number in count() if (text := f"zero{number}byte") not in sql)


def _query(connection: DuckDBPyConnection, sql: str) -> tuple[int, Any]:
    """Position of the query in the statement, and its syntax tree. The tree is None if the statement has no query, or
    if the query defines a view."""
    read = StatementReader(sql)
    starts = read.queries() if read.next() in _ENDING_WITH_A_QUERY else (0,)
    for start in starts:
        tree = _tree(connection, sql[start:])
        if tree is not None:
            return start, None if {"VIEW", "MACRO"} & set(sql[:start].upper().split()) else tree
    return 0, None


def _tree(connection: DuckDBPyConnection, sql: str) -> Any:
    """DuckDB's syntax tree; None for a statement that it does not serialize."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    tree = json.loads(text)
    return None if tree["error"] else tree


def _text(connection: DuckDBPyConnection, tree: Any) -> str:
    ((text,),) = connection.execute("SELECT json_deserialize_sql(?)", [json.dumps(tree)]).fetchall()
    return str(text)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for each in tree:
            yield from _nodes(each)


def _take_back(connection: DuckDBPyConnection, node: dict[str, Any]) -> bool:
    """If the table is in an attached catalog, make the node read the selected snapshot under the table's name, and
    return True."""
    names = (node.get("catalog_name"), node.get("schema_name"), node["table_name"])
    found = attached_table(connection, tuple(name for name in names if name))
    if found is None:
        return False
    database, table = found
    view = table.at(**_state(connection, table, node["at_clause"]))
    assert view.snapshot is not None, "the requested state is a snapshot"
    registered = dataset_name(database, f"{table.name}@{view.snapshot.snapshot_id}@{view.schema.schema_id}")
    attachment = attachments[connection][database]
    if registered not in attachment.past_states:
        connection.register(registered, DuckDBDataset(Scan(view)))
        attachment.past_states.add(registered)
    node.update(
        at_clause=None,
        alias=node["alias"] or node["table_name"],
        catalog_name="temp",
        schema_name="main",
        table_name=registered,
    )
    if "qualified_name" in node:  # Since DuckDB 2.0.
        node["qualified_name"] = {"path": ["temp", "main", registered]}
    return True


def _state(connection: DuckDBPyConnection, table: Table, clause: dict[str, Any]) -> dict[str, Any]:
    """The argument of `Table.at` for the clause, whose expression DuckDB evaluates."""
    unit, value = clause["unit"].upper(), _value(connection, clause)
    if unit == "TIMESTAMP" and value is not None:
        return {"as_of": value}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"snapshot_id": value}
    if isinstance(value, str):
        ref = table.metadata.refs.get(value)
        return {"tag" if ref is not None and ref.snapshot_ref_type == "tag" else "branch": value}
    raise InvalidArgumentError(
        f"AT ({unit} => ...) of {table.name} is not a snapshot: VERSION requires a snapshot id, or the name of a tag "
        "or branch in quotes; TIMESTAMP requires a time."
    )


def _value(connection: DuckDBPyConnection, clause: dict[str, Any]) -> Any:
    tree = _tree(connection, "SELECT 1")
    (statement,) = tree["statements"]
    statement["node"]["select_list"] = [clause["expr"]]
    expression = _text(connection, tree).removeprefix("SELECT ")
    if clause["unit"].upper() == "TIMESTAMP":
        expression = f"epoch_ms(CAST({expression} AS TIMESTAMPTZ))"
    ((value,),) = connection.execute(f"SELECT {expression}").fetchall()
    return value
