"""The conflict table, cell by cell: our change is planned, theirs is committed, then ours tries to commit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from commit_tables import (
    append,
    committed,
    data_file,
    delete_blindly,
    equality_delete,
    live,
    named,
    new_table,
    planned,
    position_delete,
    range_delete,
    vector,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.conflicts import CONFLICT_TABLE
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError, InvalidArgumentError


@pytest.fixture
def catalog(tmp_path: Path) -> EmbeddedCatalog:
    return EmbeddedCatalog.at(tmp_path / "lake")


@pytest.fixture
def table(catalog: EmbeddedCatalog) -> Table:
    """Data files a and b (number 1), then an equality delete e and a range delete r (number 2)."""
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet"), data_file(table, "b.parquet"))).table
    return commit_change(
        table, delete_blindly(equality_delete(table, "e.parquet"), range_delete(table, "r.parquet"))
    ).table


def reaches_nothing(_deletes: object, _data_files: object) -> frozenset[str]:
    return frozenset()


def theirs(table: Table, change: TableChange) -> Table:
    return commit_change(table, change).table


def drop(table: Table, *names: str) -> TableChange:
    """Someone removes data files and delete files without asking anybody."""
    files = [committed(table, name) for name in names]
    return planned(
        table,
        ChangeKind.SCAN_BASED,
        Operation.OVERWRITE,
        removed_data_files=tuple(file for file in files if file.content == 0),
        removed_delete_files=tuple(file for file in files if file.content != 0),
    )


def rewrite(table: Table, *names: str, output: str = "new.parquet") -> TableChange:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    return planned(
        table,
        ChangeKind.REWRITE,
        Operation.REPLACE,
        removed_data_files=tuple(committed(table, name) for name in names),
        added_data_files=(data_file(table, output, sequence_number=snapshot.sequence_number),),
    )


def conversion(table: Table, *deletes: str, resolved: tuple[str, ...], **fields: Any) -> TableChange:
    return planned(
        table,
        ChangeKind.CONVERSION,
        Operation.REPLACE,
        removed_delete_files=tuple(committed(table, name) for name in deletes),
        resolved_data_files=frozenset(named(table, name) for name in resolved),
        **fields,
    )


def delete_rows_of(table: Table, name: str, delete: str = "p.parquet") -> TableChange:
    return planned(
        table,
        ChangeKind.ROW_DELTA,
        Operation.DELETE,
        added_delete_files=(position_delete(table, delete, named(table, name), [0]),),
    )


def overwrite(table: Table, name: str, **fields: Any) -> TableChange:
    return planned(
        table,
        ChangeKind.SCAN_BASED,
        removed_data_files=(committed(table, name),),
        added_data_files=(data_file(table, "new.parquet"),),
        **fields,
    )


def test_every_kind_has_a_row() -> None:
    """CP-3."""
    assert set(CONFLICT_TABLE) == set(ChangeKind)


def test_blind_change_never_conflicts(table: Table) -> None:
    """CP-3."""
    ours = delete_blindly(range_delete(table, "ours.parquet"))
    theirs(theirs(table, append(data_file(table, "c.parquet"))), rewrite(table, "a.parquet"))
    assert live(commit_change(table, ours).table)["ours.parquet"] == 5


class TestRowDelta:
    def test_removed_named_data_file_conflicts(self, table: Table) -> None:
        """CP-4."""
        ours = delete_rows_of(table, "a.parquet")
        theirs(table, drop(table, "a.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_unrelated_changes_do_not_conflict(self, table: Table) -> None:
        ours = delete_rows_of(table, "a.parquet")
        after = theirs(table, drop(table, "b.parquet", "e.parquet"))
        after = theirs(after, append(data_file(table, "c.parquet")))
        theirs(after, delete_rows_of(after, "a.parquet", "q.parquet"))
        outcome = commit_change(table, ours)
        assert set(live(outcome.table)) == {"a.parquet", "c.parquet", "r.parquet", "p.parquet", "q.parquet"}

    def test_vector_without_newer_positions_conflicts(self, catalog: EmbeddedCatalog, table: Table) -> None:
        """CP-10: one vector a data file; the second writer must merge the first one's."""
        v3 = catalog.create_table("db.v3", table.schema(), properties={"format-version": "3"})
        target = data_file(v3, "a.parquet")
        v3 = theirs(v3, append(target, data_file(v3, "b.parquet")))
        ours = planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(vector(v3, "ours.puffin", target),))
        other = vector(v3, "other.puffin", data_file(v3, "b.parquet"))
        theirs(v3, planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(other,)))
        after = commit_change(v3, ours).table
        assert set(live(after)) == {"a.parquet", "b.parquet", "ours.puffin", "other.puffin"}
        again = planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(vector(v3, "again.puffin", target),))
        with pytest.raises(CommitConflictError):
            commit_change(v3, again)

    def test_vector_does_not_conflict_with_value_deletes(self, catalog: EmbeddedCatalog, table: Table) -> None:
        """CP-10: only position deletes conflict with new vectors. Deletes by value do not conflict with any vector."""
        v3 = catalog.create_table("db.v3", table.schema(), properties={"format-version": "3"})
        target = data_file(v3, "a.parquet")
        v3 = theirs(v3, append(target, data_file(v3, "b.parquet")))
        ours = planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(vector(v3, "ours.puffin", target),))
        other = vector(v3, "other.puffin", data_file(v3, "b.parquet"))
        after = theirs(v3, planned(v3, ChangeKind.ROW_DELTA, added_delete_files=(other,)))
        theirs(after, delete_blindly(equality_delete(v3, "late.parquet"), range_delete(v3, "later.parquet")))
        assert {"ours.puffin", "late.parquet", "later.parquet"} <= set(live(commit_change(v3, ours).table))


