"""Followers that keep a copy of a table of random columns by its change feed, and checks of row ids and sequence
numbers.

A follower has a snapshot id and rows. It continues after any change of the branch, in one step or in several, and
follows the advice of the error if the feed cannot continue.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from evolving_tables import EvolvingTable
from evolving_values import Rows, rows_in, value_at
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot

import tableformat as tf
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.change_columns import CHANGE_TYPE, COMMIT_VERSION
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.scan.scan import Scan
from tableformat.testing.key_order import fingerprint, sort_keys

_AT_MOST: Final = 3
_ADVICE: Final = re.compile(r"changes\(from_snapshot_id=(\d+)\)")


@dataclass(slots=True)
class Follower:
    """A copy of a branch."""

    branch: str
    snapshot_id: int | None
    """The snapshot after which the follower continues."""
    rows: Rows


@dataclass
class Followers:
    """The followers of one table."""

    known: EvolvingTable
    following: list[Follower] = field(default_factory=list)
    copies: int = 0

    def step(self) -> None:
        """Let each follower continue or not, and sometimes add one."""
        pick = self.known.random
        for each in self.following:
            if pick.random() < 0.5:
                self._go_on(each)
        if len(self.following) < _AT_MOST and pick.random() < 0.5:
            branch = pick.choice(self.known.branches)
            table = self.known.handle(branch)
            self.known.rows_of(table)
            begin = pick.choice([None, *self.known.line(table)])
            self.following.append(Follower(branch, begin, self.known.snapshots[begin]))

    def _go_on(self, follower: Follower) -> None:
        known = self.known
        table = known.handle(follower.branch)
        rows, line = known.rows_of(table), known.line(table)
        known.log.append(f"follow {follower.branch} from {follower.snapshot_id} to {table.snapshot_id}")
        is_there = follower.snapshot_id in line if follower.snapshot_id is not None else _is_whole(table, line)
        try:
            feed = table.changes(from_snapshot_id=follower.snapshot_id)
        except (SnapshotNotFoundError, InvalidArgumentError) as error:
            known.log.append(f"  refused: {error}")
            assert not is_there, "a feed is refused that is all there"
            follower.snapshot_id, follower.rows = self._as_advised(table, str(error))
            feed = table.changes(from_snapshot_id=follower.snapshot_id)
        else:
            assert is_there or not line, "a feed begins after what is no ancestor"
        ends = self._steps(table, follower)
        for begin, end in pairwise(ends):
            if begin is not None or known.random.random() < 0.5:
                self._check_times(table, line, begin, end)
            self._apply(follower, table, end, is_head=end == table.snapshot_id)
        if len(ends) == 2 and table.key:
            self._copy_by_key(table, ends[0])
        assert feed.to_snapshot_id == table.snapshot_id
        follower.snapshot_id, follower.rows = table.snapshot_id, rows

    def _as_advised(self, table: tf.Table, message: str) -> tuple[int | None, Rows]:
        """The snapshot that the error advises, or the current one, with its rows."""
        found = _ADVICE.search(message)
        begin = table.snapshot_id if found is None else int(found.group(1))
        return begin, self.known.snapshots[begin]

    def _steps(self, table: tf.Table, follower: Follower) -> list[int | None]:
        line = self.known.line(table)
        begin = line.index(follower.snapshot_id) + 1 if follower.snapshot_id is not None else 0
        between = [each for each in line[begin:-1] if self.known.random.random() < 0.3]
        steps = [follower.snapshot_id, *between, table.snapshot_id]
        return steps if follower.snapshot_id != table.snapshot_id else [follower.snapshot_id]

    def _apply(self, follower: Follower, table: tf.Table, end: int | None, *, is_head: bool) -> None:
        known = self.known
        schema = table.metadata.schema() if is_head else table.at(snapshot_id=end or 0).schema
        names = [each.name for each in schema.fields]
        bounds = {"from_snapshot_id": follower.snapshot_id, "to_snapshot_id": None if is_head else end}
        feed = table.changes(None, [*names, CHANGE_TYPE.name, COMMIT_VERSION.name], **bounds)
        copy = fingerprint(rows_in(follower.rows, schema), names)
        for event in feed.to_arrow().to_pylist():
            (row,) = fingerprint([event], names)
            copy[row] += 1 if event[CHANGE_TYPE.name] == "insert" else -1
            assert copy[row] >= 0, f"{event} is deleted and was not there"
        want = fingerprint(rows_in(known.snapshots[end], schema), names)
        assert +copy == want, f"followed to {end}: missing {want - copy}, too many {copy - want}"
        follower.snapshot_id, follower.rows = end, known.snapshots[end]

    def _check_times(self, table: tf.Table, line: list[int], begin: int | None, end: int | None) -> None:
        """CF-1: a time means the newest snapshot at or before that time."""
        found = [table.metadata.snapshot_by_id(each) for each in line]
        by_id = {each.snapshot_id: each for each in found if each is not None}
        if begin not in by_id or end not in by_id:
            return
        from_ms = by_id[begin].timestamp_ms + self.known.random.choice((-1, 0, 0, 1))
        to_ms = by_id[end].timestamp_ms + self.known.random.choice((0, 0, 1))
        stand_for = [
            max((each for each in line if by_id[each].timestamp_ms <= moment), key=line.index, default=None)
            for moment in (from_ms, to_ms)
        ]
        try:
            feed = table.changes(from_timestamp=from_ms, to_timestamp=to_ms)
        except SnapshotNotFoundError:
            assert None in stand_for
            assert not _is_whole(table, line)
            return
        except InvalidArgumentError:
            assert from_ms > to_ms
            return
        assert [feed.from_snapshot_id, feed.to_snapshot_id] == stand_for
        assert stand_for[0] is not None or _is_whole(table, line), "changes of moments whose snapshots have expired"

    def _copy_by_key(self, table: tf.Table, begin: int | None) -> None:
        """CF-9: a table with unique keys is rebuilt by `apply_changes`, in one call or in one for each snapshot."""
        known, schema = self.known, table.metadata.schema()
        key = [schema.find_field(name) for name in table.key]
        line = known.line(table)
        stretch = line[line.index(begin) if begin is not None else 0 :]
        for each in stretch:
            keys = [sort_keys(value_at(row.values, (column,)) for column in key) for row in known.snapshots[each]]
            if len(set(keys)) < len(keys):
                return
        self.copies += 1
        name = f"db.copy{self.copies}"
        version = {"format-version": str(table.metadata.format_version)}
        copy = known.catalog.create_table(name, schema, key=table.key, properties=version)
        if begin is not None:
            view = replace(table.at(snapshot_id=begin), schema=schema)
            copy.append(Scan(view).to_arrow())
        names = [each.name for each in schema.fields]
        events = table.changes(None, [*names, CHANGE_TYPE.name, COMMIT_VERSION.name], from_snapshot_id=begin).to_arrow()
        known.log.append(f"copy by key {table.key} from {begin}: {events.to_pylist()}")
        order = known.random.choice((None, COMMIT_VERSION.name))
        if order is None:
            events = events.drop_columns([COMMIT_VERSION.name])
        copy.apply_changes(events, op=CHANGE_TYPE.name, order_by=order)
        want = fingerprint(rows_in(known.rows_of(table), schema), names)
        have = fingerprint(copy.refresh().scan().to_arrow().to_pylist(), names)
        assert have == want, f"a copy by key: missing {want - have}, too many {have - want}"
        known.catalog.drop_table(name)


def _is_whole(table: tf.Table, line: list[int]) -> bool:
    """CF-2: whether the line has its first snapshot."""
    if not line:
        return True
    first = table.metadata.snapshot_by_id(line[0])
    assert first is not None
    return not had_parent(table.iceberg.io, first)


@dataclass
class LineageOfAll:
    """FM-20: the row of each row id, over all branches, snapshots and columns."""

    known: EvolvingTable
    numbers: dict[int, int] = field(default_factory=dict)
    """For each row id ever seen, the sequence number of its last change: no operation keeps the id of a row that it
    changes."""

    def check(self) -> None:
        table = self.known.handle()
        if table.metadata.format_version < 3:
            return
        for branch in self.known.branches:
            self.known.rows_of(self.known.handle(branch))
        table = self.known.catalog.load_table(self.known.name)
        schema = table.metadata.schema()
        names = [each.name for each in schema.fields]
        owner: dict[int, Any] = {}
        found: dict[int, dict[int, Any]] = {}
        for snapshot in table.metadata.snapshots:
            if snapshot.snapshot_id not in self.known.snapshots:
                continue
            view = replace(table.at(snapshot_id=snapshot.snapshot_id), schema=schema)
            rows = Scan(view, None, [*names, *ROW_LINEAGE_NAMES]).to_arrow().to_pylist()
            if getattr(snapshot, "first_row_id", None) is None:
                assert all(row["_row_id"] is None for row in rows), "row ids in a snapshot from before the upgrade"
                continue
            lineage: dict[int, Any] = {}
            for row in rows:
                row_id, number = (row[name] for name in ROW_LINEAGE_NAMES)
                (identity,) = fingerprint([row], names)
                assert None not in (row_id, number), f"{row} has no lineage in {snapshot.snapshot_id}"
                assert row_id not in lineage, f"{row_id} is of two rows of {snapshot.snapshot_id}"
                assert owner.setdefault(row_id, identity) == identity, f"{row_id} is of {identity} and {owner[row_id]}"
                was = self.numbers.setdefault(row_id, number)
                assert was == number, f"the number of {row_id} was {was} and is {number} in {snapshot.snapshot_id}"
                assert row_id < (table.metadata.next_row_id or 0)
                lineage[row_id] = identity
            found[snapshot.snapshot_id] = lineage
        for snapshot in table.metadata.snapshots:
            parent = snapshot.parent_snapshot_id
            if parent in found and snapshot.snapshot_id in found:
                self._compare(snapshot, found[parent], found[snapshot.snapshot_id], schema)

    def _compare(self, snapshot: Snapshot, before: dict[int, Any], after: dict[int, Any], schema: Schema) -> None:
        """Rows that the snapshot did not write keep their ids, and there is one new id for each row that it wrote."""
        old, new = (self.known.snapshots[each] for each in (snapshot.parent_snapshot_id, snapshot.snapshot_id))
        there = {row.number for row in old}
        names = [each.name for each in schema.fields]
        kept = fingerprint(rows_in(tuple(row for row in new if row.number in there), schema), names)
        have = Counter(identity for row_id, identity in after.items() if row_id in before)
        assert have == kept, f"kept ids in {snapshot.snapshot_id}: missing {kept - have}, too many {have - kept}"
        first = getattr(snapshot, "first_row_id", None)
        assert first is not None
        for row_id in after.keys() - before.keys():
            number = self.numbers[row_id]
            assert number <= (snapshot.sequence_number or 0), f"{row_id} is from the future"
            assert row_id >= first or number < (snapshot.sequence_number or 0), f"{row_id} was given before {first}"
