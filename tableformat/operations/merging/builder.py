"""`Merge`: the clauses of a merge one after the other, in the shape that delta-rs gave to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

from tableformat.arguments import checked_methods
from tableformat.errors import InvalidArgumentError
from tableformat.operations.finding.row_expressions import row_expression
from tableformat.operations.merging.clauses import Action, MergeClause, MergeStatement, When

Outcome = TypeVar("Outcome")


@checked_methods
class Merge(Generic[Outcome]):
    """What `table.merge` and `tx.merge` return. Each method adds a clause to it and returns it; `execute` does it.

    A row gets the first of its clauses whose predicate is true, and none where no predicate is. Predicates and texts in
    `updates` are SQL of DuckDB over the columns of both rows, `source.name` and `target.name`; `updates` are as in
    `Table.update`: text is an expression, anything else the value.

    >>> moved = pa.table({"id1": ["A", "C"], "id2": [3, 1], "num_cal": [1, 1], "gone": [True, False]})
    >>> merge = table.merge(moved, on=["id1", "id2", "num_cal"]).when_matched_delete("source.gone")
    >>> result = merge.when_not_matched_insert_all("NOT source.gone", except_cols=["gone"]).execute()
    >>> table.scan(columns=["id1", "num_cal"]).to_arrow().sort_by("id1").to_pydict()
    {'id1': ['A', 'B', 'C'], 'num_cal': [2, 1, 1]}
    """

    def __init__(self, statement: MergeStatement, run: Callable[[MergeStatement, bool], Outcome]) -> None:
        """`run` takes the statement and whether to try it only."""
        self._statement = statement
        self._run = run

    def __repr__(self) -> str:
        count = len(self._statement.clauses)
        return f"Merge(on={self._statement.on!r}, {count} clauses): nothing is done before execute()"

    def when_matched_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Give columns of target rows that match new values. Columns of the key stay as they are.

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
        """Give target rows that match the values of all columns that the source has, those of the key apart.

        `except_cols`: columns of the source that are left out. UnknownColumnError for one that the table does not have.

        >>> from datetime import date
        >>> dates = [{"id1": "A", "id2": 3, "num_cal": 2, "open_on": date(2026, 1, 2)}]
        >>> merge = table.merge(dates, on="target.num_cal = source.num_cal")
        >>> merge.when_matched_update_all("target.id1 = 'A'", except_cols=["id1", "id2"]).execute().added_row_count
        1
        """
        return self._with(When.MATCHED, Action.UPDATE_ALL, predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: str | None = None) -> Self:
        """Delete target rows that match.

        >>> table.merge([{"id1": "A"}], on="id1").when_matched_delete("target.num_cal > 1").execute().deleted_row_count
        1
        """
        return self._with(When.MATCHED, Action.DELETE, predicate)

    def when_not_matched_insert(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Add a row for each source row that no target row matches. Columns that are not in `updates` are null, or have
        their default.

        >>> merge = table.merge([{"name": "c", "id2": 1}], on="target.id1 = upper(source.name)")
        >>> new = {"id1": "upper(source.name)", "id2": "source.id2", "num_cal": 1}
        >>> merge.when_not_matched_insert(new).execute().added_row_count, table.get(("C", 1, 1))["num_cal"]
        (1, 1)
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, updates=updates)

    def when_not_matched_insert_all(
        self, predicate: str | None = None, *, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Add the source rows that no target row matches. Columns that the source lacks are null, or have
        their default.

        >>> merge = table.merge(pa.table({"id1": ["B", "C"], "id2": [1, 1], "num_cal": [1, 1]}), on=["id1", "id2"])
        >>> merge.when_not_matched_insert_all().execute().added_row_count
        1
        """
        return self._with(When.NOT_MATCHED, Action.INSERT_ALL, predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(self, updates: Mapping[str, Any], predicate: str | None = None) -> Self:
        """Give target rows that no source row matches new values. All of the table's rows are looked at.

        >>> merge = table.merge([{"id1": "A"}], on="id1")
        >>> merge.when_not_matched_by_source_update({"open_on": None}).execute().added_row_count
        1
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, predicate, updates=updates)

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Self:
        """Delete target rows that no source row matches. All of the table's rows are looked at.

        >>> table.merge([{"id1": "A"}], on="id1").when_not_matched_by_source_delete().execute().deleted_row_count
        1
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, predicate)

    def execute(self, *, dry_run: bool = False) -> Outcome:
        """Carry the clauses out: a CommitResult of one snapshot, in a transaction None. An updated row counts as one
        deleted and one added. `dry_run`, which a transaction does not have, counts the rows that would go and changes
        nothing.

        DuplicateKeyError for a target row that several source rows match (CP-28); InvalidArgumentError for a text that
        DuckDB cannot compute; RowsRefusedError for new rows that the table does not take.

        >>> table.merge([{"id1": "A"}], on="id1").when_matched_delete().execute(dry_run=True).deleted_row_count
        2
        """
        if not self._statement.clauses:
            raise InvalidArgumentError("a merge has at least one clause: call when_matched_update_all() or its like.")
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
            raise InvalidArgumentError(f"updates of {clause.name} name at least one column and its value.")
        if any(earlier.predicate is None for _, earlier in self._statement.of(when)):
            raise InvalidArgumentError(
                f"{clause.name} never applies: an earlier {when.value} clause has no predicate and takes every such "
                "row. Give that one last, or a predicate."
            )
        if predicate is not None:
            row_expression(predicate, where=f"the predicate of {clause.name}")
        self._statement = replace(self._statement, clauses=(*self._statement.clauses, clause))
        return self
