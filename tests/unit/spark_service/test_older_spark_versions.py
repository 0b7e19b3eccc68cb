"""Answers of the Python side to older Spark versions, which send less about statements and options; needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ext.service.ddl.key_property import KEY, key_of
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Session
from tableformat.errors import CommitConflictError, InvalidArgumentError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TABLE = ["db", "t"]
BATCH = {"application_id": None, "batch_id": None}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Rows 1 and 2 with the tag `first`, and 3; `audit` is a branch."""
    opened = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    opened.catalog.create_namespace("db")
    table = opened.catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(pa.table({"id": [1, 2]}, schema=SCHEMA))
    table.create_tag("first")
    table.create_branch("audit")
    table.append(pa.table({"id": [3]}, schema=SCHEMA))
    return opened


def ask(session: Session, name: str, **arguments: Any) -> Any:
    return handler_of(name)(session, Request(arguments))


@pytest.mark.parametrize(("reads", "conflicts"), [({"reads": None}, True), ({}, True), ({"reads": []}, False)])
def test_update_without_read_info_conflicts_with_any_append(
    session: Session, reads: dict[str, Any], conflicts: bool
) -> None:
    """ST-7."""
    pin = ask(session, "load_table", table=TABLE)["pin"]
    target = ask(session, "plan_write", pin=pin, mode="append", options={}, settings={}, row_lineage=False)["target"]
    session.load(("db", "t")).append(pa.table({"id": [4]}, schema=SCHEMA))

    def update() -> None:
        ask(session, "commit_delta", target=target, pin=pin, command="UPDATE", **BATCH, **reads)

    if conflicts:
        with pytest.raises(CommitConflictError):
            update()
    else:
        update()


def test_snapshot_chosen_after_table_load(session: Session) -> None:
    """ST-6: of the metadata that the statement was analysed with."""
    loaded = ask(session, "load_table", table=TABLE)
    session.load(("db", "t")).append(pa.table({"id": [4]}, schema=SCHEMA))
    first = ask(session, "load_state", table=TABLE, pin=loaded["pin"], options={"tag": "first"})
    assert first["is_time_travel"]
    assert first["pin"]["metadata_location"] == loaded["pin"]["metadata_location"]
    audit = ask(session, "load_state", table=TABLE, pin=loaded["pin"], options={"BRANCH": "audit"})
    assert (audit["pin"]["branch"], audit["snapshot_id"]) == ("audit", first["snapshot_id"])
    files = ask(session, "load_table", table=[*TABLE, "files"])
    of_first = ask(session, "load_state", table=[*TABLE, "files"], pin=files["pin"], options={"tag": "first"})
    assert of_first["pin"]["snapshot_id"] == first["snapshot_id"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [([*TABLE, "branch_audit"], {}), (TABLE, {"version": "audit"}), (TABLE, {"version": "first"})],
)
def test_two_snapshot_choices_are_rejected(session: Session, name: list[str], arguments: dict[str, str]) -> None:
    """ST-6."""
    loaded = ask(session, "load_table", table=name, **arguments)
    with pytest.raises(InvalidArgumentError, match="only one of them"):
        ask(session, "load_state", table=name, pin=loaded["pin"], options={"tag": "first"})


def test_key_by_property(session: Session) -> None:
    column = {"nullable": False, "type": "long"}
    new: dict[str, Any] = {
        "columns": [{"name": "a", **column}, {"name": "b", **column}],
        "partitioning": [],
        "key": [],
        "checks": [],
    }
    created = ask(session, "create_table", table=["db", "u"], properties={KEY: "b, a"}, **new)
    assert created["key"] == ["b", "a"]
    assert KEY not in created["properties"]
    changes = [{"change": "SetProperty", "property": KEY, "value": "a"}]
    assert ask(session, "alter_table", table=["db", "u"], changes=changes)["key"] == ["a"]
    staged = ask(session, "stage_table", table=["db", "u"], kind="replace", properties={KEY: "b"}, **new)
    assert staged["key"] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": ["a"], "properties": {KEY: "a"}}, "PRIMARY KEY and the table property"),
        ({"key": [], "properties": {KEY: "a,,b"}}, "list of columns"),
        ({"key": [], "properties": {KEY: ""}}, "list of columns"),
    ],
)
def test_invalid_keys_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        key_of(arguments)