class TestScanBased:
    def test_added_data_file_that_may_match_conflicts(self, table: Table) -> None:
        """CP-5."""
        ours = overwrite(table, "a.parquet")
        theirs(table, append(data_file(table, "c.parquet")))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_added_data_file_that_cannot_match_does_not_conflict(self, table: Table) -> None:
        """CP-5: the caller's predicate clears it."""
        ours = overwrite(table, "a.parquet", may_match=lambda data: data.file_path.endswith("z.parquet"))
        theirs(table, append(data_file(table, "c.parquet")))
        assert set(live(commit_change(table, ours).table)) >= {"b.parquet", "c.parquet", "new.parquet"}

    def test_change_planned_on_empty_table_conflicts_with_append(self, catalog: EmbeddedCatalog) -> None:
        """CP-5: no snapshot is a state like any other."""
        empty = new_table(catalog)
        ours = planned(empty, ChangeKind.SCAN_BASED, added_data_files=(data_file(empty, "new.parquet"),))
        theirs(empty, append(data_file(empty, "c.parquet")))
        with pytest.raises(CommitConflictError):
            commit_change(empty, ours)

    @pytest.mark.parametrize("make", [equality_delete, range_delete])
    def test_concurrent_delete_of_rewritten_rows_conflicts(self, table: Table, make: object) -> None:
        """CP-6."""
        ours = overwrite(table, "a.parquet")
        theirs(table, delete_blindly(make(table, "late.parquet")))  # type: ignore[operator]
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    @pytest.mark.parametrize("make", [equality_delete, range_delete])
    def test_global_delete_of_rewritten_rows_conflicts(self, catalog: EmbeddedCatalog, make: object) -> None:
        """CP-6, DA-3: its own spec has no partitions."""
        table = new_table(catalog, partitioned=True)
        with table.update_spec() as update:
            update.remove_field("region")
        table = theirs(table, append(data_file(table, "a.parquet", partition=("x",))))
        ours = overwrite(table, "a.parquet")
        everywhere = make(table, "late.parquet", spec_id=table.spec().spec_id)  # type: ignore[operator]
        theirs(table, delete_blindly(everywhere))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_delete_of_other_rows_does_not_conflict(self, table: Table) -> None:
        """CP-6: positions in another file, and a delete that matches other rows."""
        ours = overwrite(table, "a.parquet", reached=reaches_nothing)
        after = theirs(table, delete_rows_of(table, "b.parquet"))
        theirs(after, delete_blindly(equality_delete(table, "late.parquet")))
        assert "new.parquet" in live(commit_change(table, ours).table)

    def test_removed_replaced_file_conflicts(self, table: Table) -> None:
        """CP-4."""
        ours = overwrite(table, "a.parquet")
        theirs(table, drop(table, "a.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)


class TestRewrite:
    def test_rewrite_output_keeps_the_planned_sequence_number(self, table: Table) -> None:
        """CP-7: a delete that was committed while the rewrite ran still applies to the output."""
        ours = rewrite(table, "a.parquet", "b.parquet")
        theirs(table, delete_blindly(equality_delete(table, "late.parquet")))
        assert live(commit_change(table, ours).table) == {
            "new.parquet": 2,
            "e.parquet": 2,
            "r.parquet": 2,
            "late.parquet": 3,
        }

    def test_rewrite_output_with_another_sequence_number_is_rejected(self, table: Table) -> None:
        """CP-7."""
        for number in (None, 1, 3):
            with pytest.raises(InvalidArgumentError, match="must have sequence number 2"):
                planned(
                    table,
                    ChangeKind.REWRITE,
                    Operation.REPLACE,
                    removed_data_files=(committed(table, "a.parquet"),),
                    added_data_files=(data_file(table, "new.parquet", sequence_number=number),),
                )

    def test_removed_rewrite_input_conflicts(self, table: Table) -> None:
        """CP-4."""
        ours = rewrite(table, "a.parquet", "b.parquet")
        theirs(table, rewrite(table, "b.parquet", output="theirs.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_position_delete_of_rewrite_input_conflicts(self, table: Table) -> None:
        """CP-8."""
        ours = rewrite(table, "a.parquet")
        theirs(table, delete_rows_of(table, "a.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    @pytest.mark.parametrize("keyed_first", [True, False])
    def test_position_delete_of_input_among_other_deletes_conflicts(self, table: Table, keyed_first: bool) -> None:
        """CP-8: regardless of the order of the commits and of the other deletes in them."""
        ours = rewrite(table, "a.parquet")
        others = [
            delete_blindly(equality_delete(table, "late.parquet")),
            delete_rows_of(table, "b.parquet", "q.parquet"),
            delete_rows_of(table, "a.parquet"),
        ]
        after = table
        for change in others if keyed_first else reversed(others):
            after = theirs(after, change)
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    @pytest.mark.parametrize(("region", "meets"), [("x", True), ("y", False)])
    def test_position_delete_without_data_file_conflicts(
        self, catalog: EmbeddedCatalog, region: str, meets: bool
    ) -> None:
        """CP-8, DA-3: it is for all files of its partition."""
        table = new_table(catalog, partitioned=True)
        table = theirs(table, append(data_file(table, "a.parquet", partition=("x",))))
        ours = rewrite(table, "a.parquet")
        ours = dataclasses.replace(
            ours, added_data_files=(dataclasses.replace(ours.added_data_files[0], partition=("x",)),)
        )
        unnamed = {"referenced_data_file": None, "lower_bounds": None, "upper_bounds": None, "partition": (region,)}
        late = position_delete(table, "p.parquet", named(table, "a.parquet"), [0], **unnamed)
        theirs(table, planned(table, ChangeKind.ROW_DELTA, Operation.DELETE, added_delete_files=(late,)))
        if meets:
            with pytest.raises(CommitConflictError):
                commit_change(table, ours)
        else:
            assert set(live(commit_change(table, ours).table)) == {"new.parquet", "p.parquet"}

    def test_position_delete_of_another_file_does_not_conflict(self, table: Table) -> None:
        ours = rewrite(table, "a.parquet")
        theirs(table, delete_rows_of(table, "b.parquet"))
        assert "new.parquet" in live(commit_change(table, ours).table)

    def test_delete_added_and_dropped_during_rewrite_conflicts(self, table: Table) -> None:
        """CP-9: rows that the delete had removed would come back; the live files alone do not show it."""
        ours = rewrite(table, "a.parquet")
        after = theirs(table, delete_blindly(equality_delete(table, "late.parquet")))
        theirs(after, drop(after, "late.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    @pytest.mark.parametrize("names", [("e.parquet", "late.parquet"), ("late.parquet", "e.parquet")])
    def test_delete_added_and_dropped_with_an_older_one_conflicts(self, table: Table, names: tuple[str, str]) -> None:
        """CP-9: dropping the older delete does not concern the rewrite, and does not hide the newer one."""
        ours = rewrite(table, "a.parquet")
        after = theirs(table, delete_blindly(equality_delete(table, "late.parquet")))
        for name in names:
            after = theirs(after, drop(after, name))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_dropped_older_delete_does_not_conflict(self, table: Table) -> None:
        """CP-9: the rewrite has applied it already."""
        ours = rewrite(table, "a.parquet", "b.parquet")
        theirs(table, drop(table, "e.parquet"))
        assert live(commit_change(table, ours).table) == {"new.parquet": 2, "r.parquet": 2}

    def test_rewrite_conflicts_if_history_has_expired(self, table: Table) -> None:
        """CP-9, CP-22."""
        ours = rewrite(table, "a.parquet")
        middle = theirs(table, append(data_file(table, "c.parquet")))
        head = theirs(middle, append(data_file(table, "d.parquet")))
        middle_snapshot = middle.metadata.current_snapshot()
        assert middle_snapshot is not None
        head.maintenance.expire_snapshots().by_id(middle_snapshot.snapshot_id).commit()
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_planned_snapshot_expired(self, table: Table) -> None:
        ours = rewrite(table, "a.parquet")
        head = theirs(table, append(data_file(table, "c.parquet")))
        assert ours.planned_snapshot_id is not None
        head.maintenance.expire_snapshots().by_id(ours.planned_snapshot_id).commit()
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)


class TestConversion:
    def test_conversion_of_all_older_files_does_not_conflict(self, table: Table) -> None:
        """CP-11: data newer than the delete does not concern the conversion."""
        added = (position_delete(table, "p.parquet", named(table, "a.parquet"), [0]),)
        resolved = ("a.parquet", "b.parquet")
        ours = conversion(table, "e.parquet", "r.parquet", resolved=resolved, added_delete_files=added)
        theirs(table, append(data_file(table, "c.parquet")))
        assert live(commit_change(table, ours).table) == {
            "a.parquet": 1,
            "b.parquet": 1,
            "c.parquet": 3,
            "p.parquet": 4,
        }

    @pytest.mark.parametrize("name", ["e.parquet", "r.parquet"])
    def test_conversion_without_a_matching_file_conflicts(self, table: Table, name: str) -> None:
        """CP-11: checked even if no other writer committed."""
        with pytest.raises(CommitConflictError):
            commit_change(table, conversion(table, name, resolved=("a.parquet",)))

    def test_conversion_conflicts_with_rewritten_older_file(self, table: Table) -> None:
        """CP-11: a rewrite planned before the delete commits after the conversion was planned: rows would come back."""
        before = table.metadata.snapshots[0]
        old_rewrite = TableChange(
            operation=Operation.REPLACE,
            kind=ChangeKind.REWRITE,
            planned_snapshot_id=before.snapshot_id,
            planned_sequence_number=1,
            removed_data_files=(committed(table, "b.parquet"),),
            added_data_files=(data_file(table, "new.parquet", sequence_number=1),),
        )
        ours = conversion(table, "e.parquet", resolved=("a.parquet", "b.parquet"))
        theirs(table, old_rewrite)
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_partition_delete_conversion_requires_files_of_its_partition(self, catalog: EmbeddedCatalog) -> None:
        """CP-11, DA-3: a delete of one partition does not ask for files of another."""
        table = new_table(catalog, partitioned=True)
        files = [data_file(table, f"{region}.parquet", partition=(region,)) for region in ("x", "y")]
        table = theirs(table, append(*files))
        table = theirs(table, delete_blindly(equality_delete(table, "e.parquet", partition=("x",))))
        with pytest.raises(CommitConflictError):
            commit_change(table, conversion(table, "e.parquet", resolved=()))

    def test_removed_position_delete_ignores_newer_files(self, catalog: EmbeddedCatalog) -> None:
        """CP-11, DA-2: a position delete of a partition does not apply to files that were written there later."""
        table = new_table(catalog, partitioned=True)
        table = theirs(table, append(data_file(table, "a.parquet", partition=("x",))))
        unnamed = {"referenced_data_file": None, "lower_bounds": None, "upper_bounds": None, "partition": ("x",)}
        old = position_delete(table, "p.parquet", named(table, "a.parquet"), [0], **unnamed)
        table = theirs(table, planned(table, ChangeKind.ROW_DELTA, Operation.DELETE, added_delete_files=(old,)))
        table = theirs(table, append(data_file(table, "c.parquet", partition=("x",))))
        with pytest.raises(CommitConflictError):
            commit_change(table, conversion(table, "p.parquet", resolved=()))
        done = commit_change(table, conversion(table, "p.parquet", resolved=("a.parquet",))).table
        assert set(live(done)) == {"a.parquet", "c.parquet"}

    def test_conversion_conflicts_after_rollback_of_earlier_slice(self, table: Table) -> None:
        """CP-21: rows that an earlier snapshot of the conversion deleted are alive again after a rollback."""
        before = table.metadata.current_snapshot()
        assert before is not None
        sliced = theirs(table, delete_rows_of(table, "a.parquet"))
        relied_on = sliced.metadata.current_snapshot()
        assert relied_on is not None
        sliced.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
        ours = conversion(
            table,
            "e.parquet",
            resolved=("a.parquet", "b.parquet"),
            relied_on_snapshot_id=relied_on.snapshot_id,
        )
        with pytest.raises(CommitConflictError, match=f"{relied_on.snapshot_id} is not in its history"):
            commit_change(sliced.refresh(), ours)

    def test_concurrently_converted_delete_conflicts(self, table: Table) -> None:
        """CP-4."""
        ours = conversion(table, "e.parquet", resolved=("a.parquet", "b.parquet"))
        theirs(table, ours)
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)

    def test_removed_file_with_converted_rows_conflicts(self, table: Table) -> None:
        """CP-4."""
        added = (position_delete(table, "p.parquet", named(table, "a.parquet"), [0]),)
        resolved = ("a.parquet", "b.parquet")
        ours = conversion(table, "e.parquet", resolved=resolved, added_delete_files=added)
        theirs(table, drop(table, "a.parquet"))
        with pytest.raises(CommitConflictError):
            commit_change(table, ours)


def test_rewritten_delete_files_must_be_live(table: Table) -> None:
    """CP-4: the same deletes in other files. If another writer has removed one of the rewritten files, that writer
    wins."""
    merged = range_delete(table, "merged.parquet", sequence_number=2)
    ours = planned(
        table,
        ChangeKind.DELETE_REWRITE,
        Operation.REPLACE,
        removed_delete_files=(committed(table, "r.parquet"),),
        added_delete_files=(merged,),
    )
    after = theirs(table, append(data_file(table, "c.parquet")))
    assert live(theirs(table, ours))["merged.parquet"] == 2
    with pytest.raises(CommitConflictError):
        commit_change(after, ours)


def test_rewritten_positions_must_be_live(table: Table) -> None:
    """CP-4: two writers that move the same positions into another file."""
    table = theirs(table, delete_rows_of(table, "a.parquet"))

    def folded(name: str) -> TableChange:
        return planned(
            table,
            ChangeKind.DELETE_REWRITE,
            Operation.REPLACE,
            removed_delete_files=(committed(table, "p.parquet"),),
            added_delete_files=(position_delete(table, name, named(table, "a.parquet"), [0], sequence_number=3),),
        )

    ours = folded("ours.parquet")
    theirs(table, folded("theirs.parquet"))
    with pytest.raises(CommitConflictError):
        commit_change(table, ours)


def test_unknown_removed_file_is_rejected(table: Table) -> None:
    """CP-4: found when its manifest is looked for."""
    ours = planned(table, ChangeKind.SCAN_BASED, removed_data_files=(data_file(table, "ghost.parquet"),))
    with pytest.raises(CommitConflictError):
        commit_change(table, ours)


def test_contradictory_changes_are_rejected(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="append can only add data files"):
        TableChange(operation=Operation.APPEND, added_delete_files=(equality_delete(table, "x.parquet"),))
    with pytest.raises(InvalidArgumentError, match="cannot be blind"):
        TableChange(operation=Operation.DELETE, removed_data_files=(data_file(table, "a.parquet"),))
    positions = position_delete(table, "p.parquet", named(table, "a.parquet"), [0])
    with pytest.raises(InvalidArgumentError, match="cannot be blind"):
        delete_blindly(positions)
    own = TableChange(
        operation=Operation.OVERWRITE,
        added_data_files=(data_file(table, "c.parquet"),),
        added_delete_files=(position_delete(table, "p.parquet", named(table, "c.parquet"), [0]),),
    )
    assert live(commit_change(table, own).table)["p.parquet"] == 3


def test_empty_scan_based_change_is_checked_for_conflicts(table: Table) -> None:
    """CP-5, CP-17: a change without files conflicts with rows that were added since if it read the table, and does not
    if it read nothing."""
    reads, blind = (planned(table, kind) for kind in (ChangeKind.SCAN_BASED, ChangeKind.ROW_DELTA))
    commit_change(table, append(data_file(table, "theirs.parquet")))
    assert not commit_change(table, blind).committed
    with pytest.raises(CommitConflictError):
        commit_change(table, reads)
