"""ALTER TABLE ... CREATE, REPLACE and DROP BRANCH and TAG."""

from __future__ import annotations

from spark_ext.service.statements.statement import Statement, statement
from tableformat.errors import AlreadyExistsError, SnapshotNotFoundError
from tableformat.operations.history.empty_branch import create_empty_branch
from tableformat.operations.history.references import RefRetention, drop, new_ref, ref_of_kind, replace_ref
from tableformat.table import Table


@statement("put_ref")
def put_ref(table: Table, said: Statement) -> None:
    """SQ-3: create or replace a branch or tag. The default version is the current snapshot of `main`. REPLACE keeps
    retention settings that it does not name. A branch of a table without snapshots begins with an empty snapshot."""
    name, kind = said["ref"], said["kind"]
    is_there = name in table.metadata.refs
    if is_there and said["if_not_exists"]:
        ref_of_kind(table.metadata, name, kind)
        return
    if is_there and not said["replace"]:
        raise _is_there(table, name, kind)
    retention = RefRetention(
        max_ref_age_ms=said.get("max_ref_age_ms"),
        min_snapshots_to_keep=said.get("min_snapshots_to_keep"),
        max_snapshot_age_ms=said.get("max_snapshot_age_ms"),
    )
    snapshot = table.at(snapshot_id=said.get("snapshot_id")).snapshot
    replaces = said["replace"] and (is_there or not said["create"])
    if snapshot is None and kind == "branch" and not replaces:
        create_empty_branch(table.iceberg, name, retention)
        return
    if snapshot is None:
        raise SnapshotNotFoundError(f"{table.name} has no snapshot yet for a {kind}; write some rows first.")
    if replaces:
        replace_ref(table.iceberg, name, kind, snapshot.snapshot_id, retention)
    else:
        new_ref(table.iceberg, name, kind, snapshot.snapshot_id, retention)


def _is_there(table: Table, name: str, kind: str) -> AlreadyExistsError:
    found = table.metadata.refs[name].snapshot_ref_type
    instead = f"CREATE OR REPLACE {kind.upper()} moves it, IF NOT EXISTS keeps it, and " if found == kind else ""
    return AlreadyExistsError(
        f"a {found} {name!r} exists already. {instead}ALTER TABLE ... DROP {found.upper()} removes it."
    )


@statement("drop_ref")
def drop_ref(table: Table, said: Statement) -> None:
    if said["if_exists"] and said["ref"] not in table.metadata.refs:
        return
    drop(table.iceberg, said["ref"], said["kind"])
