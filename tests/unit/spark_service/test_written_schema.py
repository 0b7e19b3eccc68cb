"""A write uses the schema with which Spark planned it, even if that schema was changed afterwards."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from spark_ext.service.registry import Request
from spark_ext.service.session import Pin, Session
from spark_ext.service.writes.commits import commit_write
from spark_ext.service.writes.write_plan import plan_write

SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("one", "other", "row")])


def report_of_prefixes(prefixes: pa.Table) -> bytes:
    """The report of a task that wrote no row and found these prefixes."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, prefixes.schema) as stream:
        stream.write_table(prefixes)
    header = json.dumps({"files": [], "positions": [], "prefixes": len(sink.getvalue())}).encode()
    return struct.pack(">i", len(header)) + header + sink.getvalue()


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_stream_replaces_prefixes_under_its_removed_schema(tmp_path: Path, is_forgotten: bool) -> None:
    """CP-37, MT-1: the names used to be looked up in the current schema; if two columns had swapped names, other rows
    were deleted."""
    session = Session.open("lake", {"warehouse": str(tmp_path)})
    session.catalog.create_namespace("db")
    table = session.catalog.create_table("db.t", SCHEMA, key=["one", "other", "row"])
    table.append(pa.table({"one": ["a", "b"], "other": ["b", "a"], "row": ["a b", "b a"]}, schema=SCHEMA))
    pin = Pin(("db", "t"), session.load(("db", "t")).iceberg.metadata_location).to_json()
    asked = {"pin": pin, "table": ["db", "t"], "mode": "append", "row_lineage": False, "settings": {}}
    planned = plan_write(session, Request({**asked, "options": {"replace-prefix": "one,other"}}))
    for former, name in (("one", "on the way"), ("other", "one"), ("on the way", "other")):
        with table.refresh().update_schema() as update:
            update.rename_column(former, name)
    table.refresh().maintenance.compact(rewrite_all=True)
    expired = table.refresh().maintenance.expire_snapshots(
        older_than="9999-12-31", retain_last=1, clean_expired_metadata=is_forgotten
    )
    assert bool(expired.removed_schema_ids) == is_forgotten
    arguments = {"target": planned["target"], "mode": "append", "pin": None, "reads": [], "predicates": []}
    batch = {"application_id": None, "batch_id": None}
    report = report_of_prefixes(pa.table({"one": ["a"], "other": ["b"], "file": pa.array([-1], pa.int32())}))
    commit_write(session, Request({**arguments, **batch}, (report,)))
    assert table.refresh().scan().to_arrow()["row"].to_pylist() == ["b a"]
