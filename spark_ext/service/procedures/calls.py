"""CALL, SHOW PROCEDURES and DESCRIBE PROCEDURE, as requested by the Java side."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.procedures.argument_values import python_value
from spark_ext.service.procedures.conditions import Part
from spark_ext.service.procedures.procedure import SYSTEM, procedure_named, procedure_names
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Session
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow

_MODULES: Final = (
    "snapshots",
    "deletes",
    "undo",
    "rewrites",
    "files",
    "erasure",
    "upkeep",
    "range_partitions",
    "migration",
    "replication",
    "partition_statistics",
    "changelog_views",
    "statistics",
)


@method("list_procedures")
def list_procedures(session: Session, request: Request) -> list[str]:  # noqa: ARG001  every method has both
    load_procedures()
    return procedure_names()


@method("load_procedure")
def load_procedure(session: Session, request: Request) -> dict[str, Any]:  # noqa: ARG001  every method has both
    load_procedures()
    return procedure_named(tuple(request.arguments["procedure"])).describe()


@method("call_procedure")
def call_procedure(session: Session, request: Request) -> Answer:
    """PR-5, PR-21: run a procedure to completion in this process, and return its rows."""
    load_procedures()
    procedure = procedure_named((*SYSTEM, request.arguments["procedure"]))
    arguments = {name: _argument(session, request, value) for name, value in request.arguments["arguments"].items()}
    rows, views = procedure.run(
        lambda branch: session.load(request.table, branch=branch) if procedure.has_table else session,
        arguments,
        is_in_test=request.arguments["is_in_test"],
    )
    result = {"columns": spark_schema_of_arrow(rows.schema), "views": [view.to_json() for view in views]}
    return Answer(result, [arrow_stream(rows)])


def _argument(session: Session, request: Request, value: dict[str, Any]) -> Any:
    """The argument in the form that the role of its parameter requires."""
    if "rows" in value:
        return pa.ipc.open_stream(request.parts[value["rows"]]).read_all()
    if "table" in value:
        return session.load(tuple(value["table"]))
    if "name" in value:
        return tuple(value["name"])
    if "condition" in value:
        return Part.all_of(value["condition"])
    if "file_list" in value:
        paths, moments = value["file_list"]
        written = pa.array(moments, pa.timestamp("ms", tz="UTC"))
        return pa.table({"file_path": pa.array(paths, pa.string()), "last_modified": written})
    return value["source"] if "source" in value else python_value(value)


@cache
def load_procedures() -> None:
    """Import all modules with procedures, which registers them."""
    for module in _MODULES:
        importlib.import_module(f"spark_ext.service.procedures.{module}")
