"""CREATE and ALTER TABLE requests in the form that the Java side sends; needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_ext.service.ddl.tables import partition_text
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Session
from tableformat import open_catalog
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import InvalidArgumentError

STRUCT = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    opened = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    opened.catalog.create_namespace("db")
    return opened


def text(value: str | None) -> dict[str, Any]:
    return {"literal": value, "type": "string"}


def create(session: Session, version: str) -> dict[str, Any]:
    """Columns a, and b with the default x."""
    columns = [
        {"name": "a", "nullable": True, "type": "integer"},
        {"name": "b", "nullable": True, "type": "string", "default": text("x")},
    ]
    properties = {"format-version": version}
    arguments = {"columns": columns, "partitioning": [], "key": [], "checks": [], "properties": properties}
    described: dict[str, Any] = handler_of("create_table")(session, Request({"table": ["db", "t"], **arguments}))
    return described


def alter(session: Session, change: str, column: str, **arguments: Any) -> None:
    changes = [{"change": change, "column": [column], **arguments}]
    handler_of("alter_table")(session, Request({"table": ["db", "t"], "changes": changes}))


def defaults(session: Session) -> dict[str, tuple[Any, Any]]:
    fields = session.load(("db", "t")).iceberg.schema().fields
    return {field.name: (field.initial_default, field.write_default) for field in fields}


def test_default_of_a_new_table(session: Session) -> None:
    """The table has no older rows, so only new rows get the default."""
    create(session, "3")
    assert defaults(session) == {"a": (None, None), "b": (None, "x")}


def test_default_of_a_table_that_replaces_another(session: Session) -> None:
    create(session, "3")
    column = {"name": "n", "nullable": True, "type": "long", "default": {"literal": "7", "type": "long"}}
    new: dict[str, Any] = {"columns": [column], "partitioning": [], "key": [], "checks": [], "properties": {}}
    staged = handler_of("stage_table")(session, Request({"table": ["db", "t"], "kind": "replace", **new}))
    handler_of("commit_staged_table")(session, Request({"pin": staged["pin"]}))
    assert defaults(session) == {"n": (None, 7)}


def test_default_needs_version_3(session: Session) -> None:
    with pytest.raises(InvalidArgumentError, match="'format-version' = '3'"):
        create(session, "2")


def test_column_default_is_set_and_dropped_for_new_rows(session: Session) -> None:
    create(session, "3")
    alter(session, "UpdateColumnDefaultValue", "b", default=text("y"))
    assert defaults(session)["b"] == (None, "y")
    alter(session, "UpdateColumnDefaultValue", "b", default=None)
    assert defaults(session)["b"] == (None, None)


@pytest.mark.parametrize("default", [{"unknown": "named_struct('x', 1)"}, {"literal": "1", "type": "integer"}])
def test_composite_default_is_rejected(session: Session, default: dict[str, Any]) -> None:
    create(session, "3")
    with pytest.raises(InvalidArgumentError, match="only single values"):
        alter(session, "AddColumn", "s", type=STRUCT, nullable=True, comment=None, default=default)
    alter(session, "AddColumn", "s", type=STRUCT, nullable=True, comment=None, default=text(None))
    assert defaults(session)["s"] == (None, None)


def transform(name: str, number: str | None = None, number_type: Any = "integer") -> dict[str, Any]:
    numbers = [] if number is None else [{"literal": number, "type": number_type}]
    return {"transform": name, "arguments": [*numbers, {"column": ["c"]}]}


def test_transform_names_are_case_insensitive() -> None:
    assert partition_text(transform("Bucket", "2")) == 'bucket(2, "c")'
    assert partition_text(transform("HOURS")) == 'hour("c")'


@pytest.mark.parametrize(("number", "number_type"), [("0", "integer"), ("-1", "long"), ("2.5", "decimal(2,1)")])
def test_invalid_transform_widths_are_rejected(number: str, number_type: str) -> None:
    with pytest.raises(InvalidArgumentError, match="whole number above 0"):
        partition_text(transform("bucket", number, number_type))


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_warehouse_may_be_a_path_or_file_uri(tmp_path: Path, prefix: str) -> None:
    """LK-32"""
    Session.open("lake", {"warehouse": f"{prefix}{tmp_path}/my%20lake"}).catalog.create_namespace("shop")
    assert [path.name for path in tmp_path.iterdir()] == ["my lake"]
    assert Session.open("lake", {"warehouse": str(tmp_path / "my lake")}).catalog.list_namespaces() == ["shop"]


def test_warehouse_and_database_open_the_same_lake_as_python(tmp_path: Path) -> None:
    """LK-14: the same lake that Python opens, regardless of the name of the catalog in Spark."""
    uri = f"sqlite:///{tmp_path}/names.db"
    session = Session.open("spark_name", {"warehouse": str(tmp_path / "lake"), "uri": uri})
    session.catalog.create_namespace("db")
    assert create(session, "3")
    with open_catalog(str(tmp_path / "lake"), uri=uri) as catalog:
        assert catalog.list_tables() == ["db.t"]
    typed = {"type": "sql", "warehouse": f"file://{tmp_path}/sql", "uri": f"sqlite:///{tmp_path}/sql.db"}
    assert not isinstance(Session.open("spark_name", typed).catalog.iceberg, EmbeddedCatalog)
