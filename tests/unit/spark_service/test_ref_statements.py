"""CREATE, REPLACE and DROP BRANCH and TAG, as parsed by the Java side; needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Session
from tableformat import Table
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    SnapshotNotFoundError,
)
from tableformat.operations.history.empty_branch import create_empty_branch
from tableformat.operations.history.references import RefRetention
from tableformat.properties import PUBLISH_TARGET_PREFIX

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def session(tmp_path: Path) -> Session:
    opened = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    opened.catalog.create_namespace("db")
    return opened


@pytest.fixture
def table(session: Session) -> Table:
    """Two snapshots, of one row each."""
    created = session.catalog.create_table("db.t", SCHEMA, key=["id"])
    for number in (1, 2):
        created.append(pa.table({"id": [number]}, schema=SCHEMA))
    return created


def put(session: Session, name: str = "b", kind: str = "branch", **said: Any) -> None:
    flags = {"create": True, "replace": False, "if_not_exists": False}
    statement = {"name": "put_ref", "ref": name, "kind": kind, **flags, **said}
    arguments = {"table": ["db", "t"], "statement": statement, "case_sensitive": False}
    handler_of("run_statement")(session, Request(arguments))


def refs(session: Session) -> dict[str, tuple[int, int | None, int | None, int | None]]:
    return {
        name: (ref.snapshot_id, ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
        for name, ref in session.load(("db", "t")).metadata.refs.items()
    }


def test_replace_keeps_unnamed_ref_settings(session: Session, table: Table) -> None:
    """SQ-3."""
    first, second = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    put(session, snapshot_id=first, max_ref_age_ms=10, min_snapshots_to_keep=3)
    assert refs(session)["b"] == (first, 10, 3, None)
    put(session, if_not_exists=True)
    with pytest.raises(AlreadyExistsError):
        put(session)
    put(session, replace=True, create=False, max_snapshot_age_ms=5, max_ref_age_ms=20)
    assert refs(session)["b"] == (second, 20, 3, 5)
    put(session, "t", "tag", replace=True, max_ref_age_ms=7)
    assert refs(session)["t"] == (second, 7, None, None)
    with pytest.raises(SnapshotNotFoundError):
        put(session, "b", "tag", if_not_exists=True)
    with pytest.raises(InvalidArgumentError, match="above 0"):
        put(session, "c", max_ref_age_ms=0)
    with pytest.raises(SnapshotNotFoundError):
        put(session, "c", replace=True, create=False)


def test_publish_target_branch_cannot_be_replaced(session: Session, table: Table) -> None:
    """MT-30."""
    first = table.metadata.snapshots[0].snapshot_id
    table.create_branch("ingest").set_properties({f"{PUBLISH_TARGET_PREFIX}ingest": "main"})
    with pytest.raises(InvalidArgumentError, match="publish"):
        put(session, "main", replace=True, snapshot_id=first)
    put(session, "main", replace=True, min_snapshots_to_keep=4)
    assert refs(session)["main"] == (table.refresh().snapshot_id, None, 4, None)


def test_branch_of_a_table_without_snapshots(session: Session) -> None:
    """SQ-3."""
    table = session.catalog.create_table("db.t", SCHEMA, key=["id"])
    stale = session.catalog.load_table("db.t")
    with pytest.raises(SnapshotNotFoundError):
        put(session, kind="tag")
    put(session)
    session.catalog.load_table("db.t", branch="b").append(pa.table({"id": [1]}, schema=SCHEMA))
    assert (table.refresh().snapshot_id, table.scan(branch="b").count()) == (None, 1)
    files = set(Path(table.location.removeprefix("file://")).rglob("*.avro"))
    with pytest.raises(AlreadyExistsError):
        create_empty_branch(stale.iceberg, "b", RefRetention())
    table.append(pa.table({"id": [1]}, schema=SCHEMA))
    files = set(Path(table.location.removeprefix("file://")).rglob("*.avro"))
    with pytest.raises(CommitConflictError):
        create_empty_branch(stale.iceberg, "c", RefRetention())
    assert set(Path(table.location.removeprefix("file://")).rglob("*.avro")) == files
    assert session.catalog.load_table("db.t", branch="b").verify().findings == ()
