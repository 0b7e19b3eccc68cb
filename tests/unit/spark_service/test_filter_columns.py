"""Column names in the filter of a statement are resolved when Spark plans the statement (SP-83)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from spark_ext.service.registry import Request
from spark_ext.service.session import Pin, Session
from spark_ext.service.writes.commits import commit_write
from spark_ext.service.writes.deletes import delete_where
from spark_ext.service.writes.write_plan import plan_write
from tableformat import Table
from tableformat.errors import CommitConflictError

WHERE: list[dict[str, Any]] = [{"operator": "=", "arguments": [{"column": ["a"]}, {"literal": "1", "type": "string"}]}]
COMMIT = {"application_id": None, "batch_id": None, "settings": {}, "options": {}}


def swap(table: Table) -> None:
    for former, name in (("a", "c"), ("b", "a"), ("c", "b")):
        with table.refresh().update_schema() as update:
            update.rename_column(former, name)


def drop_and_add(table: Table) -> None:
    with table.refresh().update_schema() as update:
        update.delete_column("a")
    with table.refresh().update_schema() as update:
        update.add_column("a", StringType())


def widen_another(table: Table) -> None:
    with table.refresh().update_schema() as update:
        update.add_column("more", StringType())


@pytest.fixture
def session(tmp_path: Path) -> Session:
    opened = Session.open("lake", {"warehouse": str(tmp_path)})
    opened.catalog.create_namespace("db")
    table = opened.catalog.create_table("db.t", pa.schema([("a", pa.string()), ("b", pa.string())]))
    table.append(pa.table({"a": ["1", "2"], "b": ["2", "1"]}))
    return opened


def delete(session: Session, pin: dict[str, Any], between: Callable[[], None]) -> None:
    between()
    delete_where(session, Request({**COMMIT, "table": ["db", "t"], "pin": pin, "predicates": WHERE}))


def overwrite(session: Session, pin: dict[str, Any], between: Callable[[], None]) -> None:
    """At snapshot isolation the overwrite is committed on the current state of the table."""
    asked = {"pin": pin, "table": ["db", "t"], "mode": "overwrite", "row_lineage": False, "settings": {}}
    planned = plan_write(session, Request({**asked, "options": {"isolation-level": "snapshot"}}))
    between()
    request = {**COMMIT, "target": planned["target"], "mode": "overwrite", "pin": pin, "reads": [], "predicates": WHERE}
    commit_write(session, Request(request))


@pytest.mark.parametrize("statement", [delete, overwrite])
@pytest.mark.parametrize("change", [swap, drop_and_add])
def test_filter_on_renamed_column_conflicts(
    session: Session, statement: Callable[..., None], change: Callable[[Table], None]
) -> None:
    """SP-83: it took the rows that another column chose."""
    table = session.catalog.load_table("db.t")
    pin = Pin(("db", "t"), session.load(("db", "t")).iceberg.metadata_location).to_json()
    with pytest.raises(CommitConflictError):
        statement(session, pin, lambda: change(table))
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize("statement", [delete, overwrite])
def test_changes_of_other_columns_do_not_conflict(session: Session, statement: Callable[..., None]) -> None:
    table = session.catalog.load_table("db.t")
    pin = Pin(("db", "t"), session.load(("db", "t")).iceberg.metadata_location).to_json()
    statement(session, pin, lambda: widen_another(table))
    assert table.refresh().scan(columns=["a", "b"]).to_arrow().to_pylist() == [{"a": "2", "b": "1"}]
