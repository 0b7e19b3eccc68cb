"""`merge`: matches rows of a source with rows of the table; clauses decide which rows are changed, deleted and
added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tableformat.errors import DuplicateKeyError
from tableformat.merge_on_read.task import only_rows
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.merging.clauses import Action, MergeStatement, When
from tableformat.operations.merging.matching import Matches, clause_of_unmatched, find_matches, target_columns
from tableformat.operations.merging.new_rows import Assignments, assignments_of, changed_rows, inserted_rows
from tableformat.operations.merging.pruning import bounds_of_matches, tasks_with_keys
from tableformat.operations.merging.sides import Sides
from tableformat.operations.row_lookup.found_rows import FoundRows
from tableformat.operations.staging.draft import Draft
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.rows.rows import as_reader

_UPDATES = (Action.UPDATE, Action.UPDATE_ALL)


def merge(draft: Draft, *, source: Any, statement: MergeStatement) -> None:
    """Stage the result of the clauses: position deletes of target rows (CP-29), and changed and inserted rows.

    The source is held in memory. From the target, the columns that `on` and predicates use are read, in files that may
    contain values of the source. Whole rows are read only if an update changes them (CP-6).
    """
    schema = arrow_schema(draft.schema)
    rows = as_reader(source, schema=schema, what="the source of a merge").read_all()
    sides = Sides(statement, rows, draft.schema, draft.key_names if draft.has_key else ())
    written = {
        place: assignments_of(sides, clause)
        for place, clause in enumerate(statement.clauses)
        if clause.action is not Action.DELETE
    }
    draft.begin_verb()
    draft.act_as("merge")
    draft.recorded.add_filters()
    targets = _targets(draft, sides)
    columns = target_columns(sides)
    context = ReadContext.of(draft.view, columns)
    matches = find_matches(sides, context.arrow_schema, read_tables(targets.to_read(), context))
    _check_one_match(draft, sides, targets, matches)
    if statement.has(When.NOT_MATCHED):
        matched = np.unique(matches.target[matches.source >= 0])
        draft.rely_on(lambda: targets.chosen(matched), len(matched))
    chosen = clause_of_unmatched(sides, matches)
    changed = _stage_targets(draft, sides, targets, matches, written)
    added = (
        inserted_rows(sides, written[place], np.flatnonzero(chosen == place))
        for place in np.unique(chosen[chosen >= 0])
    )
    draft.add_batches(batch for table in chain(changed, added) for batch in draft.conformed(table))


def _targets(draft: Draft, sides: Sides) -> FoundRows:
    """CP-29: the live rows that may match, or all live rows if clauses need rows without a match."""
    if sides.statement.has(When.NOT_MATCHED_BY_SOURCE):
        tasks = list(draft.plan())
    else:
        tasks = tasks_with_keys(sides, draft.plan(bounds_of_matches(sides)), draft.next_sequence_number)
    return FoundRows.of(tasks, draft.view)


def _check_one_match(draft: Draft, sides: Sides, targets: FoundRows, matches: Matches) -> None:
    """CP-28: raise DuplicateKeyError if several source rows match a target row."""
    if sides.statement.may_match_many:
        return
    repeated = np.flatnonzero(matches.target[1:] == matches.target[:-1])
    if not len(repeated):
        return
    names = list(sides.key) or list(sides.equal_columns) or target_columns(sides)
    ((task, position),) = targets.chosen(matches.target[repeated[:1]])
    (row,) = read_tables([only_rows(task, position)], ReadContext.of(draft.view, names))
    twice = matches.source[repeated[0] : repeated[0] + 2]
    raise DuplicateKeyError(
        f"{len(np.unique(matches.target[repeated])):,} target rows match several source rows, so the result is "
        f"ambiguous. The first is {row.to_pylist()[0]}, which matches those at {', '.join(map(str, twice))}. Nothing "
        "was changed. Pass one source row for each target row, or narrow on=."
    )


def _stage_targets(
    draft: Draft, sides: Sides, targets: FoundRows, matches: Matches, written: Mapping[int, Assignments]
) -> Iterator[pa.Table]:
    """The changed rows. These and the removed rows are deleted by position in one step."""
    updates = [place for place, clause in enumerate(sides.statement.clauses) if clause.action in _UPDATES]
    found = matches.only(matches.clause >= 0)
    changed = found.only(np.isin(found.clause, updates))
    anew = {task.data_file.file_path for task, _ in targets.chosen(changed.target)}
    taken = [only_rows(task, positions) for task, positions in targets.chosen(changed.target)]
    for task, positions in targets.chosen(np.unique(found.target)):
        draft.delete_positions(task, positions, written_anew=task.data_file.file_path in anew)
    return _changed(sides, read_tables(taken, ReadContext.of(draft.view)), changed, written)


def _changed(
    sides: Sides, tables: Iterator[pa.Table], changed: Matches, written: Mapping[int, Assignments]
) -> Iterator[pa.Table]:
    first = 0
    for rows in tables:
        part = slice(first, first + len(rows))
        first += len(rows)
        for place in np.unique(changed.clause[part]):
            at = np.flatnonzero(changed.clause[part] == place)
            yield changed_rows(sides, written[int(place)], rows.take(pa.array(at)), changed.source[part][at])
