"""Metadata tables: `db.t.snapshots`, `db.t.files` and the like, with Iceberg's columns."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow
from tableformat.operations.inspect import Inspect

_TABLES: Final = {
    "snapshots": Inspect.snapshots,
    "history": Inspect.history,
    "files": Inspect.files,
    "data_files": Inspect.data_files,
    "delete_files": Inspect.delete_files,
    "manifests": Inspect.manifests,
    "partitions": Inspect.partitions,
    "range_partitions": Inspect.range_partitions,
    "refs": Inspect.refs,
    "entries": Inspect.entries,
}


def is_metadata_table(name: str) -> bool:
    return name.lower() in _TABLES


def describe(session: Session, name: str, pin: Pin) -> dict[str, Any]:
    """What the Java side's MetadataTable knows of one."""
    schema = _rows(session, name, pin).schema
    return {"is_metadata_table": True, "pin": pin.to_json(), "schema": spark_schema_of_arrow(schema)}


@method("read_metadata_table")
def read_metadata_table(session: Session, request: Request) -> Answer:
    rows = _rows(session, request.table[-1], Pin.from_json(request.arguments["pin"]))
    return Answer(None, [arrow_stream(rows)])


def _rows(session: Session, name: str, pin: Pin) -> pa.Table:
    return _TABLES[name.lower()](Inspect(session.view(pin), pin.branch))
