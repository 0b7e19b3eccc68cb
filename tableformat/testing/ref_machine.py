"""The stateful test of a table with operations that move branches: tags, making any snapshot current, fast-forwards,
branches that are dropped and created again, and write-audit-publish (staged and cherry-picked commits).

    staged    main  P ---- m1 ---- m2          s: on no branch, waits to be published
                     \\-- s

`RefMachine` adds its steps to the steps of `machine.TableMachine`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from pyiceberg.table.snapshots import Operation

from tableformat.commit.committed_once import is_cut_after
from tableformat.errors import AlreadyCommittedError, InvalidArgumentError, TableFormatError
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.table import Table
from tableformat.testing.acts import Act, acts
from tableformat.testing.key_order import fingerprint
from tableformat.testing.machine import MAIN, SECOND, Rows, TableMachine, check
from tableformat.testing.strategies import SCHEMA

_STAGING: Final = "staging"
_PICKS: Final = st.integers(0, 15)


@dataclass(frozen=True, slots=True)
class Staged:
    """A commit that is on no branch."""

    snapshot_id: int
    rows_before: Rows
    rows: Rows

    @property
    def appended(self) -> Rows:
        """The added rows, if it is an append."""
        return self.rows[len(self.rows_before) :]


class Publication(Enum):
    """The effect of publishing a staged commit."""

    MOVED = "the branch moves to it"
    ADDED = "its files are added"


def publication_of(handle: Table, staged: Staged) -> Publication | None:
    """None if it must be rejected. CP-33: this includes expired snapshots that may have published it."""
    metadata = handle.metadata
    snapshot = snapshot_by_id(metadata, staged.snapshot_id)
    line = list(ancestors(metadata, handle.view.snapshot))
    sources = [each.summary.additional_properties.get("source-snapshot-id") for each in line if each.summary]
    ids = {each.snapshot_id for each in line}
    if snapshot is None or staged.snapshot_id in ids or str(staged.snapshot_id) in sources:
        return None
    if snapshot.parent_snapshot_id == handle.snapshot_id:
        return Publication.MOVED
    is_append = snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND
    parent_id = snapshot.parent_snapshot_id
    is_known = parent_id is None or snapshot_by_id(metadata, parent_id) is not None
    is_cut = is_cut_after(handle.view, snapshot.sequence_number or 0)
    return Publication.ADDED if is_append and is_known and not is_cut else None


class RefMachine(TableMachine):
    """Branches and tags that are moved between operations and jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.staged: list[Staged] = []
        self.published: set[int] = set()

    @precondition(lambda self: self.heads[MAIN] is not None)
    @rule(at=st.integers(0, 2), pick=_PICKS)
    def make_current(self, at: int, pick: int) -> None:
        """Make any snapshot of the table current, including staged snapshots and snapshots of another branch."""
        handle = self.handle(at).refresh()
        snapshot_ids = [snapshot.snapshot_id for snapshot in handle.metadata.snapshots]
        target = snapshot_ids[pick % len(snapshot_ids)]
        self.follow(handle)
        handle.set_current_snapshot(target)
        self.heads[handle.branch] = target
        self.changed.add(handle.branch)

    @precondition(lambda self: SECOND in self.heads)
    @rule(at=st.integers(0, 2), branch=st.sampled_from([MAIN, SECOND]))
    def fast_forward(self, at: int, branch: str) -> None:
        """Fast-forward with a handle that may not have seen the current heads."""
        to = SECOND if branch == MAIN else MAIN
        handle, newest = self.handle(at), self.readers[MAIN].refresh()
        head, target = self.heads[branch], self.heads[to]
        line = {each.snapshot_id for each in ancestors(newest.metadata, newest.at(branch=to).snapshot)}
        try:
            handle.fast_forward(branch, to)
        except InvalidArgumentError:
            assert head not in line, f"{branch} is behind {to} and was not moved"
        else:
            assert head in line, f"{branch} was moved to {to}, which lacks its snapshots"
            self.heads[branch] = target
            self.changed.add(branch)

    @precondition(lambda self: self.heads[MAIN] is not None)
    @rule(at=st.integers(0, 2))
    def tag(self, at: int) -> None:
        handle = self.handle(at).refresh()
        name = f"tag{len(self.tags)}"
        handle.create_tag(name)
        head = self.heads[handle.branch]
        assert head is not None, "a branch without a snapshot cannot be tagged"
        self.tags[name] = head

    @precondition(lambda self: SECOND in self.heads)
    @rule()
    def drop_second_branch(self) -> None:
        self.follow(self.readers[SECOND].refresh())
        self.handles = [handle for handle in self.handles if handle.branch == MAIN]
        self.handles[0].refresh().drop_branch(SECOND)
        del self.heads[SECOND], self.readers[SECOND]
        self.changed.discard(SECOND)

    @precondition(lambda self: self.heads[MAIN] is not None)
    @rule(act=acts())
    def stage(self, act: Act) -> None:
        """A commit on a branch that is dropped afterwards, as Spark stages with a WAP id."""
        self.handle(0).refresh().create_branch(_STAGING, self.heads[MAIN])
        before = self.snapshots[self.heads[MAIN]]
        staging = self.catalog.load_table(self.handles[0].name, branch=_STAGING)
        self.heads[_STAGING], self.readers[_STAGING] = self.heads[MAIN], staging
        self.handles.append(self.catalog.load_table(staging.name, branch=_STAGING))
        try:
            self.perform(len(self.handles) - 1, act)
            head = self.heads[_STAGING]
        finally:
            self.handles.pop()
            del self.heads[_STAGING], self.readers[_STAGING]
            self.changed.discard(_STAGING)
            self.handle(0).refresh().drop_branch(_STAGING)
        if head is not None and head != self.heads[MAIN]:
            self.staged.append(Staged(head, before, self.snapshots[head]))

    @precondition(lambda self: self.staged)
    @rule(at=st.integers(0, 2), pick=_PICKS)
    def publish_staged(self, at: int, pick: int) -> None:
        """SP-24: a staged child of the head becomes the head; an append on another parent is added, once; any other
        commit is rejected."""
        handle = self.handle(at).refresh()
        staged = self.staged[pick % len(self.staged)]
        before = self.snapshots[self.heads[handle.branch]]
        expected = publication_of(handle, staged)
        try:
            result = cherrypick(handle.iceberg, handle.branch, staged.snapshot_id)
        except AlreadyCommittedError:
            was_published = staged.snapshot_id in self.published
            assert expected is None or was_published, "a commit that was never published is refused"
            return
        except TableFormatError:
            if expected is not None:
                raise
            return
        assert expected is not None, f"{staged.snapshot_id} was published to {handle.branch}, and must not be"
        self.published.add(staged.snapshot_id)
        if expected is Publication.ADDED:
            self._check_published_once(before, staged.appended)
            self.snapshots[result] = (*before, *staged.appended)
        self.heads[handle.branch] = result
        self.changed.add(handle.branch)
        self.follow_upkeep(self.readers[handle.branch].refresh())

    def _check_published_once(self, before: Rows, appended: Rows) -> None:
        twice = fingerprint(before, SCHEMA.names) & fingerprint(appended, SCHEMA.names)
        assert twice == Counter(), f"rows of a staged append are there twice: {twice}"

    def teardown(self) -> None:
        """Tags keep their snapshots, even after expiry."""
        try:
            if self.tags:
                reader = self.readers[MAIN].refresh()
                for name, snapshot_id in self.tags.items():
                    assert snapshot_id in self.snapshots, f"expiry took the snapshot of {name}"
                    check(reader.scan(tag=name).to_arrow(), self.snapshots[snapshot_id], f"rows of {name}")
        finally:
            super().teardown()
