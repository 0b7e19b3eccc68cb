"""Runs SQL text over an attached catalog, for `query` and `shell`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tableformat.cli.row_output import Taken
from tableformat.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_BATCH_ROWS: Final = 10_000
_PLAN_COLUMNS: Final = ["explain_key", "explain_value"]
"""The columns of DuckDB's answer to EXPLAIN: a drawing of several lines, which is printed unchanged."""


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The rows of a statement, which are read as they are printed."""

    names: list[str]
    types: list[str]
    rows: Taken

    @property
    def is_plan(self) -> bool:
        """Whether this is the answer to EXPLAIN."""
        return self.names == _PLAN_COLUMNS

    def plan_lines(self) -> list[str]:
        return [f"{line}\n" for batch in self.rows for line in batch.column(1).to_pylist()]


def run_sql(connection: DuckDBPyConnection, sql: str, limit: int | None) -> SqlResult | None:
    """Run the statements of the text; the result of the last one, of which at most `limit` rows. None for a statement
    without a result. Raises UnsupportedFeatureError for a change of a table, and duckdb.Error."""
    import duckdb

    from tableformat.engines.listed_tables import with_listed_tables
    from tableformat.engines.time_travel import with_past_states

    for statement in connection.extract_statements(sql):
        _refuse_change(connection, statement.query)
    shown = with_past_states(connection, with_listed_tables(sql))
    try:
        relation = connection.sql(shown)
    except (duckdb.BinderException, duckdb.CatalogException):
        # Such an error is found before anything runs. `execute` adds the excerpt of the text with a pointer to it.
        connection.execute(shown)
        raise
    return None if relation is None else _result(relation, limit)


def _result(relation: DuckDBPyRelation, limit: int | None) -> SqlResult:
    names, types = _distinct(relation.columns), [str(column_type).strip('"') for column_type in relation.types]
    return SqlResult(names, types, Taken(relation.to_arrow_reader(_BATCH_ROWS), limit))


def _refuse_change(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse statements that create or change tables of the catalog: DuckDB would do it in its memory only, and the
    result would be lost with the command."""
    from tableformat.engines import sql_changes

    changed = sql_changes.change_of(connection, sql)
    if changed is None:
        return
    raise UnsupportedFeatureError(
        f"{changed.verb} {changed.name}: `query` and `shell` read the tables of the catalog. `create`, `load`, "
        "`delete-prefix`, `delete-range` and `drop` change them, and tableformat.duckdb.sql() in Python runs INSERT "
        "and DELETE; CREATE TEMP TABLE is a table for the statements after it."
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number if one occurs again: `a`, `a_1`."""
    taken: list[str] = []
    for name in names:
        candidates = (f"{name}_{number}" if number else name for number in itertools.count())
        taken.append(next(candidate for candidate in candidates if candidate not in taken))
    return taken
