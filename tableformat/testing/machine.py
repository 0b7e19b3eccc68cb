"""The stateful test of a table: random operations, jobs and races against the model. Every snapshot is read again.

    handles   two on the branch main, which fall behind each other, and one on a second branch
    steps     an operation, several in a transaction, a job, a rewrite of data files, a rollback, and races: one step is
              planned, others commit or move the branch back, then it commits
    checks    after each step: the rows at the heads, with their lineage on version 3; counts, filters and DuckDB
              before and after snapshots expire, and at the end: all snapshots and the change feed of each branch
              before a branch is moved off its line: its change feed

`machine_on(catalog)` returns the class that Hypothesis runs.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import ClassVar, Final, TypeAlias

import duckdb
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tableformat.catalogs.catalog import Catalog
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.errors import CommitConflictError, DuplicateKeyError, InvalidArgumentError, RowsRefusedError
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.storage.location import local_path
from tableformat.table import Table
from tableformat.testing.acts import (
    CONVERSION,
    EVERY_FILE,
    Act,
    InTransaction,
    OneVerb,
    Rewrite,
    acts,
    interrupted_by,
    jobs,
)
from tableformat.testing.key_order import Row, fingerprint
from tableformat.testing.lineage import LineageBook
from tableformat.testing.model import ModelClause, ModelVerbs
from tableformat.testing.replay import EVENT_COLUMNS, oldest_beginning, replayed
from tableformat.testing.strategies import IDS, KEY, NUMBERS, SCHEMA, Filter, filter_of_key, filters
from tableformat.testing.verbs import MergeClause, Verb, verbs

Rows: TypeAlias = tuple[Row, ...]
MAIN: Final = "main"
SECOND: Final = "second"
STEP_COUNT: Final = 15
"""Number of steps for each table: later steps rarely find anything that the first ones did not."""
FIXED_ROWS: Final = tuple(
    {"id": name, "number": number, "at": None, "ratio": None, "note": None} for name in IDS for number in NUMBERS
)
"""Enough rows in one file that a few deleted keys are found by binary search."""
_PLANNED: Final = st.just(Rewrite(EVERY_FILE)) | jobs()
KINDS_OF_DELETE: Final = st.sampled_from(["range", "equality", "prefix", "values", "scan"])
_MOSTLY: Final = st.sampled_from([True, True, True, False])
_SNAPSHOTS_WORTH_REMOVING: Final = 4
WITH_ROW_LINEAGE: Final = 3
_ANY_AGE: Final = datetime(2999, 1, 1, tzinfo=UTC)
_FEED: Final = (*SCHEMA.names, *EVENT_COLUMNS)
_names = itertools.count()


@dataclass(frozen=True, slots=True)
class Variant:
    """The layout of a table. Its rows must not depend on it.

    Some variants have files with several row groups of a few rows each; positions count from the first row of the file.
    """

    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


_KEPT: Final = {"tableformat.upkeep.files-per-level": "2", "tableformat.upkeep.write-amplification": "1000"}
"""Settings with which upkeep has work in a table of a few files."""

VARIANTS: Final = (
    Variant(),
    Variant(properties={**_KEPT, "tableformat.upkeep": "writer"}),
    Variant(properties={**_KEPT, "write.delete.prefix-encoding": "equality"}),
    Variant(properties={"tableformat.scan.range-span-budget": "1", "write.parquet.row-group-limit": "1"}),
    Variant(
        ("bucket(2, id)",), {**_KEPT, "commit.manifest.min-count-to-merge": "3", "write.parquet.row-group-limit": "2"}
    ),
    Variant(("note",)),
    Variant(properties={**_KEPT, "format-version": "3", "write.parquet.row-group-limit": "3"}),
    Variant(("day(at)",), {"write.delete.prefix-encoding": "equality"}),
    Variant(
        properties={
            "write.delete.mode": "copy-on-write",
            "write.delete.blind": "range",
            "format-version": "3",
            "write.parquet.row-group-limit": "2",
        }
    ),
)


class TableMachine(RuleBasedStateMachine):
    """One table, several handles, and the expected rows of every snapshot."""

    catalog: ClassVar[Catalog]
    """Set by `machine_on`, like `duckdb`."""
    duckdb: ClassVar[duckdb.DuckDBPyConnection]
    variants: ClassVar[Sequence[Variant]] = VARIANTS
    one_of_those_that_go: ClassVar[int] = 1
    """One in this number of snapshots is read before they expire. The change feed covers the rows of all."""

    def __init__(self) -> None:
        super().__init__()
        self.row_numbers = itertools.count()
        self.snapshots: dict[int | None, Rows] = {None: ()}
        self.heads: dict[str, int | None] = {MAIN: None}
        self.handles: list[Table] = []
        self.readers: dict[str, Table] = {}
        self.changed: set[str] = set()
        self.is_head_unfiltered = False
        self.lineage = LineageBook(tuple(SCHEMA.names))

    @initialize(
        variant=st.runner().flatmap(lambda self: st.sampled_from(self.variants)),
        has_many_rows=st.sampled_from([False, False, True]),
    )
    def create(self, variant: Variant, has_many_rows: bool) -> None:
        name = f"db.t{next(_names)}"
        properties = dict(variant.properties)
        self.handles = [
            self.catalog.create_table(name, SCHEMA, key=KEY, partition_by=variant.partition_by, properties=properties),
            self.catalog.load_table(name),
        ]
        self.readers = {MAIN: self.catalog.load_table(name)}
        if has_many_rows:
            self.perform(0, OneVerb(Verb("append", FIXED_ROWS)))

    def teardown(self) -> None:
        """Remove the files, because there are many examples."""
        if not self.handles:
            return
        try:
            self.read_all()
        finally:
            name, location = self.handles[0].name, local_path(self.handles[0].location)
            self.catalog.drop_table(name)
            assert location is not None, "the catalog is a local directory"
            shutil.rmtree(location)

    # -- steps --------------------------------------------------------------------------------------------------------

    @rule(at=st.integers(0, 2), verb=verbs())
    def call(self, at: int, verb: Verb) -> None:
        self.perform(at, OneVerb(verb))

    @rule(at=st.integers(0, 2), act=acts())
    def act(self, at: int, act: Act) -> None:
        self.perform(at, act)

    @rule(at=st.integers(0, 1), act=acts(), others=st.lists(acts(), min_size=1, max_size=2))
    def race(self, at: int, act: Act, others: list[Act]) -> None:
        """Another handle commits between the plan and the commit."""
        self.perform(at, act, others)

    @precondition(lambda self: self.heads[MAIN] is not None)
    @rule(at=st.integers(0, 1), act=acts(), others=st.lists(acts(), max_size=1), pick=st.integers(0, 3))
    def race_with_rollback(self, at: int, act: Act, others: list[Act], pick: int) -> None:
        """CP-22: the changes that the act has seen are undone before it commits."""
        self.handle(at).refresh()
        self.perform(at, act, others, rolled_back=pick)

    @precondition(lambda self: self.rows_of_main)
    @rule(
        at=st.integers(0, 1),
        pick=st.integers(0, 15),
        kind=KINDS_OF_DELETE,
        verb=st.sampled_from(["ignore", "error", "scan"]),
    )
    def decision_on_a_row_whose_delete_is_undone(self, at: int, pick: int, kind: str, verb: str) -> None:
        """A row is deleted, an operation looks for its key and does not find it, and the delete is rolled back."""
        row = self.rows_of_main[pick % len(self.rows_of_main)]
        self.perform(at, OneVerb(delete_of(self.rows_of_main, pick, kind)))
        self.handle(at).refresh()
        prefix = {"id": row["id"]}
        deciding = Verb("delete_prefix", (prefix,), mode="scan") if verb == "scan" else unique_append(row, verb)
        self.perform(at, OneVerb(deciding), rolled_back=1)

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), pick=st.integers(0, 15), kind=KINDS_OF_DELETE)
    def delete_row(self, at: int, pick: int, kind: str) -> None:
        """A delete that certainly matches a row, unlike most random ones."""
        self.perform(at, OneVerb(delete_of(self.rows_of_main, pick, kind)))

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), pick=st.integers(0, 15), kind=KINDS_OF_DELETE)
    def convert_delete_of_several_files(self, at: int, pick: int, kind: str) -> None:
        """A row and an equal one in a newer file are deleted, and the delete is converted."""
        self.perform(at, OneVerb(_append_beside(self.rows_of_main[pick % len(self.rows_of_main)])))
        self.perform(at, OneVerb(delete_of(self.rows_of_main, pick, kind)))
        self.perform(at, CONVERSION)

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), pick=st.integers(0, 15), kind=KINDS_OF_DELETE)
    def delete_in_the_transaction_of_an_append(self, at: int, pick: int, kind: str) -> None:
        """A transaction appends a row that equals an existing one, and deletes both."""
        self.handle(at).refresh()
        append = _append_beside(self.rows_of_main[pick % len(self.rows_of_main)])
        self.perform(at, InTransaction((append, delete_of(self.rows_of_main, pick, kind))))

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), planned=_PLANNED, pick=st.integers(0, 15), kind=KINDS_OF_DELETE, converts=_MOSTLY)
    def race_with_delete(self, at: int, planned: Act, pick: int, kind: str, converts: bool) -> None:
        """A job is planned; a row is deleted, and perhaps the delete is converted; the job commits."""
        delete = OneVerb(delete_of(self.rows_of_main, pick, kind))
        self.handle(at).refresh()
        self.perform(at, planned, [delete, CONVERSION] if converts else [delete])

    @precondition(lambda self: self.rows_of_main)
    @rule(pick=st.integers(0, 15), kind=KINDS_OF_DELETE)
    def race_of_rewrite_with_converted_delete(self, pick: int, kind: str) -> None:
        """All files are rewritten from a plan that includes a row. In the meantime the row is deleted, and the delete
        is converted."""
        self.handle(0).refresh()
        self.perform(0, OneVerb(_append_beside(self.rows_of_main[pick % len(self.rows_of_main)])))
        self.race_with_delete(at=0, planned=Rewrite(EVERY_FILE), pick=pick, kind=kind, converts=True)

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), planned=_PLANNED, pick=st.integers(0, 15), kind=KINDS_OF_DELETE)
    def job_after_unseen_delete(self, at: int, planned: Act, pick: int, kind: str) -> None:
        """The job of a handle that has not seen the delete of a row."""
        self.handle(at).refresh()
        self.perform(1 - at, OneVerb(delete_of(self.rows_of_main, pick, kind)))
        self.perform(at, planned)

    @precondition(lambda self: self.rows_of_main)
    @rule(at=st.integers(0, 1), pick=st.integers(0, 15), kind=KINDS_OF_DELETE, merges=st.booleans())
    def insert_after_unseen_delete(self, at: int, pick: int, kind: str, merges: bool) -> None:
        """CP-38: a handle that has not seen the delete of a row inserts missing rows."""
        row = self.rows_of_main[pick % len(self.rows_of_main)]
        self.handle(at).refresh()
        self.perform(1 - at, OneVerb(delete_of(self.rows_of_main, pick, kind)))
        self.perform(at, OneVerb(inserting_merge(row) if merges else unique_append(row, "ignore")))

    @precondition(lambda self: self.heads[MAIN] is not None)
    @rule(at=st.integers(0, 2), pick=st.integers(0, 7))
    def roll_back(self, at: int, pick: int) -> None:
        handle = self.handle(at).refresh()
        line = [snapshot.snapshot_id for snapshot in ancestors(handle.metadata, handle.view.snapshot)]
        target = line[pick % len(line)]
        self.follow(handle)
        handle.rollback(snapshot_id=target)
        self.heads[handle.branch] = target
        self.changed.add(handle.branch)

    @precondition(lambda self: len(self.snapshots) > _SNAPSHOTS_WORTH_REMOVING)
    @rule(at=st.integers(0, 2), retained=st.integers(1, 3))
    def remove_what_is_old(self, at: int, retained: int) -> None:
        """Remove old snapshots and orphan files. Handles that are behind may lose the files that they read."""
        handle = self.handle(at)
        self.read_all(self.one_of_those_that_go)
        handle.maintenance.expire_snapshots(older_than=_ANY_AGE, retain_last=retained)
        handle.maintenance.remove_orphan_files(older_than=_ANY_AGE, allow_recent=True)
        for table in (*self.handles, *self.readers.values()):
            table.refresh()
        left = {snapshot.snapshot_id for snapshot in handle.metadata.snapshots}
        assert left <= self.snapshots.keys(), "expiry made a snapshot"
        assert left >= {head for head in self.heads.values() if head is not None}, "expiry took the head of a branch"
        self.snapshots = {None: ()} | {snapshot_id: self.snapshots[snapshot_id] for snapshot_id in left}
        self.read_all()

    @precondition(lambda self: self.heads[MAIN] is not None and SECOND not in self.heads)
    @rule(at=st.integers(0, 1))
    def start_second_branch(self, at: int) -> None:
        """Start the branch at the snapshot of the handle, which may be behind the head."""
        handle = self.handle(at)
        if handle.snapshot_id is None:
            handle.refresh()
        self.heads[SECOND] = handle.snapshot_id
        handle.create_branch(SECOND)
        self.handles.append(self.catalog.load_table(handle.name, branch=SECOND))
        self.readers[SECOND] = self.catalog.load_table(handle.name, branch=SECOND)
        self.changed.add(SECOND)

    @precondition(lambda self: self.is_head_unfiltered)
    @rule(where=filters(), branch=st.sampled_from([MAIN, SECOND]), with_duckdb=st.booleans())
    def read_filtered(self, where: Filter, branch: str, with_duckdb: bool) -> None:
        """Filters on scans, counts and change feeds select the same rows as the model, also in DuckDB."""
        reader = self.readers.get(branch, self.readers[MAIN]).refresh()
        rows = self.snapshots[self.heads[reader.branch]]
        matching = tuple(row for row in rows if where.matches(row))
        check(reader.scan(where=where.expression).to_arrow(), matching, f"rows where {where}")
        count = reader.scan(where=where.expression).count()
        assert count == len(matching), f"{count} rows counted where {where}, {len(matching)} match"
        events = reader.changes(columns=_FEED, from_snapshot_id=oldest_beginning(reader.view)).to_arrow().to_pylist()
        found = reader.changes(where.expression, _FEED, from_snapshot_id=oldest_beginning(reader.view)).to_arrow()
        have, want = fingerprint(found.to_pylist(), _FEED), fingerprint(filter(where.matches, events), _FEED)
        assert have == want, f"changes where {where}: missing {want - have}, too many {have - want}"
        if with_duckdb:
            relation = reader.scan().to_duckdb(self.duckdb)
            found = relation.filter("number >= 0 AND note IS NOT NULL")
            kept = tuple(row for row in rows if row["number"] >= 0 and row["note"] is not None)
            check(found.to_arrow_table(), kept, "rows that DuckDB filtered")
        self.is_head_unfiltered = False

    # -- checks -------------------------------------------------------------------------------------------------------

    @invariant()
    def heads_have_the_rows_of_the_model(self) -> None:
        for branch in sorted(self.changed):
            reader = self.readers[branch].refresh()
            assert reader.snapshot_id == self.heads[branch], f"{branch} is at another snapshot than its last commit"
            has_lineage = reader.metadata.format_version >= WITH_ROW_LINEAGE
            found = self.lineage.read(reader) if has_lineage else reader.scan().to_arrow()
            check(found, self.snapshots[self.heads[branch]], f"rows of {branch}")
            self.is_head_unfiltered = True
        self.changed.clear()

    # -- running and judging a step -----------------------------------------------------------------------------------

    def follow_upkeep(self, reader: Table) -> None:
        """Accept snapshots of upkeep after the last act. None of them may change a row."""
        made = []
        for snapshot in ancestors(reader.metadata, reader.view.snapshot):
            if snapshot.snapshot_id in self.snapshots:
                break
            assert changes_no_row(snapshot), "a snapshot that nobody asked for"
            made.append(snapshot.snapshot_id)
        if made:
            rows = self.snapshots[self.heads[reader.branch]]
            self.snapshots.update(dict.fromkeys(made, rows))
            self.heads[reader.branch] = made[0]

    def handle(self, at: int) -> Table:
        return self.handles[at % len(self.handles)]

    def read_all(self, one_of: int = 1) -> None:
        reader = self.readers[MAIN].refresh()
        for place, (snapshot_id, rows) in enumerate(self.snapshots.items()):
            if snapshot_id is not None and place % one_of == 0:
                check(reader.scan(snapshot_id=snapshot_id).to_arrow(), rows, f"rows of snapshot {snapshot_id}")
        for branch in self.heads:
            self.follow(self.readers[branch].refresh())

    def follow(self, reader: Table) -> None:
        """CF-6: the change feed turns the rows of every retained snapshot into the rows of the next one."""
        line = [snapshot.snapshot_id for snapshot in ancestors(reader.metadata, reader.view.snapshot)][::-1]
        begin = oldest_beginning(reader.view)
        feed = reader.changes(columns=_FEED, from_snapshot_id=begin)
        events = feed.to_arrow()
        assert feed.count() == events.num_rows, f"{feed.count()} changes counted, {events.num_rows} read"
        current = fingerprint(self.snapshots[begin], SCHEMA.names)
        after = dict(replayed(current, events, SCHEMA.names))
        for snapshot_id in line:
            current = after.get(snapshot_id, current)
            want = fingerprint(self.snapshots[snapshot_id], SCHEMA.names)
            assert +current == want, f"changes to {snapshot_id}: missing {want - current}, too many {current - want}"

    @property
    def rows_of_main(self) -> Rows:
        return self.snapshots[self.heads[MAIN]]

    def perform(self, at: int, act: Act, others: Sequence[Act] = (), rolled_back: int | None = None) -> None:
        """Run the act with one handle and the others with the next handle in between, and check the outcome.

        `rolled_back`: the number of snapshots by which the branch is moved back after the others.
        """
        handle, act = self.handle(at), act.numbered(self.row_numbers)
        seen = handle.snapshot_id
        was_moved = rolled_back is not None
        may_conflict = (act.may_conflict or was_moved) and (bool(others) or seen != self.heads[handle.branch])

        def interrupt() -> None:
            for other in others:
                self.perform(at + 1, other)
            if rolled_back is not None:
                self.roll_back(at + 1, rolled_back)

        try:
            with interrupted_by(interrupt) if others or was_moved else nullcontext():
                snapshot_id = act.commit(handle)
        except CommitConflictError:
            assert may_conflict or was_moved, f"{act} met a conflict although nobody else committed, or gave up"
        except (DuplicateKeyError, InvalidArgumentError, RowsRefusedError) as error:
            # A rejection may be based on the older snapshot that the handle has seen.
            before = (self.snapshots[self.heads[handle.branch]], self.snapshots[seen])
            refusals = [rows_after(act.verbs, rows) for rows in before]
            if not any(isinstance(error, type(refusal)) for refusal in refusals if isinstance(refusal, Exception)):
                raise AssertionError(f"{act} was refused, and the model has {refusals!r}") from error
        else:
            self._settle(handle, act, snapshot_id)

    def _settle(self, handle: Table, act: Act, snapshot_id: int | None) -> None:
        """The last commit applies to the rows just before it (CP-5, CP-38)."""
        before = self.snapshots[self.heads[handle.branch]]
        expected = rows_after(act.verbs, before)
        assert not isinstance(expected, Exception), f"{act} should have been refused: {expected}"
        if snapshot_id in self.snapshots:
            assert _are_equal(before, expected), f"{act} changes rows but committed nothing"
            return
        # A job may have committed several snapshots, all with the same rows.
        new = [
            snapshot.snapshot_id for snapshot in handle.metadata.snapshots if snapshot.snapshot_id not in self.snapshots
        ]
        self.snapshots.update(dict.fromkeys(new, expected))
        self.lineage.note([verb.name for verb in act.verbs], new)
        self.heads[handle.branch] = snapshot_id
        self.changed.add(handle.branch)
        self.follow_upkeep(self.readers[handle.branch].refresh())


def machine_on(
    catalog: Catalog, variants: Sequence[Variant] = VARIANTS, kind: type[TableMachine] = TableMachine
) -> type[TableMachine]:
    """The machine, or a subclass with more steps, over tables of a local catalog with the namespace `db`."""
    return type(kind.__name__, (kind,), {"catalog": catalog, "duckdb": duckdb.connect(), "variants": variants})


def check(found: pa.Table, rows: Sequence[Row], subject: str) -> None:
    """Raise AssertionError unless both have the same rows, in any order."""
    have, want = fingerprint(found.to_pylist(), SCHEMA.names), fingerprint(rows, SCHEMA.names)
    assert have == want, f"{subject}: missing {dict(want - have)}, too many {dict(have - want)}"


def rows_after(verbs: Sequence[Verb], rows: Rows) -> Rows | Exception:
    """The rows after the operations, or the error with which one of them must be rejected."""
    model = ModelVerbs(tuple(SCHEMA.names), KEY, list(rows))
    try:
        for verb in verbs:
            verb.apply_to_model(model)
    except (DuplicateKeyError, InvalidArgumentError, RowsRefusedError) as refusal:
        return refusal
    return tuple(model.current)


def _are_equal(some: Rows, others: Rows) -> bool:
    return fingerprint(some, SCHEMA.names) == fingerprint(others, SCHEMA.names)


def unique_append(row: Row, on_duplicate: str) -> Verb:
    """An append of the row, and of one with another key. Rows whose key exists are not added."""
    return Verb("append", (row, {**row, "number": row["number"] ^ 1}), {"on_duplicate": on_duplicate})


def inserting_merge(row: Row) -> Verb:
    """A merge that inserts the row, and one with another key. Rows whose key exists are not added."""
    clause = MergeClause("when_not_matched_insert_all", (), ModelClause("not_matched", lambda _, source: source))
    return replace(unique_append(row, "ignore"), name="merge", options={}, clauses=(clause,))


def _append_beside(row: Row) -> Verb:
    """An append of an equal row, and of one with another key that is written to the same file."""
    return Verb("append", (row, {**row, "number": row["number"] ^ 1}))


def delete_of(rows: Rows, pick: int, kind: str) -> Verb:
    """A delete of one of the rows, and of rows with the same key, prefix or values; "scan" deletes positions."""
    row = rows[pick % len(rows)]
    key = tuple(row[name] for name in KEY)
    match kind:
        case "range":
            above = [other for other in (tuple(row[name] for name in KEY) for row in rows) if other > key]
            return Verb("delete_range", options={"on": KEY, "lower": key, "upper": min(above, default=None)})
        case "equality":
            return Verb("delete_rows", ({name: row[name] for name in KEY},))
        case "values":
            return Verb("delete_rows", ({"at": row["at"], "note": row["note"]},))
        case "scan":
            return Verb("delete", where=filter_of_key(row), mode="scan")
        case _:
            return Verb("delete_prefix", ({"id": row["id"]},))
