"""`Merge`: the clauses of a merge, added by chained calls as in delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

from tableformat.arguments import checked_methods
from tableformat.errors import InvalidArgumentError
from tableformat.operations.merging.clauses import Action, MergeClause, MergeStatement, When
from tableformat.operations.row_lookup.row_expressions import row_expression

Outcome = TypeVar("Outcome")


@checked_methods
class Merge(Generic[Outcome]):
    """A merge, as returned by `table.merge` and `tx.merge`. Each method adds a clause and returns the merge; `execute`
    runs it.

    The first clause whose predicate is true applies to a row; without such a clause, the row is unchanged. Predicates
    and texts in `updates` are SQL of DuckDB over the columns of both rows, `source.name` and `target.name`. As in
    `Table.update`, a text in `updates` is an expression, anything else is the value.

    >>> moved = pa.table({"id1": ["A", "C"], "id2": [3, 1], "num_cal": [1, 1], "gone": [True, False]})
    >>> merge = table.merge(moved, on=["id1", "id2", "num_cal"]).when_matched_delete("source.gone")
    >>> result = merge.when_not_matched_insert_all("NOT source.gone", except_cols=["gone"]).execute()
    >>> table.scan(columns=["id1", "num_cal"]).to_arrow().sort_by("id1").to_pydict()
    {'id1': ['A', 'B', 'C'], 'num_cal': [2, 1, 1]}
    """

    def __init__(self, statement: MergeStatement, run: Callable[[MergeStatement, bool], Outcome]) -> None:
        """`run` takes the statement and whether it is a dry run."""
        self._statement = statement
        self._run = run

    def __repr__(self) -> str:
        count = len(self._statement.clauses)
        return f"Merge(on={self._statement.on!r}, {count} clauses): call execute() to run it"

    def when_matched_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Set columns of matching target rows to new values. Columns of the key cannot change.

        >>> dates = [{"id1": "B", "id2": 1, "num_cal": 1, "days": 4}]
        >>> merge = table.merge(dates, on=["id1", "id2", "num_cal"])
        >>> merge.when_matched_update({"open_on": "DATE '2026-01-01' + source.days::INTEGER"}).execute().added_row_count
        1
        >>> table.get(("B", 1, 1))["open_on"]
        datetime.date(2026, 1, 5)
        """
        return self._with(When.MATCHED, Action.UPDATE, predicate, updates=updates)

    def when_matched_update_all(
        self, predicate: str | None = None, *, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Set all columns of matching target rows to the values of the source, except columns of the key.

        `except_cols` are columns of the source to leave out. Raises UnknownColumnError for a column that the table does
        not have.

        >>> from datetime import date
        >>> dates = [{"id1": "A", "id2": 3, "num_cal": 2, "open_on": date(2026, 1, 2)}]
        >>> merge = table.merge(dates, on="target.num_cal = source.num_cal")
        >>> merge.when_matched_update_all("target.id1 = 'A'", except_cols=["id1", "id2"]).execute().added_row_count
        1
        """
        return self._with(When.MATCHED, Action.UPDATE_ALL, predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> Self:
        """Delete matching target rows.

        >>> table.merge([{"id1": "A"}], on="id1").when_matched_delete("target.num_cal > 1").execute().deleted_row_count
        1
        """
        return self._with(When.MATCHED, Action.DELETE, predicate)

    def when_not_matched_insert(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Add a row for each source row without a matching target row. Columns that are not in `updates` get their
        default, or null.

        >>> merge = table.merge([{"name": "c", "id2": 1}], on="target.id1 = upper(source.name)")
        >>> new = {"id1": "upper(source.name)", "id2": "source.id2", "num_cal": 1}
        >>> merge.when_not_matched_insert(new).execute().added_row_count, table.get(("C", 1, 1))["num_cal"]
        (1, 1)
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, updates=updates)

    def when_not_matched_insert_all(
        self, predicate: str | None = None, *, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Add the source rows without a matching target row. Columns that the source lacks get their default, or null.

        >>> merge = table.merge(pa.table({"id1": ["B", "C"], "id2": [1, 1], "num_cal": [1, 1]}), on=["id1", "id2"])
        >>> merge.when_not_matched_insert_all().execute().added_row_count
        1
        """
        return self._with(When.NOT_MATCHED, Action.INSERT_ALL, predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Set columns of target rows without a matching source row to new values. This reads all rows of the table.

        >>> merge = table.merge([{"id1": "A"}], on="id1")
        >>> merge.when_not_matched_by_source_update({"open_on": None}).execute().added_row_count
        1
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, predicate, updates=updates)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Self:
        """Delete target rows without a matching source row. This reads all rows of the table.

        >>> table.merge([{"id1": "A"}], on="id1").when_not_matched_by_source_delete().execute().deleted_row_count
        1
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, predicate)

    def execute(self, *, dry_run: bool = False) -> Outcome:
        """Run the merge. Returns a CommitResult of one snapshot, or None in a transaction. An updated row counts as one
        deleted and one added row. `dry_run` counts the rows that would be deleted and changes nothing; a transaction
        does not support it.

        Raises DuplicateKeyError if several source rows match a target row, InvalidArgumentError for SQL text that
        DuckDB cannot compute, RowsRefusedError for new rows that the table rejects.

        >>> table.merge([{"id1": "A"}], on="id1").when_matched_delete().execute(dry_run=True).deleted_row_count
        2
        """
        if not self._statement.clauses:
            raise InvalidArgumentError(
                "a merge needs at least one clause: call when_matched_update_all() or a similar method."
            )
        return self._run(self._statement, dry_run)

    def _with(
        self,
        when: When,
        action: Action,
        predicate: str | None,
        *,
        updates: Mapping[str, Any] | None = None,
        except_cols: Sequence[str] | None = None,
    ) -> Self:
        left_out = (except_cols,) if isinstance(except_cols, str) else tuple(except_cols or ())
        clause = MergeClause(
            when=when, action=action, predicate=predicate, updates=dict(updates or {}), except_columns=left_out
        )
        if updates is not None and not updates:
            raise InvalidArgumentError(f"updates of {clause.name} must set at least one column.")
        if any(earlier.predicate is None for _, earlier in self._statement.of(when)):
            raise InvalidArgumentError(
                f"{clause.name} never applies: an earlier {when.value} clause has no predicate and applies to all of "
                "these rows. Put that clause last, or add a predicate to it."
            )
        if predicate is not None:
            row_expression(predicate, where=f"the predicate of {clause.name}")
        self._statement = replace(self._statement, clauses=(*self._statement.clauses, clause))
        return self
