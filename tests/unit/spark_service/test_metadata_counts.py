"""COUNT in Spark from metadata alone, if the counts of another writer omit nulls (SP-4); needs no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.snapshots import Operation

from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Pin, Session
from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.testing.table_files import live_data_files

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.struct([("x", pa.float64())]))])


@pytest.mark.parametrize(("counted", "answer"), [(3, [2]), (2, None)])
def test_count_is_exact_or_computed_from_rows(tmp_path: Path, counted: int, answer: list[int] | None) -> None:
    """SP-4, FM-8: of three rows one has no struct, and Iceberg's Java library counts two values and no null."""
    session = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    session.catalog.create_namespace("db")
    table, source = (session.catalog.create_table(f"db.{name}", SCHEMA) for name in ("t", "source"))
    rows = [{"id": 1, "at": {"x": 1.0}}, {"id": 2, "at": None}, {"id": 3, "at": {"x": 3.0}}]
    source.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    (data,) = live_data_files(source)
    field_id = table.metadata.schema().find_field("at.x").field_id
    stated: dict[str, Any] = {
        "value_counts": {**(data.value_counts or {}), field_id: counted},
        "null_value_counts": {**(data.null_value_counts or {}), field_id: counted - 2},
    }
    added = replace(data, sequence_number=None, **stated)
    commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(added,)))
    pin = Pin.from_json(handler_of("load_table")(session, Request({"table": ["db", "t"]}))["pin"])
    function = {"function": "count", "column": ["at", "x"]}
    arguments = {"pin": pin.to_json(), "functions": [function], "predicates": [], "options": {}, "settings": {}}
    found = handler_of("aggregate")(session, Request(arguments))
    if answer is None:
        assert found.result["schema"] is None
    else:
        (stream,) = found.parts
        assert pa.ipc.open_stream(stream).read_all().column(0).to_pylist() == answer
