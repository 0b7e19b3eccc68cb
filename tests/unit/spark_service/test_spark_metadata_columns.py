"""The columns of metadata tables that Spark receives."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pyarrow as pa
import pytest

from spark_ext.service.reads.metadata_tables import describe, read_metadata_table
from spark_ext.service.registry import Request
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.spark_types import iceberg_type
from tableformat.errors import InvalidArgumentError


def test_statistics_of_unsupported_spark_types_are_text(tmp_path: Path) -> None:
    """SP-32: times, which not every Spark version has, and nanoseconds; also as partitions."""
    session = Session.open("lake", {"warehouse": str(tmp_path)})
    session.catalog.create_namespace("db")
    schema = pa.schema([("at", pa.timestamp("ns", "UTC")), ("t", pa.time64("us")), ("u", pa.uuid())])
    table = session.catalog.create_table("db.t", schema, partition_by=["t"], properties={"format-version": "3"})
    moment = pa.array([1_700_000_000_123_456_789], schema.field("at").type)
    table.append(pa.table({"at": moment, "t": [time(1, 2, 3)], "u": pa.nulls(1, pa.uuid())}, schema=schema))
    pin = Pin(("db", "t"), table.iceberg.metadata_location)
    for name in (
        "files",
        "entries",
        "all_entries",
        "partitions",
        "position_deletes",
        "manifests",
        "metadata_log_entries",
    ):
        described = describe(session, name, pin)
        columns = [field["name"] for field in described["schema"]["fields"]]
        arguments = {"table": ["db", "t", name], "pin": pin.to_json(), "columns": columns}
        [stream] = read_metadata_table(session, Request(arguments)).parts
        assert pa.ipc.open_stream(stream).read_all().column_names == columns
    arguments = {"table": ["db", "t", "files"], "pin": pin.to_json(), "columns": ["readable_metrics", "partition"]}
    [stream] = read_metadata_table(session, Request(arguments)).parts
    [row] = pa.ipc.open_stream(stream).read_all().to_pylist()
    assert row["readable_metrics"]["at"]["lower_bound"] == "2023-11-14 22:13:20.123456789Z"
    assert row["partition"] == {"t": "01:02:03.000000"}


def test_unsupported_type_error_suggests_an_alternative(caplog: pytest.LogCaptureFixture) -> None:
    """SP-37."""
    for _ in range(2):
        assert str(iceberg_type("varchar(7)", "name")) == str(iceberg_type("char(3)", "code")) == "string"
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "'name': varchar(7) is stored as STRING" in told[0]
    assert "char_length(code) <= 3" in told[1]
    for spark, instead in (("variant", "to_json"), ("interval day", "a number"), ("timestamp_ntz(9)", "from Python")):
        with pytest.raises(InvalidArgumentError, match=instead):
            iceberg_type(spark, "v")
