"""Dates, and timestamps without a zone, in a timestamp column: in one file, and in several files that are read
together."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import PARQUET, DataFile

DAYS = [dt.date(1969, 12, 30), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1970, 1, 2)]
MIDNIGHTS = [dt.datetime.combine(day, dt.time()) for day in DAYS]


@pytest.mark.parametrize("file_count", [1, 3])
@pytest.mark.parametrize(
    ("in_table", "stored"),
    [
        (pa.timestamp("us"), pa.array(DAYS, pa.date32())),
        (pa.timestamp("us", "UTC"), pa.array(MIDNIGHTS, pa.timestamp("us"))),
        (pa.timestamp("us", "UTC"), pa.array(MIDNIGHTS, pa.timestamp("ms"))),
    ],
    ids=["date", "moment", "milliseconds"],
)
def test_a_range_delete_and_its_changes(
    tmp_path: Path, in_table: pa.TimestampType, stored: pa.Array, file_count: int
) -> None:
    """DA-6: what was stored is compared as what it reads as."""
    columns = [stored, pa.array(range(len(DAYS)), pa.int64())]
    fields = [
        pa.field(name, column.type, metadata={b"PARQUET:field_id": str(field_id).encode()})
        for field_id, (name, column) in enumerate(zip(["at", "n"], columns, strict=True), 1)
    ]
    added = []
    for number in range(file_count):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path)
        added.append(
            DataFile(
                file_path=f"file://{path}",
                file_format=PARQUET,
                spec_id=0,
                record_count=len(DAYS),
                file_size_bytes=path.stat().st_size,
            )
        )
    zone = None if in_table.tz is None else dt.UTC
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", pa.schema([("at", in_table), ("n", pa.int64())]), key=["at"])
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=tuple(added)))
        table.refresh()
        table.delete_range(lower=(MIDNIGHTS[1].replace(tzinfo=zone),), upper=(MIDNIGHTS[3].replace(tzinfo=zone),))
        assert table.scan().to_arrow()["n"].to_pylist() == [0, 3] * file_count
        changes = table.changes().to_arrow().to_pylist()
        assert [each["n"] for each in changes if each["_change_type"] == "delete"] == [1, 2] * file_count
