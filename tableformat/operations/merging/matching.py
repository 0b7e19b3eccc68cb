"""Finds matching target and source rows, and the clause for each pair, with a DuckDB join over a stream of target
rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError
from tableformat.operations.merging.clauses import When
from tableformat.operations.merging.sides import Sides, chosen_clause, predicate_of
from tableformat.operations.row_lookup.exact_nanoseconds import refuse_rounding
from tableformat.operations.row_lookup.row_expressions import quoted, sql_connection
from tableformat.operations.row_lookup.streamed_input import streamed_input
from tableformat.write.rows.numbered_rows import unused_name


@dataclass(frozen=True, slots=True)
class Matches:
    """Three columns of the same length: the matching pairs, and target rows without a match if clauses need them."""

    target: np.ndarray
    """Positions of target rows in the order in which they were read, ascending."""
    source: np.ndarray
    """Positions of source rows; -1 without a match."""
    clause: np.ndarray
    """Positions of clauses in the statement; -1 if no clause applies."""

    def only(self, chosen: np.ndarray) -> Matches:
        return Matches(self.target[chosen], self.source[chosen], self.clause[chosen])


def target_columns(sides: Sides) -> list[str]:
    """The columns of the target that must be read to find the matches."""
    clauses = [*sides.statement.of(When.MATCHED), *sides.statement.of(When.NOT_MATCHED_BY_SOURCE)]
    predicates = [predicate for _, clause in clauses if (predicate := predicate_of(clause)) is not None]
    # A table without columns has no row count.
    return sides.named_columns([sides.condition, *predicates])[0] or sides.target_names[:1]


def find_matches(sides: Sides, schema: pa.Schema, targets: Iterable[pa.Table]) -> Matches:
    """The matches. `targets` have the columns of `schema`, which are the `target_columns`."""
    statement = sides.statement
    clauses = [*statement.of(When.MATCHED), *statement.of(When.NOT_MATCHED_BY_SOURCE)]
    predicates = [predicate for _, clause in clauses if (predicate := predicate_of(clause)) is not None]
    number = _number_name(sides)
    target, source = (f"{quoted(alias)}.{number}" for alias in (statement.target_alias, statement.source_alias))
    join = "LEFT JOIN" if statement.has(When.NOT_MATCHED_BY_SOURCE) else "JOIN"
    by_source, matched = (
        chosen_clause(sides, statement.of(when)) for when in (When.NOT_MATCHED_BY_SOURCE, When.MATCHED)
    )
    query = (
        f"SELECT {target} AS t, coalesce({source}, -1) AS s,"
        f" CASE WHEN {source} IS NULL THEN {by_source} ELSE {matched} END AS c"
        f" FROM merge_target AS {quoted(statement.target_alias)}"
        f" {join} merge_source AS {quoted(statement.source_alias)} ON ({sides.sql(sides.condition, where='on')})"
    )
    with sql_connection() as connection:
        named = sides.named_columns([sides.condition, *predicates])[1]
        compared = sides.source.select(named)
        refuse_rounding(compared)
        compared = compared.rename_columns(sides.source_names_in_sql(named))
        connection.register("merge_source", _numbered(compared, number, 0, len(sides.source)))
        names = sides.target_names_in_sql(schema.names)
        read_schema = schema.empty_table().rename_columns(names).schema.append(pa.field(number, pa.int64()))
        try:
            with streamed_input(connection, "merge_target", read_schema, _numbered_batches(targets, names, number)):
                found = connection.sql(query).to_arrow_table()
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise _not_computed("on, or a predicate of a clause", error) from error
    columns = [found.column(name).to_numpy().astype(np.int64) for name in ("t", "s", "c")]
    order = np.argsort(columns[0], kind="stable")
    return Matches(*(column[order] for column in columns))


def clause_of_unmatched(sides: Sides, matches: Matches) -> np.ndarray:
    """For each source row, the position of the clause that inserts it; -1 if no clause does."""
    is_free = np.ones(len(sides.source), np.bool_)
    is_free[matches.source[matches.source >= 0]] = False
    clauses = sides.statement.of(When.NOT_MATCHED)
    predicates = [predicate for _, clause in clauses if (predicate := predicate_of(clause)) is not None]
    if not predicates:
        return np.where(is_free, clauses[0][0] if clauses else -1, -1)
    number = _number_name(sides)
    free = np.flatnonzero(is_free)
    named = sides.source.select(sides.named_columns(predicates)[1]).take(pa.array(free))
    refuse_rounding(named)
    with sql_connection() as connection:
        named = named.rename_columns(sides.source_names_in_sql(named.column_names))
        connection.register("merge_source", _numbered(named, number, 0, len(free)))
        alias = quoted(sides.statement.source_alias)
        try:
            found = connection.sql(
                f"SELECT {chosen_clause(sides, clauses)} AS c FROM merge_source AS {alias} ORDER BY {alias}.{number}"
            ).to_arrow_table()
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise _not_computed("a predicate of when_not_matched_insert", error) from error
    chosen = np.full(len(sides.source), -1, np.int64)
    chosen[free] = found.column("c").to_numpy()
    return chosen


def _number_name(sides: Sides) -> str:
    names = [*sides.target_names_in_sql(sides.target_names), *sides.source_names_in_sql(sides.source.column_names)]
    return unused_name(pa.schema([pa.field(name, pa.null()) for name in names]))


def _numbered_batches(tables: Iterable[pa.Table], names: Sequence[str], number: str) -> Iterator[pa.RecordBatch]:
    first = 0
    for table in tables:
        refuse_rounding(table)
        yield from _numbered(table.rename_columns(names), number, first, len(table)).to_batches()
        first += len(table)


def _numbered(rows: pa.Table, number: str, first: int, row_count: int) -> pa.Table:
    numbers = pa.array(np.arange(first, first + row_count))
    if not rows.column_names:
        return pa.table({number: numbers})
    return rows.append_column(pa.field(number, pa.int64()), numbers)


def _not_computed(what: str, error: duckdb.Error) -> InvalidArgumentError:
    return InvalidArgumentError(f"{what} of a merge cannot be computed: {str(error).strip()} Nothing was changed.")
