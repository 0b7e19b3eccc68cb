"""The state that the Python process of a Spark catalog keeps between calls; needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_ext.configure import catalog_options
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Pin, Session
from tableformat import open_catalog
from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A table `db.t` of two rows."""
    opened = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    opened.catalog.create_namespace("db")
    created = opened.catalog.create_table("db.t", SCHEMA, key=["id"])
    created.append(pa.table({"id": [1, 2]}, schema=SCHEMA))
    return opened


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}", "FILE:{}", "{}"])
@pytest.mark.parametrize("directory", ["lake", "la ke", "100% lake"])
def test_warehouse_is_the_directory_that_python_opens(tmp_path: Path, form: str, directory: str) -> None:
    warehouse = catalog_options("lake", form.format(tmp_path / directory))["spark.sql.catalog.lake.warehouse"]
    Session.open("lake", {"warehouse": warehouse}).catalog.create_namespace("db")
    assert open_catalog(form.format(tmp_path / directory)).list_namespaces() == ["db"]
    assert [each.name for each in tmp_path.iterdir()] == [directory]


@pytest.mark.parametrize("warehouse", ["file:lake", "file:la/ke", "file://host/lake", "file:{}/la%2Fke"])
def test_warehouse_that_python_rejects_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.chdir(tmp_path)
    location = warehouse.format(tmp_path)
    with pytest.raises(InvalidArgumentError) as of_python:
        open_catalog(location)
    with pytest.raises(InvalidArgumentError) as of_spark:
        Session.open("lake", {"warehouse": catalog_options("lake", location)["spark.sql.catalog.lake.warehouse"]})
    assert str(of_spark.value) == str(of_python.value)
    assert list(tmp_path.iterdir()) == []


def test_pin_is_not_moved_by_changes_of_the_process(session: Session) -> None:
    """A statement that was planned before a delete of the same process reads what it was planned on."""
    pin = Pin.from_json(handler_of("load_table")(session, Request({"table": ["db", "t"]}))["pin"])
    before = session.view(pin).snapshot
    condition = {"operator": "=", "arguments": [{"column": ["id"]}, {"literal": "1", "type": "long"}]}
    arguments = {
        "table": ["db", "t"],
        "pin": pin.to_json(),
        "predicates": [condition],
        "options": {},
        "settings": {},
        "application_id": None,
        "batch_id": None,
    }
    answer = handler_of("delete_where")(session, Request(arguments))
    assert before is not None
    assert answer["snapshot_id"] != before.snapshot_id
    assert session.view(pin).snapshot == before
    assert session.pinned(pin).iceberg.metadata_location == pin.metadata_location


def test_branch_handle_does_not_affect_pins(session: Session) -> None:
    table = session.load(("db", "t"))
    table.create_branch("audit")
    pin = Pin(("db", "t"), table.iceberg.metadata_location)
    session.load(("db", "t"), branch="audit").append(pa.table({"id": [3]}, schema=SCHEMA))
    assert session.view(pin).snapshot == table.view.snapshot
