"""The reference model of a table, in memory: the effect of every operation, row by row.

It is the oracle of the stateful test and of the corpus. It has no files, no sequence numbers and no encoding: a
snapshot is the tuple of its rows, and an operation is a loop over them. This is the only module that loops over rows in
Python. It compares keys with Python's own comparisons and never with `tableformat.keys`.

    model = ModelTable(columns=["id", "n"], key=["id"])
    model.append([{"id": 1, "n": None}])
    model.delete_range(on=["n"], lower=None, upper=(5,))
    assert model.rows() == []
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

from tableformat.errors import (
    AlreadyExistsError,
    DuplicateKeyError,
    InvalidArgumentError,
    InvalidKeyError,
    RowsRefusedError,
    SnapshotNotFoundError,
    UnknownColumnError,
)
from tableformat.testing.key_order import Row, Values, event_sort_key, is_covered, sort_keys

Predicate: TypeAlias = Callable[[Row], bool]

_UPSERTS: Final = (
    *("I", "INSERT", "C", "CREATE", "R", "READ", "U", "UPDATE", "UPDATE_AFTER", "UPSERT"),
    *("UPDATE_POSTIMAGE", "+I", "+U"),
)
_DELETES: Final = ("D", "DELETE", "UPDATE_BEFORE", "UPDATE_PREIMAGE", "-U", "-D")
_TRUNCATES: Final = ("T", "TRUNCATE")


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """The rows of one snapshot."""

    number: int
    """Counted from 1 in the order of commits, over all branches."""
    parent: int | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class ModelBatch:
    """The last batch that a writer committed on a branch."""

    batch_id: int | str
    snapshot: int


@dataclass(frozen=True, slots=True)
class ModelClause:
    """One clause of `merge`. Functions get the target row and the source row; one of them may be empty."""

    when: str
    """"matched", "not_matched" or "not_matched_by_source"."""
    new: Callable[[Row, Row], Row] | None
    """Columns with their new values; None deletes the row."""
    applies: Callable[[Row, Row], bool] | None = None
    """None for a clause that always applies."""


@dataclass(slots=True)
class ModelVerbs:
    """The operations over one list of rows. A sequence of them is a transaction: each sees the result of the earlier
    ones."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    current: list[Row] = field(default_factory=list)

    def append(self, rows: Iterable[Row], *, on_duplicate: str = "allow") -> None:
        """Add rows. "error" and "ignore" compare keys, also between the new rows; "replace" is `upsert`."""
        new = self._complete(rows)
        if on_duplicate == "replace":
            self.upsert(new)
        elif on_duplicate == "allow":
            self.current.extend(new)
        else:
            self._append_unless_present(new, fail=on_duplicate == "error")

    def delete(self, where: Predicate) -> None:
        """Delete the rows for which the predicate is true, not false or null."""
        self.current = [row for row in self.current if not where(row)]

    def delete_prefix(self, prefix: Row | Iterable[Row]) -> None:
        """Delete the rows whose key begins with one of the prefixes. RD-5: whole values, null equals null."""
        for each in [prefix] if isinstance(prefix, Mapping) else list(prefix):
            names = self._leading(tuple(each))
            self._delete_equal(names, {self._values(each, names)})

    def delete_range(
        self,
        *,
        lower: Values | None = None,
        upper: Values | None = None,
        on: Sequence[str] | None = None,
        everything: bool = False,
    ) -> None:
        """Delete the rows in before(lower) .. before(upper) of the columns `on`, by default the key."""
        if everything is not (lower is None and upper is None):
            raise InvalidArgumentError("everything=True requires no bounds, and no bounds require everything=True.")
        names = self._range_columns(on)
        _check_bounds(names, lower, upper)
        self.current = [row for row in self.current if not is_covered(self._values(row, names), lower, upper)]

    def delete_rows(self, keys: Iterable[Row]) -> None:
        """Delete the rows that equal one of the given rows in its columns. Null equals null."""
        for key in keys:
            self._check_names(key)
            self._delete_equal(tuple(key), {self._values(key, tuple(key))})

    def replace(
        self,
        rows: Iterable[Row],
        *,
        prefix: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        cover: Iterable[Row] = (),
    ) -> None:
        """Delete the rows whose key prefix occurs in the new rows or in `cover`, and add the newest rows of each
        prefix. A row without values in the other key columns is not added (CP-66)."""
        names = self._leading(tuple(prefix) if prefix is not None else self._required_key())
        rest = [name for name in self._required_key() if name not in names]
        newest = self._newest(rows, names, order_by)
        new = [row for row in newest if not rest or any(row.get(name) is not None for name in rest)]
        self._check_unique(new)
        self._delete_equal(names, {self._values(row, names) for row in (*newest, *cover)})
        self.current.extend(new)

    def _newest(self, rows: Iterable[Row], names: Sequence[str], order_by: str | Sequence[str] | None) -> list[Row]:
        """CP-66: the rows with the greatest order of each prefix, with the columns of the table."""
        order = [] if order_by is None else [order_by] if isinstance(order_by, str) else list(order_by)
        given = list(rows)
        greatest: dict[Any, Any] = {}
        for row in given:
            at, rank = sort_keys(self._values(row, names)), [event_sort_key(row, name) for name in order]
            greatest[at] = max(greatest.get(at, rank), rank)
        newest = [
            row
            for row in given
            if [event_sort_key(row, name) for name in order] == greatest[sort_keys(self._values(row, names))]
        ]
        dropped = {*order} - {*self.columns}
        return self._complete({name: row[name] for name in row if name not in dropped} for row in newest)

    def _check_unique(self, rows: Iterable[Row]) -> None:
        """CP-67: raise DuplicateKeyError if two rows have the same key."""
        keys = [sort_keys(self._values(row, self._required_key())) for row in rows]
        if len(set(keys)) != len(keys):
            raise DuplicateKeyError("two rows have the same key.")

    def replace_interval(
        self,
        rows: Iterable[Row],
        *,
        on: str | Sequence[str],
        lower: Any,
        upper: Any,
        everything: bool = False,
        blind: bool = False,
    ) -> None:
        """Delete lower <= on < upper, and add rows, which must all lie in this range. `blind` does not change the
        result."""
        del blind
        names = (on,) if isinstance(on, str) else tuple(on)
        lower_bound, upper_bound = _as_bound(lower), _as_bound(upper)
        _check_bounds(names, lower_bound, upper_bound)
        new = self._complete(rows)
        for row in new:
            if not is_covered(self._values(row, names), lower_bound, upper_bound):
                raise RowsRefusedError(f"{row} is outside {lower!r} <= {names} < {upper!r}.", pa.table({}))
        self.delete_range(lower=lower_bound, upper=upper_bound, on=names, everything=everything)
        self.current.extend(new)

    def upsert(self, rows: Iterable[Row], *, order_by: str | Sequence[str] | None = None) -> None:
        """Add rows in place of those with the same key, like `replace` by the whole key."""
        self.replace(rows, order_by=order_by)

    def update(self, where: Predicate, *, new: Callable[[Row], Row]) -> None:
        """Set new values in the rows for which the predicate is true."""
        self.current = [{**row, **new(row)} if where(row) else row for row in self.current]

    def apply_changes(
        self,
        changes: Iterable[Row],
        *,
        op: str = "_op",
        order_by: str | Sequence[str] | None = "_ts",
        missing: str = "error",
    ) -> None:
        """Apply the last event of each key, by `order_by` (null below NaN below values) and then by position. CF-13: a
        truncate event empties the table, and events before it have no effect."""
        events = list(changes)
        order = () if order_by is None else (order_by,) if isinstance(order_by, str) else tuple(order_by)
        about = {op, *order} - {*self.columns}
        names = tuple(dict.fromkeys(name for event in events for name in event if name not in about))
        by = self._required_key()
        last: dict[Any, Row] = {}
        for event in events:
            if str(event[op]).upper() not in (*_UPSERTS, *_DELETES, *_TRUNCATES):
                raise InvalidArgumentError(f"{event[op]!r} is not an operation.")
        is_emptied = False
        for event in sorted(events, key=lambda event: [event_sort_key(event, name) for name in order]):
            if str(event[op]).upper() in _TRUNCATES:
                is_emptied = True
                last.clear()
            else:
                last[sort_keys(self._values(event, by))] = event
        upserts = [event for event in last.values() if str(event[op]).upper() in _UPSERTS]
        lacking = [name for name in self.columns if name not in names]
        if upserts and lacking and missing == "error":
            raise InvalidArgumentError(f"events that insert or update lack {lacking} (CP-27).")
        if is_emptied:
            self.current = []
        self._delete_equal(by, {self._values(event, by) for event in last.values()})
        self.current.extend(self._complete({name: event.get(name) for name in names} for event in upserts))

    def merge(
        self, rows: Iterable[Row], *, matches: Callable[[Row, Row], bool], clauses: Sequence[ModelClause]
    ) -> None:
        """Apply the first matching clause to each target row with its source row, and to each source row without one.
        CP-28: a second match is an error, unless all matching rows are deleted."""
        given = list(rows)
        found = [[each for each in given if matches(row, each)] for row in self.current]
        changing = [clause for clause in clauses if clause.when == "matched"]
        all_go = len(changing) == 1 and changing[0].new is None and changing[0].applies is None
        if changing and not all_go and any(len(each) > 1 for each in found):
            raise DuplicateKeyError("a target row matches several source rows.")
        free = [each for each in given if not any(matches(row, each) for row in self.current)]
        kept = [
            _merged(clauses, "matched" if each else "not_matched_by_source", row, each[0] if each else {})
            for row, each in zip(self.current, found, strict=True)
        ]
        inserted = [new for each in free if (new := _merged(clauses, "not_matched", {}, each))]
        self.current = [row for row in kept if row is not None] + self._complete(inserted)

    def overwrite(self, rows: Iterable[Row], *, where: Predicate | None = None, allow_outside: bool = False) -> None:
        """Delete the rows that match (all without a predicate), and add rows, which must match too unless others are
        allowed."""
        new = self._complete(rows)
        for row in new:
            if where is not None and not allow_outside and not where(row):
                raise RowsRefusedError(f"{row} is outside the overwritten rows.", pa.table({}))
        self.delete(where if where is not None else lambda _row: True)
        self.current.extend(new)

    def _append_unless_present(self, rows: Sequence[Row], *, fail: bool) -> None:
        key = self._required_key()
        seen = {sort_keys(self._values(row, key)) for row in self.current}
        fresh: list[Row] = []
        for row in rows:
            at = sort_keys(self._values(row, key))
            if at in seen and fail:
                raise DuplicateKeyError(f"{row} has a key that exists already.")
            if at not in seen:
                fresh.append(row)
            seen.add(at)
        self.current.extend(fresh)

    def _delete_equal(self, names: Sequence[str], wanted: set[Values]) -> None:
        """DA-4: rows whose values in the columns are one of the wanted tuples."""
        at = {sort_keys(values) for values in wanted}
        self.current = [row for row in self.current if sort_keys(self._values(row, names)) not in at]

    def _values(self, row: Row, names: Sequence[str]) -> Values:
        return tuple(row.get(name) for name in names)

    def _complete(self, rows: Iterable[Row]) -> list[Row]:
        """The rows with every column; missing values are null."""
        given = list(rows)
        for row in given:
            self._check_names(row)
        return [{name: row.get(name) for name in self.columns} for row in given]

    def _check_names(self, row: Row) -> None:
        for name in row:
            if name not in self.columns:
                raise UnknownColumnError(name, self.columns, where="the model table")

    def _required_key(self) -> tuple[str, ...]:
        if not self.key:
            raise InvalidKeyError("the model table has no key.")
        return self.key

    def _leading(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """RD-5: the names in key order. They must be the first columns of the key."""
        lead = self._required_key()[: len(names)]
        if not names or set(lead) != set(names) or len(names) != len(lead):
            raise InvalidKeyError(f"{names} does not lead the key {self.key}.")
        return lead

    def _range_columns(self, on: Sequence[str] | None) -> tuple[str, ...]:
        names = self._required_key() if on is None else tuple(on)
        for name in names:
            if name not in self.columns:
                raise UnknownColumnError(name, self.columns, where="on=")
        return names


class ModelTable:
    """A table with snapshots, branches, tags and writers that commit each batch once."""

    def __init__(self, columns: Sequence[str], key: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)
        self.key = tuple(key)
        self.snapshots: dict[int, ModelSnapshot] = {}
        self.branches: dict[str, int | None] = {"main": None}
        self.tags: dict[str, int] = {}
        self._batches: dict[tuple[str, str], ModelBatch] = {}

    # -- reading ------------------------------------------------------------------------------------------------------

    def head(self, branch: str = "main") -> int | None:
        """The snapshot at the head of a branch; None before the first one."""
        if branch not in self.branches:
            raise SnapshotNotFoundError(f"no branch {branch!r} in the model table.")
        return self.branches[branch]

    def rows(self, branch: str = "main") -> list[Row]:
        """The rows at the head of a branch."""
        return self.rows_at(self.head(branch))

    def rows_at(self, snapshot: int | None) -> list[Row]:
        """Time travel: the rows of a snapshot."""
        return [] if snapshot is None else list(self._snapshot(snapshot).rows)

    def rows_of_tag(self, tag: str) -> list[Row]:
        if tag not in self.tags:
            raise SnapshotNotFoundError(f"no tag {tag!r} in the model table.")
        return self.rows_at(self.tags[tag])

    def ancestors(self, snapshot: int | None) -> Iterator[int]:
        """The snapshot and its ancestors, newest first."""
        while snapshot is not None:
            yield snapshot
            snapshot = self._snapshot(snapshot).parent

    # -- writing ------------------------------------------------------------------------------------------------------

    def run(self, verb: str, *arguments: Any, **options: Any) -> bool:
        """Commit one operation of `ModelVerbs`, by name, as one snapshot. Options of `commit` are passed on."""
        commit = {name: options.pop(name) for name in ("branch", "application_id", "batch_id") if name in options}
        with self.commit(**commit) as verbs:
            getattr(verbs, verb)(*arguments, **options)
        return verbs.is_applied

    @contextmanager
    def commit(
        self, *, branch: str = "main", application_id: str | None = None, batch_id: int | str | None = None
    ) -> Iterator[ModelTransaction]:
        """Several operations in one snapshot. No snapshot if the block raises, or if the batch was committed before."""
        parent = self.head(branch)
        known = self._batches.get((branch, application_id)) if application_id is not None else None
        applied = known is not None and batch_id is not None and _is_applied(known.batch_id, batch_id)
        transaction = ModelTransaction(self.columns, self.key, self.rows_at(parent), is_applied=applied)
        yield transaction
        if applied:
            return
        number = len(self.snapshots) + 1
        self.snapshots[number] = ModelSnapshot(number, parent, tuple(transaction.current))
        self.branches[branch] = number
        if application_id is not None and batch_id is not None:
            self._batches[branch, application_id] = ModelBatch(batch_id, number)

    def append(self, rows: Iterable[Row], **options: Any) -> bool:
        """Run the operation; True if the batch was applied before. All operations here return this."""
        return self.run("append", rows, **options)

    def delete(self, where: Predicate, **options: Any) -> bool:
        return self.run("delete", where, **options)

    def delete_prefix(self, prefix: Row | Iterable[Row], **options: Any) -> bool:
        return self.run("delete_prefix", prefix, **options)

    def delete_range(self, **options: Any) -> bool:
        return self.run("delete_range", **options)

    def delete_rows(self, keys: Iterable[Row], **options: Any) -> bool:
        return self.run("delete_rows", keys, **options)

    def replace(self, rows: Iterable[Row], **options: Any) -> bool:
        return self.run("replace", rows, **options)

    def replace_interval(self, rows: Iterable[Row], **options: Any) -> bool:
        return self.run("replace_interval", rows, **options)

    def upsert(self, rows: Iterable[Row], **options: Any) -> bool:
        return self.run("upsert", rows, **options)

    def apply_changes(self, changes: Iterable[Row], **options: Any) -> bool:
        return self.run("apply_changes", changes, **options)

    def update(self, where: Predicate, **options: Any) -> bool:
        return self.run("update", where, **options)

    def merge(self, rows: Iterable[Row], **options: Any) -> bool:
        return self.run("merge", rows, **options)

    def overwrite(self, rows: Iterable[Row], **options: Any) -> bool:
        return self.run("overwrite", rows, **options)

    def transaction(self, **options: Any) -> Any:
        """`commit`, under the name that it has in tables."""
        return self.commit(**options)

    # -- names --------------------------------------------------------------------------------------------------------

    def create_branch(self, name: str, snapshot: int | None = None) -> None:
        """Start a branch. Batches that writers committed on other branches are unknown on it."""
        self._new_name(name)
        self.branches[name] = self._existing(snapshot)

    def create_tag(self, name: str, snapshot: int | None = None) -> None:
        self._new_name(name)
        self.tags[name] = self._existing(snapshot)

    def rollback(self, snapshot: int, *, branch: str = "main", replay: bool = False) -> None:
        """Move a branch back to an ancestor. `replay` forgets the batches of the later snapshots."""
        line = list(self.ancestors(self.head(branch)))
        if snapshot not in line:
            raise InvalidArgumentError(f"snapshot {snapshot} is not an ancestor of the head of {branch!r}.")
        undone = set(line[: line.index(snapshot)])
        self.branches[branch] = snapshot
        if replay:
            self._batches = {
                (of, writer): batch
                for (of, writer), batch in self._batches.items()
                if of != branch or batch.snapshot not in undone
            }

    def _snapshot(self, number: int) -> ModelSnapshot:
        if number not in self.snapshots:
            raise SnapshotNotFoundError(f"no snapshot {number} in the model table.")
        return self.snapshots[number]

    def _existing(self, snapshot: int | None) -> int:
        number = self.branches["main"] if snapshot is None else snapshot
        if number is None:
            raise SnapshotNotFoundError("the model table has no snapshot yet.")
        return self._snapshot(number).number

    def _new_name(self, name: str) -> None:
        if name in self.branches or name in self.tags:
            raise AlreadyExistsError(f"{name!r} already names a branch or tag of the model table.")


class ModelTransaction(ModelVerbs):
    """Operations that become one snapshot."""

    def __init__(self, columns: tuple[str, ...], key: tuple[str, ...], rows: list[Row], *, is_applied: bool) -> None:
        super().__init__(columns, key, rows)
        self.is_applied = is_applied
        """Whether the batch was committed before; the effect of the operations is then discarded."""


def _merged(clauses: Sequence[ModelClause], when: str, target: Row, source: Row) -> Row | None:
    """The target row after the first clause that applies; None if it deletes the row."""
    for clause in clauses:
        if clause.when == when and (clause.applies is None or clause.applies(target, source)):
            return None if clause.new is None else {**target, **clause.new(target, source)}
    return target


def _check_bounds(names: Sequence[str], lower: Values | None, upper: Values | None) -> None:
    for bound in (lower, upper):
        if bound is not None and not 0 < len(bound) <= len(names):
            raise InvalidKeyError(f"a bound of {len(bound)} values on {tuple(names)}.")
    if lower is not None and upper is not None and sort_keys(lower) > sort_keys(upper):
        raise InvalidKeyError(f"lower bound {lower} above upper bound {upper}.")


def _as_bound(value: Any) -> Values | None:
    if value is None or isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def _is_applied(stored: int | str, batch_id: int | str) -> bool:
    """Whole numbers have to increase; text is compared for equality with the last batch."""
    if isinstance(stored, int) and isinstance(batch_id, int):
        return batch_id <= stored
    return stored == batch_id
