"""Acts that are stepped through each other, and the resulting history of a branch.

One act runs at a time, so that a new snapshot belongs to the act that was stepped last. The history has the snapshots
in order. Each must have the rows that the model computes from the snapshot before it, even if an act decided by rows
that it read earlier (CP-5, CP-38).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import event
from stepped_jobs import SteppedJob

import tableformat as tf
from tableformat.errors import (
    CommitConflictError,
    CorruptFileError,
    DuplicateKeyError,
    InvalidArgumentError,
    RowsRefusedError,
)
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.testing.acts import Act
from tableformat.testing.key_order import fingerprint
from tableformat.testing.machine import Rows, rows_after
from tableformat.testing.strategies import SCHEMA

REFUSALS: Final = (DuplicateKeyError, InvalidArgumentError, RowsRefusedError)
NEW_COLUMN: Final = "more"
"""The column that a setting may add. From then on, operations that replace whole rows are rejected, because their rows
lack it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An act that changes metadata but no row: columns, partitions, properties, version or refs."""

    name: str
    change: Callable[[tf.Table], object]

    verbs = ()
    may_conflict = True

    def numbered(self, numbers: Iterator[int]) -> Setting:
        return self

    def commit(self, table: tf.Table) -> int | None:
        self.change(table)
        return table.refresh().snapshot_id


@dataclass(frozen=True, slots=True)
class Rollback:
    """The branch is moved back to one of its earlier snapshots."""

    back: int

    verbs = ()
    may_conflict = True

    def numbered(self, numbers: Iterator[int]) -> Rollback:
        return self

    def commit(self, table: tf.Table) -> int | None:
        line = [snapshot.snapshot_id for snapshot in ancestors(table.metadata, table.view.snapshot)]
        if line:
            table.rollback(snapshot_id=line[self.back % len(line)])
        return table.snapshot_id


@dataclass(slots=True)
class Actor:
    """An act under way."""

    act: Act
    job: SteppedJob
    since: int
    """How many states the branch had had when the act began."""
    committed: list[int] = field(default_factory=list)
    """Its snapshots."""


class History:
    """A table with running acts, and the rows of its snapshots."""

    def __init__(self, table: tf.Table, directory: str) -> None:
        self.reader = table
        self.actors: list[Actor] = []
        self.may_lose_files = False
        """Snapshots were expired, so a reader of an old snapshot may find that a file is gone."""
        self.was_rolled_back = False
        self._directory = directory
        self._rows: dict[int | None, Rows] = {None: ()}
        self._states: list[int | None] = [None]

    @property
    def rows(self) -> Rows:
        """At the head."""
        return self._rows[self._states[-1]]

    def start(self, act: Act) -> Actor:
        job = SteppedJob(type(act).__name__, self._directory, act.commit, at_files=True)
        actor = Actor(act, job, len(self._states) - 1)
        self.actors.append(actor)
        return actor

    def step(self, actor: Actor, calls: int) -> None:
        """Let the actor make some calls; what it committed is compared with the model."""
        for _ in range(calls):
            if actor.job.is_done:
                break
            actor.job.step()
            if actor.job.stopped_at != "point_to":
                self._look(actor)
        if actor.job.is_done:
            self._look(actor)
            self._end(actor)

    def step_to_commit(self, actor: Actor) -> None:
        """Let the actor read and decide; it stops before its first request to commit."""
        while actor in self.actors and actor.job.stopped_at != "commit_table":
            self.step(actor, 1)

    def finish(self, actor: Actor) -> None:
        while actor in self.actors:
            self.step(actor, 1_000)

    def _look(self, actor: Actor) -> None:
        head = self.reader.refresh().snapshot_id
        if head == self._states[-1]:
            return
        if head in self._rows:
            assert isinstance(actor.act, Rollback), f"{actor.act} moved the branch back"
            self._states.append(head)
            return
        for snapshot_id in self._new_snapshots():
            found = self.reader.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
            expected = rows_after(actor.act.verbs, self.rows)
            if actor.committed and actor.act.verbs:
                raise AssertionError(f"{actor.act} committed twice")
            assert not isinstance(expected, Exception), f"{actor.act} should have been refused: {expected}"
            assert _is_same(found, expected), (
                f"{actor.act} made {_keys(found)}, and the model has {_keys(expected)} after {_keys(self.rows)}"
            )
            self._rows[snapshot_id] = tuple({name: row[name] for name in SCHEMA.names} for row in found)
            self._states.append(snapshot_id)
            actor.committed.append(snapshot_id)

    def _new_snapshots(self) -> list[int]:
        line = []
        for snapshot in ancestors(self.reader.metadata, self.reader.view.snapshot):
            if snapshot.snapshot_id in self._rows:
                assert snapshot.snapshot_id == self._states[-1], "a snapshot that is not on top of the head"
                break
            line.append(snapshot.snapshot_id)
        return line[::-1]

    def _end(self, actor: Actor) -> None:
        actor.job.finish()
        self.actors.remove(actor)
        error = actor.job.error
        name = "+".join(verb.name for verb in actor.act.verbs) or getattr(actor.act, "name", actor.job.name)
        event(f"{name}: {'done' if error is None else type(error).__name__}")
        if error is None:
            if actor.act.verbs and not actor.committed:
                states = self._states[actor.since :]
                assert any(
                    _is_same(rows_after(actor.act.verbs, self._rows[head]), self._rows[head])
                    for head in dict.fromkeys(states)
                ), f"{actor.act} should have changed rows and committed nothing"
            return
        self._judge(actor, error)

    def _judge(self, actor: Actor, error: BaseException) -> None:
        """Whether the error may be, and is true: nothing was changed."""
        if isinstance(error, CorruptFileError) and self.may_lose_files:
            return
        if isinstance(error, CommitConflictError):
            assert actor.act.may_conflict or not actor.act.verbs or self.was_rolled_back, (
                f"{actor.act} gave up: {error}"
            )
        elif isinstance(error, REFUSALS) and isinstance(actor.act, Setting):
            """It was made before."""
        elif isinstance(error, InvalidArgumentError) and f"lack '{NEW_COLUMN}'" in str(error):
            assert NEW_COLUMN in self.reader.schema.names
        elif isinstance(error, InvalidArgumentError) and "write.delete.blind='off'" in str(error):
            assert self.reader.metadata.properties.get("write.delete.blind") == "off"
        elif isinstance(error, REFUSALS) and actor.act.verbs:
            states = dict.fromkeys(self._states[actor.since :])
            refusals = [rows_after(actor.act.verbs, self._rows[state]) for state in states]
            assert any(type(refusal) is type(error) for refusal in refusals), f"{actor.act} was refused: {error}"
        else:
            raise error
        assert not actor.committed or not actor.act.verbs, f"{actor.act} committed, and says {error!r}"


def _is_same(some: Sequence[Any] | Exception, others: Sequence[Any]) -> bool:
    return not isinstance(some, Exception) and fingerprint(some, SCHEMA.names) == fingerprint(others, SCHEMA.names)


def _keys(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted(((row["id"], row["number"], row["row"]) for row in rows), key=repr)
