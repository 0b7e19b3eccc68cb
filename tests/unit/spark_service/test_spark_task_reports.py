"""Reports of the tasks of a write, as the process behind a catalog reads them."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from spark_ext.service.writes.task_reports import TaskReport, prefixes_of

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True))


def report_with_prefixes(ids: list[int], *, header_bytes: int) -> TaskReport:
    """The Arrow stream begins behind a header of so many bytes."""
    sink = pa.BufferOutputStream()
    rows = pa.table({"id": ids, "file": pa.array([-1] * len(ids), pa.int32())})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    stream = sink.getvalue().to_pybytes()
    header = json.dumps({"files": [], "positions": [], "prefixes": len(stream)}).encode().ljust(header_bytes)
    return TaskReport.parse(struct.pack(">i", len(header)) + header + stream)


def test_prefixes_are_in_memory_as_arrow_wants_them() -> None:
    """Otherwise Arrow warns at every micro-batch, on the driver's standard error, that other buffers may cause a
    crash."""
    for header_bytes in range(64, 72):
        report = report_with_prefixes([3, 1, 3], header_bytes=header_bytes)
        found = prefixes_of([report], ["id"], SCHEMA)
        assert sorted(found["id"].to_pylist()) == [1, 3]
        assert report.prefixes is not None
        (chunk,) = pa.ipc.open_stream(report.prefixes).read_all()["id"].chunks
        assert chunk.buffers()[1].address % 8 == 0
